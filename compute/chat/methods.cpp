#include <algorithm>
#include <limits>

#include "compute/chat/builtins.h"
#include "compute/chat/characters.h"
#include "compute/chat/lexer.h"
#include "compute/tokenizer/unicode.h"

namespace shoal::chat {
namespace {

Error invalid(std::string what) { return {ErrorCode::kInvalid, std::move(what)}; }

// The character at `at`.
Utf8Step step_at(std::string_view text, size_t at) { return next_utf8(text.substr(at)); }

// Where the character before `at` begins. REQUIRES: at > 0.
size_t before(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool in_set(std::string_view set, uint32_t code_point) {
  while (!set.empty()) {
    const Utf8Step step = next_utf8(set);
    if (step.code_point == code_point) return true;
    set.remove_prefix(step.size);
  }
  return false;
}

template <class Map>
Result<Text> mapped(Heap& heap, const Text& text, const Map& map) {
  SHOAL_TRY(heap.spend(text.size() / 8));
  Text out;
  std::string character;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = step_at(text.view(), at);
    character.clear();
    append_utf8(character, map(step.code_point));
    out.append(character, text.from_message(at));
    at += step.size;
  }
  return out;
}

Result<Value> value_list(Heap& heap, const std::vector<Text>& texts) {
  std::vector<Value> items;
  for (const Text& text : texts) {
    SHOAL_TRY_ASSIGN(value, heap.text(text));
    items.push_back(value);
  }
  SHOAL_TRY_ASSIGN(list, heap.list(std::move(items)));
  return Value(list);
}

Result<std::vector<Text>> split_at_spaces(Heap& heap, const Text& text, int64_t splits_max) {
  SHOAL_TRY(heap.spend(text.size() / 8));
  std::vector<Text> parts;
  const std::string_view bytes = text.view();
  size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < bytes.size()) {
      const Utf8Step step = step_at(bytes, at);
      if (is_python_space(step.code_point) != spaces) break;
      at += step.size;
    }
  };
  for (;;) {
    skip(/*spaces=*/true);
    if (at == bytes.size()) return parts;
    SHOAL_TRY(heap.take(sizeof(Text)));
    const size_t begin = at;
    if (splits_max >= 0 && static_cast<int64_t>(parts.size()) == splits_max) {
      SHOAL_TRY_ASSIGN(rest, stripped(heap, text.slice(begin, bytes.size()), nullptr,
                                      /*left=*/false, /*right=*/true));
      parts.push_back(std::move(rest));
      return parts;
    }
    skip(/*spaces=*/false);
    parts.push_back(text.slice(begin, at));
  }
}

Result<std::vector<Text>> split_at_text(Heap& heap, const Text& text, const Text& separator,
                                        int64_t splits_max, bool from_right) {
  if (separator.empty()) return invalid("split: the separator is empty");
  std::vector<Text> parts;
  if (!from_right) {
    size_t done = 0;
    while (splits_max < 0 || static_cast<int64_t>(parts.size()) < splits_max) {
      SHOAL_TRY_ASSIGN(found, find_text(heap, text.view(), separator.view(), done));
      if (found == std::string_view::npos) break;
      SHOAL_TRY(heap.take(sizeof(Text)));
      parts.push_back(text.slice(done, found));
      done = found + separator.size();
    }
    parts.push_back(text.slice(done, text.size()));
    return parts;
  }
  size_t end = text.size();
  while (splits_max < 0 || static_cast<int64_t>(parts.size()) < splits_max) {
    if (end < separator.size()) break;
    SHOAL_TRY(heap.spend(search_cost(end, separator.size())));
    const size_t found = text.view().rfind(separator.view(), end - separator.size());
    if (found == std::string_view::npos) break;
    SHOAL_TRY(heap.take(sizeof(Text)));
    parts.push_back(text.slice(found + separator.size(), end));
    end = found;
  }
  parts.push_back(text.slice(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// Whether the text begins or ends with one of the texts of `what`.
Result<bool> has_end(Heap& heap, const Text& text, const Value& what, bool at_start) {
  SHOAL_TRY(heap.spend(1));
  if (const List* const list = list_of(what); list != nullptr && list->tuple) {
    for (const Value& item : list->items) {
      if (text_of(item) == nullptr) return wrong_kind(item, "a text");
      SHOAL_TRY_ASSIGN(has, has_end(heap, text, item, at_start));
      if (has) return true;
    }
    return false;
  }
  const Text* const end = text_of(what);
  if (end == nullptr) return wrong_kind(what, "a text");
  if (end->size() > text.size()) return false;
  SHOAL_TRY(heap.spend(end->size() / 64));
  return at_start ? text.view().starts_with(end->view()) : text.view().ends_with(end->view());
}

Result<Text> titled(Heap& heap, const Text& text) {
  bool inside = false;
  return mapped(heap, text, [&inside](uint32_t c) {
    const uint32_t out = inside ? to_lower(c) : to_upper(c);
    inside = has_case(c);
    return out;
  });
}

constexpr std::string_view kTextMethods[] = {
    "split",        "rsplit",  "strip",   "lstrip",  "rstrip",     "startswith",
    "endswith",     "upper",   "lower",   "title",   "replace",    "capitalize",
    "find",         "rfind",   "count",   "join",    "splitlines", "removeprefix",
    "removesuffix", "isdigit", "isspace", "isupper", "islower",    "format"};
constexpr std::string_view kListMethods[] = {"append", "index", "count"};
constexpr std::string_view kDictMethods[] = {"get", "items", "keys", "values"};
constexpr std::string_view kLoopMethods[] = {"cycle", "changed"};

template <size_t kSize>
bool holds(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Result<int64_t> integer_or(const Value& value, int64_t otherwise) {
  if (is_undefined(value) || is_none(value)) return otherwise;
  const auto integer = integer_of(value);
  if (!integer) return wrong_kind(value, "a whole number");
  return *integer;
}

// str.format() with {}, {0} and {name}; what else may stand in the braces is refused.
Result<Value> formatted(Heap& heap, const Text& text, const Arguments& arguments) {
  Text out;
  const std::string_view bytes = text.view();
  size_t next = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    SHOAL_TRY(heap.append(out, text, at, brace));
    if (brace == bytes.size()) break;
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      SHOAL_TRY(heap.append(out, text, brace, brace + 1));
      at = brace + 2;
      continue;
    }
    const size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == bytes.npos) return invalid("a brace stands alone");
    const std::string_view field = bytes.substr(brace + 1, close - brace - 1);
    size_t place = next;
    const Value* value = nullptr;
    if (field.empty()) {
      ++next;
    } else if (std::all_of(field.begin(), field.end(),
                           [](char c) { return c >= '0' && c <= '9'; })) {
      place = field.size() > 3 ? arguments.positional.size()
                               : static_cast<size_t>(std::stoi(std::string(field)));
    } else {
      place = arguments.positional.size();
      for (const auto& [known, given] : arguments.named) {
        if (known == field) value = &given;
      }
    }
    if (place < arguments.positional.size()) value = &arguments.positional[place];
    if (value == nullptr)
      return invalid("nothing is given for " + shown("{" + std::string(field) + "}"));
    SHOAL_TRY_ASSIGN(part, printed(heap, *value));
    SHOAL_TRY(heap.append(out, part));
    at = close + 1;
  }
  return heap.text(std::move(out));
}

Result<Value> text_method(Heap& heap, std::string_view name, const Text& text,
                          const Arguments& arguments) {
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize") {
    SHOAL_TRY(bind(arguments, {}));
    SHOAL_TRY_ASSIGN(made, name == "upper"   ? upper(heap, text)
                           : name == "lower" ? lower(heap, text)
                           : name == "title" ? titled(heap, text)
                                             : capitalized(heap, text));
    return heap.text(std::move(made));
  }
  if (name == "format") return formatted(heap, text, arguments);
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"chars"}));
    const Text* const characters = text_of(bound[0]);
    if (characters == nullptr && !is_undefined(bound[0]) && !is_none(bound[0]))
      return wrong_kind(bound[0], "a text");
    SHOAL_TRY_ASSIGN(made, stripped(heap, text, characters, /*left=*/name != "rstrip",
                                    /*right=*/name != "lstrip"));
    return heap.text(std::move(made));
  }
  if (name == "split" || name == "rsplit") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"sep", "maxsplit"}));
    SHOAL_TRY_ASSIGN(splits_max, integer_or(bound[1], -1));
    std::vector<Text> parts;
    if (is_undefined(bound[0]) || is_none(bound[0])) {
      if (name == "rsplit" && splits_max >= 0)
        return invalid("rsplit with a count needs a separator here");
      SHOAL_TRY_ASSIGN(made, split_at_spaces(heap, text, splits_max));
      parts = std::move(made);
    } else {
      const Text* const separator = text_of(bound[0]);
      if (separator == nullptr) return wrong_kind(bound[0], "a text");
      SHOAL_TRY_ASSIGN(made, split_at_text(heap, text, *separator, splits_max, name == "rsplit"));
      parts = std::move(made);
    }
    return value_list(heap, parts);
  }
  if (name == "splitlines") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"keepends"}));
    SHOAL_TRY_ASSIGN(lines, lines_of(heap, text, is_true(bound[0])));
    return value_list(heap, lines);
  }
  if (name == "startswith" || name == "endswith") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"prefix"}, 1));
    SHOAL_TRY_ASSIGN(has, has_end(heap, text, bound[0], name == "startswith"));
    return Value(has);
  }
  if (name == "removeprefix" || name == "removesuffix") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"prefix"}, 1));
    const bool at_start = name == "removeprefix";
    const Text* const end = text_of(bound[0]);
    if (end == nullptr) return wrong_kind(bound[0], "a text");
    SHOAL_TRY_ASSIGN(has, has_end(heap, text, bound[0], at_start));
    if (!has) return heap.text(text);
    return heap.text(at_start ? text.slice(end->size(), text.size())
                              : text.slice(0, text.size() - end->size()));
  }
  if (name == "replace") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"old", "new", "count"}, 2));
    const Text* const from = text_of(bound[0]);
    const Text* const to = text_of(bound[1]);
    if (from == nullptr) return wrong_kind(bound[0], "a text");
    if (to == nullptr) return wrong_kind(bound[1], "a text");
    SHOAL_TRY_ASSIGN(times, integer_or(bound[2], -1));
    SHOAL_TRY_ASSIGN(made, replaced(heap, text, *from, *to, times));
    return heap.text(std::move(made));
  }
  if (name == "find" || name == "rfind" || name == "count") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"sub"}, 1));
    const Text* const what = text_of(bound[0]);
    if (what == nullptr) return wrong_kind(bound[0], "a text");
    SHOAL_TRY_ASSIGN(starts, character_starts(heap, text));
    const auto character = [&](size_t at) {
      return static_cast<int64_t>(std::lower_bound(starts.begin(), starts.end(), at) -
                                  starts.begin());
    };
    if (name == "count") {
      if (what->empty()) return Value(static_cast<int64_t>(starts.size()));
      int64_t count = 0;
      for (size_t at = 0;; ++count) {
        SHOAL_TRY_ASSIGN(found, find_text(heap, text.view(), what->view(), at));
        if (found == std::string_view::npos) return Value(count);
        at = found + what->size();
      }
    }
    size_t found = std::string_view::npos;
    if (name == "find") {
      SHOAL_TRY_ASSIGN(first, find_text(heap, text.view(), what->view(), 0));
      found = first;
    } else {
      SHOAL_TRY(heap.spend(search_cost(text.size(), what->size())));
      found = text.view().rfind(what->view());
    }
    return Value(found == std::string_view::npos ? int64_t{-1} : character(found));
  }
  if (name == "join") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"iterable"}, 1));
    SHOAL_TRY_ASSIGN(items, items_of(heap, bound[0]));
    Text out;
    for (size_t i = 0; i < items.size(); ++i) {
      if (text_of(items[i]) == nullptr) return wrong_kind(items[i], "a text");
      if (i > 0) SHOAL_TRY(heap.append(out, text));
      SHOAL_TRY(heap.append(out, *text_of(items[i])));
    }
    return heap.text(std::move(out));
  }
  // isdigit, isspace, isupper, islower: at least one such character, and none that is otherwise.
  SHOAL_TRY(bind(arguments, {}));
  SHOAL_TRY(heap.spend(text.size() / 8));
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = step_at(text.view(), at);
    const uint32_t c = step.code_point;
    at += step.size;
    if (name == "isdigit" || name == "isspace") {
      any = name == "isdigit" ? c >= '0' && c <= '9' : is_python_space(c);
      if (!any) return Value(false);
    } else {
      const bool wrong = name == "isupper" ? to_upper(c) != c : to_lower(c) != c;
      if (wrong) return Value(false);
      any = any || has_case(c);
    }
  }
  return Value(any);
}

Result<Value> list_method(Heap& heap, std::string_view name, List& list, const Value& self,
                          const Arguments& arguments) {
  SHOAL_TRY_ASSIGN(bound, bind(arguments, {"value"}, 1));
  if (name == "append") {
    if (list.tuple) return wrong_kind(self, "a list");
    SHOAL_TRY(heap.push(list, bound[0]));
    return Value(None{});
  }
  int64_t count = 0;
  for (size_t i = 0; i < list.items.size(); ++i) {
    SHOAL_TRY_ASSIGN(same, equal(heap, list.items[i], bound[0]));
    if (same && name == "index") return Value(static_cast<int64_t>(i));
    if (same) ++count;
  }
  if (name == "index") return invalid("index: the list does not hold this value");
  return Value(count);
}

Result<Value> dict_method(Heap& heap, std::string_view name, const Dict& dict,
                          const Arguments& arguments) {
  if (name == "get") {
    SHOAL_TRY_ASSIGN(bound, bind(arguments, {"key", "default"}, 1));
    SHOAL_TRY_ASSIGN(found, heap.find(dict, bound[0]));
    if (found != nullptr) return *found;
    return arguments.positional.size() + arguments.named.size() > 1 ? bound[1] : Value(None{});
  }
  SHOAL_TRY(bind(arguments, {}));
  std::vector<Value> items;
  SHOAL_TRY(heap.take(sizeof(Value) * dict.entries.size()));
  for (const auto& [key, value] : dict.entries) {
    if (name == "items") {
      SHOAL_TRY_ASSIGN(pair, heap.list({key, value}, /*tuple=*/true));
      items.push_back(pair);
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  SHOAL_TRY_ASSIGN(list, heap.list(std::move(items)));
  return Value(list);
}

Result<Value> loop_method(Heap& heap, std::string_view name, Loop& loop,
                          const Arguments& arguments) {
  if (!arguments.named.empty()) return invalid("takes no argument by name");
  const std::vector<Value>& given = arguments.positional;
  if (name == "cycle") {
    if (given.empty()) return invalid("loop.cycle needs a value");
    return given[loop.index % given.size()];
  }
  bool same = loop.seen.size() == given.size() && loop.index > 0;
  for (size_t i = 0; same && i < given.size(); ++i) {
    SHOAL_TRY_ASSIGN(equals, equal(heap, loop.seen[i], given[i]));
    same = equals;
  }
  SHOAL_TRY(heap.take(sizeof(Value) * given.size()));
  loop.seen = given;
  return Value(!same);
}

std::optional<Value> loop_field(const Loop& loop, std::string_view name) {
  const auto size = static_cast<int64_t>(loop.items->size());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(size - index);
  if (name == "revindex0") return Value(size - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == size);
  if (name == "length") return Value(size);
  // There are no recursive loops, which alone are deeper.
  if (name == "depth") return Value(int64_t{1});
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem")
    return index > 0 ? (*loop.items)[loop.index - 1] : Value(Undefined{"loop.previtem"});
  if (name == "nextitem")
    return index + 1 < size ? (*loop.items)[loop.index + 1] : Value(Undefined{"loop.nextitem"});
  return std::nullopt;
}

// Python's indices of a slice.
struct Slice {
  int64_t begin;
  int64_t step;
  int64_t count;
};

Result<Slice> slice_bounds(const Value& begin, const Value& end, const Value& step, int64_t size) {
  SHOAL_TRY_ASSIGN(by, integer_or(step, 1));
  if (by == 0) return invalid("a slice's step is 0");
  by = std::clamp<int64_t>(by, -(int64_t{1} << 40), int64_t{1} << 40);
  const int64_t low = by > 0 ? 0 : -1;
  const int64_t high = by > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, int64_t otherwise) -> Result<int64_t> {
    SHOAL_TRY_ASSIGN(at, integer_or(value, std::numeric_limits<int64_t>::min()));
    if (is_undefined(value) || is_none(value)) return otherwise;
    if (at < 0) at = at < -size ? -1 - size : at;
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  SHOAL_TRY_ASSIGN(first, bound(begin, by > 0 ? low : high));
  SHOAL_TRY_ASSIGN(last, bound(end, by > 0 ? high : low));
  int64_t count = 0;
  if (by > 0 && first < last) count = (last - first - 1) / by + 1;
  if (by < 0 && first > last) count = (first - last - 1) / -by + 1;
  return Slice{first, by, count};
}

}  // namespace

Error undefined_error(const Value& value) {
  const auto* undefined = std::get_if<Undefined>(&value);
  const std::string_view name = undefined == nullptr ? std::string_view() : undefined->name;
  return invalid((name.empty() ? std::string("a value") : shown(name)) + " is undefined");
}

Error wrong_kind(const Value& value, std::string_view expected) {
  if (is_undefined(value)) return undefined_error(value);
  return invalid("found " + std::string(kind_name(value)) + " where " + std::string(expected) +
                 " is expected");
}

uint64_t search_cost(size_t places, size_t size) {
  return 1 + static_cast<uint64_t>(places) * (size / 16 + 1) / 16;
}

// In windows that grow, so that what is found soon costs little, and what is not is paid for first.
Result<size_t> find_text(Heap& heap, std::string_view text, std::string_view what, size_t from) {
  constexpr size_t kWindow = 256;
  for (size_t window = std::max(kWindow, what.size());
       from <= text.size() && what.size() <= text.size() - from; window *= 2) {
    const size_t places = std::min(window, text.size() - from - what.size() + 1);
    SHOAL_TRY(heap.spend(search_cost(places, what.size())));
    const size_t found = text.substr(0, from + places + what.size() - 1).find(what, from);
    if (found != text.npos) return found;
    from += places;
  }
  return std::string_view::npos;
}

Result<Text> stripped(Heap& heap, const Text& text, const Text* characters, bool left, bool right) {
  const std::string_view bytes = text.view();
  // Paid for before each look, which may go through all of the set.
  constexpr uint64_t kLooksPerStep = 16;
  uint64_t looks = kLooksPerStep - 1;
  const auto goes = [&](uint32_t c) -> Result<bool> {
    looks += 1 + (characters == nullptr ? 0 : characters->size());
    SHOAL_TRY(heap.spend(looks / kLooksPerStep));
    looks %= kLooksPerStep;
    return characters == nullptr ? is_python_space(c) : in_set(characters->view(), c);
  };
  size_t begin = 0, end = bytes.size();
  while (left && begin < end) {
    const Utf8Step step = step_at(bytes, begin);
    SHOAL_TRY_ASSIGN(gone, goes(step.code_point));
    if (!gone) break;
    begin += step.size;
  }
  while (right && end > begin) {
    const size_t last = before(bytes, end);
    SHOAL_TRY_ASSIGN(gone, goes(step_at(bytes, last).code_point));
    if (!gone) break;
    end = last;
  }
  SHOAL_TRY(heap.spend((end - begin) / 32));
  return text.slice(begin, end);
}

Result<Text> replaced(Heap& heap, const Text& text, const Text& from, const Text& to,
                      int64_t times_max) {
  Text out;
  size_t done = 0;
  int64_t times = 0;
  if (from.empty()) {
    // Before every character, and at the end.
    SHOAL_TRY_ASSIGN(starts, character_starts(heap, text));
    for (const uint32_t start : starts) {
      if (times_max >= 0 && times == times_max) break;
      SHOAL_TRY(heap.append(out, text, done, start));
      SHOAL_TRY(heap.append(out, to));
      done = start;
      ++times;
    }
  } else {
    while (times_max < 0 || times < times_max) {
      SHOAL_TRY_ASSIGN(found, find_text(heap, text.view(), from.view(), done));
      if (found == std::string_view::npos) break;
      SHOAL_TRY(heap.append(out, text, done, found));
      SHOAL_TRY(heap.append(out, to));
      done = found + from.size();
      ++times;
    }
  }
  SHOAL_TRY(heap.append(out, text, done, text.size()));
  return out;
}

Result<Text> upper(Heap& heap, const Text& text) { return mapped(heap, text, to_upper); }
Result<Text> lower(Heap& heap, const Text& text) { return mapped(heap, text, to_lower); }

Result<Text> capitalized(Heap& heap, const Text& text) {
  bool first = true;
  return mapped(heap, text, [&first](uint32_t c) {
    return std::exchange(first, false) ? to_upper(c) : to_lower(c);
  });
}

Result<std::vector<Text>> lines_of(Heap& heap, const Text& text, bool keep_ends) {
  SHOAL_TRY(heap.spend(text.size() / 8));
  std::vector<Text> lines;
  const std::string_view bytes = text.view();
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Step step = step_at(bytes, at);
    const uint32_t c = step.code_point;
    const size_t end = at;
    at += step.size;
    const bool ends = (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    SHOAL_TRY(heap.take(sizeof(Text)));
    lines.push_back(text.slice(begin, keep_ends ? at : end));
    begin = at;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

bool has_method(const Value& self, std::string_view name) {
  if (text_of(self) != nullptr) return holds(kTextMethods, name);
  if (list_of(self) != nullptr) return holds(kListMethods, name);
  if (dict_of(self) != nullptr) return holds(kDictMethods, name);
  if (std::holds_alternative<Loop*>(self)) return holds(kLoopMethods, name);
  return false;
}

Result<Value> call_method(Heap& heap, std::string_view name, const Value& self,
                          const Arguments& arguments) {
  if (const Text* const text = text_of(self)) return text_method(heap, name, *text, arguments);
  if (List* const list = list_of(self)) return list_method(heap, name, *list, self, arguments);
  if (const Dict* const dict = dict_of(self)) return dict_method(heap, name, *dict, arguments);
  return loop_method(heap, name, *std::get<Loop*>(self), arguments);
}

Result<Value> member_of(Heap& heap, const Value& value, std::string_view name) {
  if (is_undefined(value)) return undefined_error(value);
  if (has_method(value, name))
    return heap.callable({.kind = Callable::Kind::kMethod, .name = name, .self = value});
  if (const Dict* const dict = dict_of(value)) {
    SHOAL_TRY(heap.spend(1 + dict->entries.size() / 8));
    for (const auto& [key, item] : dict->entries) {
      const Text* const text = text_of(key);
      if (text == nullptr || text->size() != name.size()) continue;
      SHOAL_TRY(heap.spend(name.size() / 64));
      if (text->view() == name) return item;
    }
  }
  if (const auto* space = std::get_if<Space*>(&value)) {
    SHOAL_TRY(heap.spend(1 + (*space)->fields.size() * (name.size() / 64 + 1) / 8));
    for (const auto& [field, item] : (*space)->fields) {
      if (field == name) return item;
    }
  }
  if (const auto* loop = std::get_if<Loop*>(&value)) {
    if (const auto field = loop_field(**loop, name)) return *field;
  }
  return Value(Undefined{name});
}

Result<Value> index_of(Heap& heap, const Value& value, const Value& key) {
  if (is_undefined(value)) return undefined_error(value);
  if (const Dict* const dict = dict_of(value)) {
    SHOAL_TRY_ASSIGN(found, heap.find(*dict, key));
    if (found != nullptr) return *found;
  }
  if (const auto integer = integer_of(key)) {
    const auto place = [&](size_t size) -> std::optional<size_t> {
      const auto length = static_cast<int64_t>(size);
      if (*integer < -length || *integer >= length) return std::nullopt;
      return static_cast<size_t>(*integer < 0 ? *integer + length : *integer);
    };
    if (const List* const list = list_of(value)) {
      const auto at = place(list->items.size());
      return at ? list->items[*at] : Value(Undefined{"an item of a list"});
    }
    if (const Text* const text = text_of(value)) {
      SHOAL_TRY_ASSIGN(starts, character_starts(heap, *text));
      const auto at = place(starts.size() - 1);
      if (!at) return Value(Undefined{"a character of a text"});
      return heap.text(text->slice(starts[*at], starts[*at + 1]));
    }
    return Value(Undefined{"an item"});
  }
  if (const Text* const name = text_of(key)) {
    // `name` lives as long as the value: it may stand in the method that is made of it.
    if (dict_of(value) == nullptr || has_method(value, name->view()))
      return member_of(heap, value, name->view());
    return Value(Undefined{name->view()});
  }
  return Value(Undefined{"an item"});
}

Result<Value> slice_of(Heap& heap, const Value& value, const Value& begin, const Value& end,
                       const Value& step) {
  if (const List* const list = list_of(value)) {
    SHOAL_TRY_ASSIGN(slice,
                     slice_bounds(begin, end, step, static_cast<int64_t>(list->items.size())));
    SHOAL_TRY(heap.spend(static_cast<uint64_t>(slice.count) / 8));
    std::vector<Value> items;
    for (int64_t i = 0; i < slice.count; ++i)
      items.push_back(list->items[static_cast<size_t>(slice.begin + i * slice.step)]);
    SHOAL_TRY_ASSIGN(made, heap.list(std::move(items), list->tuple));
    return Value(made);
  }
  if (const Text* const text = text_of(value)) {
    SHOAL_TRY_ASSIGN(starts, character_starts(heap, *text));
    SHOAL_TRY_ASSIGN(slice,
                     slice_bounds(begin, end, step, static_cast<int64_t>(starts.size()) - 1));
    Text out;
    if (slice.count > 0 && slice.step == 1) {
      const auto first = static_cast<size_t>(slice.begin);
      out = text->slice(starts[first], starts[first + static_cast<size_t>(slice.count)]);
      return heap.text(std::move(out));
    }
    SHOAL_TRY(heap.spend(static_cast<uint64_t>(slice.count)));
    for (int64_t i = 0; i < slice.count; ++i) {
      const auto at = static_cast<size_t>(slice.begin + i * slice.step);
      SHOAL_TRY(heap.append(out, *text, starts[at], starts[at + 1]));
    }
    return heap.text(std::move(out));
  }
  return wrong_kind(value, "a list or a text");
}

}  // namespace shoal::chat
