#include "compute/chat/evaluator.h"

#include <cmath>
#include <limits>

#include "compute/chat/lexer.h"

namespace shoal::chat {
namespace {

Error invalid(std::string what) { return {ErrorCode::kInvalid, std::move(what)}; }

Error out_of_range() { return invalid("a number goes out of range"); }

std::string_view op_name(Op op) {
  switch (op) {
    case Op::kAdd: return "+";
    case Op::kSubtract: return "-";
    case Op::kMultiply: return "*";
    case Op::kDivide: return "/";
    case Op::kFloorDivide: return "//";
    case Op::kModulo: return "%";
    default: return "**";
  }
}

// Python's division: toward minus infinity, and a rest of the divisor's sign.
Result<Value> divide_whole(Op op, int64_t left, int64_t right) {
  if (right == 0) return invalid("a division by 0");
  if (right == -1) {
    if (op == Op::kModulo) return Value(int64_t{0});
    if (left == std::numeric_limits<int64_t>::min()) return out_of_range();
    return Value(-left);
  }
  const int64_t rest = left % right;
  const bool other_side = rest != 0 && (rest < 0) != (right < 0);
  if (op == Op::kModulo) return Value(other_side ? rest + right : rest);
  return Value(left / right - (other_side ? 1 : 0));
}

Result<Value> whole_numbers(Op op, int64_t left, int64_t right) {
  int64_t made = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(left, right, &made)) return out_of_range();
      return Value(made);
    case Op::kSubtract:
      if (__builtin_sub_overflow(left, right, &made)) return out_of_range();
      return Value(made);
    case Op::kMultiply:
      if (__builtin_mul_overflow(left, right, &made)) return out_of_range();
      return Value(made);
    case Op::kFloorDivide:
    case Op::kModulo: return divide_whole(op, left, right);
    case Op::kPower: {
      if (right < 0) return Value(std::pow(static_cast<double>(left), static_cast<double>(right)));
      made = 1;
      // At most 63 products that change anything.
      if (left == 0 || left == 1) return Value(right == 0 ? int64_t{1} : left);
      if (left == -1) return Value(right % 2 == 0 ? int64_t{1} : int64_t{-1});
      for (int64_t i = 0; i < right; ++i) {
        if (__builtin_mul_overflow(made, left, &made)) return out_of_range();
      }
      return Value(made);
    }
    default:
      if (right == 0) return invalid("a division by 0");
      return Value(static_cast<double>(left) / static_cast<double>(right));
  }
}

Result<Value> real_numbers(Op op, double left, double right) {
  switch (op) {
    case Op::kAdd: return Value(left + right);
    case Op::kSubtract: return Value(left - right);
    case Op::kMultiply: return Value(left * right);
    case Op::kPower: return Value(std::pow(left, right));
    default: break;
  }
  if (right == 0) return invalid("a division by 0");
  if (op == Op::kDivide) return Value(left / right);
  if (op == Op::kFloorDivide) return Value(std::floor(left / right));
  const double rest = std::fmod(left, right);
  return Value(rest != 0 && (rest < 0) != (right < 0) ? rest + right : rest);
}

}  // namespace

Error Evaluator::located(const Node& at, const Error& error) {
  if (located_) return error;
  located_ = true;
  return template_error(at.line, error.message, error.code);
}

Result<Text> Evaluator::run(Scope& globals) {
  Text out;
  const auto flow = execute(tree_.root, globals, out);
  if (!flow.ok()) return flow.error();
  return out;
}

// --- Statements ----------------------------------------------------------------------------------

Result<Evaluator::Flow> Evaluator::execute(NodeId id, Scope& scope, Text& out) {
  const Node& at = node(id);
  const Descent descent(heap_);
  const auto before = descent.check();
  if (!before.ok()) return located(at, before.error());
  const auto spent = heap_.spend(1);
  if (!spent.ok()) return located(at, spent.error());
  Result<Flow> flow = execute_here(at, scope, out);
  if (!flow.ok()) return located(at, flow.error());
  return flow;
}

Result<Evaluator::Flow> Evaluator::execute_here(const Node& at, Scope& scope, Text& out) {
  switch (at.kind) {
    case NodeKind::kPrint: SHOAL_TRY(heap_.append(out, at.literal)); return Flow::kOn;
    case NodeKind::kOutput: {
      SHOAL_TRY_ASSIGN(value, evaluate(at.a, scope));
      if (const Text* const text = text_of(value)) {
        SHOAL_TRY(heap_.append(out, *text));
        return Flow::kOn;
      }
      SHOAL_TRY_ASSIGN(text, printed(heap_, value));
      SHOAL_TRY(heap_.append(out, text));
      return Flow::kOn;
    }
    case NodeKind::kBody:
      for (const NodeId child : at.list) {
        SHOAL_TRY_ASSIGN(flow, execute(child, scope, out));
        if (flow != Flow::kOn) return flow;
      }
      return Flow::kOn;
    case NodeKind::kIf:
      for (size_t i = 0; i + 1 < at.list.size(); i += 2) {
        SHOAL_TRY_ASSIGN(condition, evaluate(at.list[i], scope));
        if (is_true(condition)) return execute(at.list[i + 1], scope, out);
      }
      return at.a == kNoNode ? Result<Flow>(Flow::kOn) : execute(at.a, scope, out);
    case NodeKind::kFor: return loop(at, scope, out);
    case NodeKind::kSet: {
      SHOAL_TRY_ASSIGN(value, evaluate(at.a, scope));
      SHOAL_TRY(assign(at, value, scope));
      return Flow::kOn;
    }
    case NodeKind::kSetBlock: {
      SHOAL_TRY_ASSIGN(text, captured(at.list[0], scope));
      SHOAL_TRY_ASSIGN(value, heap_.text(std::move(text)));
      if (at.a != kNoNode) {
        SHOAL_TRY_ASSIGN(made, filtered(node(at.a), scope, &value));
        value = made;
      }
      SHOAL_TRY(assign(at, value, scope));
      return Flow::kOn;
    }
    case NodeKind::kMacro: {
      SHOAL_TRY_ASSIGN(macro, heap_.callable({.kind = Callable::Kind::kMacro,
                                              .name = at.name,
                                              .self = Value(),
                                              .macro = &at,
                                              .scope = &scope}));
      SHOAL_TRY(set(scope, at.name, macro));
      return Flow::kOn;
    }
    case NodeKind::kCallBlock: {
      SHOAL_TRY_ASSIGN(caller, heap_.callable({.kind = Callable::Kind::kMacro,
                                               .name = "caller",
                                               .self = Value(),
                                               .macro = &node(at.b),
                                               .scope = &scope}));
      SHOAL_TRY_ASSIGN(value, call(node(at.a), scope, &caller));
      SHOAL_TRY_ASSIGN(text, printed(heap_, value));
      SHOAL_TRY(heap_.append(out, text));
      return Flow::kOn;
    }
    case NodeKind::kFilterBlock: {
      SHOAL_TRY_ASSIGN(text, captured(at.list[0], scope));
      SHOAL_TRY_ASSIGN(value, heap_.text(std::move(text)));
      SHOAL_TRY_ASSIGN(made, filtered(node(at.a), scope, &value));
      SHOAL_TRY_ASSIGN(shown_text, printed(heap_, made));
      SHOAL_TRY(heap_.append(out, shown_text));
      return Flow::kOn;
    }
    case NodeKind::kScope: {
      SHOAL_TRY_ASSIGN(inner, heap_.scope(&scope));
      for (const auto& [name, value_id] : at.named) {
        SHOAL_TRY_ASSIGN(value, evaluate(value_id, scope));
        SHOAL_TRY(set(*inner, name, value));
      }
      return execute(at.list[0], *inner, out);
    }
    case NodeKind::kBreak: return Flow::kBreak;
    case NodeKind::kContinue: return Flow::kContinue;
    default: SHOAL_UNREACHABLE();
  }
}

Result<Evaluator::Flow> Evaluator::loop(const Node& at, Scope& scope, Text& out) {
  SHOAL_TRY_ASSIGN(values, evaluate(at.a, scope));
  SHOAL_TRY_ASSIGN(items, items_of(heap_, values));
  if (at.b != kNoNode) {
    std::vector<Value> kept;
    for (const Value& item : items) {
      SHOAL_TRY_ASSIGN(inner, heap_.scope(&scope));
      SHOAL_TRY(unpack(at, item, *inner));
      SHOAL_TRY_ASSIGN(passes, evaluate(at.b, *inner));
      if (is_true(passes)) kept.push_back(item);
    }
    items = std::move(kept);
  }
  if (items.empty()) {
    if (at.list[1] == kNoNode) return Flow::kOn;
    SHOAL_TRY_ASSIGN(inner, heap_.scope(&scope));
    return execute(at.list[1], *inner, out);
  }
  // In the heap, as the loop variable may outlive the loop in a namespace.
  SHOAL_TRY_ASSIGN(list, heap_.list(std::move(items)));
  SHOAL_TRY_ASSIGN(state, heap_.loop());
  state->items = &list->items;
  for (size_t i = 0; i < list->items.size(); ++i) {
    state->index = i;
    SHOAL_TRY_ASSIGN(inner, heap_.scope(&scope));
    SHOAL_TRY(set(*inner, "loop", Value(state)));
    SHOAL_TRY(unpack(at, list->items[i], *inner));
    SHOAL_TRY_ASSIGN(flow, execute(at.list[0], *inner, out));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kOn;
}

Result<Text> Evaluator::captured(NodeId body, Scope& scope) {
  SHOAL_TRY_ASSIGN(inner, heap_.scope(&scope));
  Text out;
  SHOAL_TRY(execute(body, *inner, out));
  return out;
}

Result<void> Evaluator::set(Scope& scope, std::string_view name, const Value& value) {
  SHOAL_TRY(heap_.spend(1 + scope.names.size() / 8));
  for (auto& [known, old] : scope.names) {
    if (known == name) {
      old = value;
      return {};
    }
  }
  SHOAL_TRY(heap_.take(2 * sizeof(Value)));
  scope.names.emplace_back(name, value);
  return {};
}

Result<void> Evaluator::unpack(const Node& at, const Value& value, Scope& scope) {
  if (at.names.empty()) return set(scope, at.name, value);
  SHOAL_TRY_ASSIGN(items, items_of(heap_, value));
  if (items.size() != at.names.size()) {
    return invalid(std::to_string(items.size()) + " values for " + std::to_string(at.names.size()) +
                   " names");
  }
  for (size_t i = 0; i < items.size(); ++i) SHOAL_TRY(set(scope, at.names[i], items[i]));
  return {};
}

Result<void> Evaluator::assign(const Node& at, const Value& value, Scope& scope) {
  if (at.b == kNoNode) return unpack(at, value, scope);
  const std::string& name = node(at.b).name;
  SHOAL_TRY_ASSIGN(target, look_up(name, scope));
  const auto* space = std::get_if<Space*>(&target);
  if (space == nullptr) {
    if (is_undefined(target)) return undefined_error(target);
    return invalid("only a namespace's fields can be set, and " + shown(name) + " is " +
                   std::string(kind_name(target)));
  }
  SHOAL_TRY(heap_.spend(1 + (*space)->fields.size() / 8));
  for (auto& [field, old] : (*space)->fields) {
    if (field == at.name) {
      old = value;
      return {};
    }
  }
  SHOAL_TRY(heap_.take(2 * sizeof(Value)));
  (*space)->fields.emplace_back(at.name, value);
  return {};
}

// --- Expressions ---------------------------------------------------------------------------------

Result<Value> Evaluator::evaluate(NodeId id, Scope& scope) {
  const Node& at = node(id);
  const Descent descent(heap_);
  const auto before = descent.check();
  if (!before.ok()) return located(at, before.error());
  const auto spent = heap_.spend(1);
  if (!spent.ok()) return located(at, spent.error());
  Result<Value> value = evaluate_here(at, scope);
  if (!value.ok()) return located(at, value.error());
  return value;
}

Result<Value> Evaluator::evaluate_here(const Node& at, Scope& scope) {
  switch (at.kind) {
    case NodeKind::kNone: return Value(None{});
    case NodeKind::kTrue: return Value(true);
    case NodeKind::kFalse: return Value(false);
    case NodeKind::kInteger: return Value(at.integer);
    case NodeKind::kFloat: return Value(at.number);
    case NodeKind::kText: return Value(&at.literal);
    case NodeKind::kName: return look_up(at.name, scope);
    case NodeKind::kList:
    case NodeKind::kTuple: {
      std::vector<Value> items;
      for (const NodeId item : at.list) {
        SHOAL_TRY_ASSIGN(value, evaluate(item, scope));
        items.push_back(value);
      }
      SHOAL_TRY_ASSIGN(list, heap_.list(std::move(items), at.kind == NodeKind::kTuple));
      return Value(list);
    }
    case NodeKind::kDict: {
      SHOAL_TRY_ASSIGN(dict, heap_.dict());
      for (size_t i = 0; i + 1 < at.list.size(); i += 2) {
        SHOAL_TRY_ASSIGN(key, evaluate(at.list[i], scope));
        SHOAL_TRY_ASSIGN(value, evaluate(at.list[i + 1], scope));
        SHOAL_TRY(heap_.put(*dict, key, value));
      }
      return Value(dict);
    }
    case NodeKind::kMember: {
      SHOAL_TRY_ASSIGN(value, evaluate(at.a, scope));
      return member_of(heap_, value, at.name);
    }
    case NodeKind::kIndex: {
      SHOAL_TRY_ASSIGN(value, evaluate(at.a, scope));
      SHOAL_TRY_ASSIGN(key, evaluate(at.b, scope));
      return index_of(heap_, value, key);
    }
    case NodeKind::kSlice: {
      SHOAL_TRY_ASSIGN(value, evaluate(at.a, scope));
      Value parts[3];
      for (size_t i = 0; i < 3; ++i) {
        parts[i] = Value(None{});
        if (at.list[i] == kNoNode) continue;
        SHOAL_TRY_ASSIGN(part, evaluate(at.list[i], scope));
        parts[i] = part;
      }
      return slice_of(heap_, value, parts[0], parts[1], parts[2]);
    }
    case NodeKind::kCall: return call(at, scope, nullptr);
    case NodeKind::kFilter: return filtered(at, scope, nullptr);
    case NodeKind::kTest: {
      SHOAL_TRY_ASSIGN(value, evaluate(at.a, scope));
      SHOAL_TRY_ASSIGN(given, arguments(at, scope));
      SHOAL_TRY_ASSIGN(answer, apply_test(heap_, at.name, value, given));
      return Value(answer);
    }
    case NodeKind::kNot: {
      SHOAL_TRY_ASSIGN(value, evaluate(at.a, scope));
      return Value(!is_true(value));
    }
    case NodeKind::kNegate:
    case NodeKind::kPlus: {
      SHOAL_TRY_ASSIGN(value, evaluate(at.a, scope));
      if (const auto* number = std::get_if<double>(&value))  // There is a -0.0, which 0 - x misses.
        return Value(at.kind == NodeKind::kNegate ? -*number : *number);
      return arithmetic(at.kind == NodeKind::kNegate ? Op::kSubtract : Op::kAdd, Value(int64_t{0}),
                        value);
    }
    case NodeKind::kAnd:
    case NodeKind::kOr: {
      SHOAL_TRY_ASSIGN(left, evaluate(at.a, scope));
      if (is_true(left) == (at.kind == NodeKind::kOr)) return left;
      return evaluate(at.b, scope);
    }
    case NodeKind::kBinary: {
      SHOAL_TRY_ASSIGN(left, evaluate(at.a, scope));
      SHOAL_TRY_ASSIGN(right, evaluate(at.b, scope));
      return arithmetic(at.op, left, right);
    }
    case NodeKind::kCompare: return compare(at, scope);
    case NodeKind::kJoin: return join(at, scope);
    case NodeKind::kChoose: return choose(at, scope);
    default: SHOAL_UNREACHABLE();
  }
}

Result<Value> Evaluator::look_up(std::string_view name, const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->outer) {
    SHOAL_TRY(heap_.spend(1 + at->names.size() / 8));
    for (const auto& [known, value] : at->names) {
      if (known == name) return value;
    }
  }
  if (is_function(name, now_ms_))
    return heap_.callable({.kind = Callable::Kind::kFunction, .name = name, .self = Value()});
  return Value(Undefined{name});
}

Result<Value> Evaluator::choose(const Node& at, Scope& scope) {
  SHOAL_TRY_ASSIGN(condition, evaluate(at.b, scope));
  if (is_true(condition)) return evaluate(at.a, scope);
  if (at.list[0] == kNoNode) return Value(Undefined{"the value of an \"if\" without \"else\""});
  return evaluate(at.list[0], scope);
}

Result<Value> Evaluator::join(const Node& at, Scope& scope) {
  Text out;
  for (const NodeId part : at.list) {
    SHOAL_TRY_ASSIGN(value, evaluate(part, scope));
    if (const Text* const text = text_of(value)) {
      SHOAL_TRY(heap_.append(out, *text));
    } else {
      SHOAL_TRY_ASSIGN(made, printed(heap_, value));
      SHOAL_TRY(heap_.append(out, made));
    }
  }
  return heap_.text(std::move(out));
}

Result<Value> Evaluator::compare(const Node& at, Scope& scope) {
  SHOAL_TRY_ASSIGN(left, evaluate(at.list[0], scope));
  for (size_t i = 0; i < at.ops.size(); ++i) {
    SHOAL_TRY_ASSIGN(right, evaluate(at.list[i + 1], scope));
    bool holds = false;
    const Op op = at.ops[i];
    if (op == Op::kEqual || op == Op::kNotEqual) {
      SHOAL_TRY_ASSIGN(same, equal(heap_, left, right));
      holds = same == (op == Op::kEqual);
    } else if (op == Op::kIn || op == Op::kNotIn) {
      Arguments in;
      in.positional.push_back(right);
      SHOAL_TRY_ASSIGN(inside, apply_test(heap_, "in", left, in));
      holds = inside == (op == Op::kIn);
    } else {
      if (is_undefined(left)) return undefined_error(left);
      if (is_undefined(right)) return undefined_error(right);
      SHOAL_TRY_ASSIGN(sign, order(heap_, left, right));
      holds = op == Op::kLess        ? sign < 0
              : op == Op::kLessEqual ? sign <= 0
              : op == Op::kGreater   ? sign > 0
                                     : sign >= 0;
    }
    if (!holds) return Value(false);
    left = right;
  }
  return Value(true);
}

Result<Value> Evaluator::repeated(const Value& value, int64_t times) {
  if (const Text* const text = text_of(value)) {
    Text out;
    for (int64_t i = 0; i < times && !text->empty(); ++i) {
      SHOAL_TRY(heap_.spend(1));
      SHOAL_TRY(heap_.append(out, *text));
    }
    return heap_.text(std::move(out));
  }
  const List& list = *list_of(value);
  SHOAL_TRY_ASSIGN(made, heap_.list({}, list.tuple));
  for (int64_t i = 0; i < times && !list.items.empty(); ++i) {
    for (const Value& item : list.items) SHOAL_TRY(heap_.push(*made, item));
  }
  return Value(made);
}

Result<Value> Evaluator::arithmetic(Op op, const Value& left, const Value& right) {
  if (is_undefined(left)) return undefined_error(left);
  if (is_undefined(right)) return undefined_error(right);
  if (const auto a = integer_of(left)) {
    if (const auto b = integer_of(right)) return whole_numbers(op, *a, *b);
  }
  const auto a = number_of(left), b = number_of(right);
  if (a && b) return real_numbers(op, *a, *b);
  if (op == Op::kAdd) {
    const Text* const text = text_of(left);
    const Text* const other_text = text_of(right);
    if (text != nullptr && other_text != nullptr) {
      Text out;
      SHOAL_TRY(heap_.append(out, *text));
      SHOAL_TRY(heap_.append(out, *other_text));
      return heap_.text(std::move(out));
    }
    const List* const list = list_of(left);
    const List* const other = list_of(right);
    if (list != nullptr && other != nullptr && list->tuple == other->tuple) {
      SHOAL_TRY(heap_.spend((list->items.size() + other->items.size()) / 8));
      std::vector<Value> items = list->items;
      items.insert(items.end(), other->items.begin(), other->items.end());
      SHOAL_TRY_ASSIGN(made, heap_.list(std::move(items), list->tuple));
      return Value(made);
    }
  }
  if (op == Op::kMultiply) {
    const auto repeats = [](const Value& value) {
      return text_of(value) != nullptr || list_of(value) != nullptr;
    };
    if (const auto times = integer_of(right); times && repeats(left)) return repeated(left, *times);
    if (const auto times = integer_of(left); times && repeats(right))
      return repeated(right, *times);
  }
  return invalid(std::string(kind_name(left)) + " " + std::string(op_name(op)) + " " +
                 std::string(kind_name(right)) + " has no meaning");
}

Result<Arguments> Evaluator::arguments(const Node& at, Scope& scope) {
  Arguments given;
  for (const NodeId id : at.list) {
    SHOAL_TRY_ASSIGN(value, evaluate(id, scope));
    given.positional.push_back(value);
  }
  for (const auto& [name, id] : at.named) {
    SHOAL_TRY_ASSIGN(value, evaluate(id, scope));
    given.named.emplace_back(name, value);
  }
  return given;
}

Result<Value> Evaluator::filtered(const Node& at, Scope& scope, const Value* value) {
  // In a block, the innermost filter has no value of its own: it gets the block's text.
  Value input(Undefined{});
  if (at.a == kNoNode) {
    input = *value;
  } else if (value != nullptr && node(at.a).kind == NodeKind::kFilter) {
    const Descent descent(heap_);
    SHOAL_TRY(descent.check());
    SHOAL_TRY_ASSIGN(made, filtered(node(at.a), scope, value));
    input = made;
  } else {
    SHOAL_TRY_ASSIGN(made, evaluate(at.a, scope));
    input = made;
  }
  SHOAL_TRY_ASSIGN(given, arguments(at, scope));
  return apply_filter(heap_, at.name, input, given);
}

Result<Value> Evaluator::call(const Node& at, Scope& scope, const Value* caller) {
  SHOAL_TRY_ASSIGN(callee, evaluate(at.a, scope));
  if (is_undefined(callee)) return undefined_error(callee);
  const auto* callable = std::get_if<const Callable*>(&callee);
  if (callable == nullptr) return invalid(std::string(kind_name(callee)) + " cannot be called");
  SHOAL_TRY_ASSIGN(given, arguments(at, scope));
  const Callable& called = **callable;
  switch (called.kind) {
    case Callable::Kind::kMacro: return call_macro(called, given, caller);
    case Callable::Kind::kMethod: {
      Result<Value> made = call_method(heap_, called.name, called.self, given);
      if (!made.ok()) return with_context(made.error(), called.name);
      return made;
    }
    case Callable::Kind::kFunction: {
      Result<Value> made = call_function(heap_, called.name, now_ms_, given);
      // What the template itself says needs no name of a function before it.
      if (!made.ok() && called.name != "raise_exception")
        return with_context(made.error(), called.name);
      return made;
    }
  }
  SHOAL_UNREACHABLE();
}

Result<Value> Evaluator::call_macro(const Callable& callee, const Arguments& given,
                                    const Value* caller) {
  const Node& macro = *callee.macro;
  if (given.positional.size() > macro.names.size()) {
    return invalid("the macro " + shown(callee.name) + " takes " +
                   std::to_string(macro.names.size()) + " arguments at most");
  }
  SHOAL_TRY_ASSIGN(scope, heap_.scope(callee.scope));
  for (const auto& [name, value] : given.named) {
    bool known = false;
    for (size_t i = 0; i < macro.names.size() && !known; ++i) {
      known = macro.names[i] == name;
      if (known && i < given.positional.size())
        return invalid("is given the argument " + shown(name) + " twice");
    }
    if (!known)
      return invalid("the macro " + shown(callee.name) + " has no argument " + shown(name));
  }
  if (caller != nullptr) SHOAL_TRY(set(*scope, "caller", *caller));
  for (size_t i = 0; i < macro.names.size(); ++i) {
    const std::string& name = macro.names[i];
    Value value(Undefined{name});
    bool is_given = i < given.positional.size();
    if (is_given) value = given.positional[i];
    for (const auto& [other, named] : given.named) {
      if (other != name) continue;
      value = named;
      is_given = true;
    }
    if (!is_given) {
      for (const auto& [other, id] : macro.named) {
        if (other != name) continue;
        SHOAL_TRY_ASSIGN(otherwise, evaluate(id, *scope));
        value = otherwise;
      }
    }
    SHOAL_TRY(set(*scope, name, value));
  }
  Text out;
  SHOAL_TRY(execute(macro.list[0], *scope, out));
  return heap_.text(std::move(out));
}

}  // namespace shoal::chat
