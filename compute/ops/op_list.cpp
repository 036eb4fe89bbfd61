#include "base/check.h"
#include "compute/ops/op.h"

namespace shoal::compute {

std::span<const OpSpec> op_list() {
  static const std::array<OpSpec, kOpKinds> kList = {
      embed_spec(),     rms_norm_spec(),     quantize_spec(),      matmul_spec(),
      rope_spec(),      cache_append_spec(), attention_spec(),     swiglu_spec(),
      add_spec(),       select_rows_spec(),  layer_norm_spec(),    bias_spec(),
      gelu_spec(),      multiply_spec(),     soft_cap_spec(),      scale_spec(),
      positions_spec(), route_spec(),        expert_matmul_spec(), combine_spec(),
  };
  return kList;
}

const OpSpec& op_spec(OpKind kind) {
  const auto index = static_cast<size_t>(kind);
  SHOAL_CHECK(index < op_list().size());
  const OpSpec& spec = op_list()[index];
  SHOAL_CHECK(spec.kind == kind);
  return spec;
}

}  // namespace shoal::compute
