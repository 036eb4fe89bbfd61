#include "compute/chat/builtins.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>

#include "compute/chat/characters.h"
#include "compute/chat/lexer.h"
#include "compute/tokenizer/unicode.h"

namespace shoal::chat {
namespace {

Error invalid(std::string what) { return {ErrorCode::kInvalid, std::move(what)}; }

// --- Filters -------------------------------------------------------------------------------------

using Filter = Result<Value> (*)(Heap&, const Value&, const Arguments&);

// What Jinja's filters for texts do first: anything becomes a text.
Result<Value> on_text(Heap& heap, const Value& value, Result<Text> (*change)(Heap&, const Text&)) {
  SHOAL_TRY_ASSIGN(text, printed(heap, value));
  SHOAL_TRY_ASSIGN(made, change(heap, text));
  return heap.text(std::move(made));
}

Result<Value> trim_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"chars"}));
  SHOAL_TRY_ASSIGN(text, printed(heap, value));
  const Text* const characters = text_of(bound[0]);
  SHOAL_TRY_ASSIGN(made, stripped(heap, text, characters, /*left=*/true, /*right=*/true));
  return heap.text(std::move(made));
}

Result<Value> upper_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  return on_text(heap, value, upper);
}

Result<Value> lower_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  return on_text(heap, value, lower);
}

Result<Value> capitalize_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  return on_text(heap, value, capitalized);
}

// A word begins after white space, a dash or an opening bracket.
Result<Text> title_of(Heap& heap, const Text& text) {
  SHOAL_TRY(heap.spend(text.size() / 8));
  Text out;
  bool begins = true;
  std::string character;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = next_utf8(text.view().substr(at));
    const uint32_t c = step.code_point;
    character.clear();
    append_utf8(character, begins ? to_upper(c) : to_lower(c));
    out.append(character, text.from_message(at));
    begins = is_python_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    at += step.size;
  }
  return out;
}

Result<Value> title_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  return on_text(heap, value, title_of);
}

Result<Value> string_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  SHOAL_TRY_ASSIGN(text, printed(heap, value));
  return heap.text(std::move(text));
}

Result<Value> safe_filter(Heap&, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  return value;
}

Result<Value> escape_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  SHOAL_TRY_ASSIGN(text, printed(heap, value));
  static constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
  for (const auto& [from, to] : kEscapes) {
    SHOAL_TRY_ASSIGN(
        made, replaced(heap, text, Text(std::string(from), true), Text(std::string(to), true), -1));
    text = std::move(made);
  }
  return heap.text(std::move(text));
}

Result<Value> length_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  if (is_undefined(value)) return Value(int64_t{0});
  if (const List* const list = list_of(value))
    return Value(static_cast<int64_t>(list->items.size()));
  if (const Dict* const dict = dict_of(value))
    return Value(static_cast<int64_t>(dict->entries.size()));
  if (const Text* const text = text_of(value)) {
    SHOAL_TRY_ASSIGN(starts, character_starts(heap, *text));
    return Value(static_cast<int64_t>(starts.size()) - 1);
  }
  return wrong_kind(value, "a text, a list or a dict");
}

Result<Value> tojson_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ascii = is_true(bound[0]);
  style.sort_keys = is_true(bound[3]);
  if (!is_undefined(bound[1]) && !is_none(bound[1])) {
    const auto indent = integer_of(bound[1]);
    if (!indent || *indent < 0 || *indent > 64)
      return invalid("tojson: indent is not a number between 0 and 64");
    style.indent = *indent;
    style.item_separator = ",";
  }
  if (const List* const separators = list_of(bound[2]);
      separators != nullptr && separators->items.size() == 2) {
    const Text* const item = text_of(separators->items[0]);
    const Text* const key = text_of(separators->items[1]);
    if (item == nullptr || key == nullptr) return invalid("tojson: a separator is no text");
    style.item_separator = std::string(item->view());
    style.key_separator = std::string(key->view());
  }
  SHOAL_TRY_ASSIGN(text, json(heap, value, style));
  return heap.text(std::move(text));
}

Result<Value> default_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"default_value", "boolean"}));
  if (!is_undefined(value) && (is_true(value) || !is_true(bound[1]))) return value;
  if (arguments.positional.empty() && arguments.named.empty())
    return heap.text("", /*from_message=*/false);
  return bound[0];
}

// The value at "a.b.0".
Result<Value> attribute_of(Heap& heap, Value value, const Value& path) {
  if (const auto integer = integer_of(path)) return index_of(heap, value, Value(*integer));
  const Text* const text = text_of(path);
  if (text == nullptr) return wrong_kind(path, "an attribute's name");
  std::string_view rest = text->view();
  for (;;) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    int64_t number = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), number);
    Value key(number);
    if (part.empty() || read.ec != std::errc() || read.ptr != part.data() + part.size()) {
      SHOAL_TRY_ASSIGN(name, heap.text(part, /*from_message=*/false));
      key = name;
    }
    SHOAL_TRY_ASSIGN(next, index_of(heap, value, key));
    value = next;
    if (dot == rest.size()) return value;
    rest.remove_prefix(dot + 1);
  }
}

Result<Value> join_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"d", "attribute"}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  SHOAL_TRY_ASSIGN(separator, printed(heap, bound[0]));
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (!is_undefined(bound[1])) {
      SHOAL_TRY_ASSIGN(found, attribute_of(heap, item, bound[1]));
      item = found;
    }
    if (i > 0) SHOAL_TRY(heap.append(out, separator));
    if (const Text* const text = text_of(item)) {
      SHOAL_TRY(heap.append(out, *text));
    } else {
      SHOAL_TRY_ASSIGN(made, printed(heap, item));
      SHOAL_TRY(heap.append(out, made));
    }
  }
  return heap.text(std::move(out));
}

Result<Value> first_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  return items.empty() ? Value(Undefined{"the first item"}) : items.front();
}

Result<Value> last_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  return items.empty() ? Value(Undefined{"the last item"}) : items.back();
}

Result<Value> list_value(Heap& heap, std::vector<Value> items) {
  SHOAL_TRY_ASSIGN(list, heap.list(std::move(items)));
  return Value(list);
}

Result<Value> list_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  return list_value(heap, std::move(items));
}

Result<Value> reverse_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  if (text_of(value) != nullptr)
    return slice_of(heap, value, Value(None{}), Value(None{}), Value(int64_t{-1}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  std::reverse(items.begin(), items.end());
  return list_value(heap, std::move(items));
}

Result<Value> items_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  if (is_undefined(value)) return list_value(heap, {});
  if (dict_of(value) == nullptr) return wrong_kind(value, "a dict");
  return call_method(heap, "items", value, {});
}

Result<Value> replace_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"old", "new", "count"}, 2));
  SHOAL_TRY_ASSIGN(text, printed(heap, value));
  SHOAL_TRY_ASSIGN(from, printed(heap, bound[0]));
  SHOAL_TRY_ASSIGN(to, printed(heap, bound[1]));
  const auto times = integer_of(bound[2]);
  SHOAL_TRY_ASSIGN(made, replaced(heap, text, from, to, times ? *times : -1));
  return heap.text(std::move(made));
}

// The number at the start of a trimmed text, if it is all of it.
template <class Number>
std::optional<Number> parsed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || (text.front() >= '\t' && text.front() <= '\r')))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || (text.back() >= '\t' && text.back() <= '\r')))
    text.remove_suffix(1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return std::nullopt;
  return number;
}

std::optional<int64_t> whole(double number) {
  // Both limits are powers of two, so they are doubles.
  if (!(number >= -0x1p63 && number < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(number);
}

Result<Value> int_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"default"}));
  const Value otherwise = is_undefined(bound[0]) ? Value(int64_t{0}) : bound[0];
  if (const auto integer = integer_of(value)) return Value(*integer);
  std::optional<double> number;
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  if (const Text* const text = text_of(value)) {
    SHOAL_TRY(heap.spend(text->size() / 16));
    if (const auto integer = parsed<int64_t>(text->view())) return Value(*integer);
    number = parsed<double>(text->view());
  }
  const auto integer = number ? whole(*number) : std::nullopt;
  return integer ? Value(*integer) : otherwise;
}

Result<Value> float_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"default"}));
  if (const auto integer = integer_of(value)) return Value(static_cast<double>(*integer));
  if (std::holds_alternative<double>(value)) return value;
  if (const Text* const text = text_of(value)) {
    SHOAL_TRY(heap.spend(text->size() / 16));
    if (const auto number = parsed<double>(text->view())) return Value(*number);
  }
  return is_undefined(bound[0]) ? Value(0.0) : bound[0];
}

Result<Value> abs_filter(Heap&, const Value& value, const Arguments& arguments) {
  SHOAL_TRY(bind(arguments, {}));
  if (const auto* real = std::get_if<double>(&value)) return Value(std::fabs(*real));
  const auto integer = integer_of(value);
  if (!integer || *integer == std::numeric_limits<int64_t>::min())
    return wrong_kind(value, "a number");
  return Value(*integer < 0 ? -*integer : *integer);
}

Result<Value> round_filter(Heap&, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"precision", "method"}));
  const auto precision = is_undefined(bound[0]) ? std::optional<int64_t>(0) : integer_of(bound[0]);
  if (!precision || *precision < 0 || *precision > 15)
    return invalid("round: precision is not a number between 0 and 15");
  const Text* const method = text_of(bound[1]);
  const std::string_view how = method == nullptr ? "common" : method->view();
  double number = 0;
  if (const auto* real = std::get_if<double>(&value)) {
    number = *real;
  } else if (const auto integer = integer_of(value)) {
    number = static_cast<double>(*integer);
  } else {
    return wrong_kind(value, "a number");
  }
  const double scale = std::pow(10.0, static_cast<double>(*precision));
  if (how == "ceil") return Value(std::ceil(number * scale) / scale);
  if (how == "floor") return Value(std::floor(number * scale) / scale);
  if (how != "common") return invalid("round: there is no method " + shown(how));
  // As Python does: a whole number is one already, and a float is rounded by its decimal digits.
  if (const auto integer = integer_of(value)) return Value(*integer);
  if (!std::isfinite(number)) return Value(number);
  char digits[512];
  const auto written = std::to_chars(digits, digits + sizeof digits, number,
                                     std::chars_format::fixed, static_cast<int>(*precision));
  double rounded = 0;
  std::from_chars(digits, written.ptr, rounded);
  return Value(rounded);
}

Result<Value> indent_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"width", "first", "blank"}));
  Text indent("    ", /*from_message=*/false);
  if (const Text* const text = text_of(bound[0])) {
    indent = *text;
  } else if (!is_undefined(bound[0])) {
    const auto width = integer_of(bound[0]);
    if (!width || *width < 0 || *width > 1000)
      return invalid("indent: width is not a number between 0 and 1000");
    indent = Text(std::string(static_cast<size_t>(*width), ' '), /*from_message=*/false);
  }
  SHOAL_TRY_ASSIGN(text, printed(heap, value));
  SHOAL_TRY(heap.append(text, "\n", /*from_message=*/false));
  SHOAL_TRY_ASSIGN(lines, lines_of(heap, text, /*keep_ends=*/false));
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) SHOAL_TRY(heap.append(out, "\n", /*from_message=*/false));
    const bool indents = i == 0 ? is_true(bound[1]) : is_true(bound[2]) || !lines[i].empty();
    if (indents) SHOAL_TRY(heap.append(out, indent));
    SHOAL_TRY(heap.append(out, lines[i]));
  }
  return heap.text(std::move(out));
}

// What sorting and comparing go by: a part of the item, without regard to case unless asked for.
Result<Value> sort_key(Heap& heap, const Value& item, const Value& attribute, bool by_case) {
  Value key = item;
  if (!is_undefined(attribute) && !is_none(attribute)) {
    SHOAL_TRY_ASSIGN(found, attribute_of(heap, item, attribute));
    key = found;
  }
  if (const Text* const text = text_of(key); text != nullptr && !by_case) {
    SHOAL_TRY_ASSIGN(made, lower(heap, *text));
    return heap.text(std::move(made));
  }
  return key;
}

Result<Value> unique_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"case_sensitive", "attribute"}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  std::vector<Value> seen, out;
  for (const Value& item : items) {
    SHOAL_TRY_ASSIGN(key, sort_key(heap, item, bound[1], is_true(bound[0])));
    bool known = false;
    for (size_t i = 0; i < seen.size() && !known; ++i) {
      SHOAL_TRY_ASSIGN(same, equal(heap, seen[i], key));
      known = same;
    }
    if (known) continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return list_value(heap, std::move(out));
}

// Sorts by keys, equals in the order they had.
Result<std::vector<Value>> sorted(Heap& heap, const std::vector<Value>& items,
                                  const std::vector<Value>& keys, bool reverse) {
  std::vector<size_t> places(items.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  Result<void> failed;
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    if (!failed.ok()) return false;
    const auto sooner = order(heap, keys[reverse ? b : a], keys[reverse ? a : b]);
    if (!sooner.ok()) failed = sooner.error();
    return sooner.ok() && sooner.value() < 0;
  });
  SHOAL_TRY(failed);
  std::vector<Value> out;
  for (const size_t place : places) out.push_back(items[place]);
  return out;
}

Result<Value> sort_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"reverse", "case_sensitive", "attribute"}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  std::vector<Value> keys;
  for (const Value& item : items) {
    SHOAL_TRY_ASSIGN(key, sort_key(heap, item, bound[2], is_true(bound[1])));
    keys.push_back(key);
  }
  SHOAL_TRY_ASSIGN(out, sorted(heap, items, keys, is_true(bound[0])));
  return list_value(heap, std::move(out));
}

Result<Value> dictsort_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"case_sensitive", "by", "reverse"}));
  if (dict_of(value) == nullptr) return wrong_kind(value, "a dict");
  const Text* const by = text_of(bound[1]);
  const bool by_value = by != nullptr && by->view() == "value";
  SHOAL_TRY_ASSIGN(pairs, call_method(heap, "items", value, {}));
  const std::vector<Value>& items = list_of(pairs)->items;
  std::vector<Value> keys;
  for (const Value& item : items) {
    SHOAL_TRY_ASSIGN(key, sort_key(heap, list_of(item)->items[by_value ? 1 : 0], Value(Undefined{}),
                                   is_true(bound[0])));
    keys.push_back(key);
  }
  SHOAL_TRY_ASSIGN(out, sorted(heap, items, keys, is_true(bound[2])));
  return list_value(heap, std::move(out));
}

Result<Value> extreme(Heap& heap, const Value& value, const Arguments& arguments, int sign) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"case_sensitive", "attribute"}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  if (items.empty()) return Value(Undefined{"an item of a list"});
  Value best = items[0], best_key = best;
  for (size_t i = 0; i < items.size(); ++i) {
    SHOAL_TRY_ASSIGN(key, sort_key(heap, items[i], bound[1], is_true(bound[0])));
    int better = 0;
    if (i > 0) {
      SHOAL_TRY_ASSIGN(sooner, order(heap, key, best_key));
      better = sooner * sign;
    }
    if (i > 0 && better >= 0) continue;
    best = items[i];
    best_key = key;
  }
  return best;
}

Result<Value> min_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  return extreme(heap, value, arguments, 1);
}

Result<Value> max_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  return extreme(heap, value, arguments, -1);
}

Result<Value> sum_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"attribute", "start"}));
  SHOAL_TRY_ASSIGN(items, items_of(heap, value));
  if (!is_undefined(bound[1])) items.insert(items.begin(), bound[1]);
  int64_t whole_sum = 0;
  double sum = 0;
  bool is_whole = true;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    const bool is_start = i == 0 && !is_undefined(bound[1]);
    if (!is_start && !is_undefined(bound[0]) && !is_none(bound[0])) {
      SHOAL_TRY_ASSIGN(found, attribute_of(heap, item, bound[0]));
      item = found;
    }
    if (const auto integer = integer_of(item)) {
      if (__builtin_add_overflow(whole_sum, *integer, &whole_sum))
        return invalid("sum: the sum is out of range");
      sum += static_cast<double>(*integer);
    } else if (const auto* real = std::get_if<double>(&item)) {
      is_whole = false;
      sum += *real;
    } else {
      return wrong_kind(item, "a number");
    }
  }
  return is_whole ? Value(whole_sum) : Value(sum);
}

Result<Value> attr_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"name"}, 1));
  const Text* const name = text_of(bound[0]);
  if (name == nullptr) return wrong_kind(bound[0], "a text");
  return index_of(heap, value, bound[0]);
}

// What map, select and their like go through: nothing of whatever is not true.
Result<std::vector<Value>> items_if_true(Heap& heap, const Value& value) {
  if (!is_true(value)) return std::vector<Value>();
  return items_of(heap, value);
}

Result<Value> map_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(items, items_if_true(heap, value));
  std::vector<Value> out;
  if (arguments.positional.empty()) {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"attribute", "default"}, 1));
    for (const Value& item : items) {
      SHOAL_TRY_ASSIGN(found, attribute_of(heap, item, bound[0]));
      out.push_back(is_undefined(found) && arguments.named.size() > 1 ? bound[1] : found);
    }
    return list_value(heap, std::move(out));
  }
  const Text* const name = text_of(arguments.positional[0]);
  if (name == nullptr) return wrong_kind(arguments.positional[0], "a filter's name");
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  for (const Value& item : items) {
    SHOAL_TRY_ASSIGN(made, apply_filter(heap, name->view(), item, rest));
    out.push_back(made);
  }
  return list_value(heap, std::move(out));
}

// select, reject, selectattr and rejectattr.
Result<Value> chosen(Heap& heap, const Value& value, const Arguments& arguments, bool by_attribute,
                     bool wanted) {
  SHOAL_TRY_ASSIGN(items, items_if_true(heap, value));
  Arguments rest = arguments;
  Value attribute(Undefined{});
  if (by_attribute) {
    if (rest.positional.empty()) return invalid("needs the name of an attribute");
    attribute = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  const Text* test = nullptr;
  if (!rest.positional.empty()) {
    test = text_of(rest.positional[0]);
    if (test == nullptr) return wrong_kind(rest.positional[0], "a test's name");
    rest.positional.erase(rest.positional.begin());
  }
  std::vector<Value> out;
  for (const Value& item : items) {
    Value tested = item;
    if (by_attribute) {
      SHOAL_TRY_ASSIGN(found, attribute_of(heap, item, attribute));
      tested = found;
    }
    bool passes = is_true(tested);
    if (test != nullptr) {
      SHOAL_TRY_ASSIGN(answer, apply_test(heap, test->view(), tested, rest));
      passes = answer;
    }
    if (passes == wanted) out.push_back(item);
  }
  return list_value(heap, std::move(out));
}

Result<Value> select_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  return chosen(heap, value, arguments, /*by_attribute=*/false, /*wanted=*/true);
}
Result<Value> reject_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  return chosen(heap, value, arguments, /*by_attribute=*/false, /*wanted=*/false);
}
Result<Value> selectattr_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  return chosen(heap, value, arguments, /*by_attribute=*/true, /*wanted=*/true);
}
Result<Value> rejectattr_filter(Heap& heap, const Value& value, const Arguments& arguments) {
  return chosen(heap, value, arguments, /*by_attribute=*/true, /*wanted=*/false);
}

constexpr std::pair<std::string_view, Filter> kFilters[] = {
    {"abs", abs_filter},           {"attr", attr_filter},       {"capitalize", capitalize_filter},
    {"count", length_filter},      {"d", default_filter},       {"default", default_filter},
    {"dictsort", dictsort_filter}, {"e", escape_filter},        {"escape", escape_filter},
    {"first", first_filter},       {"float", float_filter},     {"indent", indent_filter},
    {"int", int_filter},           {"items", items_filter},     {"join", join_filter},
    {"last", last_filter},         {"length", length_filter},   {"list", list_filter},
    {"lower", lower_filter},       {"map", map_filter},         {"max", max_filter},
    {"min", min_filter},           {"reject", reject_filter},   {"rejectattr", rejectattr_filter},
    {"replace", replace_filter},   {"reverse", reverse_filter}, {"round", round_filter},
    {"safe", safe_filter},         {"select", select_filter},   {"selectattr", selectattr_filter},
    {"sort", sort_filter},         {"string", string_filter},   {"sum", sum_filter},
    {"title", title_filter},       {"tojson", tojson_filter},   {"trim", trim_filter},
    {"unique", unique_filter},     {"upper", upper_filter},
};

// --- Functions -----------------------------------------------------------------------------------

constexpr int64_t kRangeMax = 100'000;

Result<Value> range(Heap& heap, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.empty() || given.size() > 3 || !arguments.named.empty())
    return invalid("range takes one to three numbers");
  int64_t numbers[3] = {0, 0, 1};
  for (size_t i = 0; i < given.size(); ++i) {
    const auto integer = integer_of(given[i]);
    constexpr int64_t kFar = int64_t{1} << 60;
    if (!integer || *integer > kFar || *integer < -kFar) return wrong_kind(given[i], "a number");
    numbers[given.size() == 1 ? 1 : i] = *integer;
  }
  const auto [begin, end, step] = numbers;
  if (step == 0) return invalid("range: the step is 0");
  int64_t count = 0;
  if (step > 0 && begin < end) count = (end - begin - 1) / step + 1;
  if (step < 0 && begin > end) count = (begin - end - 1) / -step + 1;
  if (count > kRangeMax) {
    return Error{ErrorCode::kNoSpace,
                 "range has more than " + std::to_string(kRangeMax) + " numbers"};
  }
  std::vector<Value> items;
  for (int64_t i = 0; i < count; ++i) items.emplace_back(begin + i * step);
  return list_value(heap, std::move(items));
}

// strftime's letters for a date of the world's time (UTC).
Result<Value> strftime(Heap& heap, int64_t now_ms, const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"format"}, 1));
  const Text* const format = text_of(bound[0]);
  if (format == nullptr) return wrong_kind(bound[0], "a text");
  // Years that any format can write with four digits.
  constexpr int64_t kMsMax = int64_t{253'402'300'799} * 1000;
  const std::chrono::sys_time<std::chrono::milliseconds> time{
      std::chrono::milliseconds(std::clamp<int64_t>(now_ms, 0, kMsMax))};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time - day).count();
  const int year = static_cast<int>(date.year());
  const unsigned month = static_cast<unsigned>(date.month());
  const unsigned weekday = std::chrono::weekday(day).c_encoding();
  const auto day_of_year = (day - std::chrono::sys_days(date.year() / 1 / 1)).count() + 1;
  static constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                                 "May",       "June",     "July",     "August",
                                                 "September", "October",  "November", "December"};
  static constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                               "Thursday", "Friday", "Saturday"};
  const auto padded = [](int64_t number, size_t digits) {
    std::string text = std::to_string(number);
    return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
  };
  const int64_t hour = seconds / 3600;
  const auto hour12 = hour % 12 == 0 ? 12 : hour % 12;
  std::string out;
  const std::string_view bytes = format->view();
  if (bytes.size() > 1000) return invalid("the format is too long");
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != '%') {
      out.push_back(bytes[i]);
      continue;
    }
    const char letter = i + 1 < bytes.size() ? bytes[++i] : '\0';
    switch (letter) {
      case 'Y': out += padded(year, 4); break;
      case 'y': out += padded(year % 100, 2); break;
      case 'm': out += padded(month, 2); break;
      case 'd': out += padded(static_cast<unsigned>(date.day()), 2); break;
      case 'e': {
        const std::string number = std::to_string(static_cast<unsigned>(date.day()));
        out += number.size() < 2 ? " " + number : number;
        break;
      }
      case 'j': out += padded(day_of_year, 3); break;
      case 'H': out += padded(hour, 2); break;
      case 'I': out += padded(hour12, 2); break;
      case 'M': out += padded(seconds / 60 % 60, 2); break;
      case 'S': out += padded(seconds % 60, 2); break;
      case 'p': out += hour < 12 ? "AM" : "PM"; break;
      case 'B': out += kMonths[month - 1]; break;
      case 'b':
      case 'h': out += kMonths[month - 1].substr(0, 3); break;
      case 'A': out += kDays[weekday]; break;
      case 'a': out += kDays[weekday].substr(0, 3); break;
      case 'F':
        out += padded(year, 4) + "-" + padded(month, 2) + "-" +
               padded(static_cast<unsigned>(date.day()), 2);
        break;
      case 'T':
        out += padded(hour, 2) + ":" + padded(seconds / 60 % 60, 2) + ":" + padded(seconds % 60, 2);
        break;
      case 'Z': out += "UTC"; break;
      case 'z': out += "+0000"; break;
      case '%': out += "%"; break;
      default: return invalid("the format " + shown(bytes) + " is not supported");
    }
  }
  return heap.text(std::move(out), /*from_message=*/false);
}

// --- Tests ---------------------------------------------------------------------------------------

bool is_number(const Value& value) {
  return std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value) ||
         std::holds_alternative<bool>(value);
}

bool is_sequence(const Value& value) {
  return text_of(value) != nullptr || list_of(value) != nullptr || dict_of(value) != nullptr;
}

// Tests of a value by itself; nothing for a name that is none.
std::optional<bool> simple_test(std::string_view name, const Value& value) {
  if (name == "defined") return !is_undefined(value);
  if (name == "undefined") return is_undefined(value);
  if (name == "none") return is_none(value);
  if (name == "string") return text_of(value) != nullptr;
  if (name == "mapping") return dict_of(value) != nullptr;
  if (name == "iterable") return is_sequence(value) || is_undefined(value);
  if (name == "sequence") return is_sequence(value) || is_undefined(value);
  if (name == "number") return is_number(value);
  if (name == "integer") return std::holds_alternative<int64_t>(value);
  if (name == "float") return std::holds_alternative<double>(value);
  if (name == "boolean") return std::holds_alternative<bool>(value);
  if (name == "true" || name == "false") {
    const auto* flag = std::get_if<bool>(&value);
    return flag != nullptr && *flag == (name == "true");
  }
  if (name == "callable") return std::holds_alternative<const Callable*>(value);
  return std::nullopt;
}

std::optional<bool> compared(std::string_view name, int sign) {
  if (name == "lt" || name == "lessthan" || name == "<") return sign < 0;
  if (name == "le" || name == "<=") return sign <= 0;
  if (name == "gt" || name == "greaterthan" || name == ">") return sign > 0;
  if (name == "ge" || name == ">=") return sign >= 0;
  return std::nullopt;
}

}  // namespace

Result<std::vector<Value>> bind(const Arguments& arguments,
                                std::initializer_list<std::string_view> names, size_t required) {
  if (arguments.positional.size() > names.size()) {
    return invalid("takes " + std::to_string(names.size()) + " arguments at most, not " +
                   std::to_string(arguments.positional.size()));
  }
  std::vector<Value> bound(names.size(), Value(Undefined{}));
  std::vector<bool> given(names.size(), false);
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound[i] = arguments.positional[i];
    given[i] = true;
  }
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) return invalid("has no argument " + shown(name));
    const auto place = static_cast<size_t>(at - names.begin());
    if (given[place]) return invalid("is given the argument " + shown(name) + " twice");
    bound[place] = value;
    given[place] = true;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!given[i]) return invalid("needs the argument " + shown(names.begin()[i]));
  }
  return bound;
}

Result<Value> apply_filter(Heap& heap, std::string_view name, const Value& value,
                           const Arguments& arguments) {
  const Descent descent(heap);
  SHOAL_TRY(descent.check());
  SHOAL_TRY(heap.spend(1));
  for (const auto& [known, filter] : kFilters) {
    if (known != name) continue;
    Result<Value> made = filter(heap, value, arguments);
    if (!made.ok()) return with_context(made.error(), "filter " + std::string(name));
    return made;
  }
  return Error{ErrorCode::kUnsupported, "there is no filter " + shown(name)};
}

Result<bool> apply_test(Heap& heap, std::string_view name, const Value& value,
                        const Arguments& arguments) {
  SHOAL_TRY(heap.spend(1));
  const auto context = [name](const Error& error) {
    return with_context(error, "test " + std::string(name));
  };
  if (const auto answer = simple_test(name, value)) {
    const auto bound = bind(arguments, {});
    if (!bound.ok()) return context(bound.error());
    return *answer;
  }
  if (name == "lower" || name == "upper") {
    SHOAL_TRY_ASSIGN(text, printed(heap, value));
    SHOAL_TRY_ASSIGN(wrapped, heap.text(std::move(text)));
    SHOAL_TRY_ASSIGN(answer,
                     call_method(heap, name == "lower" ? "islower" : "isupper", wrapped, {}));
    return std::get<bool>(answer);
  }
  if (name == "odd" || name == "even") {
    const auto integer = integer_of(value);
    if (!integer) return context(wrong_kind(value, "a whole number"));
    return (*integer % 2 != 0) == (name == "odd");
  }
  static constexpr std::string_view kWithArgument[] = {
      "equalto",  "eq", "==", "ne", "!=", "sameas", "in",          "divisibleby", "lt",
      "lessthan", "<",  "le", "<=", "gt", ">",      "greaterthan", "ge",          ">="};
  if (std::find(std::begin(kWithArgument), std::end(kWithArgument), name) ==
      std::end(kWithArgument)) {
    return Error{ErrorCode::kUnsupported, "there is no test " + shown(name)};
  }
  const auto bound = bind(arguments, {"other"}, 1);
  if (!bound.ok()) return context(bound.error());
  const Value& other = bound.value()[0];
  if (name == "equalto" || name == "eq" || name == "==") return equal(heap, value, other);
  if (name == "ne" || name == "!=") {
    SHOAL_TRY_ASSIGN(same, equal(heap, value, other));
    return !same;
  }
  if (name == "sameas") {
    if (value.index() != other.index()) return false;
    return equal(heap, value, other);
  }
  if (name == "in") {
    if (const Text* const text = text_of(other)) {
      const Text* const what = text_of(value);
      if (what == nullptr) return context(wrong_kind(value, "a text"));
      SHOAL_TRY_ASSIGN(found, find_text(heap, text->view(), what->view(), 0));
      return found != std::string_view::npos;
    }
    if (const Dict* const dict = dict_of(other)) {
      SHOAL_TRY_ASSIGN(found, heap.find(*dict, value));
      return found != nullptr;
    }
    if (is_undefined(other)) return false;
    const List* const list = list_of(other);
    if (list == nullptr) return context(wrong_kind(other, "a text, a list or a dict"));
    for (const Value& item : list->items) {
      SHOAL_TRY_ASSIGN(same, equal(heap, item, value));
      if (same) return true;
    }
    return false;
  }
  if (name == "divisibleby") {
    const auto integer = integer_of(value), by = integer_of(other);
    if (!integer || !by || *by == 0) return context(invalid("needs whole numbers, and not 0"));
    return *by == -1 || *integer % *by == 0;
  }
  const auto sooner = order(heap, value, other);
  if (!sooner.ok()) return context(sooner.error());
  return *compared(name, sooner.value());
}

bool is_function(std::string_view name, std::optional<int64_t> now_ms) {
  return name == "range" || name == "namespace" || name == "dict" || name == "raise_exception" ||
         (name == "strftime_now" && now_ms.has_value());
}

Result<Value> call_function(Heap& heap, std::string_view name, std::optional<int64_t> now_ms,
                            const Arguments& arguments) {
  if (name == "range") return range(heap, arguments);
  if (name == "strftime_now") return strftime(heap, now_ms.value_or(0), arguments);
  if (name == "raise_exception") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"message"}));
    SHOAL_TRY_ASSIGN(text, printed(heap, bound[0]));
    constexpr size_t kMessageBytesMax = 300;
    std::string message = valid_utf8(text.view().substr(0, kMessageBytesMax));
    for (char& c : message) {
      if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) c = ' ';
    }
    return invalid("the template refuses this conversation: " + message);
  }
  if (arguments.positional.size() > 1) return invalid("takes one dict at most, and names");
  const Dict* from = nullptr;
  if (!arguments.positional.empty()) {
    from = dict_of(arguments.positional[0]);
    if (from == nullptr) return wrong_kind(arguments.positional[0], "a dict");
  }
  if (name == "dict") {
    SHOAL_TRY_ASSIGN(made, heap.dict());
    if (from != nullptr) {
      SHOAL_TRY(heap.take(4 * sizeof(Value) * from->entries.size()));
      made->entries = from->entries;
    }
    for (const auto& [key, value] : arguments.named) {
      SHOAL_TRY_ASSIGN(text, heap.text(key, /*from_message=*/false));
      SHOAL_TRY(heap.put(*made, text, value));
    }
    return Value(made);
  }
  SHOAL_TRY_ASSIGN(space, heap.space());
  if (from != nullptr) {
    for (const auto& [key, value] : from->entries) {
      if (const Text* const text = text_of(key)) space->fields.emplace_back(text->view(), value);
    }
  }
  SHOAL_TRY(heap.take(2 * sizeof(Value) * (space->fields.size() + arguments.named.size())));
  for (const auto& [key, value] : arguments.named) {
    const auto same = std::find_if(space->fields.begin(), space->fields.end(),
                                   [&key = key](const auto& field) { return field.first == key; });
    if (same != space->fields.end()) {
      same->second = value;
    } else {
      space->fields.emplace_back(key, value);
    }
  }
  return Value(space);
}

}  // namespace shoal::chat
