// Gemma 2 and 3: norms before and after each part (files of Hugging Face hold them less 1), GELU
// with a gate, blocks with a window between blocks without, a scaled embedding; Gemma 2 caps scores
// and logits, Gemma 3 has norms of each head and turns blocks with a window by another base.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses2[] = {"Gemma2ForCausalLM"};
static constexpr std::string_view kClasses3[] = {"Gemma3ForCausalLM"};

static constexpr WeightName kNames[] = {
    {"ffn_norm", "model.layers.{}.pre_feedforward_layernorm.weight"},
};

const Family kGemma2 = {
    .name = "gemma2",
    .hugging_face_classes = kClasses2,
    .gguf_architecture = "gemma2",
    .norm_after = true,
    .norm_plus_one = true,
    .windows = WindowRule::kEvery,
    .global_every = 2,
    .caps = true,
    .activation = Activation::kGeluTanh,
    .embedding_scaled = true,
    .scale_by_key = true,
    .names = kNames,
    .tied = true,
    .context = 8192,
    .window = 4096,
    .default_activation = "gelu_pytorch_tanh",
};

const Family kGemma3 = {
    .name = "gemma3",
    .hugging_face_classes = kClasses3,
    .gguf_architecture = "gemma3",
    .norm_after = true,
    .norm_plus_one = true,
    .qk_norm = QkNorm::kHead,
    .local_rotary = true,
    .windows = WindowRule::kEvery,
    .global_every = 6,
    .caps = true,
    .activation = Activation::kGeluTanh,
    .embedding_scaled = true,
    .scale_by_key = true,
    .names = kNames,
    .theta = 1000000.0,
    .tied = true,
    .context = 131072,
    .window = 4096,
    .default_activation = "gelu_pytorch_tanh",
};

}  // namespace shoal::compute
