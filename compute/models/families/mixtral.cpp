// Mixtral: a Mistral with experts in place of the feed-forward part; the weights of those used add
// up to 1.

#include "compute/models/family.h"

namespace shoal::compute {

static constexpr std::string_view kClasses[] = {"MixtralForCausalLM"};

static constexpr WeightName kNames[] = {
    {"router", "model.layers.{}.block_sparse_moe.gate.weight"},
    {"gate_experts", "model.layers.{}.block_sparse_moe.experts.{e}.w1.weight"},
    {"down_experts", "model.layers.{}.block_sparse_moe.experts.{e}.w2.weight"},
    {"up_experts", "model.layers.{}.block_sparse_moe.experts.{e}.w3.weight"},
};

const Family kMixtral = {
    .name = "mixtral",
    .hugging_face_classes = kClasses,
    .windows = WindowRule::kAll,
    .experts = true,
    .names = kNames,
    .epsilon = 1e-5,
    .theta = 1e6,
    .context = 131072,
};

}  // namespace shoal::compute
