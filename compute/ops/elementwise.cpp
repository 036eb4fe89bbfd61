#include "compute/ops/elementwise.h"

#include <string>

namespace shoal::compute {

Result<void> check_alike(const Graph& graph, const Op& op,
                         std::initializer_list<std::string_view> inputs) {
  const Value& x = graph.values[op.inputs[0]];
  const Value& y = graph.values[op.output];
  const bool is_x = is_rows(x, DType::kF32);
  size_t i = 0;
  for (const std::string_view name : inputs) {
    const Value& input = graph.values[op.inputs[i++]];
    if (!is_x) return shape_error(name, x, "f32[rows, width]");
    if (!is_rows(input, DType::kF32) || input.shape != x.shape)
      return shape_error(name, input, describe(x));
  }
  if (!is_rows(y, DType::kF32) || y.shape != x.shape)
    return shape_error("its output", y, describe(x));
  return {};
}

Result<void> check_vector(const Value& value, std::string_view name, int64_t length) {
  if (value.kind != ValueKind::kWeight || value.dtype != DType::kF32 ||
      value.shape != Shape{length}) {
    return shape_error(name, value, "a weight f32[" + std::to_string(length) + "]");
  }
  return {};
}

}  // namespace shoal::compute
