#include "compute/chat/parser.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "compute/chat/lexer.h"
#include "compute/tokenizer/unicode.h"

namespace shoal::chat {
namespace {

using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Counts how deep a parse is while it lives.
class Depth {
 public:
  explicit Depth(int& depth) : depth_(depth) { ++depth_; }
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  int& depth_;
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Tree> run() {
    SHOAL_TRY_ASSIGN(root, body({}));
    tree_.root = root;
    return std::move(tree_);
  }

 private:
  // --- Tokens ------------------------------------------------------------------------------------

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead(size_t count) const {
    return tokens_[std::min(at_ + count, tokens_.size() - 1)];
  }
  void next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool is_op(std::string_view op) const {
    return now().type == TokenType::kOperator && now().text == op;
  }
  bool is_name(std::string_view name) const {
    return now().type == TokenType::kName && now().text == name;
  }
  bool take_op(std::string_view op) {
    if (!is_op(op)) return false;
    next();
    return true;
  }
  bool take_name(std::string_view name) {
    if (!is_name(name)) return false;
    next();
    return true;
  }
  Error fail(std::string_view what, ErrorCode code = ErrorCode::kCorrupt) const {
    return template_error(now().line, what, code);
  }
  // What stands here, for messages.
  std::string here() const {
    switch (now().type) {
      case TokenType::kBlockEnd: return "the tag's end";
      case TokenType::kOutputEnd: return "the tag's end";
      case TokenType::kEnd: return "the template's end";
      case TokenType::kInteger:
      case TokenType::kFloat: return "a number";
      default: return shown(now().text);
    }
  }
  Result<void> expect_op(std::string_view op) {
    if (take_op(op)) return {};
    return fail("expected \"" + std::string(op) + "\", found " + here());
  }
  Result<void> expect_name(std::string_view name) {
    if (take_name(name)) return {};
    return fail("expected \"" + std::string(name) + "\", found " + here());
  }
  Result<std::string> any_name() {
    if (now().type != TokenType::kName) return fail("expected a name, found " + here());
    std::string name = now().text;
    next();
    return name;
  }
  Result<void> block_end() {
    if (now().type != TokenType::kBlockEnd) return fail("expected the tag's end, found " + here());
    next();
    return {};
  }

  NodeId add(Node node) {
    tree_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(tree_.nodes.size() - 1);
  }
  NodeId add(NodeKind kind, int line, NodeId a = kNoNode, NodeId b = kNoNode) {
    Node node;
    node.kind = kind;
    node.line = line;
    node.a = a;
    node.b = b;
    return add(std::move(node));
  }
  Result<void> deep() const {
    if (depth_ > kNestingMax)
      return fail("is nested deeper than " + std::to_string(kNestingMax) + " levels",
                  ErrorCode::kNoSpace);
    return {};
  }

  Result<void> few(size_t arguments) const {
    if (arguments < kArgumentsMax) return {};
    return fail("has more than " + std::to_string(kArgumentsMax) + " arguments",
                ErrorCode::kNoSpace);
  }

  // --- Statements --------------------------------------------------------------------------------

  // What stands before one of the tags `ends`, whose name is then the current token; or before the
  // template's end when there are none.
  Result<NodeId> body(Names ends) {
    const Depth depth(depth_);
    SHOAL_TRY(deep());
    Node node;
    node.kind = NodeKind::kBody;
    node.line = now().line;
    for (;;) {
      const int line = now().line;
      switch (now().type) {
        case TokenType::kText: {
          Node text;
          text.kind = NodeKind::kPrint;
          text.line = line;
          text.literal = Text(now().text, /*from_message=*/false);
          next();
          node.list.push_back(add(std::move(text)));
          break;
        }
        case TokenType::kOutputBegin: {
          next();
          SHOAL_TRY_ASSIGN(value, tuple_or_expression(/*with_condition=*/true));
          if (now().type != TokenType::kOutputEnd)
            return fail("expected the tag's end, found " + here());
          next();
          node.list.push_back(add(NodeKind::kOutput, line, value));
          break;
        }
        case TokenType::kBlockBegin: {
          next();
          if (now().type != TokenType::kName)
            return fail("a block begins with a word, found " + here());
          if (is_one_of(now().text, ends)) return add(std::move(node));
          SHOAL_TRY_ASSIGN(made, statement());
          node.list.push_back(made);
          break;
        }
        case TokenType::kEnd:
          if (ends.size() == 0) return add(std::move(node));
          return fail("the template ends before \"" + std::string(*(ends.end() - 1)) + "\"");
        default: return fail("found " + here() + " outside of a tag");
      }
    }
  }

  // A body with its end tag: "{% name %} body {% end %}" after the first "%}" was expected.
  Result<NodeId> block_body(std::string_view end) {
    SHOAL_TRY(block_end());
    SHOAL_TRY_ASSIGN(made, body({end}));
    next();
    SHOAL_TRY(block_end());
    return made;
  }

  Result<NodeId> statement() {
    const std::string word = now().text;
    const int line = now().line;
    if (word == "if") return if_statement();
    if (word == "for") return for_statement();
    if (word == "set") return set_statement();
    if (word == "macro") return macro_statement();
    if (word == "call") return call_statement();
    if (word == "filter") return filter_statement();
    if (word == "with") return with_statement();
    if (word == "generation") {
      next();
      Node node;
      node.kind = NodeKind::kScope;
      node.line = line;
      SHOAL_TRY_ASSIGN(inner, block_body("endgeneration"));
      node.list = {inner};
      return add(std::move(node));
    }
    if (word == "break" || word == "continue") {
      if (loops_ == 0) return fail("\"" + word + "\" stands outside of a loop");
      next();
      SHOAL_TRY(block_end());
      return add(word == "break" ? NodeKind::kBreak : NodeKind::kContinue, line);
    }
    if (is_one_of(word, {"include", "import", "from", "extends", "block", "do", "autoescape",
                         "trans", "debug"})) {
      return fail("the statement \"" + word + "\" is not supported", ErrorCode::kUnsupported);
    }
    return fail(shown(word) + " is no statement, or its block is not open");
  }

  Result<NodeId> if_statement() {
    Node node;
    node.kind = NodeKind::kIf;
    node.line = now().line;
    next();
    for (;;) {
      SHOAL_TRY_ASSIGN(condition, tuple_or_expression(/*with_condition=*/false));
      SHOAL_TRY(block_end());
      SHOAL_TRY_ASSIGN(then, body({"elif", "else", "endif"}));
      node.list.push_back(condition);
      node.list.push_back(then);
      if (!take_name("elif")) break;
    }
    if (take_name("else")) {
      SHOAL_TRY(block_end());
      SHOAL_TRY_ASSIGN(otherwise, body({"endif"}));
      node.a = otherwise;
    }
    SHOAL_TRY(expect_name("endif"));
    SHOAL_TRY(block_end());
    return add(std::move(node));
  }

  // "name" or "name, name" or "(name, name)", into names.
  Result<void> target(std::vector<std::string>& names, bool& several) {
    const bool bracket = take_op("(");
    several = false;
    for (;;) {
      SHOAL_TRY_ASSIGN(name, any_name());
      if (is_one_of(name, {"true", "false", "none", "True", "False", "None"}))
        return fail(shown(name) + " cannot be given another value");
      names.push_back(std::move(name));
      if (!take_op(",")) break;
      several = true;
      if (is_name("in") || is_op("=") || is_op(")")) break;
    }
    if (bracket) SHOAL_TRY(expect_op(")"));
    return {};
  }

  Result<NodeId> for_statement() {
    Node node;
    node.kind = NodeKind::kFor;
    node.line = now().line;
    next();
    bool several = false;
    std::vector<std::string> names;
    SHOAL_TRY(target(names, several));
    if (several) {
      node.names = std::move(names);
    } else {
      node.name = std::move(names[0]);
    }
    SHOAL_TRY(expect_name("in"));
    SHOAL_TRY_ASSIGN(values, tuple_or_expression(/*with_condition=*/false));
    node.a = values;
    if (take_name("if")) {
      SHOAL_TRY_ASSIGN(condition, expression());
      node.b = condition;
    }
    if (is_name("recursive"))
      return fail("recursive loops are not supported", ErrorCode::kUnsupported);
    SHOAL_TRY(block_end());
    ++loops_;
    SHOAL_TRY_ASSIGN(inner, body({"else", "endfor"}));
    --loops_;
    NodeId otherwise = kNoNode;
    if (take_name("else")) {
      SHOAL_TRY(block_end());
      SHOAL_TRY_ASSIGN(made, body({"endfor"}));
      otherwise = made;
    }
    SHOAL_TRY(expect_name("endfor"));
    SHOAL_TRY(block_end());
    node.list = {inner, otherwise};
    return add(std::move(node));
  }

  Result<NodeId> set_statement() {
    Node node;
    node.line = now().line;
    next();
    // "set space.field = value" writes into a namespace; `b` is its name.
    if (now().type == TokenType::kName && ahead(1).type == TokenType::kOperator &&
        ahead(1).text == ".") {
      Node space;
      space.kind = NodeKind::kName;
      space.line = node.line;
      space.name = now().text;
      node.b = add(std::move(space));
      next();
      next();
      SHOAL_TRY_ASSIGN(field, any_name());
      node.name = std::move(field);
    } else {
      bool several = false;
      std::vector<std::string> names;
      SHOAL_TRY(target(names, several));
      if (several) {
        node.names = std::move(names);
      } else {
        node.name = std::move(names[0]);
      }
    }
    if (take_op("=")) {
      node.kind = NodeKind::kSet;
      SHOAL_TRY_ASSIGN(value, tuple_or_expression(/*with_condition=*/true));
      node.a = value;
      SHOAL_TRY(block_end());
      return add(std::move(node));
    }
    node.kind = NodeKind::kSetBlock;
    if (!node.names.empty()) return fail("a set block gives its text to one name");
    SHOAL_TRY_ASSIGN(filters, filters_of(kNoNode));
    node.a = filters;
    SHOAL_TRY_ASSIGN(inner, outside_of_loops("endset"));
    node.list = {inner};
    return add(std::move(node));
  }

  // A body that a break or continue inside cannot leave.
  Result<NodeId> outside_of_loops(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    SHOAL_TRY_ASSIGN(inner, block_body(end));
    loops_ = loops;
    return inner;
  }

  // "(name, name=default)" into a macro's parameters.
  Result<void> parameters(Node& macro) {
    SHOAL_TRY(expect_op("("));
    while (!take_op(")")) {
      SHOAL_TRY(few(macro.names.size()));
      SHOAL_TRY_ASSIGN(name, any_name());
      if (std::find(macro.names.begin(), macro.names.end(), name) != macro.names.end())
        return fail("the parameter " + shown(name) + " stands twice");
      macro.names.push_back(name);
      if (take_op("=")) {
        SHOAL_TRY_ASSIGN(value, expression());
        macro.named.emplace_back(name, value);
      } else if (!macro.named.empty()) {
        return fail("the parameter " + shown(name) + " needs a default, as the one before has one");
      }
      if (is_op(")")) continue;
      SHOAL_TRY(expect_op(","));
    }
    return {};
  }

  Result<NodeId> macro_statement() {
    Node node;
    node.kind = NodeKind::kMacro;
    node.line = now().line;
    next();
    SHOAL_TRY_ASSIGN(name, any_name());
    node.name = std::move(name);
    SHOAL_TRY(parameters(node));
    SHOAL_TRY_ASSIGN(inner, outside_of_loops("endmacro"));
    node.list = {inner};
    return add(std::move(node));
  }

  Result<NodeId> call_statement() {
    const int line = now().line;
    next();
    Node caller;
    caller.kind = NodeKind::kMacro;
    caller.line = line;
    caller.name = "caller";
    if (is_op("(")) SHOAL_TRY(parameters(caller));
    SHOAL_TRY_ASSIGN(call, unary(/*with_filters=*/false));
    if (tree_.nodes[call].kind != NodeKind::kCall)
      return fail("a call block needs the call of a macro");
    SHOAL_TRY_ASSIGN(inner, outside_of_loops("endcall"));
    caller.list = {inner};
    const NodeId made = add(std::move(caller));
    return add(NodeKind::kCallBlock, line, call, made);
  }

  Result<NodeId> filter_statement() {
    Node node;
    node.kind = NodeKind::kFilterBlock;
    node.line = now().line;
    next();
    SHOAL_TRY_ASSIGN(first, one_filter(kNoNode));
    SHOAL_TRY_ASSIGN(filters, filters_of(first));
    node.a = filters;
    SHOAL_TRY_ASSIGN(inner, outside_of_loops("endfilter"));
    node.list = {inner};
    return add(std::move(node));
  }

  Result<NodeId> with_statement() {
    Node node;
    node.kind = NodeKind::kScope;
    node.line = now().line;
    next();
    while (now().type == TokenType::kName) {
      SHOAL_TRY_ASSIGN(name, any_name());
      SHOAL_TRY(expect_op("="));
      SHOAL_TRY_ASSIGN(value, expression());
      node.named.emplace_back(std::move(name), value);
      if (!take_op(",")) break;
    }
    SHOAL_TRY_ASSIGN(inner, block_body("endwith"));
    node.list = {inner};
    return add(std::move(node));
  }

  // --- Expressions -------------------------------------------------------------------------------

  bool ends_tuple() const {
    return now().type == TokenType::kBlockEnd || now().type == TokenType::kOutputEnd ||
           is_op(")") || is_op("=") || is_name("in") || is_name("recursive") || is_name("if");
  }

  // "a" or, as a tuple, "a, b".
  Result<NodeId> tuple_or_expression(bool with_condition) {
    const int line = now().line;
    SHOAL_TRY_ASSIGN(first, with_condition ? expression() : either());
    if (!is_op(",")) return first;
    Node node;
    node.kind = NodeKind::kTuple;
    node.line = line;
    node.list = {first};
    while (take_op(",")) {
      if (ends_tuple()) break;
      SHOAL_TRY_ASSIGN(value, with_condition ? expression() : either());
      node.list.push_back(value);
    }
    return add(std::move(node));
  }

  Result<NodeId> expression() {
    const Depth depth(depth_);
    SHOAL_TRY(deep());
    SHOAL_TRY_ASSIGN(made, either());
    while (is_name("if")) {
      Node node;
      node.kind = NodeKind::kChoose;
      node.line = now().line;
      next();
      node.a = made;
      SHOAL_TRY_ASSIGN(condition, either());
      node.b = condition;
      NodeId otherwise = kNoNode;
      if (take_name("else")) {
        SHOAL_TRY_ASSIGN(value, expression());
        otherwise = value;
      }
      node.list = {otherwise};
      made = add(std::move(node));
    }
    return made;
  }

  Result<NodeId> either() {
    SHOAL_TRY_ASSIGN(made, both());
    while (is_name("or")) {
      const int line = now().line;
      next();
      SHOAL_TRY_ASSIGN(right, both());
      made = add(NodeKind::kOr, line, made, right);
    }
    return made;
  }

  Result<NodeId> both() {
    SHOAL_TRY_ASSIGN(made, negation());
    while (is_name("and")) {
      const int line = now().line;
      next();
      SHOAL_TRY_ASSIGN(right, negation());
      made = add(NodeKind::kAnd, line, made, right);
    }
    return made;
  }

  Result<NodeId> negation() {
    if (!is_name("not")) return comparison();
    const Depth depth(depth_);
    SHOAL_TRY(deep());
    const int line = now().line;
    next();
    SHOAL_TRY_ASSIGN(value, negation());
    return add(NodeKind::kNot, line, value);
  }

  std::optional<Op> comparison_op() {
    if (now().type == TokenType::kOperator) {
      static constexpr std::pair<std::string_view, Op> kOps[] = {
          {"==", Op::kEqual},     {"!=", Op::kNotEqual}, {"<", Op::kLess},
          {"<=", Op::kLessEqual}, {">", Op::kGreater},   {">=", Op::kGreaterEqual}};
      for (const auto& [spelling, op] : kOps) {
        if (take_op(spelling)) return op;
      }
      return std::nullopt;
    }
    if (take_name("in")) return Op::kIn;
    if (is_name("not") && ahead(1).type == TokenType::kName && ahead(1).text == "in") {
      next();
      next();
      return Op::kNotIn;
    }
    return std::nullopt;
  }

  Result<NodeId> comparison() {
    const int line = now().line;
    SHOAL_TRY_ASSIGN(first, sum());
    auto op = comparison_op();
    if (!op) return first;
    Node node;
    node.kind = NodeKind::kCompare;
    node.line = line;
    node.list = {first};
    while (op) {
      SHOAL_TRY_ASSIGN(right, sum());
      node.ops.push_back(*op);
      node.list.push_back(right);
      op = comparison_op();
    }
    return add(std::move(node));
  }

  Result<NodeId> binary(NodeId left, Op op, int line, Result<NodeId> right) {
    SHOAL_TRY_ASSIGN(value, std::move(right));
    Node node;
    node.kind = NodeKind::kBinary;
    node.op = op;
    node.line = line;
    node.a = left;
    node.b = value;
    return add(std::move(node));
  }

  Result<NodeId> sum() {
    SHOAL_TRY_ASSIGN(made, join());
    while (is_op("+") || is_op("-")) {
      const Op op = is_op("+") ? Op::kAdd : Op::kSubtract;
      const int line = now().line;
      next();
      SHOAL_TRY_ASSIGN(node, binary(made, op, line, join()));
      made = node;
    }
    return made;
  }

  Result<NodeId> join() {
    SHOAL_TRY_ASSIGN(first, product());
    if (!is_op("~")) return first;
    Node node;
    node.kind = NodeKind::kJoin;
    node.line = now().line;
    node.list = {first};
    while (take_op("~")) {
      SHOAL_TRY_ASSIGN(right, product());
      node.list.push_back(right);
    }
    return add(std::move(node));
  }

  Result<NodeId> product() {
    SHOAL_TRY_ASSIGN(made, power());
    for (;;) {
      std::optional<Op> op;
      if (is_op("*")) op = Op::kMultiply;
      if (is_op("/")) op = Op::kDivide;
      if (is_op("//")) op = Op::kFloorDivide;
      if (is_op("%")) op = Op::kModulo;
      if (!op) return made;
      const int line = now().line;
      next();
      SHOAL_TRY_ASSIGN(node, binary(made, *op, line, power()));
      made = node;
    }
  }

  Result<NodeId> power() {
    SHOAL_TRY_ASSIGN(made, unary(/*with_filters=*/true));
    while (is_op("**")) {
      const int line = now().line;
      next();
      SHOAL_TRY_ASSIGN(node, binary(made, Op::kPower, line, unary(/*with_filters=*/true)));
      made = node;
    }
    return made;
  }

  Result<NodeId> unary(bool with_filters) {
    const Depth depth(depth_);
    SHOAL_TRY(deep());
    const int line = now().line;
    NodeId made = kNoNode;
    if (is_op("-") || is_op("+")) {
      const NodeKind kind = is_op("-") ? NodeKind::kNegate : NodeKind::kPlus;
      next();
      SHOAL_TRY_ASSIGN(value, unary(/*with_filters=*/false));
      made = add(kind, line, value);
    } else {
      SHOAL_TRY_ASSIGN(value, primary());
      SHOAL_TRY_ASSIGN(whole, postfix(value));
      made = whole;
    }
    return with_filters ? filters_and_tests(made) : Result<NodeId>(made);
  }

  Result<NodeId> primary() {
    Node node;
    node.line = now().line;
    switch (now().type) {
      case TokenType::kName: {
        const std::string& word = now().text;
        if (word == "true" || word == "True") {
          node.kind = NodeKind::kTrue;
        } else if (word == "false" || word == "False") {
          node.kind = NodeKind::kFalse;
        } else if (word == "none" || word == "None") {
          node.kind = NodeKind::kNone;
        } else if (is_one_of(word, {"and", "or", "not", "in", "is", "if", "else", "elif"})) {
          return fail("expected a value, found " + here());
        } else {
          node.kind = NodeKind::kName;
          node.name = word;
        }
        next();
        return add(std::move(node));
      }
      case TokenType::kString: {
        node.kind = NodeKind::kText;
        while (now().type == TokenType::kString) {
          node.literal.append(now().text, /*from_message=*/false);
          next();
        }
        return add(std::move(node));
      }
      case TokenType::kInteger:
        node.kind = NodeKind::kInteger;
        node.integer = now().integer;
        next();
        return add(std::move(node));
      case TokenType::kFloat:
        node.kind = NodeKind::kFloat;
        node.number = now().number;
        next();
        return add(std::move(node));
      case TokenType::kOperator:
        if (take_op("(")) return in_brackets(std::move(node));
        if (take_op("[")) return list(std::move(node));
        if (take_op("{")) return dict(std::move(node));
        break;
      default: break;
    }
    return fail("expected a value, found " + here());
  }

  Result<NodeId> in_brackets(Node node) {
    if (take_op(")")) {
      node.kind = NodeKind::kTuple;
      return add(std::move(node));
    }
    SHOAL_TRY_ASSIGN(value, tuple_or_expression(/*with_condition=*/true));
    SHOAL_TRY(expect_op(")"));
    return value;
  }

  Result<NodeId> list(Node node) {
    node.kind = NodeKind::kList;
    while (!take_op("]")) {
      SHOAL_TRY_ASSIGN(value, expression());
      node.list.push_back(value);
      if (is_op("]")) continue;
      SHOAL_TRY(expect_op(","));
    }
    return add(std::move(node));
  }

  Result<NodeId> dict(Node node) {
    node.kind = NodeKind::kDict;
    while (!take_op("}")) {
      SHOAL_TRY_ASSIGN(key, expression());
      SHOAL_TRY(expect_op(":"));
      SHOAL_TRY_ASSIGN(value, expression());
      node.list.push_back(key);
      node.list.push_back(value);
      if (is_op("}")) continue;
      SHOAL_TRY(expect_op(","));
    }
    return add(std::move(node));
  }

  // ".name", "[index]", "[begin:end:step]" and "(arguments)" behind a value.
  Result<NodeId> postfix(NodeId made) {
    for (;;) {
      Node node;
      node.line = now().line;
      node.a = made;
      if (take_op(".")) {
        if (now().type == TokenType::kInteger) {
          node.kind = NodeKind::kIndex;
          Node index;
          index.kind = NodeKind::kInteger;
          index.line = node.line;
          index.integer = now().integer;
          next();
          node.b = add(std::move(index));
        } else {
          node.kind = NodeKind::kMember;
          SHOAL_TRY_ASSIGN(name, any_name());
          node.name = std::move(name);
        }
      } else if (take_op("[")) {
        SHOAL_TRY(subscript(node));
      } else if (is_op("(")) {
        node.kind = NodeKind::kCall;
        SHOAL_TRY(arguments(node));
      } else {
        return made;
      }
      made = add(std::move(node));
    }
  }

  Result<void> subscript(Node& node) {
    std::vector<NodeId> parts(1, kNoNode);
    while (!is_op("]")) {
      if (take_op(":")) {
        if (parts.size() == 3) return fail("a slice has three parts at most");
        parts.push_back(kNoNode);
      } else if (parts.back() != kNoNode) {
        return fail("expected \"]\", found " + here());
      } else {
        SHOAL_TRY_ASSIGN(value, expression());
        parts.back() = value;
      }
    }
    next();
    if (parts.size() == 1) {
      if (parts[0] == kNoNode) return fail("expected an index, found \"]\"");
      node.kind = NodeKind::kIndex;
      node.b = parts[0];
      return {};
    }
    node.kind = NodeKind::kSlice;
    parts.resize(3, kNoNode);
    node.list = std::move(parts);
    return {};
  }

  Result<void> arguments(Node& node) {
    SHOAL_TRY(expect_op("("));
    while (!take_op(")")) {
      SHOAL_TRY(few(node.list.size() + node.named.size()));
      if (is_op("*") || is_op("**"))
        return fail("arguments by * are not supported", ErrorCode::kUnsupported);
      if (now().type == TokenType::kName && ahead(1).type == TokenType::kOperator &&
          ahead(1).text == "=") {
        std::string name = now().text;
        next();
        next();
        for (const auto& [other, value] : node.named) {
          if (other == name) return fail("the argument " + shown(name) + " stands twice");
        }
        SHOAL_TRY_ASSIGN(value, expression());
        node.named.emplace_back(std::move(name), value);
      } else {
        if (!node.named.empty()) return fail("an argument without a name follows one with a name");
        SHOAL_TRY_ASSIGN(value, expression());
        node.list.push_back(value);
      }
      if (is_op(")")) continue;
      SHOAL_TRY(expect_op(","));
    }
    return {};
  }

  // A filter's name and arguments, without the bar.
  Result<NodeId> one_filter(NodeId value) {
    Node node;
    node.kind = NodeKind::kFilter;
    node.line = now().line;
    node.a = value;
    SHOAL_TRY_ASSIGN(name, any_name());
    node.name = std::move(name);
    if (is_op("(")) SHOAL_TRY(arguments(node));
    return add(std::move(node));
  }

  Result<NodeId> filters_of(NodeId made) {
    while (take_op("|")) {
      SHOAL_TRY_ASSIGN(filter, one_filter(made));
      made = filter;
    }
    return made;
  }

  Result<NodeId> filters_and_tests(NodeId made) {
    for (;;) {
      if (take_op("|")) {
        SHOAL_TRY_ASSIGN(filter, one_filter(made));
        made = filter;
      } else if (is_name("is")) {
        SHOAL_TRY_ASSIGN(test, one_test(made));
        made = test;
      } else if (is_op("(")) {
        Node node;
        node.kind = NodeKind::kCall;
        node.line = now().line;
        node.a = made;
        SHOAL_TRY(arguments(node));
        made = add(std::move(node));
      } else {
        return made;
      }
    }
  }

  Result<NodeId> one_test(NodeId value) {
    Node node;
    node.kind = NodeKind::kTest;
    node.line = now().line;
    node.a = value;
    next();
    const bool negated = take_name("not");
    SHOAL_TRY_ASSIGN(name, any_name());
    node.name = std::move(name);
    if (is_op("(")) {
      SHOAL_TRY(arguments(node));
    } else {
      const TokenType type = now().type;
      const bool argument =
          type == TokenType::kString || type == TokenType::kInteger || type == TokenType::kFloat ||
          is_op("[") || is_op("{") ||
          (type == TokenType::kName &&
           !is_one_of(now().text, {"else", "or", "and", "is", "if", "in", "not", "recursive"}));
      if (argument) {
        SHOAL_TRY_ASSIGN(first, primary());
        SHOAL_TRY_ASSIGN(whole, postfix(first));
        node.list.push_back(whole);
      }
    }
    const int line = node.line;
    const NodeId made = add(std::move(node));
    return negated ? add(NodeKind::kNot, line, made) : made;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;  // Around what is being parsed.
  Tree tree_;
};

}  // namespace

Result<Tree> parse_template(std::string_view source) {
  if (source.size() > kTemplateBytesMax) {
    return Error{ErrorCode::kNoSpace,
                 "chat template: is longer than " + std::to_string(kTemplateBytesMax) + " bytes"};
  }
  if (valid_utf8(source) != source) return Error{ErrorCode::kCorrupt, "chat template: is no UTF-8"};
  SHOAL_TRY_ASSIGN(tokens, read_tokens(source));
  return Parser(std::move(tokens)).run();
}

}  // namespace shoal::chat
