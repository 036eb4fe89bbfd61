// Mistral: a Llama whose first version sees the last 4096 positions only.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"MistralForCausalLM"};

const Family kMistral = {
    .name = "mistral",
    .hugging_face_classes = kClasses,
    .windows = WindowRule::kAll,
    .context = 131072,
    .window = 4096,
};

}  // namespace shoal::compute
