// Llama 1 to 3.3 and its kin (TinyLlama, SmolLM 1 and 2, Yi, distillations of R1): RMS norm before
// each part, grouped-query attention with rotary positions, SwiGLU, no biases. Also what GGUF calls
// "llama": Mistral and Mixtral.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"LlamaForCausalLM"};

const Family kLlama = {
    .name = "llama",
    .hugging_face_classes = kClasses,
    .gguf_architecture = "llama",
    .gguf_experts = true,
    .pairs_in_gguf = true,
};

}  // namespace shoal::compute
