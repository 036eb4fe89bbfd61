// Phi-3, 3.5 and 4: a Llama whose files hold queries, keys and values in one matrix, and gate and
// up in one; some turn a part of each head only, some have other frequencies for long contexts.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"Phi3ForCausalLM"};

const Family kPhi3 = {
    .name = "phi3",
    .hugging_face_classes = kClasses,
    .gguf_architecture = "phi3",
    .partial_rotary = true,
    .windows = WindowRule::kAll,
    .fused_query = true,
    .fused_gate = true,
    .epsilon = 1e-5,
    .context = 4096,
};

}  // namespace shoal::compute
