#pragma once
// Writes a fragment's graph op by op: what architectures have in common, so that each says only its
// own order. Quantises a value once for all the quantised weights that it meets.

#include <map>
#include <string>
#include <string_view>

#include "compute/models/family.h"

namespace shoal::compute {

class GraphBuilder {
 public:
  explicit GraphBuilder(const WeightTypes& types) : types_(types) {}

  ValueId tokens();               // The input of an embedding: i32[rows].
  ValueId hidden(int64_t width);  // The input of any other fragment: f32[rows, width].

  ValueId embed(ValueId tokens, std::string_view role, int64_t vocabulary, int64_t width);
  ValueId positions(std::string_view role, int64_t count, int64_t width);
  // Of each of `heads` parts of a row, with the same weight.
  ValueId rms_norm(ValueId x, std::string_view role, double epsilon, int64_t heads = 1);
  ValueId layer_norm(ValueId x, std::string_view role, double epsilon);  // And role + "_bias".
  ValueId bias(ValueId x, std::string_view role);
  ValueId matmul(ValueId x, std::string_view role, int64_t outputs);  // weight[outputs, width of x]
  ValueId rope(ValueId x, ValueId table, int64_t heads, int64_t head_dim, bool interleaved);
  ValueId cache(ValueId x, std::string_view name,
                DType dtype);  // Appends x; the state that holds it.
  struct AttentionShape {
    int64_t heads = 0, kv_heads = 0, head_dim = 0;
    double scale = 0;  // 0: one over the root of head_dim.
    int64_t window = 0;
    double cap = 0;
  };
  ValueId attention(ValueId q, ValueId keys, ValueId values, const AttentionShape& shape);
  ValueId swiglu(ValueId gate, ValueId up);
  ValueId add(ValueId a, ValueId b);
  ValueId gelu(ValueId x, bool error_function);
  ValueId multiply(ValueId a, ValueId b);
  ValueId scale(ValueId x, double factor);
  ValueId soft_cap(ValueId x, double cap);
  ValueId route(ValueId logits, int64_t experts, int64_t used, bool renormalise);
  // x of one part, or one for each expert used.
  ValueId expert_matmul(ValueId x, std::string_view role, ValueId routes, int64_t outputs,
                        int64_t inputs, int64_t experts, int64_t used);
  ValueId combine(ValueId x, ValueId routes, int64_t used);
  ValueId select_rows(ValueId x);  // The rows whose logits are wanted.
  ValueId rope_table(const RopeSpec& spec);

  Graph finish(ValueId output);

 private:
  ValueId value(ValueKind kind, DType dtype, Shape shape, std::string name = {});
  ValueId weight(std::string_view role, Shape shape);
  ValueId op(Op op, DType dtype, Shape shape);
  ValueId fit(ValueId x, ValueId matrix);  // x, quantised where the matrix is.

  const WeightTypes& types_;
  Graph graph_;
  std::map<ValueId, ValueId> quantised_;  // The q8_rows form of a value.
};

}  // namespace shoal::compute
