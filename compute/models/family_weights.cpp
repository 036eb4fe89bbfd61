// Which weights the fragments of a model have, and which tensors of its files hold them.

#include "compute/models/family.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace shoal::compute {
namespace {

struct CommonName {
  std::string_view role, hugging_face, gguf;
};

// As most families have them. A bias is called as its weight, but for the last word.
constexpr CommonName kNames[] = {
    {"token_embedding", "model.embed_tokens.weight", "token_embd.weight"},
    {"positions", "", "position_embd.weight"},
    {"attention_norm", "model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight"},
    {"fused_query", "model.layers.{}.self_attn.qkv_proj.weight", "blk.{}.attn_qkv.weight"},
    {"query", "model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight"},
    {"key", "model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight"},
    {"value", "model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight"},
    {"query_norm", "model.layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight"},
    {"key_norm", "model.layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight"},
    {"attention_output", "model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight"},
    {"attention_post_norm", "model.layers.{}.post_attention_layernorm.weight",
     "blk.{}.post_attention_norm.weight"},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight"},
    {"fused_gate", "model.layers.{}.mlp.gate_up_proj.weight", "blk.{}.ffn_up.weight"},
    {"gate", "model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight"},
    {"up", "model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight"},
    {"down", "model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight"},
    {"router", "model.layers.{}.mlp.gate.weight", "blk.{}.ffn_gate_inp.weight"},
    {"gate_experts", "model.layers.{}.mlp.experts.{e}.gate_proj.weight",
     "blk.{}.ffn_gate_exps.weight"},
    {"up_experts", "model.layers.{}.mlp.experts.{e}.up_proj.weight", "blk.{}.ffn_up_exps.weight"},
    {"down_experts", "model.layers.{}.mlp.experts.{e}.down_proj.weight",
     "blk.{}.ffn_down_exps.weight"},
    {"ffn_post_norm", "model.layers.{}.post_feedforward_layernorm.weight",
     "blk.{}.post_ffw_norm.weight"},
    {"output_norm", "model.norm.weight", "output_norm.weight"},
    {"output", "lm_head.weight", "output.weight"},
};

class WeightLister {
 public:
  WeightLister(const Family& family, const ModelConfig& config, FileFormat format, int64_t block)
      : family_(family), c_(config), format_(format), block_(block) {}

  std::vector<WeightSpec> take() { return std::move(weights_); }

  void norm(const std::string& role) {
    vector(role, c_.width, family_.norm_plus_one && format_ == FileFormat::kHuggingFace);
    if (c_.norm == NormKind::kLayer) add_bias(role, c_.width, role, c_.width, 0);
  }

  void vector(const std::string& role, int64_t length, bool plus_one) {
    weights_.push_back({.role = role,
                        .name = name(role),
                        .shape = {length},
                        .stored = {length},
                        .plus_one = plus_one});
  }

  void matrix(const std::string& role, int64_t rows, int64_t columns, bool biased = false) {
    part(role, rows, columns, biased, role, rows, 0);
  }

  // Rows first .. of the tensor of another role, which has `all` of them.
  void part(const std::string& role, int64_t rows, int64_t columns, bool biased,
            const std::string& of, int64_t all, int64_t first) {
    // Tables are looked up by rows, so nobody stores them the other way.
    const bool turned = family_.transposed && format_ == FileFormat::kHuggingFace && block_ >= 0;
    weights_.push_back({.role = role,
                        .name = name(of),
                        .shape = {rows, columns},
                        .stored = turned ? Shape{columns, all} : Shape{all, columns},
                        .first_row = first,
                        .transposed = turned});
    if (biased) add_bias(role, rows, of, all, first);
  }

  void parts(const std::string& of, bool fused,
             const std::vector<std::pair<std::string, int64_t>>& rows, bool biased) {
    const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0},
                                        [](int64_t sum, const auto& r) { return sum + r.second; });
    int64_t first = 0;
    for (const auto& [role, count] : rows) {
      if (fused) {
        part(role, count, c_.width, biased, of, all, first);
      } else {
        matrix(role, count, c_.width, biased);
      }
      first += count;
    }
  }

  void expert_matrices(const std::string& role, int64_t rows, int64_t columns) {
    WeightSpec weight{.role = role, .name = name(role), .shape = {c_.experts * rows, columns}};
    if (weight.name.find("{e}") != std::string::npos) {
      weight.stored = {rows, columns};
      weight.experts = c_.experts;
    } else {
      weight.stored = {c_.experts, rows, columns};
    }
    weights_.push_back(std::move(weight));
  }

  // The embedding's matrix under another role.
  void shared(const std::string& role, const std::string& of, int64_t rows, int64_t columns) {
    part(role, rows, columns, false, of, rows, 0);
  }

 private:
  void add_bias(const std::string& role, int64_t length, const std::string& of, int64_t all,
                int64_t first) {
    std::string stored = name(of);
    const size_t at = stored.rfind(".weight");
    SHOAL_CHECK(at != std::string::npos);
    stored.replace(at, std::string::npos, ".bias");
    weights_.push_back({.role = role + "_bias",
                        .name = std::move(stored),
                        .shape = {length},
                        .stored = {all},
                        .first_row = first});
  }

  std::string name(const std::string& role) const {
    const auto common = std::find_if(std::begin(kNames), std::end(kNames),
                                     [&](const CommonName& n) { return n.role == role; });
    SHOAL_CHECK(common != std::end(kNames));
    std::string found(format_ == FileFormat::kGguf ? common->gguf : common->hugging_face);
    if (format_ == FileFormat::kHuggingFace) {
      for (const WeightName& own : family_.names) {
        if (own.role == role) found = own.name;
      }
    }
    if (const size_t at = found.find("{}"); at != std::string::npos)
      found.replace(at, 2, std::to_string(block_));
    return found;
  }

  const Family& family_;
  const ModelConfig& c_;
  const FileFormat format_;
  const int64_t block_;  // -1 outside of blocks.
  std::vector<WeightSpec> weights_;
};

}  // namespace

std::vector<WeightSpec> embedding_weights(const Family& family, const ModelConfig& c,
                                          FileFormat format) {
  WeightLister list(family, c, format, -1);
  list.matrix("token_embedding", c.vocabulary, c.width);
  if (c.learned_positions) list.matrix("positions", c.context, c.width);
  return list.take();
}

std::vector<WeightSpec> block_weights(const Family& family, const ModelConfig& c, FileFormat format,
                                      int64_t block) {
  WeightLister list(family, c, format, block);
  const int64_t q_rows = c.heads * c.head_dim, kv_rows = c.kv_heads * c.head_dim;
  if (c.norm_before) list.norm("attention_norm");
  list.parts("fused_query", family.fused_query,
             {{"query", q_rows}, {"key", kv_rows}, {"value", kv_rows}}, c.query_biases);
  if (c.qk_norm != QkNorm::kNone) {
    const bool plus_one = family.norm_plus_one && format == FileFormat::kHuggingFace;
    const bool whole = c.qk_norm == QkNorm::kWhole;
    list.vector("query_norm", whole ? q_rows : c.head_dim, plus_one);
    list.vector("key_norm", whole ? kv_rows : c.head_dim, plus_one);
  }
  list.matrix("attention_output", c.width, q_rows, c.output_biases);
  if (c.norm_after) list.norm("attention_post_norm");
  if (c.norm_before) list.norm("ffn_norm");
  if (c.experts > 0) {
    list.matrix("router", c.experts, c.width);
    list.expert_matrices("gate_experts", c.intermediate, c.width);
    list.expert_matrices("up_experts", c.intermediate, c.width);
    list.expert_matrices("down_experts", c.width, c.intermediate);
  } else {
    if (c.gated) {
      list.parts("fused_gate", family.fused_gate,
                 {{"gate", c.intermediate}, {"up", c.intermediate}}, c.ffn_biases);
    } else {
      list.matrix("up", c.intermediate, c.width, c.ffn_biases);
    }
    list.matrix("down", c.width, c.intermediate, c.ffn_biases);
  }
  if (c.norm_after) list.norm("ffn_post_norm");
  return list.take();
}

std::vector<WeightSpec> head_weights(const Family& family, const ModelConfig& c,
                                     FileFormat format) {
  WeightLister list(family, c, format, -1);
  list.norm("output_norm");
  list.shared("output", c.tied ? "token_embedding" : "output", c.vocabulary, c.width);
  return list.take();
}

}  // namespace shoal::compute
