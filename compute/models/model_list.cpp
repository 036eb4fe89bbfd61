#include "compute/models/model_spec.h"

namespace shoal::compute {

std::span<const ModelSpec* const> model_specs() {
  static constexpr const ModelSpec* kSpecs[] = {&kLlama};
  return kSpecs;
}

}  // namespace shoal::compute
