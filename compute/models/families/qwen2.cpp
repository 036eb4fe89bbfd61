// Qwen2 and Qwen2.5: a Llama with biases on queries, keys and values.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"Qwen2ForCausalLM"};

const Family kQwen2 = {
    .name = "qwen2",
    .hugging_face_classes = kClasses,
    .gguf_architecture = "qwen2",
    .query_biases = true,
    .windows = WindowRule::kLater,
    .context = 32768,
    .window = 4096,
};

}  // namespace shoal::compute
