// OLMo 2: norms after each part and none before, and norms of all queries and all keys of a row.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"Olmo2ForCausalLM"};

const Family kOlmo2 = {
    .name = "olmo2",
    .hugging_face_classes = kClasses,
    .gguf_architecture = "olmo2",
    .norm_before = false,
    .norm_after = true,
    .qk_norm = QkNorm::kWhole,
    .epsilon = 1e-5,
};

}  // namespace shoal::compute
