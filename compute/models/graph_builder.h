#pragma once
// Writes a fragment's graph op by op: what architectures have in common, so that each says only its
// own order. Quantises a value once for all the quantised weights that it meets.

#include <map>
#include <string>
#include <string_view>

#include "compute/models/model_spec.h"

namespace shoal::compute {

class GraphBuilder {
 public:
  explicit GraphBuilder(const WeightTypes& types) : types_(types) {}

  ValueId tokens();               // The input of an embedding: i32[rows].
  ValueId hidden(int64_t width);  // The input of any other fragment: f32[rows, width].

  ValueId embed(ValueId tokens, std::string_view role, int64_t vocabulary, int64_t width);
  ValueId rms_norm(ValueId x, std::string_view role, double epsilon);
  ValueId matmul(ValueId x, std::string_view role, int64_t outputs);  // weight[outputs, width of x]
  ValueId rope(ValueId x, ValueId table, int64_t heads, int64_t head_dim, bool interleaved);
  ValueId cache(ValueId x, std::string_view name,
                DType dtype);  // Appends x; the state that holds it.
  ValueId attention(ValueId q, ValueId keys, ValueId values, int64_t heads, int64_t kv_heads,
                    int64_t head_dim);
  ValueId swiglu(ValueId gate, ValueId up);
  ValueId add(ValueId a, ValueId b);
  ValueId select_rows(ValueId x);  // The rows whose logits are wanted.
  ValueId rope_table(const RopeSpec& spec);

  Graph finish(ValueId output);

 private:
  ValueId value(ValueKind kind, DType dtype, Shape shape, std::string name = {});
  ValueId weight(std::string_view role, Shape shape);
  ValueId op(Op op, DType dtype, Shape shape);

  const WeightTypes& types_;
  Graph graph_;
  std::map<ValueId, ValueId> quantised_;  // The q8_rows form of a value.
};

}  // namespace shoal::compute
