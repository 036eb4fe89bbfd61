#pragma once
// Holds a template as a tree, and decides which texts are templates. Runs nothing.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compute/chat/text.h"
#include "compute/tokenizer/tokenizer.h"

namespace shoal::chat {

// Where a node stands in its tree.
using NodeId = uint32_t;
constexpr NodeId kNoNode = ~NodeId{0};

enum class NodeKind : uint8_t {
  // Expressions. What `a`, `b`, `list` and the rest hold stands behind each.
  kNone,
  kTrue,
  kFalse,
  kInteger,  // integer
  kFloat,    // number
  kText,     // literal
  kName,     // name
  kList,     // list
  kTuple,    // list
  kDict,     // list: key, value, key, value, ...
  kMember,   // a.name
  kIndex,    // a[b]
  kSlice,    // a[list: begin, end, step]; each may be kNoNode
  kCall,     // a(list, named)
  kFilter,   // a | name(list, named); a is kNoNode in a filter block
  kTest,     // a is name(list, named)
  kNot,      // a
  kNegate,   // a
  kPlus,     // a
  kAnd,      // a, b
  kOr,       // a, b
  kBinary,   // a op b
  kCompare,  // list[0] ops[0] list[1] ops[1] ...
  kJoin,     // list, by ~
  kChoose,   // a if b else list[0], which may be kNoNode
  // Statements.
  kPrint,        // literal
  kOutput,       // a
  kBody,         // list
  kIf,           // list: condition, body, condition, body, ...; a: the body of else, or kNoNode
  kFor,          // for target in a if b: list[0], else list[1]; each but a may be kNoNode
  kSet,          // target = a
  kSetBlock,     // name = list[0], through the filter a, which may be kNoNode
  kMacro,        // name(names, named: defaults): list[0]
  kCallBlock,    // a is the kCall; the caller's macro is b
  kFilterBlock,  // a is the kFilter; list[0] its body
  kScope,        // list[0] with its own names; named are set first
  kBreak,
  kContinue,
};

enum class Op : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Node {
  NodeKind kind = NodeKind::kNone;
  Op op = Op::kAdd;
  int line = 1;
  NodeId a = kNoNode;
  NodeId b = kNoNode;
  int64_t integer = 0;
  double number = 0;
  std::vector<NodeId> list;
  std::vector<std::pair<std::string, NodeId>> named;
  std::vector<Op> ops;
  std::string name;
  std::vector<std::string> names;  // Of a macro's parameters; of a target when it is several names.
  Text literal;
};

struct Tree {
  std::vector<Node> nodes;
  NodeId root = kNoNode;
};

constexpr size_t kTemplateBytesMax = kTokenizerTemplateBytesMax;
constexpr size_t kArgumentsMax = 100;  // Of a call, and parameters of a macro.
constexpr int kNestingMax = 64;        // Of tags in tags, and of brackets in brackets.

// Errors name line and cause: kCorrupt for what is no template, kUnsupported for a statement that
// this engine does not have.
Result<Tree> parse_template(std::string_view source);

}  // namespace shoal::chat
