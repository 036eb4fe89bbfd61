// Goal: only graphs that can run are accepted, and their sizes and cost follow from their shapes.
// Method: a small model's fragments, each spoilt in one place; every truncation and every changed
// bit or byte of their encoding.

#include <QTest>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/bytes.h"
#include "compute/graph/graph.h"
#include "compute/graph/limits.h"
#include "compute/sample_model.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

Graph block_graph(DType weights = DType::kF32) {
  return make_sample_model({.blocks = 1, .weights = weights}).fragments[1].graph;
}
Graph embedding_graph() { return make_sample_model({.blocks = 1}).fragments[0].graph; }
Graph head_graph() { return make_sample_model({.blocks = 1}).fragments[2].graph; }

// Two of four experts on rows of 32, as blocks of a mixture have them: the router's product, the
// route, the products into and out of the experts, and the sum.
constexpr size_t kRouteOp = 1, kIntoExperts = 2, kOutOfExperts = 3, kCombineOp = 4;
Graph experts_graph() {
  Graph g;
  const auto value = [&g](Value made) {
    g.values.push_back(std::move(made));
    return ValueId(g.values.size() - 1);
  };
  const auto weight = [&](const char* name, Shape shape) {
    return value({.kind = ValueKind::kWeight, .shape = std::move(shape), .name = name});
  };
  const auto op = [&](OpKind kind, std::vector<ValueId> inputs, int64_t width) {
    const ValueId output = value({.shape = {kRows, width}});
    g.ops.push_back({.kind = kind,
                     .inputs = std::move(inputs),
                     .output = output,
                     .experts = 4,
                     .experts_used = 2});
    return output;
  };
  g.input = value({.kind = ValueKind::kInput, .shape = {kRows, 32}});
  const ValueId scores = op(OpKind::kMatmul, {g.input, weight("router", {4, 32})}, 4);
  const ValueId routes = op(OpKind::kRoute, {scores}, 4);
  const ValueId inner =
      op(OpKind::kExpertMatmul, {g.input, weight("up", {4 * 96, 32}), routes}, 2 * 96);
  const ValueId outer =
      op(OpKind::kExpertMatmul, {inner, weight("down", {4 * 32, 96}), routes}, 2 * 32);
  g.output = op(OpKind::kCombine, {outer, routes}, 32);
  return g;
}

// The n-th op of the kind.
size_t find_op(const Graph& graph, OpKind kind, int n = 0) {
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (graph.ops[i].kind == kind && n-- == 0) return i;
  }
  qFatal("no such op");
}

}  // namespace

class GraphTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void names_and_sizes_of_types();
  void byte_sizes_follow_from_shapes();
  void sample_graphs_are_accepted();
  void bad_graphs_are_refused_by_name_data();
  void bad_graphs_are_refused_by_name();
  void limits_hold_from_both_sides();
  void cost_follows_from_shapes();
  void encoding_is_undone_by_decoding();
  void the_first_encoding_is_still_read();
  void no_broken_encoding_gets_through();
};

void GraphTest::names_and_sizes_of_types() {
  QCOMPARE(op_name(OpKind::kEmbed), "embed");
  QCOMPARE(op_name(OpKind::kSelectRows), "select_rows");
  QCOMPARE(op_name(OpKind(200)), "unknown");
  QCOMPARE(dtype_name(DType::kQ4_0), "q4_0");
  QVERIFY(is_weight_type(DType::kBF16));
  QVERIFY(!is_weight_type(DType::kQ8Rows));
  QVERIFY(!is_weight_type(DType::kI32));
  QCOMPARE(block_elements(DType::kQ8_0), 32u);
  QCOMPARE(block_elements(DType::kF16), 1u);
}

void GraphTest::byte_sizes_follow_from_shapes() {
  QCOMPARE(byte_size(DType::kF32, {3, 5}).value(), int64_t(60));
  QCOMPARE(byte_size(DType::kQ8_0, {3, 64}).value(), int64_t(3 * 2 * 34));
  QCOMPARE(byte_size(DType::kQ4_0, {32}).value(), int64_t(18));
  QCOMPARE(byte_size(DType::kQ8Rows, {2, 64}).value(), int64_t(2 * (64 + 8)));
  QVERIFY(!byte_size(DType::kF32, {}).ok());
  QVERIFY(!byte_size(DType::kF32, {3, 0}).ok());
  QVERIFY(!byte_size(DType::kF32, {kRows, 4}).ok());
  QVERIFY(!byte_size(DType::kQ8_0, {3, 33}).ok());
  QCOMPARE(byte_size(DType::kF32, {int64_t{1} << 30, int64_t{1} << 30}).value(), int64_t{1} << 62);
  QVERIFY(!byte_size(DType::kF32, {int64_t{1} << 30, (int64_t{1} << 30) + 1}).ok());
  QVERIFY(!byte_size(DType::kF32, {int64_t{1} << 40, int64_t{1} << 40, int64_t{1} << 40}).ok());
  QCOMPARE(bind({kRows, kOutputs, kContext, kSequences, 7}, {1, 2, 3, 4}), (Shape{1, 2, 3, 4, 7}));
}

void GraphTest::sample_graphs_are_accepted() {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    const SampleModel model = make_sample_model({.weights = dtype});
    for (const Fragment& fragment : model.fragments) {
      const Result<void> verified = verify(fragment.graph);
      QVERIFY2(verified.ok(), verified.ok() ? "" : verified.error().message.c_str());
    }
  }
}

using Spoil = std::function<void(Graph&)>;
Q_DECLARE_METATYPE(Spoil)

void GraphTest::bad_graphs_are_refused_by_name_data() {
  QTest::addColumn<int>("which");  // 0 embedding, 1 block, 2 head, 3 quantised block, 4 experts.
  QTest::addColumn<Spoil>("spoil");
  QTest::addColumn<QString>("words");
  const auto row = [](const char* name, int which, const char* words, Spoil spoil) {
    QTest::newRow(name) << which << spoil << QString(words);
  };
  row("numerics version", 1, "numerics version 2", [](Graph& g) { g.numerics_version = 2; });
  row("no values", 1, "0 values", [](Graph& g) { g.values.clear(); });
  row("no ops", 1, "0 ops", [](Graph& g) { g.ops.clear(); });
  row("input out of range", 1, "input", [](Graph& g) { g.input = 10'000; });
  row("input is a weight", 1, "input", [](Graph& g) { g.input = 1; });
  row("output out of range", 1, "output", [](Graph& g) { g.output = 10'000; });
  row("output is the input", 1, "output", [](Graph& g) { g.output = g.input; });
  row("output is quantised", 3, "output",
      [](Graph& g) { g.output = g.ops[find_op(g, OpKind::kQuantize)].output; });
  row("output not made", 1, "output is made by no op", [](Graph& g) { g.ops.pop_back(); });
  row("unknown value kind", 1, "value 1: its kind",
      [](Graph& g) { g.values[1].kind = ValueKind(9); });
  row("unknown type", 1, "value 1: its type", [](Graph& g) { g.values[1].dtype = DType(99); });
  row("a second input", 1, "second input", [](Graph& g) { g.values.push_back(g.values[g.input]); });
  row("input of one dimension", 1, "the input is f32[rows]",
      [](Graph& g) { g.values[g.input].shape = {kRows}; });
  row("tokens are floats", 0, "the input is f32[rows]",
      [](Graph& g) { g.values[g.input].dtype = DType::kF32; });
  row("weight without a name", 1, "no name",
      [](Graph& g) { g.values[g.ops[0].inputs[1]].name.clear(); });
  row("two weights of a name", 1, "second weight",
      [](Graph& g) { g.values[g.ops[1].inputs[1]].name = g.values[g.ops[0].inputs[1]].name; });
  row("name with a control byte", 1, "printable", [](Graph& g) { g.values[1].name = "a\nb"; });
  row("name too long", 1, "too long", [](Graph& g) { g.values[1].name = std::string(257, 'x'); });
  row("weight of no type", 1, "weight",
      [](Graph& g) { g.values[g.ops[0].inputs[1]].dtype = DType::kI32; });
  row("weight with rows", 1, "(q)",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kMatmul)].inputs[1]].shape[0] = kRows; });
  row("dimension of zero", 1, "(q)",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kMatmul)].inputs[1]].shape[0] = 0; });
  row("dimension beyond the limit", 1, "(q)", [](Graph& g) {
    g.values[g.ops[find_op(g, OpKind::kMatmul)].inputs[1]].shape[0] = limits::kWidthMax + 1;
  });
  row("block of 33", 3, "multiple of 32",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kMatmul)].inputs[1]].shape[1] = 33; });
  row("state with a fixed context", 1, "f32 or f16[sequences, context, width]",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kCacheAppend)].output].shape[1] = 5; });
  row("state of q8_0", 1, "f32 or f16[sequences, context, width]", [](Graph& g) {
    g.values[g.ops[find_op(g, OpKind::kCacheAppend)].output].dtype = DType::kQ8_0;
  });
  const auto table = [](Graph& g) -> Value& {
    return g.values[g.ops[find_op(g, OpKind::kRope)].inputs[1]];
  };
  row("odd rotary", 1, "rotary", [=](Graph& g) { table(g).rope.rotary = 15; });
  row("table of another size", 1, "rotary", [=](Graph& g) { table(g).shape[1] = 3; });
  row("theta below 1", 1, "theta", [=](Graph& g) { table(g).rope.theta = 0.5; });
  row("theta is NaN", 1, "theta", [=](Graph& g) { table(g).rope.theta = std::nan(""); });
  row("linear factor 0", 1, "linear factor", [=](Graph& g) { table(g).rope.linear_factor = 0; });
  row("linear factor infinite", 1, "linear factor",
      [=](Graph& g) { table(g).rope.linear_factor = std::numeric_limits<double>::infinity(); });
  row("computed of i32", 1, "rows or outputs",
      [](Graph& g) { g.values[g.ops[0].output].dtype = DType::kI32; });
  row("computed of fixed rows", 1, "rows or outputs",
      [](Graph& g) { g.values[g.ops[0].output].shape[0] = 4; });
  row("unknown op", 1, "op 0: its kind", [](Graph& g) { g.ops[0].kind = OpKind(kOpKinds); });
  row("an input too few", 1, "op 0 (rms_norm): it has 1 inputs",
      [](Graph& g) { g.ops[0].inputs.pop_back(); });
  row("an input out of range", 1, "op 0 (rms_norm): an input",
      [](Graph& g) { g.ops[0].inputs[0] = 9999; });
  row("an output out of range", 1, "op 0 (rms_norm): its output",
      [](Graph& g) { g.ops[0].output = 9999; });
  row("output is a weight", 1, "op 0 (rms_norm)",
      [](Graph& g) { g.ops[0].output = g.ops[0].inputs[1]; });
  row("used before it is made", 1, "before it is made",
      [](Graph& g) { std::swap(g.ops[0], g.ops[1]); });
  row("made twice", 1, "made twice", [](Graph& g) { g.ops.push_back(g.ops.back()); });
  row("used by no op", 1, "used by no op", [](Graph& g) {
    g.values.push_back({.kind = ValueKind::kWeight, .shape = {5}, .name = "spare"});
  });
  row("appended twice", 1, "appended to twice",
      [](Graph& g) { g.ops.push_back(g.ops[find_op(g, OpKind::kCacheAppend)]); });
  row("attention before append", 1, "before anything is appended",
      [](Graph& g) { g.ops.erase(g.ops.begin() + long(find_op(g, OpKind::kCacheAppend))); });
  // Each op's own rule.
  row("embed of floats", 0, "op 0 (embed): its output",
      [](Graph& g) { g.values[g.ops[0].output].shape[1] = 65; });
  row("embed from hidden", 0, "embed", [](Graph& g) { g.ops[0].inputs[0] = g.ops[0].inputs[1]; });
  row("norm weight of f16", 1, "op 0 (rms_norm): its weight",
      [](Graph& g) { g.values[g.ops[0].inputs[1]].dtype = DType::kF16; });
  row("norm weight too short", 1, "op 0 (rms_norm): its weight",
      [](Graph& g) { g.values[g.ops[0].inputs[1]].shape[0] = 63; });
  row("epsilon NaN", 1, "epsilon", [](Graph& g) { g.ops[0].epsilon = std::nanf(""); });
  row("epsilon negative", 1, "epsilon", [](Graph& g) { g.ops[0].epsilon = -1e-5f; });
  row("epsilon subnormal", 1, "epsilon", [](Graph& g) { g.ops[0].epsilon = 1e-40f; });
  row("quantised to f32", 3, "(quantize)",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kQuantize)].output].dtype = DType::kF32; });
  row("quantised weight, float input", 3, "(matmul): its input", [](Graph& g) {
    Op& op = g.ops[find_op(g, OpKind::kMatmul)];
    op.inputs[0] = g.ops[0].output;
  });
  row("float weight, quantised input", 3, "(matmul): its input",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kMatmul)].inputs[1]].dtype = DType::kF32; });
  row("matmul of other lengths", 1, "(matmul): its input",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kMatmul)].inputs[1]].shape[1] = 32; });
  row("matmul by a computed value", 1, "(matmul): its weight",
      [](Graph& g) { g.ops[find_op(g, OpKind::kMatmul)].inputs[1] = g.ops[0].output; });
  row("matmul's output too narrow", 1, "(matmul): its output",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kMatmul)].output].shape[1] = 1; });
  row("rope of no heads", 1, "(rope): it has 0 heads",
      [](Graph& g) { g.ops[find_op(g, OpKind::kRope)].heads = 0; });
  row("rope of other heads", 1, "(rope): its input",
      [](Graph& g) { g.ops[find_op(g, OpKind::kRope)].heads = 3; });
  row("rope of enormous heads", 1, "(rope)", [](Graph& g) {
    g.ops[find_op(g, OpKind::kRope)].heads = 0xFFFFFFFF;
    g.ops[find_op(g, OpKind::kRope)].head_dim = 0xFFFFFFFF;
  });
  row("rope by a weight", 1, "(rope): its table",
      [](Graph& g) { g.ops[find_op(g, OpKind::kRope)].inputs[1] = g.ops[0].inputs[1]; });
  row("append to a value", 1, "(cache_append)", [](Graph& g) {
    Op& op = g.ops[find_op(g, OpKind::kCacheAppend)];
    op.inputs[1] = op.output = g.ops[0].output;
  });
  row("append's output is another", 1, "(cache_append): its output is not its state", [](Graph& g) {
    g.ops[find_op(g, OpKind::kCacheAppend)].output =
        g.ops[find_op(g, OpKind::kCacheAppend, 1)].output;
  });
  row("attention of 3 key heads", 1, "(attention)",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].kv_heads = 3; });
  row("attention of 0 key heads", 1, "(attention)",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].kv_heads = 0; });
  row("attention's heads too wide", 1, "(attention)",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].head_dim = 513; });
  row("attention's scale NaN", 1, "scale",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].scale = std::nanf(""); });
  row("attention's scale 0", 1, "scale",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].scale = 0; });
  row("attention over a value", 1, "(attention): its keys",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].inputs[1] = g.ops[0].output; });
  row("states of two types", 1, "(attention): its values", [](Graph& g) {
    g.values[g.ops[find_op(g, OpKind::kCacheAppend, 1)].output].dtype = DType::kF32;
  });
  row("swiglu of two widths", 1, "(swiglu)",
      [](Graph& g) { g.ops[find_op(g, OpKind::kSwiglu)].inputs[0] = g.input; });
  row("add of two widths", 1, "(add)", [](Graph& g) {
    g.ops[find_op(g, OpKind::kAdd)].inputs[0] = g.ops[find_op(g, OpKind::kMatmul, 1)].output;
  });
  row("selected rows stay rows", 2, "(select_rows): its output",
      [](Graph& g) { g.values[g.ops[find_op(g, OpKind::kSelectRows)].output].shape[0] = kRows; });
  row("selected twice", 2, "(select_rows): its input", [](Graph& g) {
    g.values[g.ops[0].output].shape = {kOutputs, 64};
    Op again = g.ops[find_op(g, OpKind::kSelectRows)];
    again.inputs[0] = g.ops[find_op(g, OpKind::kSelectRows)].output;
    g.values.push_back({.shape = {kOutputs, 64}});
    again.output = ValueId(g.values.size() - 1);
    g.ops.push_back(again);
  });
  row("attention's window too long", 1, "(attention): its window is 1048577", [](Graph& g) {
    g.ops[find_op(g, OpKind::kAttention)].window = uint32_t(limits::kContextMax + 1);
  });
  row("attention's cap NaN", 1, "(attention): its cap",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].cap = std::nanf(""); });
  row("attention's cap negative", 1, "(attention): its cap",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].cap = -50; });
  row("attention's cap subnormal", 1, "(attention): its cap",
      [](Graph& g) { g.ops[find_op(g, OpKind::kAttention)].cap = 1e-40f; });
  row("a divisor too few", 1, "it has 7 divisors where 8",
      [=](Graph& g) { table(g).rope.divisors.assign(7, 1.0); });
  row("a divisor too many, far", 1, "it has 9 divisors where 8",
      [=](Graph& g) { table(g).rope.long_divisors.assign(9, 1.0); });
  row("a divisor is 0", 1, "a divisor", [=](Graph& g) {
    table(g).rope.divisors.assign(8, 1.0);
    table(g).rope.divisors.back() = 0;
  });
  row("a divisor is NaN", 1, "a divisor",
      [=](Graph& g) { table(g).rope.long_divisors.assign(8, std::nan("")); });
  row("magnitude NaN", 1, "magnitude", [=](Graph& g) { table(g).rope.magnitude = std::nan(""); });
  row("far beyond any context", 1, "long contexts",
      [=](Graph& g) { table(g).rope.long_beyond = limits::kContextMax + 1; });
  row("far beyond -1", 1, "long contexts", [=](Graph& g) { table(g).rope.long_beyond = -1; });
  // What an expert_matmul reads as experts' numbers: only a route to as many experts makes them.
  row("routes are the input", 4, "(expert_matmul): its routes",
      [](Graph& g) { g.ops[kIntoExperts].inputs[2] = g.input; });
  row("routes are the scores", 4, "(expert_matmul): its routes",
      [](Graph& g) { g.ops[kIntoExperts].inputs[2] = g.ops[0].output; });
  row("routes were scaled", 4, "(expert_matmul): its routes", [](Graph& g) {
    g.values.push_back({.shape = {kRows, 4}});
    const auto scaled = ValueId(g.values.size() - 1);
    const ValueId routes = g.ops[kRouteOp].output;
    g.ops.insert(g.ops.begin() + kIntoExperts,
                 {.kind = OpKind::kScale, .inputs = {routes}, .output = scaled, .scale = 2});
    g.ops[kIntoExperts + 1].inputs[2] = scaled;
  });
  row("routes are a weight", 4, "(expert_matmul): its routes",
      [](Graph& g) { g.ops[kIntoExperts].inputs[2] = g.ops[kIntoExperts].inputs[1]; });
  row("routes to more experts", 4, "(expert_matmul): its routes",
      [](Graph& g) { g.ops[kIntoExperts].experts = 2; });
  row("routes to fewer experts", 4, "(expert_matmul): its routes",
      [](Graph& g) { g.ops[kIntoExperts].experts = 8; });
  row("routes to another number of them", 4, "(expert_matmul): its routes",
      [](Graph& g) { g.ops[kIntoExperts].experts_used = 1; });
  row("experts do not divide the rows", 4, "(expert_matmul): its weight",
      [](Graph& g) { g.values[g.ops[kIntoExperts].inputs[1]].shape[0] = 4 * 96 - 1; });
  row("of no experts", 4, "(expert_matmul): its weight",
      [](Graph& g) { g.ops[kIntoExperts].experts = 0; });
  row("experts are a vector", 4, "(expert_matmul): its weight",
      [](Graph& g) { g.values[g.ops[kIntoExperts].inputs[1]].shape = {4}; });
  row("experts are computed", 4, "(expert_matmul): its weight",
      [](Graph& g) { g.ops[kIntoExperts].inputs[1] = g.ops[0].output; });
  row("experts of other lengths", 4, "(expert_matmul): its input",
      [](Graph& g) { g.values[g.ops[kIntoExperts].inputs[1]].shape[1] = 31; });
  row("half a slot for each expert", 4, "(expert_matmul): its input",
      [](Graph& g) { g.values[g.ops[kOutOfExperts].inputs[1]].shape[1] = 64; });
  row("quantised experts, float input", 4, "(expert_matmul): its input",
      [](Graph& g) { g.values[g.ops[kIntoExperts].inputs[1]].dtype = DType::kQ8_0; });
  row("input of other rows than its routes", 4, "(expert_matmul): its input", [](Graph& g) {
    g.values.push_back({.shape = {kOutputs, 2 * 96}});
    const auto picked = ValueId(g.values.size() - 1);
    const ValueId inner = g.ops[kIntoExperts].output;
    g.ops.insert(g.ops.begin() + kOutOfExperts,
                 {.kind = OpKind::kSelectRows, .inputs = {inner}, .output = picked});
    g.ops[kOutOfExperts + 1].inputs[0] = picked;
  });
  row("experts' output too narrow", 4, "(expert_matmul): its output",
      [](Graph& g) { g.values[g.ops[kIntoExperts].output].shape[1] = 96; });
  row("a route to no expert", 4, "(route): it uses 0 of 4",
      [](Graph& g) { g.ops[kRouteOp].experts_used = 0; });
  row("a route of none", 4, "(route): it uses 2 of 0",
      [](Graph& g) { g.ops[kRouteOp].experts = 0; });
  row("a route to more than there are", 4, "(route): it uses 5 of 4",
      [](Graph& g) { g.ops[kRouteOp].experts_used = 5; });
  row("a route to too many", 4, "(route): it uses 33 of 64", [](Graph& g) {
    g.ops[kRouteOp].experts = 64;
    g.ops[kRouteOp].experts_used = limits::kExpertsUsedMax + 1;
  });
  row("a route of too many", 4, "(route): it uses 2 of 1025",
      [](Graph& g) { g.ops[kRouteOp].experts = limits::kExpertsMax + 1; });
  row("a route by other scores", 4, "(route): its input",
      [](Graph& g) { g.ops[kRouteOp].inputs[0] = g.input; });
  row("a route without weights", 4, "(route): its output",
      [](Graph& g) { g.values[g.ops[kRouteOp].output].shape[1] = 2; });
  row("no experts combined", 4, "(combine): it combines 0",
      [](Graph& g) { g.ops[kCombineOp].experts_used = 0; });
  row("too many combined", 4, "(combine): it combines 33",
      [](Graph& g) { g.ops[kCombineOp].experts_used = limits::kExpertsUsedMax + 1; });
  row("combined by other routes", 4, "(combine): its routes",
      [](Graph& g) { g.ops[kCombineOp].experts_used = 1; });
  row("combined into another width", 4, "(combine): its output",
      [](Graph& g) { g.values[g.output].shape[1] = 64; });
}

void GraphTest::bad_graphs_are_refused_by_name() {
  QFETCH(int, which);
  QFETCH(Spoil, spoil);
  QFETCH(QString, words);
  Graph graph = which == 0   ? embedding_graph()
                : which == 2 ? head_graph()
                : which == 4 ? experts_graph()
                             : block_graph(which == 3 ? DType::kQ8_0 : DType::kF32);
  QVERIFY(verify(graph).ok());
  spoil(graph);
  const Result<void> result = verify(graph);
  QVERIFY2(!result.ok(), "it was accepted");
  const QString message = QString::fromStdString(result.error().message);
  QVERIFY2(message.contains(words), qPrintable(message));
  QVERIFY(!decode(encode(graph)).ok());
}

void GraphTest::limits_hold_from_both_sides() {
  // A chain of additions.
  const auto chain = [](size_t ops) {
    Graph graph;
    graph.values.push_back({.kind = ValueKind::kInput, .shape = {kRows, 8}});
    for (size_t i = 0; i < ops; ++i) {
      graph.values.push_back({.shape = {kRows, 8}});
      graph.ops.push_back(
          {.kind = OpKind::kAdd, .inputs = {ValueId(i), ValueId(i)}, .output = ValueId(i + 1)});
    }
    graph.output = ValueId(ops);
    return graph;
  };
  QVERIFY(verify(chain(limits::kOpsMax)).ok());
  QVERIFY(!verify(chain(limits::kOpsMax + 1)).ok());

  // A head whose weights take exactly all bytes that a graph may have, and one row more.
  Graph graph;
  graph.values.push_back({.kind = ValueKind::kInput, .shape = {kRows, limits::kWidthMax}});
  graph.values.push_back(
      {.kind = ValueKind::kWeight, .shape = {1 << 18, limits::kWidthMax}, .name = "w"});
  graph.values.push_back({.shape = {kRows, 1 << 18}});
  graph.ops.push_back({.kind = OpKind::kMatmul, .inputs = {0, 1}, .output = 2});
  graph.output = 2;
  QVERIFY(verify(graph).ok());
  const Result<GraphCost> largest =
      cost(graph, {limits::kRowsMax, 1, limits::kContextMax, limits::kSequencesMax});
  QVERIFY(largest.ok());
  QCOMPARE(largest.value().weight_bytes, limits::kWeightBytesMax);
  graph.values[1].shape[0] += 1;
  graph.values[2].shape[1] += 1;
  const Result<void> over = verify(graph);
  QVERIFY(!over.ok() && over.error().message.find("2^40") != std::string::npos);
}

void GraphTest::cost_follows_from_shapes() {
  const Graph graph = block_graph();  // Width 64, 4 heads of 16, 2 key heads, inner 96.
  const Result<GraphCost> got =
      cost(graph, {.rows = 3, .outputs = 1, .context = 10, .sequences = 2});
  QVERIFY(got.ok());
  const int64_t matmuls = 2 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 96);
  const int64_t rest = 4 * 64 * 2 + 3 * (64 + 32) + 4 * 64 * 10 + 64 * 2 + 96 * 4;
  QCOMPARE(got.value().flops, 3 * (matmuls + rest));
  QCOMPARE(got.value().weight_bytes,
           int64_t(4 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 96 + 2 * 64)));
  QCOMPARE(got.value().state_bytes, int64_t(2 * (2 * 10 * 32 * 2)));
  QCOMPARE(got.value().input_bytes, int64_t(3 * 64 * 4));
  QCOMPARE(got.value().output_bytes, int64_t(3 * 64 * 4));
  QVERIFY(got.value().workspace_bytes > 3 * 64 * 4);

  const Result<GraphCost> no_logits = cost(head_graph(), {.rows = 3, .outputs = 0});
  QVERIFY(no_logits.ok());
  QCOMPARE(no_logits.value().flops, int64_t(0));
  QCOMPARE(no_logits.value().output_bytes, int64_t(0));
  QVERIFY(!cost(graph, {.rows = -1}).ok());
  QVERIFY(!cost(graph, {.rows = 65537}).ok());
  QVERIFY(!cost(graph, {.context = 0}).ok());
  QVERIFY(!cost(graph, {.sequences = 65537}).ok());
}

void GraphTest::encoding_is_undone_by_decoding() {
  const SampleModel model = make_sample_model({.weights = DType::kQ4_0});
  for (const Fragment& fragment : model.fragments) {
    const ByteVector bytes = encode(fragment.graph);
    const Result<Graph> decoded = decode(bytes);
    QVERIFY2(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
    QVERIFY(encode(decoded.value()) == bytes);
    QCOMPARE(decoded.value().values.size(), fragment.graph.values.size());
    for (size_t i = 0; i < fragment.graph.values.size(); ++i) {
      QCOMPARE(decoded.value().values[i].name, fragment.graph.values[i].name);
      QCOMPARE(decoded.value().values[i].shape, fragment.graph.values[i].shape);
      QCOMPARE(decoded.value().values[i].rope.theta, fragment.graph.values[i].rope.theta);
    }
    QCOMPARE(decoded.value().ops[0].epsilon, fragment.graph.ops[0].epsilon);
  }
}

// As shards hold it that were cut before there were scaled tables and the later ops' fields.
ByteVector first_encoding(const Graph& graph) {
  ByteWriter writer;
  writer.text("SHG1");
  writer.u32(graph.numerics_version);
  writer.u32(graph.input);
  writer.u32(graph.output);
  writer.u32(static_cast<uint32_t>(graph.values.size()));
  for (const Value& value : graph.values) {
    writer.u8(static_cast<uint8_t>(value.kind));
    writer.u8(static_cast<uint8_t>(value.dtype));
    writer.u8(static_cast<uint8_t>(value.shape.size()));
    for (const int64_t dim : value.shape) writer.u64(static_cast<uint64_t>(dim));
    writer.u16(static_cast<uint16_t>(value.name.size()));
    writer.text(value.name);
    if (value.kind != ValueKind::kRopeTable) continue;
    writer.u64(std::bit_cast<uint64_t>(value.rope.theta));
    writer.u32(value.rope.rotary);
    writer.u64(std::bit_cast<uint64_t>(value.rope.linear_factor));
  }
  writer.u32(static_cast<uint32_t>(graph.ops.size()));
  for (const Op& op : graph.ops) {
    writer.u8(static_cast<uint8_t>(op.kind));
    writer.u8(static_cast<uint8_t>(op.inputs.size()));
    for (const ValueId input : op.inputs) writer.u32(input);
    writer.u32(op.output);
    writer.f32(op.epsilon);
    writer.u32(op.heads);
    writer.u32(op.kv_heads);
    writer.u32(op.head_dim);
    writer.u8(op.interleaved ? 1 : 0);
    writer.f32(op.scale);
  }
  return writer.take();
}

void GraphTest::the_first_encoding_is_still_read() {
  for (const DType weights : {DType::kF32, DType::kQ8_0}) {
    for (const Fragment& fragment :
         make_sample_model({.blocks = 1, .weights = weights}).fragments) {
      const ByteVector bytes = first_encoding(fragment.graph);
      const Result<Graph> decoded = decode(bytes);
      QVERIFY2(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
      QVERIFY(encode(decoded.value()) == encode(fragment.graph));
      QVERIFY(!decode(ByteSpan(bytes).first(bytes.size() - 1)).ok());
    }
  }
}

void GraphTest::no_broken_encoding_gets_through() {
  const SampleModel model = make_sample_model({.blocks = 1, .weights = DType::kQ8_0});
  for (const Fragment& fragment : model.fragments) {
    const ByteVector bytes = encode(fragment.graph);
    for (size_t length = 0; length < bytes.size(); ++length) {
      QVERIFY(!decode(ByteSpan(bytes).first(length)).ok());
    }
    ByteVector longer = bytes;
    longer.push_back(std::byte{0});
    QVERIFY(!decode(longer).ok());

    int accepted = 0, refused = 0;
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (int change = 0; change < 10; ++change) {
        ByteVector broken = bytes;
        broken[at] = change < 8    ? broken[at] ^ std::byte(1 << change)
                     : change == 8 ? std::byte{0}
                                   : std::byte{255};
        const Result<Graph> decoded = decode(broken);
        if (!decoded.ok()) {
          QVERIFY(!decoded.error().message.empty());
          ++refused;
          continue;
        }
        ++accepted;  // Another graph, or the same: one that may run.
        QVERIFY(verify(decoded.value()).ok());
        QVERIFY(encode(decoded.value()) == broken);
        QVERIFY(cost(decoded.value(),
                     {.rows = 65536, .outputs = 65536, .context = 1 << 20, .sequences = 65536})
                    .ok());
      }
    }
    QVERIFY(refused > accepted);
  }
}

QTEST_GUILESS_MAIN(GraphTest)
#include "graph_test.moc"
