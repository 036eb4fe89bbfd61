#pragma once
// Holds the rule, the cost and the parameters that ops share which make rows of f32 from rows of
// f32 of the same shape; not their meaning nor their samples, which stay in their own files.

#include <initializer_list>
#include <string_view>

#include "compute/ops/op.h"

namespace shoal::compute {

// The rule: the first inputs, as many as are named, and the output are f32 rows of one shape.
Result<void> check_alike(const Graph& graph, const Op& op,
                         std::initializer_list<std::string_view> inputs);

// The rule for a vector that stands beside them: a weight f32[length].
Result<void> check_vector(const Value& value, std::string_view name, int64_t length);

// So many a number of the output.
template <int kFlops>
int64_t element_flops(const Graph& graph, const Op& op, const Dims& dims) {
  const Value& y = graph.values[op.output];
  return rows_of(y, dims) * y.shape[1] * kFlops;
}

// Parameters that begin with the output's rows and width, and what follows them.
template <class Params, class... Further>
ParamBlock element_params(const Graph& graph, const Op& op, const Dims& dims, Further... further) {
  static_assert(begins_with_elements<Params>());
  const Value& y = graph.values[op.output];
  return ParamBlock::of(
      Params{static_cast<uint>(rows_of(y, dims)), static_cast<uint>(y.shape[1]), further...});
}

}  // namespace shoal::compute
