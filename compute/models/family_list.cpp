#include "compute/models/family.h"

namespace shoal::compute {

std::span<const Family* const> families() {
  static constexpr const Family* kFamilies[] = {&kLlama, &kMistral, &kMixtral,  &kSmolLm3,
                                                &kQwen2, &kQwen3,   &kQwen3Moe, &kGpt2,
                                                &kOlmo2, &kPhi3,    &kGemma2,   &kGemma3};
  return kFamilies;
}

}  // namespace shoal::compute
