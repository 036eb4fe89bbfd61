#pragma once
// Runs a template's tree: names, loops, macros and expressions. What filters and methods do is
// builtins.h.

#include <optional>

#include "base/result.h"
#include "compute/chat/builtins.h"
#include "compute/chat/parser.h"
#include "compute/chat/value.h"

namespace shoal::chat {

class Evaluator {
 public:
  // `tree` and `heap` outlive it.
  Evaluator(const Tree& tree, Heap& heap, std::optional<int64_t> now_ms)
      : tree_(tree), heap_(heap), now_ms_(now_ms) {}

  // What the template prints with these names around it. Errors name the line.
  Result<Text> run(Scope& globals);

 private:
  enum class Flow { kOn, kBreak, kContinue };

  const Node& node(NodeId id) const { return tree_.nodes[id]; }
  Error located(const Node& at, const Error& error);

  Result<Flow> execute(NodeId id, Scope& scope, Text& out);
  Result<Flow> execute_here(const Node& at, Scope& scope, Text& out);
  Result<Flow> loop(const Node& at, Scope& scope, Text& out);
  Result<Text> captured(NodeId body, Scope& scope);
  Result<void> assign(const Node& at, const Value& value, Scope& scope);
  Result<void> unpack(const Node& at, const Value& value, Scope& scope);
  Result<void> set(Scope& scope, std::string_view name, const Value& value);

  Result<Value> evaluate(NodeId id, Scope& scope);
  Result<Value> evaluate_here(const Node& at, Scope& scope);
  Result<Value> look_up(std::string_view name, const Scope& scope);
  Result<Value> compare(const Node& at, Scope& scope);
  Result<Value> choose(const Node& at, Scope& scope);
  Result<Value> join(const Node& at, Scope& scope);
  Result<Value> arithmetic(Op op, const Value& left, const Value& right);
  Result<Value> repeated(const Value& value, int64_t times);
  Result<Value> call(const Node& at, Scope& scope, const Value* caller);
  Result<Value> call_macro(const Callable& callee, const Arguments& arguments, const Value* caller);
  Result<Value> filtered(const Node& at, Scope& scope, const Value* value);
  Result<Arguments> arguments(const Node& at, Scope& scope);

  const Tree& tree_;
  Heap& heap_;
  std::optional<int64_t> now_ms_;
  bool located_ = false;
};

}  // namespace shoal::chat
