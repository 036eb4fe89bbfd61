#pragma once
// Holds the values of a running template, and decides what is equal, true, and how a value reads.
// A value is small and copied freely; what it points to belongs to the heap of its rendering.

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "compute/chat/parser.h"
#include "compute/chat/text.h"

namespace shoal::chat {

struct Undefined {
  std::string_view name;  // What was looked for.
};
struct None {};
struct List;
struct Dict;
struct Space;
struct Loop;
struct Callable;

using Value = std::variant<Undefined, None, bool, int64_t, double, const Text*, List*, Dict*,
                           Space*, Loop*, const Callable*>;

struct List {
  std::vector<Value> items;
  bool tuple = false;
};

// In the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
};

// namespace(): the only thing whose fields a template may set.
struct Space {
  std::vector<std::pair<std::string_view, Value>> fields;
};

// The variable `loop`. Its own index and neighbours change as the loop goes on.
struct Loop {
  const std::vector<Value>* items = nullptr;
  size_t index = 0;
  std::vector<Value> seen;  // By loop.changed().
};

// The names of one part of a template.
struct Scope {
  const Scope* outer = nullptr;
  std::vector<std::pair<std::string_view, Value>> names;
};

// What can be called: a function, a method with the value that it belongs to, or a macro with the
// names around it.
struct Callable {
  enum class Kind { kFunction, kMethod, kMacro };
  Kind kind = Kind::kFunction;
  std::string_view name;
  Value self;
  const Node* macro = nullptr;
  const Scope* scope = nullptr;
};

struct Limits {
  uint64_t fuel = 5'000'000;          // A node run or about 32 bytes moved cost 1.
  uint64_t memory_bytes = 96u << 20;  // All that a rendering makes, as nothing of it is given back.
  size_t text_bytes = size_t{8} << 20;  // Of any one text, the output among them.
  int depth = 200;                      // Of nodes in nodes, calls and values in values.
};

// Makes values under the limits. What it refuses is kNoSpace.
class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits), fuel_(limits.fuel) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Result<void> spend(uint64_t fuel);
  Result<void> take(uint64_t bytes);  // Also spends fuel for moving them.

  Result<Value> text(Text text);
  Result<Value> text(std::string_view text, bool from_message);
  Result<List*> list(std::vector<Value> items, bool tuple = false);
  Result<Dict*> dict();
  Result<Space*> space();
  Result<Loop*> loop();
  Result<Scope*> scope(const Scope* outer);
  Result<Value> callable(Callable callable);

  Result<void> push(List& list, Value value);
  // Puts a value under a key, or replaces the one that is there.
  Result<void> put(Dict& dict, Value key, Value value);
  // Null when there is none.
  Result<const Value*> find(const Dict& dict, const Value& key);

  // Refuses a text that would pass text_bytes.
  Result<void> append(Text& to, const Text& from);
  Result<void> append(Text& to, const Text& from, size_t begin, size_t end);
  Result<void> append(Text& to, std::string_view from, bool from_message);

  const Limits& limits() const { return limits_; }

  // How deep the work is; see Descent.
  int depth = 0;

 private:
  Limits limits_;
  uint64_t fuel_;
  uint64_t bytes_ = 0;
  // Elements of a deque stay where they are.
  std::deque<Text> texts_;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::deque<Space> spaces_;
  std::deque<Loop> loops_;
  std::deque<Scope> scopes_;
  std::deque<Callable> callables_;
};

// One level deeper while it lives.
class Descent {
 public:
  explicit Descent(Heap& heap) : heap_(heap) { ++heap_.depth; }
  ~Descent() { --heap_.depth; }
  Descent(const Descent&) = delete;
  Descent& operator=(const Descent&) = delete;
  Result<void> check() const;

 private:
  Heap& heap_;
};

inline bool is_undefined(const Value& value) { return std::holds_alternative<Undefined>(value); }
inline bool is_none(const Value& value) { return std::holds_alternative<None>(value); }
inline const Text* text_of(const Value& value) {
  const auto* text = std::get_if<const Text*>(&value);
  return text == nullptr ? nullptr : *text;
}
inline List* list_of(const Value& value) {
  const auto* list = std::get_if<List*>(&value);
  return list == nullptr ? nullptr : *list;
}
inline Dict* dict_of(const Value& value) {
  const auto* dict = std::get_if<Dict*>(&value);
  return dict == nullptr ? nullptr : *dict;
}

std::optional<int64_t> integer_of(const Value& value);  // Of an integer, true or false.
std::optional<double> number_of(const Value& value);    // Of these and of a float.

std::string_view kind_name(const Value& value);  // "text", "a list", ...: for messages.
bool is_true(const Value& value);
Result<bool> equal(Heap& heap, const Value& left, const Value& right);
// Below, at or above 0. Numbers with numbers, texts with texts by code points, lists with lists.
Result<int> order(Heap& heap, const Value& left, const Value& right);

// As Python's str() prints it; an undefined value prints as nothing.
Result<Text> printed(Heap& heap, const Value& value);

struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  int64_t indent = -1;  // Below 0: on one line.
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// As Python's json.dumps() writes it.
Result<Text> json(Heap& heap, const Value& value, const JsonStyle& style);

std::string float_text(double value);  // As Python's repr().

// What a loop over the value goes through. An undefined value has no items; none is no error here.
Result<std::vector<Value>> items_of(Heap& heap, const Value& value);

// Where each character of a text begins, and its end.
Result<std::vector<uint32_t>> character_starts(Heap& heap, const Text& text);

}  // namespace shoal::chat
