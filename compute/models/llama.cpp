// Llama and its kin (Llama 1 and 2, TinyLlama, SmolLM 1 and 2, Yi, Mistral without its window): RMS
// norm before each part, grouped-query attention with rotary positions, SwiGLU, no biases.

#include <algorithm>

#include "compute/models/graph_builder.h"

namespace shoal::compute {
namespace {

constexpr std::string_view kClasses[] = {"LlamaForCausalLM", "MistralForCausalLM"};

constexpr WeightSpec kEmbeddingWeights[] = {
    {"token_embedding", "model.embed_tokens.weight", "token_embd.weight",
     [](const ModelConfig& c) {
       return Shape{c.vocabulary, c.width};
     }},
};

constexpr WeightSpec kBlockWeights[] = {
    {"attention_norm", "model.layers.{}.input_layernorm.weight", "blk.{}.attn_norm.weight",
     [](const ModelConfig& c) { return Shape{c.width}; }},
    {"query", "model.layers.{}.self_attn.q_proj.weight", "blk.{}.attn_q.weight",
     [](const ModelConfig& c) {
       return Shape{c.heads * c.head_dim, c.width};
     }},
    {"key", "model.layers.{}.self_attn.k_proj.weight", "blk.{}.attn_k.weight",
     [](const ModelConfig& c) {
       return Shape{c.kv_heads * c.head_dim, c.width};
     }},
    {"value", "model.layers.{}.self_attn.v_proj.weight", "blk.{}.attn_v.weight",
     [](const ModelConfig& c) {
       return Shape{c.kv_heads * c.head_dim, c.width};
     }},
    {"attention_output", "model.layers.{}.self_attn.o_proj.weight", "blk.{}.attn_output.weight",
     [](const ModelConfig& c) {
       return Shape{c.width, c.heads * c.head_dim};
     }},
    {"ffn_norm", "model.layers.{}.post_attention_layernorm.weight", "blk.{}.ffn_norm.weight",
     [](const ModelConfig& c) { return Shape{c.width}; }},
    {"gate", "model.layers.{}.mlp.gate_proj.weight", "blk.{}.ffn_gate.weight",
     [](const ModelConfig& c) {
       return Shape{c.intermediate, c.width};
     }},
    {"up", "model.layers.{}.mlp.up_proj.weight", "blk.{}.ffn_up.weight",
     [](const ModelConfig& c) {
       return Shape{c.intermediate, c.width};
     }},
    {"down", "model.layers.{}.mlp.down_proj.weight", "blk.{}.ffn_down.weight",
     [](const ModelConfig& c) {
       return Shape{c.width, c.intermediate};
     }},
};

constexpr WeightSpec kHeadWeights[] = {
    {"output_norm", "model.norm.weight", "output_norm.weight",
     [](const ModelConfig& c) { return Shape{c.width}; }},
    {"output", "lm_head.weight", "output.weight",
     [](const ModelConfig& c) {
       return Shape{c.vocabulary, c.width};
     },
     /*tied_to_embedding=*/true},
};

Graph embedding_graph(const ModelConfig& c, const WeightTypes& types) {
  GraphBuilder g(types);
  const ValueId tokens = g.tokens();
  return g.finish(g.embed(tokens, "token_embedding", c.vocabulary, c.width));
}

Graph block_graph(const ModelConfig& c, const WeightTypes& types) {
  GraphBuilder g(types);
  const ValueId x = g.hidden(c.width);
  const ValueId table = g.rope_table(c.rope);

  const ValueId normed = g.rms_norm(x, "attention_norm", c.rms_epsilon);
  const ValueId q = g.matmul(normed, "query", c.heads * c.head_dim);
  const ValueId k = g.matmul(normed, "key", c.kv_heads * c.head_dim);
  const ValueId v = g.matmul(normed, "value", c.kv_heads * c.head_dim);
  const ValueId q_turned = g.rope(q, table, c.heads, c.head_dim, c.interleaved);
  const ValueId k_turned = g.rope(k, table, c.kv_heads, c.head_dim, c.interleaved);
  const ValueId keys = g.cache(k_turned, "keys", c.state_dtype);
  const ValueId values = g.cache(v, "values", c.state_dtype);
  const ValueId attended = g.attention(q_turned, keys, values, c.heads, c.kv_heads, c.head_dim);
  const ValueId after_attention = g.add(x, g.matmul(attended, "attention_output", c.width));

  const ValueId ffn_in = g.rms_norm(after_attention, "ffn_norm", c.rms_epsilon);
  const ValueId gate = g.matmul(ffn_in, "gate", c.intermediate);
  const ValueId up = g.matmul(ffn_in, "up", c.intermediate);
  const ValueId down = g.matmul(g.swiglu(gate, up), "down", c.width);
  return g.finish(g.add(after_attention, down));
}

Graph head_graph(const ModelConfig& c, const WeightTypes& types) {
  GraphBuilder g(types);
  const ValueId picked = g.select_rows(g.hidden(c.width));
  const ValueId normed = g.rms_norm(picked, "output_norm", c.rms_epsilon);
  return g.finish(g.matmul(normed, "output", c.vocabulary));
}

// What both kinds of config must agree with. `refuse` makes an error that names a key.
template <class Refuse>
Result<void> check_shape(const ModelConfig& c, const Refuse& refuse, std::string_view heads_key,
                         std::string_view kv_key, std::string_view rotary_key) {
  if (c.heads % c.kv_heads != 0) {
    return refuse(kv_key, std::to_string(c.kv_heads) + " does not divide the " +
                              std::to_string(c.heads) + " heads");
  }
  if (c.heads * c.head_dim > kWidthMax) {
    return refuse(heads_key, "heads times their size passes " + std::to_string(kWidthMax));
  }
  if (c.rope.rotary % 2 != 0 || c.rope.rotary > c.head_dim) {
    return refuse(rotary_key, std::to_string(c.rope.rotary) + " is odd or more than a head's " +
                                  std::to_string(c.head_dim));
  }
  return {};
}

// Null, or a value that changes nothing; anything else would be computed wrongly, so it is refused.
Result<void> refuse_unless(const JsonFields& config, std::string_view key, const Json& harmless) {
  const Json* value = config.find(key);
  if (value == nullptr || *value == harmless) return {};
  std::string shown = value->dump(-1, ' ', true, Json::error_handler_t::replace);
  if (shown.size() > 64) shown = shown.substr(0, 64) + "...";
  return config.wrong(key, shown + " is not supported", ErrorCode::kUnsupported);
}

Result<double> linear_factor(const JsonFields& scaling) {
  // Older files say "type", newer ones "rope_type".
  SHOAL_TRY_ASSIGN(older, scaling.text_or("type", "default"));
  SHOAL_TRY_ASSIGN(type, scaling.text_or("rope_type", older));
  if (type == "default") return 1.0;
  if (type != "linear") {
    return scaling.wrong("rope_type", "\"" + printable(type) + "\" is not supported",
                         ErrorCode::kUnsupported);
  }
  return scaling.number("factor", 1.0, 1e6);
}

Result<void> read_ids(const JsonFields& config, ModelConfig& c) {
  if (config.has("bos_token_id")) {
    SHOAL_TRY_ASSIGN(bos, config.integer("bos_token_id", 0, c.vocabulary - 1));
    c.bos = static_cast<int32_t>(bos);
  }
  return {};
}

Result<ModelConfig> read_hugging_face(const JsonFields& config) {
  for (const std::string_view key : {"attention_bias", "mlp_bias"}) {
    SHOAL_TRY(refuse_unless(config, key, false));
  }
  for (const std::string_view key : {"quantization_config", "sliding_window", "layer_types"}) {
    SHOAL_TRY(refuse_unless(config, key, nullptr));
  }
  for (const std::string_view key :
       {"partial_rotary_factor", "attention_multiplier", "residual_multiplier",
        "embedding_multiplier", "logits_scaling"}) {
    SHOAL_TRY(refuse_unless(config, key, 1.0));
  }
  SHOAL_TRY(refuse_unless(config, "hidden_act", "silu"));

  ModelConfig c;
  c.architecture = "llama";
  SHOAL_TRY_ASSIGN(width, config.integer("hidden_size", 1, kWidthMax));
  SHOAL_TRY_ASSIGN(intermediate, config.integer("intermediate_size", 1, kIntermediateMax));
  SHOAL_TRY_ASSIGN(blocks, config.integer("num_hidden_layers", 1, kBlocksMax));
  SHOAL_TRY_ASSIGN(heads, config.integer("num_attention_heads", 1, kHeadsMax));
  SHOAL_TRY_ASSIGN(kv_heads, config.integer_or("num_key_value_heads", heads, 1, kHeadsMax));
  if (!config.has("head_dim") && width % heads != 0) {
    return config.wrong(
        "num_attention_heads",
        std::to_string(heads) + " does not divide hidden_size " + std::to_string(width));
  }
  SHOAL_TRY_ASSIGN(head_dim, config.integer_or("head_dim", width / heads, 1, kHeadDimMax));
  SHOAL_TRY_ASSIGN(vocabulary, config.integer("vocab_size", 1, kVocabularyMax));
  SHOAL_TRY_ASSIGN(context,
                   config.integer_or("max_position_embeddings", 2048, 1, kModelContextMax));
  SHOAL_TRY_ASSIGN(epsilon, config.number_or("rms_norm_eps", 1e-6, 1e-12, 1.0));
  SHOAL_TRY_ASSIGN(tied, config.boolean_or("tie_word_embeddings", false));
  c.width = width;
  c.intermediate = intermediate;
  c.blocks = blocks;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = head_dim;
  c.vocabulary = vocabulary;
  c.context = context;
  c.rms_epsilon = epsilon;
  c.tied = tied;
  c.interleaved = false;

  SHOAL_TRY_ASSIGN(theta, config.number_or("rope_theta", 10000.0, 1.0, 1e12));
  c.rope = {.theta = theta, .rotary = static_cast<uint32_t>(c.head_dim)};
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key)) continue;
    SHOAL_TRY_ASSIGN(scaling, config.object(key));
    SHOAL_TRY_ASSIGN(factor, linear_factor(scaling));
    SHOAL_TRY_ASSIGN(inner_theta, scaling.number_or("rope_theta", c.rope.theta, 1.0, 1e12));
    c.rope.linear_factor = factor;
    c.rope.theta = inner_theta;
  }
  SHOAL_TRY(check_shape(
      c, [&](std::string_view key, std::string_view what) { return config.wrong(key, what); },
      "num_attention_heads", "num_key_value_heads", "head_dim"));
  SHOAL_TRY(read_ids(config, c));
  return c;
}

// The keys under "llama." that are read below, or that change nothing.
constexpr std::string_view kGgufKeys[] = {
    "llama.attention.head_count",
    "llama.attention.head_count_kv",
    "llama.attention.key_length",
    "llama.attention.layer_norm_rms_epsilon",
    "llama.attention.value_length",
    "llama.block_count",
    "llama.context_length",
    "llama.embedding_length",
    "llama.expert_count",
    "llama.expert_used_count",
    "llama.feed_forward_length",
    "llama.rope.dimension_count",
    "llama.rope.freq_base",
    "llama.rope.scale_linear",
    "llama.rope.scaling.factor",
    "llama.rope.scaling.finetuned",
    "llama.rope.scaling.original_context_length",
    "llama.rope.scaling.type",
    "llama.tensor_data_layout",
    "llama.vocab_size",
};

Result<double> gguf_linear_factor(const GgufFile& file) {
  std::string_view type = "linear";
  if (file.has("llama.rope.scaling.type")) {
    SHOAL_TRY_ASSIGN(named, file.text("llama.rope.scaling.type"));
    type = named;
  }
  if (type == "none") return 1.0;
  if (type != "linear") {
    return file.wrong("llama.rope.scaling.type", "\"" + printable(type) + "\" is not supported",
                      ErrorCode::kUnsupported);
  }
  SHOAL_TRY_ASSIGN(older, file.number_or("llama.rope.scale_linear", 1.0, 1.0, 1e6));
  return file.number_or("llama.rope.scaling.factor", older, 1.0, 1e6);
}

Result<ModelConfig> read_gguf(const GgufFile& file) {
  for (const auto& [key, value] : file.values()) {
    if (key.starts_with("llama.") &&
        std::find(std::begin(kGgufKeys), std::end(kGgufKeys), key) == std::end(kGgufKeys)) {
      return file.wrong(printable(key), "is not supported", ErrorCode::kUnsupported);
    }
  }
  SHOAL_TRY_ASSIGN(experts, file.integer_or("llama.expert_count", 0, 0, 1 << 20));
  if (experts != 0)
    return file.wrong("llama.expert_count", "experts are not supported", ErrorCode::kUnsupported);

  ModelConfig c;
  c.architecture = "llama";
  SHOAL_TRY_ASSIGN(width, file.integer("llama.embedding_length", 1, kWidthMax));
  SHOAL_TRY_ASSIGN(intermediate, file.integer("llama.feed_forward_length", 1, kIntermediateMax));
  SHOAL_TRY_ASSIGN(blocks, file.integer("llama.block_count", 1, kBlocksMax));
  SHOAL_TRY_ASSIGN(heads, file.integer("llama.attention.head_count", 1, kHeadsMax));
  SHOAL_TRY_ASSIGN(kv_heads, file.integer_or("llama.attention.head_count_kv", heads, 1, kHeadsMax));
  if (!file.has("llama.attention.key_length") && width % heads != 0) {
    return file.wrong(
        "llama.attention.head_count",
        std::to_string(heads) + " does not divide the embedding length " + std::to_string(width));
  }
  SHOAL_TRY_ASSIGN(head_dim,
                   file.integer_or("llama.attention.key_length", width / heads, 1, kHeadDimMax));
  SHOAL_TRY_ASSIGN(value_dim,
                   file.integer_or("llama.attention.value_length", head_dim, 1, kHeadDimMax));
  if (value_dim != head_dim) {
    return file.wrong("llama.attention.value_length", "differs from the key length",
                      ErrorCode::kUnsupported);
  }
  SHOAL_TRY_ASSIGN(rotary, file.integer_or("llama.rope.dimension_count", head_dim, 2, kHeadDimMax));
  SHOAL_TRY_ASSIGN(context, file.integer("llama.context_length", 1, kModelContextMax));
  SHOAL_TRY_ASSIGN(epsilon, file.number("llama.attention.layer_norm_rms_epsilon", 1e-12, 1.0));
  SHOAL_TRY_ASSIGN(theta, file.number_or("llama.rope.freq_base", 10000.0, 1.0, 1e12));
  SHOAL_TRY_ASSIGN(factor, gguf_linear_factor(file));

  // The table's rows are the vocabulary; a key that says otherwise is found when its shape is
  // checked.
  const auto table = file.tensors().find("token_embd.weight");
  if (table == file.tensors().end() || table->second.shape.size() != 2) {
    return Error{ErrorCode::kCorrupt,
                 file.file() + ": tensor token_embd.weight: is missing or no matrix"};
  }
  if (table->second.shape[0] > kVocabularyMax) {
    return Error{ErrorCode::kUnsupported, file.file() +
                                              ": tensor token_embd.weight: has more than " +
                                              std::to_string(kVocabularyMax) + " rows"};
  }
  SHOAL_TRY_ASSIGN(vocabulary,
                   file.integer_or("llama.vocab_size", table->second.shape[0], 1, kVocabularyMax));
  c.width = width;
  c.intermediate = intermediate;
  c.blocks = blocks;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = head_dim;
  c.vocabulary = vocabulary;
  c.context = context;
  // The file's f32 stands for the decimal that was meant; the graph rounds it back to the same f32.
  c.rms_epsilon = epsilon;
  c.rope = {.theta = theta, .rotary = static_cast<uint32_t>(rotary), .linear_factor = factor};
  c.interleaved = true;  // The converter has permuted the rows of q and k for it.
  c.tied = file.tensors().find("output.weight") == file.tensors().end();
  SHOAL_TRY(check_shape(
      c, [&](std::string_view key, std::string_view what) { return file.wrong(key, what); },
      "llama.attention.head_count", "llama.attention.head_count_kv", "llama.rope.dimension_count"));
  return c;
}

}  // namespace

const ModelSpec kLlama = {
    .name = "llama",
    .hugging_face_classes = kClasses,
    .gguf_architecture = "llama",
    .read_hugging_face = read_hugging_face,
    .read_gguf = read_gguf,
    .embedding = kEmbeddingWeights,
    .block = kBlockWeights,
    .head = kHeadWeights,
    .embedding_graph = embedding_graph,
    .block_graph = block_graph,
    .head_graph = head_graph,
};

}  // namespace shoal::compute
