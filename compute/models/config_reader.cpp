// Reads a model's description from config.json or from a GGUF file's keys. What a config asks for
// and the family or the builder does not have is refused by its key: a model that runs wrongly is
// worse than one that does not run.

#include <algorithm>
#include <bit>
#include <cmath>

#include "compute/graph/limits.h"
#include "compute/models/family.h"
#include "compute/models/rope_scaling.h"

namespace shoal::compute {
namespace {

// One thing that configs say, under the names of either format; "|" stands between older and newer
// ones.
struct Field {
  std::string_view hugging_face, gguf;
};
constexpr Field kWidth{"hidden_size|n_embd", "embedding_length"};
constexpr Field kIntermediate{"intermediate_size|n_inner", "feed_forward_length"};
constexpr Field kExpertIntermediate{"moe_intermediate_size", "expert_feed_forward_length"};
constexpr Field kBlocks{"num_hidden_layers|n_layer", "block_count"};
constexpr Field kHeads{"num_attention_heads|n_head", "attention.head_count"};
constexpr Field kKvHeads{"num_key_value_heads", "attention.head_count_kv"};
constexpr Field kHeadDim{"head_dim", "attention.key_length"};
constexpr Field kContextLength{"max_position_embeddings|n_positions", "context_length"};
constexpr Field kVocabulary{"vocab_size", "vocab_size"};
constexpr Field kRmsEpsilon{"rms_norm_eps", "attention.layer_norm_rms_epsilon"};
constexpr Field kLayerEpsilon{"layer_norm_epsilon|layer_norm_eps", "attention.layer_norm_epsilon"};
constexpr Field kTheta{"rope_theta", "rope.freq_base"};
constexpr Field kLocalTheta{"rope_local_base_freq", "rope.freq_base_swa"};
constexpr Field kWindow{"sliding_window", "attention.sliding_window"};
constexpr Field kAttentionCap{"attn_logit_softcapping", "attn_logit_softcapping"};
constexpr Field kFinalCap{"final_logit_softcapping", "final_logit_softcapping"};
constexpr Field kExperts{"num_local_experts|num_experts", "expert_count"};
constexpr Field kExpertsUsed{"num_experts_per_tok", "expert_used_count"};

constexpr double kThetaMax = 1e12;
constexpr double kFactorMax = 1e6;

// The fields of a config of either format.
class ConfigFields {
 public:
  explicit ConfigFields(const JsonFields& json) : json_(&json) {}
  ConfigFields(const GgufFile& gguf, std::string_view architecture)
      : gguf_(&gguf), architecture_(architecture) {}

  bool is_gguf() const { return gguf_ != nullptr; }

  std::string key(const Field& field) const {
    if (gguf_ != nullptr) return architecture_ + "." + std::string(field.gguf);
    std::string_view names = field.hugging_face, first = names.substr(0, names.find('|'));
    for (;;) {
      const size_t end = names.find('|');
      if (json_->has(names.substr(0, end))) return std::string(names.substr(0, end));
      if (end == std::string_view::npos) return std::string(first);
      names.remove_prefix(end + 1);
    }
  }
  bool has(const Field& field) const {
    return gguf_ != nullptr ? gguf_->has(key(field)) : json_->has(key(field));
  }
  Result<int64_t> integer(const Field& field, int64_t min, int64_t max) const {
    return gguf_ != nullptr ? gguf_->integer(key(field), min, max)
                            : json_->integer(key(field), min, max);
  }
  Result<int64_t> integer_or(const Field& field, int64_t fallback, int64_t min, int64_t max) const {
    if (!has(field)) return fallback;
    return integer(field, min, max);
  }
  Result<double> number_or(const Field& field, double fallback, double min, double max) const {
    if (!has(field)) return fallback;
    return gguf_ != nullptr ? gguf_->number(key(field), min, max)
                            : json_->number(key(field), min, max);
  }
  Error wrong(const Field& field, std::string_view what,
              ErrorCode code = ErrorCode::kCorrupt) const {
    return gguf_ != nullptr ? gguf_->wrong(key(field), what, code)
                            : json_->wrong(key(field), what, code);
  }

 private:
  const JsonFields* json_ = nullptr;
  const GgufFile* gguf_ = nullptr;
  std::string architecture_;
};

// Null, or a value that changes nothing; anything else would be computed wrongly, so it is refused.
Result<void> refuse_unless(const JsonFields& config, std::string_view key, const Json& harmless) {
  const Json* value = config.find(key);
  if (value == nullptr || *value == harmless) return {};
  std::string shown = value->dump(-1, ' ', true, Json::error_handler_t::replace);
  if (shown.size() > 64) shown = shown.substr(0, 64) + "...";
  return config.wrong(key, shown + " is not supported", ErrorCode::kUnsupported);
}

// What both formats say in the same way. The vocabulary is known already.
Result<void> read_common(const ConfigFields& fields, const Family& family, ModelConfig& c) {
  c.architecture = family.name;
  SHOAL_TRY_ASSIGN(width, fields.integer(kWidth, 1, kWidthMax));
  SHOAL_TRY_ASSIGN(blocks, fields.integer(kBlocks, 1, kBlocksMax));
  SHOAL_TRY_ASSIGN(heads, fields.integer(kHeads, 1, kHeadsMax));
  SHOAL_TRY_ASSIGN(kv_heads, fields.integer_or(kKvHeads, heads, 1, kHeadsMax));
  if (!fields.has(kHeadDim) && width % heads != 0) {
    return fields.wrong(
        kHeads, std::to_string(heads) + " does not divide the width " + std::to_string(width));
  }
  SHOAL_TRY_ASSIGN(head_dim, fields.integer_or(kHeadDim, width / heads, 1, limits::kHeadDimMax));
  const bool silent = family.norm == NormKind::kLayer && !fields.has(kIntermediate);  // GPT-2.
  SHOAL_TRY_ASSIGN(intermediate, silent ? Result<int64_t>(4 * width)
                                        : fields.integer(kIntermediate, 1, kIntermediateMax));
  SHOAL_TRY_ASSIGN(context, fields.is_gguf() ? fields.integer(kContextLength, 1, kModelContextMax)
                                             : fields.integer_or(kContextLength, family.context, 1,
                                                                 kModelContextMax));
  const Field& epsilon_field = family.norm == NormKind::kLayer ? kLayerEpsilon : kRmsEpsilon;
  if (fields.is_gguf() && !fields.has(epsilon_field))
    return fields.wrong(epsilon_field, "is missing");
  SHOAL_TRY_ASSIGN(epsilon, fields.number_or(epsilon_field, family.epsilon, 1e-12, 1.0));

  if (heads % kv_heads != 0) {
    return fields.wrong(kKvHeads, std::to_string(kv_heads) + " does not divide the " +
                                      std::to_string(heads) + " heads");
  }
  if (heads * head_dim > kWidthMax) {
    return fields.wrong(kHeads, "heads times their size passes " + std::to_string(kWidthMax));
  }
  c.width = width;
  c.blocks = blocks;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = head_dim;
  c.intermediate = intermediate;
  c.context = context;
  c.epsilon = epsilon;

  c.norm = family.norm;
  c.norm_before = family.norm_before;
  c.norm_after = family.norm_after;
  c.qk_norm = family.qk_norm;
  c.query_biases = family.query_biases;
  c.output_biases = family.output_biases;
  c.ffn_biases = family.ffn_biases;
  c.learned_positions = family.learned_positions;
  c.activation = family.activation;
  c.gated = family.gated;
  if (family.learned_positions && context > kWidthMax) {
    return fields.wrong(kContextLength, "so many learned positions are not supported",
                        ErrorCode::kUnsupported);
  }

  if (family.caps) {
    constexpr double kMin = limits::kCapMin, kMax = limits::kCapMax;
    SHOAL_TRY_ASSIGN(attention_cap, fields.number_or(kAttentionCap, 0, kMin, kMax));
    SHOAL_TRY_ASSIGN(final_cap, fields.number_or(kFinalCap, 0, kMin, kMax));
    c.attention_cap = attention_cap;
    c.final_cap = final_cap;
  } else {
    for (const Field& cap : {kAttentionCap, kFinalCap}) {
      if (fields.has(cap)) return fields.wrong(cap, "is not supported", ErrorCode::kUnsupported);
    }
  }
  return {};
}

Result<void> read_experts(const ConfigFields& fields, const Family& family, ModelConfig& c) {
  const bool may = fields.is_gguf() ? family.gguf_experts : family.experts;
  SHOAL_TRY_ASSIGN(experts, fields.integer_or(kExperts, 0, 0, 1 << 20));
  if (experts == 0) {
    if (family.experts) return fields.wrong(kExperts, "is missing");
    return {};
  }
  if (!may || experts > limits::kExpertsMax) {
    return fields.wrong(kExperts, std::to_string(experts) + " experts are not supported",
                        ErrorCode::kUnsupported);
  }
  const int64_t used_max = std::min<int64_t>(experts, limits::kExpertsUsedMax);
  SHOAL_TRY_ASSIGN(used, fields.integer(kExpertsUsed, 1, used_max));
  SHOAL_TRY_ASSIGN(intermediate,
                   fields.integer_or(kExpertIntermediate, c.intermediate, 1, kIntermediateMax));
  if (experts * std::max(intermediate, c.width) > limits::kWidthMax) {
    return fields.wrong(kExperts, "so many experts of this size are not supported",
                        ErrorCode::kUnsupported);
  }
  c.experts = experts;
  c.experts_used = used;
  c.intermediate = intermediate;
  return {};
}

// The window of each block, and which rope turns it. `types`: a Hugging Face config's own list.
void lay_blocks(const Family& family, int64_t window, int64_t window_from,
                const std::vector<bool>& windowed, const std::vector<bool>& without_rotary,
                ModelConfig& c) {
  using Rotary = BlockConfig::Rotary;
  bool alike = true;
  std::vector<BlockConfig> kinds;
  for (int64_t i = 0; i < c.blocks; ++i) {
    const auto at = static_cast<size_t>(i);
    bool local = window > 0;
    if (!windowed.empty()) {
      local = local && windowed[at];
    } else if (family.windows == WindowRule::kLater) {
      local = local && i >= window_from;
    } else if (family.windows == WindowRule::kEvery) {
      local = local && (i + 1) % family.global_every != 0;
    }
    BlockConfig kind;
    kind.window = local ? window : 0;
    if (!family.rotary || (!without_rotary.empty() && without_rotary[at])) {
      kind.rotary = Rotary::kNone;
    } else if (local && family.local_rotary) {
      kind.rotary = Rotary::kLocal;
    }
    alike = alike && kind.window == 0 && kind.rotary == Rotary::kWhole;
    kinds.push_back(kind);
  }
  if (!alike) c.kinds = std::move(kinds);
}

// --- config.json ---

Result<std::vector<double>> read_factors(const JsonFields& scaling, std::string_view key,
                                         uint32_t count) {
  SHOAL_TRY_ASSIGN(list, scaling.array(key));
  std::vector<double> factors;
  for (const Json& item : *list) {
    if (!item.is_number()) return scaling.wrong(key, "is not a list of numbers");
    factors.push_back(item.get<double>());
    if (!(factors.back() >= limits::kLinearFactorMin &&
          factors.back() <= limits::kLinearFactorMax)) {
      return scaling.wrong(key, "holds a factor that is out of range");
    }
  }
  if (factors.size() != count) {
    return scaling.wrong(key, "holds " + std::to_string(factors.size()) + " factors where " +
                                  std::to_string(count) + " pairs turn");
  }
  return factors;
}

// The keys of such an object that are read below.
constexpr std::string_view kScalingKeys[] = {
    "attention_factor",
    "beta_fast",
    "beta_slow",
    "factor",
    "high_freq_factor",
    "long_factor",
    "low_freq_factor",
    "mscale",
    "mscale_all_dim",
    "original_max_position_embeddings",
    "partial_rotary_factor",
    "rope_theta",
    "rope_type",
    "short_factor",
    "truncate",
    "type",
};

// What a rope's table is scaled by: an object of "rope_scaling" or "rope_parameters".
Result<void> read_scaling(const JsonFields& scaling, const JsonFields& config, int64_t context,
                          RopeSpec& rope) {
  for (const auto& [key, value] : scaling.json().items()) {
    if (!value.is_null() && std::ranges::find(kScalingKeys, key) == std::end(kScalingKeys))
      return scaling.wrong(printable(key), "is not supported", ErrorCode::kUnsupported);
  }
  SHOAL_TRY_ASSIGN(part, config.number_or("partial_rotary_factor", 1.0, 0.0, 1.0));
  SHOAL_TRY(refuse_unless(scaling, "partial_rotary_factor", part));
  // Older files say "type", newer ones "rope_type".
  SHOAL_TRY_ASSIGN(older, scaling.text_or("type", "default"));
  SHOAL_TRY_ASSIGN(type, scaling.text_or("rope_type", older));
  SHOAL_TRY_ASSIGN(theta, scaling.number_or("rope_theta", rope.theta, 1.0, kThetaMax));
  rope.theta = theta;
  if (type == "default") return {};
  constexpr auto kOriginal = "original_max_position_embeddings";
  const auto original_or = [&](int64_t fallback) -> Result<int64_t> {
    SHOAL_TRY_ASSIGN(outer, config.integer_or(kOriginal, fallback, 1, kModelContextMax));
    return scaling.integer_or(kOriginal, outer, 1, kModelContextMax);
  };
  if (type == "linear") {
    SHOAL_TRY_ASSIGN(factor, scaling.number("factor", 1.0, kFactorMax));
    rope.linear_factor = factor;
    return {};
  }
  if (type == "llama3") {
    Llama3Scaling llama3;
    SHOAL_TRY_ASSIGN(factor, scaling.number("factor", 1.0, kFactorMax));
    SHOAL_TRY_ASSIGN(low, scaling.number("low_freq_factor", 1e-3, 1e3));
    SHOAL_TRY_ASSIGN(high, scaling.number("high_freq_factor", 1e-3, 1e3));
    SHOAL_TRY_ASSIGN(original, scaling.integer(kOriginal, 1, kModelContextMax));
    if (low >= high) return scaling.wrong("low_freq_factor", "is not below high_freq_factor");
    llama3 = {factor, low, high, static_cast<double>(original)};
    scale_llama3(llama3, rope);
    return {};
  }
  if (type == "yarn") {
    SHOAL_TRY(refuse_unless(scaling, "truncate", true));
    SHOAL_TRY_ASSIGN(factor, scaling.number("factor", 1.0, kFactorMax));
    SHOAL_TRY_ASSIGN(fast, scaling.number_or("beta_fast", 32, 1e-3, 1e6));
    SHOAL_TRY_ASSIGN(slow, scaling.number_or("beta_slow", 1, 1e-3, 1e6));
    SHOAL_TRY_ASSIGN(original, original_or(context));
    SHOAL_TRY_ASSIGN(weight, scaling.number_or("mscale", 0, 0, 100));
    SHOAL_TRY_ASSIGN(all, scaling.number_or("mscale_all_dim", 0, 0, 100));
    SHOAL_TRY_ASSIGN(magnitude,
                     scaling.number_or("attention_factor",
                                       weight != 0 && all != 0 ? yarn_magnitude(factor, weight) /
                                                                     yarn_magnitude(factor, all)
                                                               : yarn_magnitude(factor, 1),
                                       limits::kMagnitudeMin, limits::kMagnitudeMax));
    if (rope.theta < 2) return scaling.wrong("rope_theta", "is too small for yarn");
    if (slow > fast) return scaling.wrong("beta_slow", "is above beta_fast");
    scale_yarn({factor, static_cast<double>(original), fast, slow, magnitude}, rope);
    return {};
  }
  if (type == "longrope" || type == "su") {
    SHOAL_TRY_ASSIGN(original, original_or(0));
    if (original < 2) return scaling.wrong(kOriginal, "is missing");
    SHOAL_TRY_ASSIGN(close, read_factors(scaling, "short_factor", rope.rotary / 2));
    SHOAL_TRY_ASSIGN(far, read_factors(scaling, "long_factor", rope.rotary / 2));
    const double stretched = static_cast<double>(context) / static_cast<double>(original);
    SHOAL_TRY_ASSIGN(factor, scaling.number_or("factor", stretched, 1e-6, kFactorMax));
    SHOAL_TRY_ASSIGN(magnitude,
                     scaling.number_or("attention_factor",
                                       longrope_magnitude(factor, static_cast<double>(original)),
                                       limits::kMagnitudeMin, limits::kMagnitudeMax));
    rope.divisors = std::move(close);
    rope.long_divisors = std::move(far);
    rope.long_beyond = std::min<int64_t>(original, limits::kContextMax);
    rope.magnitude = magnitude;
    return {};
  }
  return scaling.wrong("rope_type", "\"" + printable(type) + "\" is not supported",
                       ErrorCode::kUnsupported);
}

Result<void> read_rope(const JsonFields& config, const Family& family, ModelConfig& c) {
  double part = 1;
  if (family.partial_rotary) {
    SHOAL_TRY_ASSIGN(read, config.number_or("partial_rotary_factor", 1.0, 0.0, 1.0));
    part = read;
  } else {
    SHOAL_TRY(refuse_unless(config, "partial_rotary_factor", 1.0));
  }
  const auto rotary = static_cast<int64_t>(static_cast<double>(c.head_dim) * part);
  if (family.rotary && (rotary < 2 || rotary % 2 != 0)) {
    return config.wrong(part == 1 ? "head_dim" : "partial_rotary_factor",
                        "makes " + std::to_string(rotary) +
                            " elements of a head turn, which is odd "
                            "or none");
  }
  SHOAL_TRY_ASSIGN(theta, config.number_or("rope_theta", family.theta, 1.0, kThetaMax));
  c.rope = {.theta = theta, .rotary = static_cast<uint32_t>(rotary)};
  if (!family.rotary) return {};
  SHOAL_TRY_ASSIGN(local_theta, config.number_or("rope_local_base_freq", 10000.0, 1.0, kThetaMax));
  c.local_rope = {.theta = local_theta, .rotary = c.rope.rotary};
  // Older files say it under the first name, newer ones under the second, some under both.
  const Json* older = config.find("rope_scaling");
  const Json* newer = config.find("rope_parameters");
  if (older == nullptr && newer == nullptr) return {};
  if (older != nullptr && newer != nullptr && *older != *newer)
    return config.wrong("rope_parameters", "says otherwise than rope_scaling");
  SHOAL_TRY_ASSIGN(scaling, config.object(newer != nullptr ? "rope_parameters" : "rope_scaling"));
  if (family.local_rotary && scaling.has("full_attention")) {
    SHOAL_TRY_ASSIGN(whole, scaling.object("full_attention"));
    SHOAL_TRY_ASSIGN(local, scaling.object("sliding_attention"));
    SHOAL_TRY(read_scaling(whole, config, c.context, c.rope));
    return read_scaling(local, config, c.context, c.local_rope);
  }
  return read_scaling(scaling, config, c.context, c.rope);
}

Result<void> read_activation(const JsonFields& config, const Family& family, ModelConfig& c) {
  std::string_view key = "hidden_act";
  for (const std::string_view other : {"hidden_activation", "activation_function"}) {
    if (config.has(other)) key = other;
  }
  SHOAL_TRY_ASSIGN(name, config.text_or(key, std::string(family.default_activation)));
  const bool silu = name == "silu" || name == "swish", gelu = name == "gelu";
  const bool by_tanh = name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast";
  if (family.activation == Activation::kSilu ? !silu : !gelu && !by_tanh) {
    return config.wrong(key, "\"" + printable(name) + "\" is not supported",
                        ErrorCode::kUnsupported);
  }
  if (gelu) c.activation = Activation::kGelu;
  return {};
}

// Blocks with a window, from "layer_types"; empty when it is absent.
Result<std::vector<bool>> read_layer_types(const JsonFields& config, const Family& family,
                                           int64_t blocks) {
  std::vector<bool> windowed;
  if (!config.has("layer_types")) return windowed;
  SHOAL_TRY_ASSIGN(types, config.array("layer_types"));
  if (static_cast<int64_t>(types->size()) != blocks) {
    return config.wrong("layer_types", "does not hold one type for each of the " +
                                           std::to_string(blocks) + " blocks");
  }
  for (const Json& type : *types) {
    const bool window = type == "sliding_attention";
    if ((!window && type != "full_attention") || (window && family.windows == WindowRule::kNone)) {
      return config.wrong(
          "layer_types",
          printable(type.dump(-1, ' ', true, Json::error_handler_t::replace)) + " is not supported",
          ErrorCode::kUnsupported);
    }
    windowed.push_back(window);
  }
  return windowed;
}

Result<std::vector<bool>> read_no_rope(const JsonFields& config, const Family& family,
                                       int64_t blocks) {
  std::vector<bool> without;
  if (!family.some_without_rotary) {
    SHOAL_TRY(refuse_unless(config, "no_rope_layers", Json::array()));
    return without;
  }
  if (!config.has("no_rope_layers")) {
    SHOAL_TRY_ASSIGN(every, config.integer_or("no_rope_layer_interval", 4, 1, kBlocksMax + 1));
    for (int64_t i = 0; i < blocks; ++i) without.push_back((i + 1) % every == 0);
    return without;
  }
  SHOAL_TRY_ASSIGN(list, config.array("no_rope_layers"));  // 1 stands for a block that does turn.
  for (const Json& item : *list) {
    if (item != 0 && item != 1) return config.wrong("no_rope_layers", "is not a list of 0 and 1");
    without.push_back(item == 0);
  }
  if (static_cast<int64_t>(without.size()) != blocks) {
    return config.wrong("no_rope_layers", "does not hold a number for each of the " +
                                              std::to_string(blocks) + " blocks");
  }
  return without;
}

Result<void> read_blocks(const JsonFields& config, const Family& family, ModelConfig& c) {
  int64_t window = 0, from = 0;
  bool on = family.windows != WindowRule::kNone;
  if (family.windows == WindowRule::kNone || family.windows == WindowRule::kLater) {
    SHOAL_TRY_ASSIGN(use, config.boolean_or("use_sliding_window", false));
    if (use && !on) {
      return config.wrong("use_sliding_window", "true is not supported", ErrorCode::kUnsupported);
    }
    on = on && use;
  }
  if (family.windows == WindowRule::kNone) {
    // Where a config says that the window is not used, its length means nothing.
    if (!config.has("use_sliding_window"))
      SHOAL_TRY(refuse_unless(config, "sliding_window", nullptr));
  } else if (on) {
    // Null says that there is none; where nothing stands, the family's own holds.
    const int64_t fallback = config.json().contains("sliding_window") ? 0 : family.window;
    SHOAL_TRY_ASSIGN(read, config.integer_or("sliding_window", fallback, 1, kModelContextMax));
    window = read;
  }
  if (window > limits::kContextMax) window = 0;  // No stage holds more positions.
  if (family.windows == WindowRule::kLater && on) {
    SHOAL_TRY_ASSIGN(first, config.integer_or("max_window_layers", 28, 0, 1 << 20));
    from = first;
  }
  if (family.windows == WindowRule::kEvery && config.has("sliding_window_pattern")) {
    SHOAL_TRY_ASSIGN(pattern, config.integer("sliding_window_pattern", 1, kBlocksMax));
    if (pattern != family.global_every) {
      return config.wrong("sliding_window_pattern", std::to_string(pattern) + " is not supported",
                          ErrorCode::kUnsupported);
    }
  }
  SHOAL_TRY_ASSIGN(windowed, read_layer_types(config, family, c.blocks));
  SHOAL_TRY_ASSIGN(without, read_no_rope(config, family, c.blocks));
  lay_blocks(family, window, from, windowed, without, c);
  return {};
}

Result<ModelConfig> read_hugging_face(const JsonFields& config, const Family& family) {
  SHOAL_TRY(refuse_unless(config, "quantization_config", nullptr));
  for (const std::string_view key :
       {"scale_attn_by_inverse_layer_idx", "add_cross_attention", "use_bidirectional_attention"}) {
    SHOAL_TRY(refuse_unless(config, key, false));
  }
  SHOAL_TRY(refuse_unless(config, "scale_attn_weights", true));
  SHOAL_TRY(refuse_unless(config, "clip_qkv", nullptr));
  SHOAL_TRY(refuse_unless(config, "decoder_sparse_step", 1));
  SHOAL_TRY(refuse_unless(config, "mlp_only_layers", Json::array()));
  for (const std::string_view key :
       {"attention_multiplier", "residual_multiplier", "embedding_multiplier", "logits_scaling"}) {
    SHOAL_TRY(refuse_unless(config, key, 1.0));
  }

  ModelConfig c;
  const ConfigFields fields(config);
  SHOAL_TRY_ASSIGN(vocabulary, fields.integer(kVocabulary, 1, kVocabularyMax));
  c.vocabulary = vocabulary;
  SHOAL_TRY(read_common(fields, family, c));
  SHOAL_TRY(read_experts(fields, family, c));
  SHOAL_TRY(read_activation(config, family, c));
  // Where a family always has biases, its configs do not ask for them.
  if (!family.query_biases) SHOAL_TRY(refuse_unless(config, "attention_bias", false));
  if (!family.ffn_biases) SHOAL_TRY(refuse_unless(config, "mlp_bias", false));
  SHOAL_TRY_ASSIGN(tied, config.boolean_or("tie_word_embeddings", family.tied));
  c.tied = tied;
  if (c.experts > 0 && !family.always_renormalise) {
    SHOAL_TRY_ASSIGN(renormalise, config.boolean_or("norm_topk_prob", false));
    c.renormalise = renormalise;
  }
  if (family.scale_by_key) {
    SHOAL_TRY_ASSIGN(scalar, config.number_or("query_pre_attn_scalar", 256, 1e-3, 1e9));
    if (scalar != static_cast<double>(c.head_dim)) c.attention_scale = 1 / std::sqrt(scalar);
  }
  if (family.embedding_scaled) {
    SHOAL_TRY_ASSIGN(older, config.text_or("torch_dtype", "float32"));
    SHOAL_TRY_ASSIGN(type, config.text_or("dtype", older));
    auto scale = static_cast<float>(std::sqrt(static_cast<double>(c.width)));
    if (type == "bfloat16") {  // Such models multiply by what bfloat16 keeps of it.
      const auto bits = std::bit_cast<uint32_t>(scale);
      scale = std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u);
    }
    c.embedding_scale = static_cast<double>(scale);
  }
  SHOAL_TRY(read_rope(config, family, c));
  SHOAL_TRY(read_blocks(config, family, c));
  if (config.has("bos_token_id")) {
    SHOAL_TRY_ASSIGN(bos, config.integer("bos_token_id", 0, c.vocabulary - 1));
    c.bos = static_cast<int32_t>(bos);
  }
  SHOAL_TRY_ASSIGN(eos, read_eos(config, c.vocabulary));
  c.eos = std::move(eos);
  return c;
}

// --- GGUF ---

// The keys under the architecture's name that are read below, or that change nothing.
constexpr std::string_view kGgufKeys[] = {
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.value_length",
    "attn_logit_softcapping",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_feed_forward_length",
    "expert_used_count",
    "feed_forward_length",
    "final_logit_softcapping",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "tensor_data_layout",
    "vocab_size",
};

constexpr std::string_view kFrequencies = "rope_freqs.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";
constexpr std::string_view kLongFactors = "rope_factors_long.weight";

// One f32 for each pair, from a tensor of the file; empty when it is absent.
Result<std::vector<double>> read_divisors(const GgufFile& file, const WeightTable& table,
                                          std::string_view name, uint32_t pairs) {
  std::vector<double> divisors;
  const auto at = table.find(name);
  if (at == table.end()) return divisors;
  const std::string where = file.file() + ": tensor " + std::string(name);
  if (at->second.shape != Shape{pairs} || at->second.dtype != DType::kF32) {
    return Error{ErrorCode::kCorrupt,
                 where + ": is not f32 for each of " + std::to_string(pairs) + " pairs"};
  }
  for (uint32_t i = 0; i < pairs; ++i) {
    const auto bits = load_le<uint32_t>(at->second.bytes.data() + i * 4);
    divisors.push_back(static_cast<double>(std::bit_cast<float>(bits)));
    if (!(divisors.back() >= limits::kLinearFactorMin &&
          divisors.back() <= limits::kLinearFactorMax)) {
      return Error{ErrorCode::kCorrupt, where + ": holds a factor that is out of range"};
    }
  }
  return divisors;
}

Result<void> read_gguf_rope(const GgufFile& file, const WeightTable& table, const Family& family,
                            const ConfigFields& fields, ModelConfig& c) {
  const std::string prefix = std::string(family.gguf_architecture) + ".rope.";
  const std::string dimensions = prefix + "dimension_count";
  SHOAL_TRY_ASSIGN(rotary, file.integer_or(dimensions, c.head_dim, 2, limits::kHeadDimMax));
  if (rotary % 2 != 0 || rotary > c.head_dim) {
    return file.wrong(dimensions, std::to_string(rotary) + " is odd or more than a head's " +
                                      std::to_string(c.head_dim));
  }
  SHOAL_TRY_ASSIGN(theta, fields.number_or(kTheta, 10000.0, 1.0, kThetaMax));
  SHOAL_TRY_ASSIGN(local_theta, fields.number_or(kLocalTheta, 10000.0, 1.0, kThetaMax));
  c.rope = {.theta = theta, .rotary = static_cast<uint32_t>(rotary)};
  c.local_rope = {.theta = local_theta, .rotary = c.rope.rotary};
  const uint32_t pairs = c.rope.rotary / 2;
  SHOAL_TRY_ASSIGN(divisors, read_divisors(file, table, kFrequencies, pairs));
  SHOAL_TRY_ASSIGN(close, read_divisors(file, table, kShortFactors, pairs));
  SHOAL_TRY_ASSIGN(far, read_divisors(file, table, kLongFactors, pairs));
  const auto refused = [&file](std::string_view tensor, std::string_view what) {
    return Error{ErrorCode::kCorrupt,
                 file.file() + ": tensor " + std::string(tensor) + ": " + std::string(what)};
  };
  if (close.empty() && !far.empty())
    return refused(kLongFactors, "stands without those for short contexts");
  if (far.empty() && !close.empty())
    return refused(kShortFactors, "stands without those for long contexts");
  if (!divisors.empty() && !far.empty())
    return refused(kFrequencies, "stands beside factors for long contexts");
  c.rope.divisors = std::move(divisors);

  SHOAL_TRY_ASSIGN(older, file.number_or(prefix + "scale_linear", 1.0, 1.0, kFactorMax));
  SHOAL_TRY_ASSIGN(factor, file.number_or(prefix + "scaling.factor", older, 1.0, kFactorMax));
  SHOAL_TRY_ASSIGN(original, file.integer_or(prefix + "scaling.original_context_length", c.context,
                                             1, kModelContextMax));
  SHOAL_TRY_ASSIGN(magnitude, file.number_or(prefix + "scaling.attn_factor", 1.0,
                                             limits::kMagnitudeMin, limits::kMagnitudeMax));
  std::string_view type = "linear";
  if (file.has(prefix + "scaling.type")) {
    SHOAL_TRY_ASSIGN(named, file.text(prefix + "scaling.type"));
    type = named;
  }
  if (type == "linear") c.rope.linear_factor = factor;
  if (type == "yarn") {
    if (c.rope.theta < 2) return file.wrong(prefix + "freq_base", "is too small for yarn");
    if (!c.rope.divisors.empty()) return refused(kFrequencies, "stands beside yarn's scaling");
    if (!far.empty()) return refused(kLongFactors, "stands beside yarn's scaling");
    scale_yarn({.factor = factor,
                .original = static_cast<double>(original),
                .magnitude = magnitude * yarn_magnitude(factor, 1)},
               c.rope);
    return {};
  }
  if (type != "none" && type != "linear" && type != "longrope") {
    return file.wrong(prefix + "scaling.type", "\"" + printable(type) + "\" is not supported",
                      ErrorCode::kUnsupported);
  }
  c.rope.magnitude = magnitude;
  if (type == "longrope" && far.empty())
    return file.wrong(prefix + "scaling.type",
                      "is longrope without a tensor " + std::string(kLongFactors));
  if (!far.empty()) {
    c.rope.divisors = std::move(close);
    c.rope.long_divisors = std::move(far);
    c.rope.long_beyond = std::min<int64_t>(original, limits::kContextMax);
  }
  return {};
}

Result<ModelConfig> read_gguf_family(const GgufFile& file, const WeightTable& table,
                                     const Family& family) {
  const std::string prefix = std::string(family.gguf_architecture) + ".";
  for (const auto& [key, value] : file.values()) {
    if (key.starts_with(prefix) &&
        std::find(std::begin(kGgufKeys), std::end(kGgufKeys),
                  std::string_view(key).substr(prefix.size())) == std::end(kGgufKeys)) {
      return file.wrong(printable(key), "is not supported", ErrorCode::kUnsupported);
    }
  }
  const ConfigFields fields(file, family.gguf_architecture);
  ModelConfig c;
  // The table's rows are the vocabulary; a key that says otherwise is found when its shape is
  // checked.
  const auto embedding = table.find("token_embd.weight");
  if (embedding == table.end() || embedding->second.shape.size() != 2) {
    return Error{ErrorCode::kCorrupt,
                 file.file() + ": tensor token_embd.weight: is missing or no matrix"};
  }
  if (embedding->second.shape[0] > kVocabularyMax) {
    return Error{ErrorCode::kUnsupported, file.file() +
                                              ": tensor token_embd.weight: has more than " +
                                              std::to_string(kVocabularyMax) + " rows"};
  }
  SHOAL_TRY_ASSIGN(vocabulary,
                   fields.integer_or(kVocabulary, embedding->second.shape[0], 1, kVocabularyMax));
  c.vocabulary = vocabulary;
  // The file's f32 epsilon stands for the decimal that was meant; the graph rounds it back.
  SHOAL_TRY(read_common(fields, family, c));
  SHOAL_TRY_ASSIGN(value_dim,
                   file.integer_or(prefix + "attention.value_length", c.head_dim, 1, kHeadDimMax));
  if (value_dim != c.head_dim) {
    return file.wrong(prefix + "attention.value_length", "differs from the key length",
                      ErrorCode::kUnsupported);
  }
  SHOAL_TRY(read_experts(fields, family, c));
  SHOAL_TRY(read_gguf_rope(file, table, family, fields, c));
  c.interleaved = family.pairs_in_gguf;
  c.tied = table.find("output.weight") == table.end();
  if (family.embedding_scaled)
    c.embedding_scale =
        static_cast<double>(static_cast<float>(std::sqrt(static_cast<double>(c.width))));
  // Nothing in the file says so: of these families only the 27B model scales otherwise.
  const bool largest =
      (family.name == "gemma2" && c.blocks == 46) || (family.name == "gemma3" && c.blocks == 62);
  if (family.scale_by_key && largest && c.width / c.heads != c.head_dim)
    c.attention_scale = 1 / std::sqrt(static_cast<double>(c.width / c.heads));

  // 0 says that there is none.
  const int64_t fallback = family.windows == WindowRule::kEvery ? family.window : 0;
  SHOAL_TRY_ASSIGN(window, fields.integer_or(kWindow, fallback, 0, kModelContextMax));
  if (window > limits::kContextMax) window = 0;
  const bool windowed = family.windows == WindowRule::kAll || family.windows == WindowRule::kEvery;
  if (window != 0 && !windowed)
    return fields.wrong(kWindow, "is not supported", ErrorCode::kUnsupported);
  std::vector<bool> without;
  for (int64_t i = 0; family.some_without_rotary && i < c.blocks; ++i)
    without.push_back((i + 1) % 4 == 0);
  lay_blocks(family, window, 0, {}, without, c);
  return c;
}

}  // namespace

Result<std::vector<int32_t>> read_eos(const JsonFields& fields, int64_t vocabulary) {
  std::vector<int32_t> result;
  const Json* value = fields.find("eos_token_id");
  if (value == nullptr) return result;
  const Json list = value->is_array() ? *value : Json::array({*value});
  if (list.size() > kEosMax) return fields.wrong("eos_token_id", "holds too many ids");
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= static_cast<uint64_t>(vocabulary)) {
      return fields.wrong("eos_token_id",
                          "is not an id below vocab_size " + std::to_string(vocabulary));
    }
    result.push_back(id.get<int32_t>());
  }
  return result;
}

Result<ModelConfig> read_config(std::string_view text, const std::string& file,
                                const Family** family) {
  SHOAL_TRY_ASSIGN(json, parse_json(text, file));
  SHOAL_TRY_ASSIGN(fields, JsonFields::of(json, file));
  SHOAL_TRY_ASSIGN(classes, fields.array("architectures"));
  if (classes->size() != 1 || !classes->front().is_string()) {
    return fields.wrong("architectures", "is not a list of one name");
  }
  const auto& wanted = classes->front().get_ref<const std::string&>();
  for (const Family* candidate : families()) {
    const auto names = candidate->hugging_face_classes;
    if (std::find(names.begin(), names.end(), wanted) == names.end()) continue;
    *family = candidate;
    return read_hugging_face(fields, *candidate);
  }
  return fields.wrong("architectures", "\"" + printable(wanted) + "\" is not supported",
                      ErrorCode::kUnsupported);
}

Result<ModelConfig> read_gguf_config(const GgufFile& file, const WeightTable& table,
                                     const Family** family) {
  SHOAL_TRY_ASSIGN(architecture, file.text("general.architecture"));
  for (const Family* candidate : families()) {
    if (candidate->gguf_architecture.empty() || candidate->gguf_architecture != architecture)
      continue;
    *family = candidate;
    return read_gguf_family(file, table, *candidate);
  }
  return file.wrong("general.architecture", "\"" + printable(architecture) + "\" is not supported",
                    ErrorCode::kUnsupported);
}

}  // namespace shoal::compute
