// The graphs of every family, from a model's description alone.

#include "compute/models/graph_builder.h"

namespace shoal::compute {
namespace {

class BlockBuilder {
 public:
  BlockBuilder(const ModelConfig& config, const WeightTypes& types) : c_(config), g_(types) {}

  Graph embedding() {
    ValueId x = g_.embed(g_.tokens(), "token_embedding", c_.vocabulary, c_.width);
    if (c_.embedding_scale != 1) x = g_.scale(x, c_.embedding_scale);
    if (c_.learned_positions) x = g_.add(x, g_.positions("positions", c_.context, c_.width));
    return g_.finish(x);
  }

  Graph block(const BlockConfig& kind) {
    const ValueId x = g_.hidden(c_.width);
    const ValueId middle =
        g_.add(x, after(attention(before(x, "attention_norm"), kind), "attention_post_norm"));
    const ValueId inner = before(middle, "ffn_norm");
    return g_.finish(g_.add(
        middle, after(c_.experts > 0 ? experts(inner) : feed_forward(inner), "ffn_post_norm")));
  }

  Graph head() {
    const ValueId picked = g_.select_rows(g_.hidden(c_.width));
    ValueId logits = g_.matmul(norm(picked, "output_norm"), "output", c_.vocabulary);
    if (c_.final_cap != 0) logits = g_.soft_cap(logits, c_.final_cap);
    return g_.finish(logits);
  }

 private:
  ValueId norm(ValueId x, std::string_view role) {
    return c_.norm == NormKind::kLayer ? g_.layer_norm(x, role, c_.epsilon)
                                       : g_.rms_norm(x, role, c_.epsilon);
  }
  ValueId before(ValueId x, std::string_view role) { return c_.norm_before ? norm(x, role) : x; }
  ValueId after(ValueId x, std::string_view role) { return c_.norm_after ? norm(x, role) : x; }

  ValueId project(ValueId x, const std::string& role, int64_t outputs, bool biased) {
    const ValueId y = g_.matmul(x, role, outputs);
    return biased ? g_.bias(y, role + "_bias") : y;
  }

  ValueId qk_norm(ValueId x, std::string_view role, int64_t heads) {
    if (c_.qk_norm == QkNorm::kNone) return x;
    return g_.rms_norm(x, role, c_.epsilon, c_.qk_norm == QkNorm::kHead ? heads : 1);
  }

  ValueId attention(ValueId x, const BlockConfig& kind) {
    using Rotary = BlockConfig::Rotary;
    const int64_t q_width = c_.heads * c_.head_dim, kv_width = c_.kv_heads * c_.head_dim;
    const ValueId table =
        kind.rotary == Rotary::kNone
            ? 0
            : g_.rope_table(kind.rotary == Rotary::kLocal ? c_.local_rope : c_.rope);
    ValueId q = project(x, "query", q_width, c_.query_biases);
    ValueId k = project(x, "key", kv_width, c_.query_biases);
    const ValueId v = project(x, "value", kv_width, c_.query_biases);
    q = qk_norm(q, "query_norm", c_.heads);
    k = qk_norm(k, "key_norm", c_.kv_heads);
    if (kind.rotary != Rotary::kNone) {
      q = g_.rope(q, table, c_.heads, c_.head_dim, c_.interleaved);
      k = g_.rope(k, table, c_.kv_heads, c_.head_dim, c_.interleaved);
    }
    const ValueId keys = g_.cache(k, "keys", c_.state_dtype);
    const ValueId values = g_.cache(v, "values", c_.state_dtype);
    const ValueId attended = g_.attention(q, keys, values,
                                          {.heads = c_.heads,
                                           .kv_heads = c_.kv_heads,
                                           .head_dim = c_.head_dim,
                                           .scale = c_.attention_scale,
                                           .window = kind.window,
                                           .cap = c_.attention_cap});
    return project(attended, "attention_output", c_.width, c_.output_biases);
  }

  ValueId activate(ValueId x) {
    SHOAL_CHECK(c_.activation != Activation::kSilu);  // Only with a gate, where one op does both.
    return g_.gelu(x, c_.activation == Activation::kGelu);
  }
  ValueId gate(ValueId gate, ValueId up) {
    if (c_.activation == Activation::kSilu) return g_.swiglu(gate, up);
    return g_.multiply(activate(gate), up);
  }

  ValueId feed_forward(ValueId x) {
    ValueId inner;
    if (c_.gated) {
      const ValueId left = project(x, "gate", c_.intermediate, c_.ffn_biases);
      inner = gate(left, project(x, "up", c_.intermediate, c_.ffn_biases));
    } else {
      inner = activate(project(x, "up", c_.intermediate, c_.ffn_biases));
    }
    return project(inner, "down", c_.width, c_.ffn_biases);
  }

  ValueId experts(ValueId x) {
    const ValueId routes =
        g_.route(g_.matmul(x, "router", c_.experts), c_.experts, c_.experts_used, c_.renormalise);
    const auto up = [&](std::string_view role) {
      return g_.expert_matmul(x, role, routes, c_.intermediate, c_.width, c_.experts,
                              c_.experts_used);
    };
    const ValueId left = up("gate_experts");
    const ValueId inner = gate(left, up("up_experts"));
    const ValueId down = g_.expert_matmul(inner, "down_experts", routes, c_.width, c_.intermediate,
                                          c_.experts, c_.experts_used);
    return g_.combine(down, routes, c_.experts_used);
  }

  const ModelConfig& c_;
  GraphBuilder g_;
};

}  // namespace

Graph embedding_graph(const ModelConfig& config, const WeightTypes& types) {
  return BlockBuilder(config, types).embedding();
}

Graph block_graph(const ModelConfig& config, const WeightTypes& types, int64_t block) {
  const BlockConfig kind =
      config.kinds.empty() ? BlockConfig{} : config.kinds[static_cast<size_t>(block)];
  return BlockBuilder(config, types).block(kind);
}

Graph head_graph(const ModelConfig& config, const WeightTypes& types) {
  return BlockBuilder(config, types).head();
}

}  // namespace shoal::compute
