#pragma once
// Decides what a template's filters, tests, functions and methods do. As Jinja 3 and Python do it;
// what is not here is an error that names it.

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compute/chat/value.h"

namespace shoal::chat {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// The arguments in the order of `names`; undefined for what was not given. Refuses what has no name
// here, and less than `required`.
Result<std::vector<Value>> bind(const Arguments& arguments,
                                std::initializer_list<std::string_view> names, size_t required = 0);

Result<Value> apply_filter(Heap& heap, std::string_view name, const Value& value,
                           const Arguments& arguments);
Result<bool> apply_test(Heap& heap, std::string_view name, const Value& value,
                        const Arguments& arguments);

// Without a time there is no strftime_now.
bool is_function(std::string_view name, std::optional<int64_t> now_ms);
Result<Value> call_function(Heap& heap, std::string_view name, std::optional<int64_t> now_ms,
                            const Arguments& arguments);

// methods.cpp
bool has_method(const Value& self, std::string_view name);
Result<Value> call_method(Heap& heap, std::string_view name, const Value& self,
                          const Arguments& arguments);
Result<Value> member_of(Heap& heap, const Value& value, std::string_view name);  // value.name
Result<Value> index_of(Heap& heap, const Value& value, const Value& key);        // value[key]
Result<Value> slice_of(Heap& heap, const Value& value, const Value& begin, const Value& end,
                       const Value& step);  // Undefined or none: left out.

// Texts, shared by filters and methods. A search may cost the product of both lengths.
uint64_t search_cost(size_t places, size_t size);  // Of comparing `size` bytes at each, in steps.
Result<size_t> find_text(Heap& heap, std::string_view text, std::string_view what, size_t from);
Result<Text> stripped(Heap& heap, const Text& text, const Text* characters, bool left, bool right);
Result<Text> replaced(Heap& heap, const Text& text, const Text& from, const Text& to,
                      int64_t times_max);
Result<Text> upper(Heap& heap, const Text& text);
Result<Text> lower(Heap& heap, const Text& text);
Result<Text> capitalized(Heap& heap, const Text& text);
Result<std::vector<Text>> lines_of(Heap& heap, const Text& text, bool keep_ends);

Error undefined_error(const Value& value);
// "'x' is undefined" or "a list where a text is expected".
Error wrong_kind(const Value& value, std::string_view expected);

}  // namespace shoal::chat
