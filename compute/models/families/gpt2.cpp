// GPT-2: layer norms and biases everywhere, learned positions, one matrix for queries, keys and
// values, no gate. Its Hugging Face files hold matrices the other way round.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"GPT2LMHeadModel"};

static constexpr WeightName kNames[] = {
    {"token_embedding", "wte.weight"},
    {"positions", "wpe.weight"},
    {"attention_norm", "h.{}.ln_1.weight"},
    {"fused_query", "h.{}.attn.c_attn.weight"},
    {"attention_output", "h.{}.attn.c_proj.weight"},
    {"ffn_norm", "h.{}.ln_2.weight"},
    {"up", "h.{}.mlp.c_fc.weight"},
    {"down", "h.{}.mlp.c_proj.weight"},
    {"output_norm", "ln_f.weight"},
};

const Family kGpt2 = {
    .name = "gpt2",
    .hugging_face_classes = kClasses,
    .gguf_architecture = "gpt2",
    .norm = NormKind::kLayer,
    .query_biases = true,
    .output_biases = true,
    .ffn_biases = true,
    .rotary = false,
    .learned_positions = true,
    .activation = Activation::kGeluTanh,
    .gated = false,
    .fused_query = true,
    .transposed = true,
    .optional_prefix = "transformer.",
    .names = kNames,
    .epsilon = 1e-5,
    .tied = true,
    .context = 1024,
    .default_activation = "gelu_new",
};

}  // namespace shoal::compute
