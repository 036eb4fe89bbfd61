// Qwen3 and its mixture of experts: a Llama with a norm of each head of queries and keys.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"Qwen3ForCausalLM"};
static constexpr std::string_view kMoeClasses[] = {"Qwen3MoeForCausalLM"};

const Family kQwen3 = {
    .name = "qwen3",
    .hugging_face_classes = kClasses,
    .gguf_architecture = "qwen3",
    .qk_norm = QkNorm::kHead,
    .windows = WindowRule::kLater,
    .context = 32768,
    .window = 4096,
};

const Family kQwen3Moe = {
    .name = "qwen3moe",
    .hugging_face_classes = kMoeClasses,
    .gguf_architecture = "qwen3moe",
    .qk_norm = QkNorm::kHead,
    .experts = true,
    .gguf_experts = true,
    .always_renormalise = false,
    .context = 32768,
};

}  // namespace shoal::compute
