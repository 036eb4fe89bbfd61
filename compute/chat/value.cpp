#include "compute/chat/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "compute/chat/characters.h"
#include "compute/tokenizer/unicode.h"

namespace shoal::chat {
namespace {

Error no_space(std::string what) { return {ErrorCode::kNoSpace, std::move(what)}; }

}  // namespace

std::optional<int64_t> integer_of(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  return std::nullopt;
}

std::optional<double> number_of(const Value& value) {
  if (const auto integer = integer_of(value)) return static_cast<double>(*integer);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

Result<void> Heap::spend(uint64_t fuel) {
  if (fuel > fuel_) {
    fuel_ = 0;
    return no_space("takes more than " + std::to_string(limits_.fuel) + " steps");
  }
  fuel_ -= fuel;
  return {};
}

Result<void> Heap::take(uint64_t bytes) {
  if (bytes > limits_.memory_bytes - bytes_)
    return no_space("needs more than " + std::to_string(limits_.memory_bytes) + " bytes");
  bytes_ += bytes;
  return spend(bytes / 64);
}

Result<Value> Heap::text(Text text) {
  SHOAL_TRY(take(sizeof(Text) + 2 * text.size()));
  texts_.push_back(std::move(text));
  return Value(&std::as_const(texts_.back()));
}

Result<Value> Heap::text(std::string_view bytes, bool from_message) {
  return text(Text(std::string(bytes), from_message));
}

Result<List*> Heap::list(std::vector<Value> items, bool tuple) {
  SHOAL_TRY(take(sizeof(List) + sizeof(Value) * items.size()));
  lists_.push_back({std::move(items), tuple});
  return &lists_.back();
}

Result<Dict*> Heap::dict() {
  SHOAL_TRY(take(sizeof(Dict)));
  dicts_.emplace_back();
  return &dicts_.back();
}

Result<Space*> Heap::space() {
  SHOAL_TRY(take(sizeof(Space)));
  spaces_.emplace_back();
  return &spaces_.back();
}

Result<Loop*> Heap::loop() {
  SHOAL_TRY(take(sizeof(Loop)));
  loops_.emplace_back();
  return &loops_.back();
}

Result<Scope*> Heap::scope(const Scope* outer) {
  SHOAL_TRY(take(sizeof(Scope) + 2 * sizeof(Value)));
  scopes_.push_back({outer, {}});
  return &scopes_.back();
}

Result<Value> Heap::callable(Callable callable) {
  SHOAL_TRY(take(sizeof(Callable)));
  callables_.push_back(callable);
  return Value(&std::as_const(callables_.back()));
}

Result<void> Heap::push(List& list, Value value) {
  SHOAL_TRY(take(2 * sizeof(Value)));
  list.items.push_back(value);
  return {};
}

Result<const Value*> Heap::find(const Dict& dict, const Value& key) {
  SHOAL_TRY(spend(1 + dict.entries.size() / 8));
  const Text* const text = text_of(key);
  for (const auto& [name, value] : dict.entries) {
    if (text != nullptr) {
      const Text* const other = text_of(name);
      if (other == nullptr || other->size() != text->size()) continue;
      SHOAL_TRY(spend(text->size() / 64));
      if (other->view() == text->view()) return &value;
      continue;
    }
    SHOAL_TRY_ASSIGN(same, equal(*this, name, key));
    if (same) return &value;
  }
  return static_cast<const Value*>(nullptr);
}

Result<void> Heap::put(Dict& dict, Value key, Value value) {
  SHOAL_TRY_ASSIGN(found, find(dict, key));
  if (found != nullptr) {
    dict.entries[static_cast<size_t>(
                     std::find_if(dict.entries.begin(), dict.entries.end(),
                                  [found](const auto& entry) { return &entry.second == found; }) -
                     dict.entries.begin())]
        .second = value;
    return {};
  }
  SHOAL_TRY(take(4 * sizeof(Value)));
  dict.entries.emplace_back(key, value);
  return {};
}

Result<void> Heap::append(Text& to, const Text& from) { return append(to, from, 0, from.size()); }

Result<void> Heap::append(Text& to, const Text& from, size_t begin, size_t end) {
  if (begin >= end) return {};
  if (end - begin > limits_.text_bytes - std::min(to.size(), limits_.text_bytes))
    return no_space("makes a text longer than " + std::to_string(limits_.text_bytes) + " bytes");
  SHOAL_TRY(spend((end - begin) / 32));
  to.append(from, begin, end);
  return {};
}

Result<void> Heap::append(Text& to, std::string_view from, bool from_message) {
  if (from.size() > limits_.text_bytes - std::min(to.size(), limits_.text_bytes))
    return no_space("makes a text longer than " + std::to_string(limits_.text_bytes) + " bytes");
  SHOAL_TRY(spend(from.size() / 32));
  to.append(from, from_message);
  return {};
}

Result<void> Descent::check() const {
  if (heap_.depth <= heap_.limits().depth) return {};
  return no_space("goes deeper than " + std::to_string(heap_.limits().depth) + " levels");
}

std::string_view kind_name(const Value& value) {
  static constexpr std::array<std::string_view, 11> kNames = {"nothing that is defined",
                                                              "none",
                                                              "true or false",
                                                              "a number",
                                                              "a number",
                                                              "a text",
                                                              "a list",
                                                              "a dict",
                                                              "a namespace",
                                                              "a loop",
                                                              "a function"};
  static_assert(kNames.size() == std::variant_size_v<Value>);
  if (const List* const list = list_of(value); list != nullptr && list->tuple) return "a tuple";
  return kNames[value.index()];
}

bool is_true(const Value& value) {
  if (is_undefined(value) || is_none(value)) return false;
  if (const auto number = number_of(value)) return *number != 0;
  if (const Text* const text = text_of(value)) return !text->empty();
  if (const List* const list = list_of(value)) return !list->items.empty();
  if (const Dict* const dict = dict_of(value)) return !dict->entries.empty();
  return true;
}

Result<bool> equal(Heap& heap, const Value& left, const Value& right) {
  const Descent descent(heap);
  SHOAL_TRY(descent.check());
  SHOAL_TRY(heap.spend(1));
  if (const auto a = integer_of(left)) {
    if (const auto b = integer_of(right)) return *a == *b;
  }
  const auto a = number_of(left), b = number_of(right);
  if (a && b) return *a == *b;
  if (left.index() != right.index()) return false;
  if (is_undefined(left) || is_none(left)) return true;
  if (const Text* const text = text_of(left)) {
    SHOAL_TRY(heap.spend(text->size() / 64));
    return text->view() == text_of(right)->view();
  }
  if (const List* const list = list_of(left)) {
    const List* const other = list_of(right);
    if (list->tuple != other->tuple || list->items.size() != other->items.size()) return false;
    for (size_t i = 0; i < list->items.size(); ++i) {
      SHOAL_TRY_ASSIGN(same, equal(heap, list->items[i], other->items[i]));
      if (!same) return false;
    }
    return true;
  }
  if (const Dict* const dict = dict_of(left)) {
    const Dict* const other = dict_of(right);
    if (dict->entries.size() != other->entries.size()) return false;
    for (const auto& [key, value] : dict->entries) {
      SHOAL_TRY_ASSIGN(found, heap.find(*other, key));
      if (found == nullptr) return false;
      SHOAL_TRY_ASSIGN(same, equal(heap, value, *found));
      if (!same) return false;
    }
    return true;
  }
  if (const auto* space = std::get_if<Space*>(&left)) return *space == std::get<Space*>(right);
  if (const auto* loop = std::get_if<Loop*>(&left)) return *loop == std::get<Loop*>(right);
  const auto* callable = std::get<const Callable*>(left);
  return callable == std::get<const Callable*>(right);
}

Result<int> order(Heap& heap, const Value& left, const Value& right) {
  const Descent descent(heap);
  SHOAL_TRY(descent.check());
  SHOAL_TRY(heap.spend(1));
  const auto sign = [](auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; };
  if (const auto a = integer_of(left)) {
    if (const auto b = integer_of(right)) return sign(*a, *b);
  }
  const auto a = number_of(left), b = number_of(right);
  if (a && b) return sign(*a, *b);
  const Text* const text = text_of(left);
  const Text* const other_text = text_of(right);
  if (text != nullptr && other_text != nullptr) {
    SHOAL_TRY(heap.spend(std::min(text->size(), other_text->size()) / 64));
    return sign(text->view().compare(other_text->view()), 0);
  }
  const List* const list = list_of(left);
  const List* const other = list_of(right);
  if (list != nullptr && other != nullptr) {
    const size_t common = std::min(list->items.size(), other->items.size());
    for (size_t i = 0; i < common; ++i) {
      SHOAL_TRY_ASSIGN(sooner, order(heap, list->items[i], other->items[i]));
      if (sooner != 0) return sooner;
    }
    return sign(list->items.size(), other->items.size());
  }
  return Error{ErrorCode::kInvalid, std::string(kind_name(left)) + " and " +
                                        std::string(kind_name(right)) + " have no order"};
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto written =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string text(buffer, written.ptr);
  const size_t e = text.find('e');
  int exponent = 0;
  const char* const begin = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(begin, text.data() + text.size(), exponent);
  const bool negative = text[0] == '-';
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    const std::string power = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

constexpr char kHex[] = "0123456789abcdef";

std::string hex_of(uint32_t value, int digits) {
  std::string out;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out.push_back(kHex[(value >> shift) & 15]);
  return out;
}

// Numbers, true and false as Python prints them.
std::string plain_text(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  return float_text(std::get<double>(value));
}

// What Python prints inside of lists and dicts.
class Printer {
 public:
  explicit Printer(Heap& heap) : heap_(heap) {}

  Result<void> put(const Value& value) {
    const Descent descent(heap_);
    SHOAL_TRY(descent.check());
    SHOAL_TRY(heap_.spend(1));
    if (is_undefined(value)) return plain("Undefined");
    if (is_none(value)) return plain("None");
    if (const Text* const text = text_of(value)) return quoted(*text);
    if (const List* const list = list_of(value)) return put_list(*list);
    if (const Dict* const dict = dict_of(value)) return put_dict(*dict);
    if (number_of(value)) return plain(plain_text(value));
    return plain("<" + std::string(kind_name(value)) + ">");
  }

  Text out;

 private:
  Result<void> plain(std::string_view text) {
    return heap_.append(out, text, /*from_message=*/true);
  }

  Result<void> put_list(const List& list) {
    SHOAL_TRY(plain(list.tuple ? "(" : "["));
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) SHOAL_TRY(plain(", "));
      SHOAL_TRY(put(list.items[i]));
    }
    if (list.tuple && list.items.size() == 1) SHOAL_TRY(plain(","));
    return plain(list.tuple ? ")" : "]");
  }

  Result<void> put_dict(const Dict& dict) {
    SHOAL_TRY(plain("{"));
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) SHOAL_TRY(plain(", "));
      SHOAL_TRY(put(dict.entries[i].first));
      SHOAL_TRY(plain(": "));
      SHOAL_TRY(put(dict.entries[i].second));
    }
    return plain("}");
  }

  Result<void> quoted(const Text& text) {
    const std::string_view bytes = text.view();
    const bool doubles = bytes.find('\'') != bytes.npos && bytes.find('"') == bytes.npos;
    const char quote = doubles ? '"' : '\'';
    SHOAL_TRY(plain(std::string_view(&quote, 1)));
    for (size_t at = 0; at < bytes.size();) {
      const Utf8Step step = next_utf8(bytes.substr(at));
      const uint32_t c = step.code_point;
      if (c == '\\' || c == static_cast<uint8_t>(quote)) {
        SHOAL_TRY(plain("\\"));
        SHOAL_TRY(plain(bytes.substr(at, 1)));
      } else if (c == '\n' || c == '\r' || c == '\t') {
        SHOAL_TRY(plain(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t"));
      } else if (!is_python_printable(c)) {
        SHOAL_TRY(plain(c < 0x100     ? "\\x" + hex_of(c, 2)
                        : c < 0x10000 ? "\\u" + hex_of(c, 4)
                                      : "\\U" + hex_of(c, 8)));
      } else {
        SHOAL_TRY(heap_.append(out, text, at, at + step.size));
      }
      at += step.size;
    }
    return plain(std::string_view(&quote, 1));
  }

  Heap& heap_;
};

class JsonWriter {
 public:
  JsonWriter(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}

  Result<void> put(const Value& value) {
    const Descent descent(heap_);
    SHOAL_TRY(descent.check());
    SHOAL_TRY(heap_.spend(1));
    if (is_none(value)) return plain("null");
    if (const Text* const text = text_of(value)) return quoted(*text);
    if (const List* const list = list_of(value)) return put_list(*list);
    if (const Dict* const dict = dict_of(value)) return put_dict(*dict);
    if (const auto* flag = std::get_if<bool>(&value)) return plain(*flag ? "true" : "false");
    if (const auto number = number_of(value)) {
      if (!std::isfinite(*number))
        return plain(std::isnan(*number) ? "NaN" : *number < 0 ? "-Infinity" : "Infinity");
      return plain(plain_text(value));
    }
    return Error{ErrorCode::kInvalid,
                 "tojson cannot write " + std::string(kind_name(value)) + named(value)};
  }

  Text out;

 private:
  static std::string named(const Value& value) {
    const auto* undefined = std::get_if<Undefined>(&value);
    if (undefined == nullptr || undefined->name.empty()) return "";
    return " (" + std::string(undefined->name.substr(0, 60)) + ")";
  }

  Result<void> plain(std::string_view text) {
    return heap_.append(out, text, /*from_message=*/true);
  }

  Result<void> line(int64_t level) {
    if (style_.indent < 0) return {};
    SHOAL_TRY(plain("\n"));
    const auto spaces = static_cast<size_t>(style_.indent * level);
    if (spaces > heap_.limits().text_bytes) return no_space("indents too far");
    return plain(std::string(spaces, ' '));
  }

  Result<void> put_list(const List& list) {
    if (list.items.empty()) return plain("[]");
    SHOAL_TRY(plain("["));
    ++level_;
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) SHOAL_TRY(plain(style_.item_separator));
      SHOAL_TRY(line(level_));
      SHOAL_TRY(put(list.items[i]));
    }
    --level_;
    SHOAL_TRY(line(level_));
    return plain("]");
  }

  Result<void> put_dict(const Dict& dict) {
    if (dict.entries.empty()) return plain("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      Result<void> failed;
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        if (!failed.ok()) return false;
        const auto sooner = order(heap_, a->first, b->first);
        if (!sooner.ok()) failed = sooner.error();
        return sooner.ok() && sooner.value() < 0;
      });
      SHOAL_TRY(failed);
    }
    SHOAL_TRY(plain("{"));
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) SHOAL_TRY(plain(style_.item_separator));
      SHOAL_TRY(line(level_));
      const Value& key = entries[i]->first;
      if (text_of(key) != nullptr) {
        SHOAL_TRY(put(key));
      } else if (is_none(key) || number_of(key)) {
        SHOAL_TRY(plain("\""));
        SHOAL_TRY(put(key));
        SHOAL_TRY(plain("\""));
      } else {
        return Error{ErrorCode::kInvalid,
                     "tojson cannot write " + std::string(kind_name(key)) + " as a key"};
      }
      SHOAL_TRY(plain(style_.key_separator));
      SHOAL_TRY(put(entries[i]->second));
    }
    --level_;
    SHOAL_TRY(line(level_));
    return plain("}");
  }

  Result<void> quoted(const Text& text) {
    static constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
    static constexpr std::string_view kLetters = "\"\\bfnrt";
    SHOAL_TRY(plain("\""));
    const std::string_view bytes = text.view();
    size_t done = 0;
    for (size_t at = 0; at < bytes.size();) {
      const Utf8Step step = next_utf8(bytes.substr(at));
      const uint32_t c = step.code_point;
      std::string escape;
      if (const size_t known = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : kEscaped.npos;
          known != kEscaped.npos) {
        escape = {'\\', kLetters[known]};
      } else if (c < 0x20 || (style_.ascii && c >= 0x7F && c < 0x10000)) {
        escape = "\\u" + hex_of(c, 4);
      } else if (style_.ascii && c >= 0x10000) {
        escape = "\\u" + hex_of(0xD800 + ((c - 0x10000) >> 10), 4) + "\\u" +
                 hex_of(0xDC00 + ((c - 0x10000) & 0x3FF), 4);
      }
      if (!escape.empty()) {
        SHOAL_TRY(heap_.append(out, text, done, at));
        SHOAL_TRY(heap_.append(out, escape, text.from_message(at)));
        done = at + step.size;
      }
      at += step.size;
    }
    SHOAL_TRY(heap_.append(out, text, done, bytes.size()));
    return plain("\"");
  }

  Heap& heap_;
  const JsonStyle& style_;
  int64_t level_ = 0;
};

}  // namespace

Result<Text> printed(Heap& heap, const Value& value) {
  if (const Text* const text = text_of(value)) {
    SHOAL_TRY(heap.spend(text->size() / 32));
    return *text;
  }
  if (is_undefined(value)) return Text();
  if (is_none(value) || std::holds_alternative<bool>(value))
    return Text(is_none(value) ? "None" : plain_text(value), /*from_message=*/false);
  // Numbers and lists may come from a message, so what they print does too.
  Printer printer(heap);
  SHOAL_TRY(printer.put(value));
  return std::move(printer.out);
}

Result<Text> json(Heap& heap, const Value& value, const JsonStyle& style) {
  JsonWriter writer(heap, style);
  SHOAL_TRY(writer.put(value));
  return std::move(writer.out);
}

Result<std::vector<uint32_t>> character_starts(Heap& heap, const Text& text) {
  SHOAL_TRY(heap.spend(text.size() / 8));
  std::vector<uint32_t> starts;
  for (size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<uint8_t>(text.view()[at]) & 0xC0) != 0x80)
      starts.push_back(static_cast<uint32_t>(at));
  }
  starts.push_back(static_cast<uint32_t>(text.size()));
  return starts;
}

Result<std::vector<Value>> items_of(Heap& heap, const Value& value) {
  std::vector<Value> items;
  if (is_undefined(value)) return items;
  if (const List* const list = list_of(value)) {
    SHOAL_TRY(heap.take(sizeof(Value) * list->items.size()));
    return list->items;
  }
  if (const Dict* const dict = dict_of(value)) {
    SHOAL_TRY(heap.take(sizeof(Value) * dict->entries.size()));
    for (const auto& entry : dict->entries) items.push_back(entry.first);
    return items;
  }
  if (const Text* const text = text_of(value)) {
    SHOAL_TRY_ASSIGN(starts, character_starts(heap, *text));
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      SHOAL_TRY_ASSIGN(character, heap.text(text->slice(starts[i], starts[i + 1])));
      items.push_back(character);
    }
    return items;
  }
  return Error{ErrorCode::kInvalid, std::string(kind_name(value)) + " has no items to go through"};
}

}  // namespace shoal::chat
