#include "tests/models/tiny_family.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>

#include "base/check.h"
#include "tests/support/weight_values.h"

namespace shoal::compute {
namespace {

std::string at_block(const std::string& role, int64_t block) {
  return role + "." + std::to_string(block);
}

// --- what each family is ---

TinyFamily like_llama(std::string name, std::string hugging_face_class, std::string gguf) {
  TinyFamily f;
  f.name = std::move(name);
  f.hugging_face_class = std::move(hugging_face_class);
  f.gguf = std::move(gguf);
  return f;
}

}  // namespace

std::vector<TinyFamily> tiny_families() {
  std::vector<TinyFamily> all;
  TinyFamily llama2 = like_llama("llama 2", "LlamaForCausalLM", "llama");
  llama2.tied = false;
  llama2.pairs = true;
  all.push_back(llama2);

  TinyFamily linear = llama2;
  linear.name = "llama, linear scaling, other head size";
  linear.rope = {.kind = "linear", .theta = 20000, .factor = 4};
  linear.head_dim = linear.rotary = 24;
  linear.config = R"("rope_theta":20000,"rope_scaling":{"type":"linear","factor":4.0})";
  linear.gguf_numbers = {{"rope.freq_base", 20000}, {"rope.scaling.factor", 4}};
  linear.gguf_scaling = "linear";
  all.push_back(linear);

  TinyFamily llama3 = llama2;
  llama3.name = "llama 3.2";
  llama3.tied = true;
  llama3.rope = {.kind = "llama3", .theta = 500, .factor = 32, .low = 1, .high = 4, .original = 64};
  llama3.config =
      R"("rope_theta":500.0,"rope_scaling":{"rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,)"
      R"("high_freq_factor":4.0,"original_max_position_embeddings":64})";
  llama3.gguf_numbers = {{"rope.freq_base", 500}};
  all.push_back(llama3);

  TinyFamily mistral = like_llama("mistral 0.1", "MistralForCausalLM", "");
  mistral.tied = false;
  mistral.windows = {9, 9, 9};
  mistral.config = R"("sliding_window":9)";
  all.push_back(mistral);

  TinyFamily smollm3 = like_llama("smollm 3", "SmolLM3ForCausalLM", "smollm3");
  smollm3.blocks = 5;
  smollm3.pairs = true;
  smollm3.rope.theta = 2e6;
  smollm3.ropes = {1, 1, 1, 0, 1};
  smollm3.config =
      R"("rope_theta":2000000.0,"no_rope_layers":[1,1,1,0,1],"no_rope_layer_interval":4,)"
      R"("use_sliding_window":false,"layer_types":["full_attention","full_attention",)"
      R"("full_attention","full_attention","full_attention"],"attention_bias":false)";
  smollm3.gguf_numbers = {{"rope.freq_base", 2e6}};
  all.push_back(smollm3);

  TinyFamily smollm3_far = smollm3;
  smollm3_far.name = "smollm 3, yarn";
  smollm3_far.rope = {.kind = "yarn", .theta = 2000, .factor = 4, .original = 64};
  smollm3_far.config =
      R"("rope_theta":2000.0,"no_rope_layer_interval":4,"rope_scaling":{"rope_type":"yarn",)"
      R"("factor":4.0,"original_max_position_embeddings":64})";
  smollm3_far.gguf_numbers = {{"rope.freq_base", 2000}, {"rope.scaling.factor", 4}};
  smollm3_far.gguf_integers = {{"rope.scaling.original_context_length", 64}};
  smollm3_far.gguf_scaling = "yarn";
  all.push_back(smollm3_far);

  TinyFamily qwen2 = like_llama("qwen 2.5", "Qwen2ForCausalLM", "qwen2");
  qwen2.query_bias = true;
  qwen2.rope.theta = 1e6;
  qwen2.config =
      R"("rope_theta":1000000.0,"use_sliding_window":false,"sliding_window":16,"max_window_layers":1)";
  qwen2.gguf_numbers = {{"rope.freq_base", 1e6}};
  all.push_back(qwen2);

  TinyFamily qwen2_window = qwen2;
  qwen2_window.name = "qwen 2, window in later blocks";
  qwen2_window.gguf.clear();
  qwen2_window.windows = {0, 16, 16};
  qwen2_window.config =
      R"("rope_theta":1000000.0,"use_sliding_window":true,"sliding_window":16,"max_window_layers":1)";
  all.push_back(qwen2_window);

  TinyFamily qwen2_silent = qwen2_window;
  qwen2_silent.name = "qwen 2, window, silent about which blocks";
  qwen2_silent.blocks = 29;
  qwen2_silent.windows.assign(28, 0);  // From the 29th block on.
  qwen2_silent.windows.push_back(16);
  qwen2_silent.config = R"("rope_theta":1000000.0,"use_sliding_window":true,"sliding_window":16)";
  all.push_back(qwen2_silent);

  TinyFamily qwen3 = like_llama("qwen 3", "Qwen3ForCausalLM", "qwen3");
  qwen3.head_dim = qwen3.rotary = 32;
  qwen3.head_norms = true;
  qwen3.epsilon = 1e-6;
  qwen3.rope.theta = 1e6;
  qwen3.config = R"("rope_theta":1000000.0,"attention_bias":false)";
  qwen3.gguf_numbers = {{"rope.freq_base", 1e6}};
  all.push_back(qwen3);

  TinyFamily gpt2 = like_llama("gpt-2", "GPT2LMHeadModel", "gpt2");
  gpt2.kv_heads = gpt2.heads;
  gpt2.inner = 4 * gpt2.width;
  gpt2.rotary = 0;
  gpt2.ropes = {0, 0, 0};
  gpt2.layer_norm = gpt2.learned_positions = true;
  gpt2.query_bias = gpt2.output_bias = gpt2.ffn_bias = true;
  gpt2.gated = false;
  gpt2.activation = "gelu_tanh";
  gpt2.fused_query = gpt2.transposed = true;
  gpt2.prefix = "transformer.";
  gpt2.config = R"("activation_function":"gelu_new","n_inner":null)";
  all.push_back(gpt2);

  TinyFamily gpt2_erf = gpt2;
  gpt2_erf.name = "gpt-2, bare names, error function";
  gpt2_erf.gguf.clear();
  gpt2_erf.activation = "gelu";
  gpt2_erf.prefix.clear();
  gpt2_erf.config = R"("activation_function":"gelu")";
  all.push_back(gpt2_erf);

  TinyFamily olmo2 = like_llama("olmo 2", "Olmo2ForCausalLM", "olmo2");
  olmo2.blocks = 2;
  olmo2.tied = false;
  olmo2.norm_before = false;
  olmo2.norm_after = olmo2.whole_norms = true;
  olmo2.rope.theta = 5e5;
  olmo2.config = R"("rope_theta":500000,"attention_bias":false)";
  olmo2.gguf_numbers = {{"rope.freq_base", 5e5}};
  all.push_back(olmo2);

  TinyFamily phi3 = like_llama("phi 3 mini", "Phi3ForCausalLM", "phi3");
  phi3.kv_heads = phi3.heads;
  phi3.tied = false;
  phi3.fused_query = phi3.fused_gate = true;
  phi3.windows = {21, 21, 21};
  phi3.config = R"("sliding_window":21,"original_max_position_embeddings":128,"rope_scaling":null)";
  phi3.gguf_integers = {{"attention.sliding_window", 21}};
  all.push_back(phi3);

  TinyFamily phi4 = phi3;
  phi4.name = "phi 4 mini";
  phi4.kv_heads = 2;
  phi4.tied = true;
  phi4.windows.clear();
  phi4.rotary = 12;  // Three quarters of a head.
  phi4.rope.kind = "longrope";
  phi4.rope.original = 48;
  phi4.rope.factor = 128.0 / 48;
  phi4.rope.short_factors = {1, 1.5, 1, 1.25, 2, 1};
  phi4.rope.long_factors = {1, 2, 8, 16, 24, 32.5};
  phi4.config =
      R"("partial_rotary_factor":0.75,"original_max_position_embeddings":48,"sliding_window":null,)"
      R"("rope_scaling":{"type":"longrope","short_factor":[1,1.5,1,1.25,2,1],)"
      R"("long_factor":[1,2,8,16,24,32.5]})";
  phi4.gguf_integers = {{"rope.dimension_count", 12},
                        {"rope.scaling.original_context_length", 48},
                        {"attention.sliding_window", 0}};  // None: so its files say.
  phi4.gguf_numbers = {
      {"rope.scaling.attn_factor", std::sqrt(1 + std::log(128.0 / 48) / std::log(48.0))}};
  all.push_back(phi4);

  TinyFamily gemma2 = like_llama("gemma 2", "Gemma2ForCausalLM", "gemma2");
  gemma2.blocks = 4;
  gemma2.head_dim = gemma2.rotary = 32;
  gemma2.norm_after = gemma2.less_one = true;
  gemma2.activation = "gelu_tanh";
  gemma2.windows = {10, 0, 10, 0};
  gemma2.attention_cap = 5;  // Low, so that it bends what tiny models make.
  gemma2.final_cap = 3;
  gemma2.embedding_scale = std::sqrt(64.0);
  gemma2.config =
      R"("hidden_activation":"gelu_pytorch_tanh","hidden_act":"gelu_pytorch_tanh","sliding_window":10,)"
      R"("attn_logit_softcapping":5.0,"final_logit_softcapping":3.0,"query_pre_attn_scalar":32)";
  gemma2.gguf_numbers = {{"attn_logit_softcapping", 5}, {"final_logit_softcapping", 3}};
  gemma2.gguf_integers = {{"attention.sliding_window", 10}};
  all.push_back(gemma2);

  TinyFamily gemma3 = like_llama("gemma 3", "Gemma3ForCausalLM", "gemma3");
  gemma3.blocks = 7;
  gemma3.head_dim = gemma3.rotary = 32;
  gemma3.norm_after = gemma3.less_one = gemma3.head_norms = true;
  gemma3.activation = "gelu_tanh";
  gemma3.windows = {10, 10, 10, 10, 10, 0, 10};
  gemma3.ropes = {2, 2, 2, 2, 2, 1, 2};
  gemma3.rope = {.kind = "linear", .theta = 1e6, .factor = 8};
  gemma3.local_rope.theta = 1e4;
  gemma3.embedding_scale = std::sqrt(64.0);
  gemma3.config =
      R"("hidden_activation":"gelu_pytorch_tanh","sliding_window":10,"sliding_window_pattern":6,)"
      R"("rope_theta":1000000.0,"rope_local_base_freq":10000.0,"query_pre_attn_scalar":32,)"
      R"("rope_scaling":{"rope_type":"linear","factor":8.0},"attn_logit_softcapping":null)";
  gemma3.gguf_numbers = {{"rope.freq_base", 1e6}, {"rope.scaling.factor", 8}};
  gemma3.gguf_integers = {{"attention.sliding_window", 10}};
  gemma3.gguf_scaling = "linear";
  all.push_back(gemma3);

  TinyFamily gemma3_27b = gemma3;
  gemma3_27b.name = "gemma 3, scalar, bfloat16, newer config";
  gemma3_27b.gguf.clear();
  gemma3_27b.width = 72;
  gemma3_27b.embedding_scale = 8.5;  // sqrt(72) = 8.485 in bfloat16.
  gemma3_27b.attention_scale = 1 / std::sqrt(18.0);
  gemma3_27b.config =
      R"("hidden_activation":"gelu_pytorch_tanh","sliding_window":10,"dtype":"bfloat16",)"
      R"("query_pre_attn_scalar":18,"layer_types":["sliding_attention","sliding_attention",)"
      R"("sliding_attention","sliding_attention","sliding_attention","full_attention",)"
      R"("sliding_attention"],"rope_parameters":{"full_attention":{"rope_type":"linear",)"
      R"("factor":8.0,"rope_theta":1000000.0},"sliding_attention":{"rope_type":"default",)"
      R"("rope_theta":10000.0}})";
  all.push_back(gemma3_27b);

  TinyFamily mixtral = like_llama("mixtral", "MixtralForCausalLM", "llama");
  mixtral.tied = false;
  mixtral.pairs = true;
  mixtral.experts = 4;
  mixtral.experts_used = 2;
  mixtral.rope.theta = 1e6;
  mixtral.config =
      R"("rope_theta":1000000.0,"num_local_experts":4,"num_experts_per_tok":2,"sliding_window":null)";
  mixtral.gguf_numbers = {{"rope.freq_base", 1e6}};
  mixtral.gguf_integers = {{"expert_count", 4}, {"expert_used_count", 2}};
  all.push_back(mixtral);

  TinyFamily moe = qwen3;
  moe.name = "qwen 3 moe";
  moe.hugging_face_class = "Qwen3MoeForCausalLM";
  moe.gguf = "qwen3moe";
  moe.tied = false;
  moe.experts = 8;
  moe.experts_used = 3;
  moe.inner = 32;
  moe.config =
      R"("rope_theta":1000000.0,"num_experts":8,"num_experts_per_tok":3,"moe_intermediate_size":32,)"
      R"("norm_topk_prob":true,"decoder_sparse_step":1,"mlp_only_layers":[])";
  moe.gguf_integers = {
      {"expert_count", 8}, {"expert_used_count", 3}, {"expert_feed_forward_length", 32}};
  all.push_back(moe);

  TinyFamily moe_plain = moe;
  moe_plain.name = "qwen 3 moe, weights as they are";
  moe_plain.gguf.clear();
  moe_plain.renormalise = false;
  moe_plain.config =
      R"("rope_theta":1000000.0,"num_experts":8,"num_experts_per_tok":3,"moe_intermediate_size":32)";
  all.push_back(moe_plain);
  return all;
}

TinyWeights tiny_weights(const TinyFamily& f, uint64_t seed) {
  TinyWeights weights;
  Random random(seed);
  const auto add = [&](const std::string& role, int64_t count, double spread, double middle = 0) {
    std::vector<float>& values = weights[role];
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(middle + (random.uniform() * 2 - 1) * spread));
  };
  const auto norm = [&](const std::string& role, int64_t count) {
    add(role, count, 0.3, 1);
    if (f.less_one) {  // What a file's f32 less 1 stands for.
      for (float& w : weights[role]) w = (w - 1.0f) + 1.0f;
    }
    if (f.layer_norm) add(role + "_bias", count, 0.2);
  };
  const int64_t q = f.heads * f.head_dim, kv = f.kv_heads * f.head_dim;
  add("embedding", f.vocabulary * f.width, 0.5);
  if (f.learned_positions) add("positions", f.context * f.width, 0.3);
  for (int64_t b = 0; b < f.blocks; ++b) {
    const auto role = [b](const char* name) { return at_block(name, b); };
    const auto matrix = [&](const char* name, int64_t rows, int64_t columns, bool biased) {
      add(role(name), rows * columns, 1.5 / std::sqrt(static_cast<double>(columns)));
      if (biased) add(role(name) + "_bias", rows, 0.2);
    };
    if (f.norm_before) norm(role("norm1"), f.width);
    matrix("q", q, f.width, f.query_bias);
    matrix("k", kv, f.width, f.query_bias);
    matrix("v", kv, f.width, f.query_bias);
    if (f.head_norms || f.whole_norms) {
      SHOAL_CHECK(!f.layer_norm);
      norm(role("q_norm"), f.head_norms ? f.head_dim : q);
      norm(role("k_norm"), f.head_norms ? f.head_dim : kv);
    }
    matrix("o", f.width, q, f.output_bias);
    if (f.norm_after) norm(role("post1"), f.width);
    if (f.norm_before) norm(role("norm2"), f.width);
    const int64_t experts = std::max<int64_t>(f.experts, 1);
    if (f.experts > 0) matrix("router", f.experts, f.width, false);
    if (f.gated) matrix("gate", experts * f.inner, f.width, f.ffn_bias);
    matrix("up", experts * f.inner, f.width, f.ffn_bias);
    matrix("down", experts * f.width, f.inner, f.ffn_bias);
    if (f.norm_after) norm(role("post2"), f.width);
  }
  norm("final", f.width);
  if (!f.tied) add("head", f.vocabulary * f.width, 0.3);
  return weights;
}

TinyFamily in_blocks_of_256(TinyFamily f) {
  const bool grouped = f.kv_heads < f.heads;
  if (f.embedding_scale != 1) f.embedding_scale = 16;
  f.inner = f.inner == 4 * f.width ? 1024 : 256;
  f.width = 256;
  while (f.heads * f.head_dim % 256 != 0) f.heads *= 2;
  if (!grouped) f.kv_heads = f.heads;
  if (f.gguf_integers.count("expert_feed_forward_length") != 0)
    f.gguf_integers["expert_feed_forward_length"] = f.inner;
  return f;
}

namespace {

// Rounded towards zero. REQUIRES: 0 <= value < 2.
uint16_t half_bits(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 1/2 .. 1
  if (exponent <= -14) return static_cast<uint16_t>(std::ldexp(value, 24));
  return static_cast<uint16_t>(((exponent + 14) << 10) + static_cast<int>(fraction * 2048) - 1024);
}

// A block of random integers whose numbers are about -spread .. spread.
void random_block(DType type, double spread, Random& random, ByteWriter& out) {
  const auto bytes = [&](int count) {
    for (int i = 0; i < count; ++i) out.u8(static_cast<uint8_t>(random.next_u64()));
  };
  const auto half = [&](double value) { out.u16(half_bits(value * (0.5 + random.uniform() / 2))); };
  const uint16_t sign = 0x8000;
  switch (type) {
    case DType::kQ8_0: half(spread / 127), bytes(32); break;
    case DType::kQ4_0: half(spread / 8), bytes(16); break;
    case DType::kQ5_0: half(spread / 16), bytes(20); break;
    case DType::kQ4_1:
      half(spread / 7.5), out.u16(half_bits(spread * 0.75) | sign), bytes(16);
      break;
    case DType::kQ5_1:
      half(spread / 15.5), out.u16(half_bits(spread * 0.75) | sign), bytes(20);
      break;
    case DType::kQ4_K: half(spread / 7.5 / 63), half(spread / 63), bytes(12 + 128); break;
    case DType::kQ5_K: half(spread / 15.5 / 63), half(spread / 63), bytes(12 + 32 + 128); break;
    case DType::kQ6_K: bytes(128 + 64 + 16), half(spread / 32 / 128); break;
    default: SHOAL_UNREACHABLE();
  }
}

}  // namespace

TinyWeights tiny_weights(const TinyFamily& f, uint64_t seed, DType type, TinyRows& rows) {
  TinyWeights weights = tiny_weights(f, seed);
  Random random(seed + 1);
  rows.type.clear();
  for (const char letter : dtype_name(type))
    rows.type.push_back(letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 32) : letter);
  for (auto& [role, values] : weights) {
    static const std::string_view kMatrices[] = {"q", "k", "v", "o", "gate", "up", "down"};
    const std::string kind = role.substr(0, role.find('.'));
    const bool ends = role == "embedding" || role == "head";
    const bool biases = role.ends_with("_bias");
    if (kind.starts_with("post") && f.norm_before) {  // Small, as trained ones are.
      for (float& value : values) value /= 2;
    }
    if (!ends && (biases || std::ranges::find(kMatrices, kind) == std::end(kMatrices))) continue;
    // Where no norm comes between, its few numbers would lie in the very middle of the steps that
    // activations are rounded to.
    if (role == "embedding" && !f.norm_before) continue;
    const auto columns = static_cast<size_t>(kind == "o"      ? f.heads * f.head_dim
                                             : kind == "down" ? f.inner
                                                              : f.width);
    SHOAL_CHECK(columns % block_elements(type) == 0);
    const double spread = ends ? 0.4 : 1 / std::sqrt(static_cast<double>(columns));
    for (size_t at = 0; at < values.size(); at += columns) {
      ByteWriter writer;
      for (size_t i = 0; i < columns; i += block_elements(type))
        random_block(type, spread, random, writer);
      ByteVector bytes = writer.take();
      const auto numbers = weight_values(type, bytes, static_cast<int64_t>(columns));
      std::vector<float> row(numbers.begin(), numbers.end());
      std::copy(row.begin(), row.end(), values.begin() + static_cast<std::ptrdiff_t>(at));
      rows.bytes.emplace(std::move(row), std::move(bytes));
    }
  }
  return weights;
}

// --- files ---

namespace {

ByteVector bytes_of(const std::vector<float>& values) {
  ByteWriter writer;
  for (const float value : values) writer.f32(value);
  return writer.take();
}

std::vector<float> transposed(const std::vector<float>& in, int64_t rows, int64_t columns) {
  std::vector<float> out(in.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      out[static_cast<size_t>(c * rows + r)] = in[static_cast<size_t>(r * columns + c)];
  }
  return out;
}

// Rows of q or k so that what turned with the pair half a head away stands beside it.
std::vector<float> paired(const std::vector<float>& in, int64_t heads, int64_t head_dim,
                          int64_t columns) {
  std::vector<float> out(in.size());
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < head_dim; ++i) {
      const int64_t from = h * head_dim + (i % 2) * (head_dim / 2) + i / 2;
      std::copy_n(in.begin() + from * columns, columns, out.begin() + (h * head_dim + i) * columns);
    }
  }
  return out;
}

std::vector<float> joined(std::initializer_list<const std::vector<float>*> parts) {
  std::vector<float> all;
  for (const auto* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

struct Writer {
  const TinyRows* rows = nullptr;
  std::vector<TensorToWrite> tensors;
  void put(const std::string& name, Shape shape, const std::vector<float>& values) {
    int64_t count = 1;
    for (const int64_t d : shape) count *= d;
    SHOAL_CHECK(count == static_cast<int64_t>(values.size()));
    const std::ptrdiff_t columns = shape.back();
    const auto row = [&](std::ptrdiff_t at) {
      return rows->bytes.find({values.begin() + at, values.begin() + at + columns});
    };
    if (rows == nullptr || shape.size() == 1 || row(0) == rows->bytes.end()) {
      tensors.push_back({name, "F32", std::move(shape), bytes_of(values)});
      return;
    }
    ByteWriter writer;
    for (std::ptrdiff_t at = 0; at < count; at += columns) writer.bytes(row(at)->second);
    tensors.push_back({name, rows->type, std::move(shape), writer.take()});
  }
};

std::string bias_name(std::string name) { return name.replace(name.rfind("weight"), 6, "bias"); }

}  // namespace

void write_folder(const std::filesystem::path& folder, const TinyFamily& f,
                  const TinyWeights& weights) {
  Writer out;
  const bool gpt2 = f.transposed;
  const bool gemma = f.norm_after && f.norm_before;
  const auto name = [&](const std::string& text) { return f.prefix + text; };
  const auto norm = [&](const std::string& file_name, const std::string& role) {
    std::vector<float> values = weights.at(role);
    if (f.less_one) {
      for (float& value : values) value -= 1.0f;
    }
    const auto length = static_cast<int64_t>(values.size());
    out.put(name(file_name), {length}, values);
    if (f.layer_norm) out.put(name(bias_name(file_name)), {length}, weights.at(role + "_bias"));
  };
  const auto matrix = [&](const std::string& file_name, int64_t rows, int64_t columns,
                          const std::vector<float>& values) {
    if (gpt2) {
      out.put(name(file_name), {columns, rows}, transposed(values, rows, columns));
    } else {
      out.put(name(file_name), {rows, columns}, values);
    }
  };
  const int64_t q = f.heads * f.head_dim, kv = f.kv_heads * f.head_dim;
  out.put(name(gpt2 ? "wte.weight" : "model.embed_tokens.weight"), {f.vocabulary, f.width},
          weights.at("embedding"));
  if (f.learned_positions)
    out.put(name("wpe.weight"), {f.context, f.width}, weights.at("positions"));
  for (int64_t b = 0; b < f.blocks; ++b) {
    const std::string base =
        gpt2 ? "h." + std::to_string(b) + "." : "model.layers." + std::to_string(b) + ".";
    const auto w = [&](const char* role) -> const std::vector<float>& {
      return weights.at(at_block(role, b));
    };
    const auto biased = [&](const std::string& file_name, const std::vector<float>& values) {
      out.put(name(bias_name(file_name)), {static_cast<int64_t>(values.size())}, values);
    };
    if (f.norm_before)
      norm(base + (gpt2 ? "ln_1.weight" : "input_layernorm.weight"), at_block("norm1", b));
    if (f.fused_query) {
      const std::string fused = base + (gpt2 ? "attn.c_attn.weight" : "self_attn.qkv_proj.weight");
      matrix(fused, q + 2 * kv, f.width, joined({&w("q"), &w("k"), &w("v")}));
      if (f.query_bias) {
        biased(fused, joined({&weights.at(at_block("q", b) + "_bias"),
                              &weights.at(at_block("k", b) + "_bias"),
                              &weights.at(at_block("v", b) + "_bias")}));
      }
    } else {
      for (const char* part : {"q", "k", "v"}) {
        const std::string own = base + "self_attn." + part + "_proj.weight";
        matrix(own, part[0] == 'q' ? q : kv, f.width, w(part));
        if (f.query_bias) biased(own, weights.at(at_block(part, b) + "_bias"));
      }
    }
    if (f.head_norms || f.whole_norms) {
      norm(base + "self_attn.q_norm.weight", at_block("q_norm", b));
      norm(base + "self_attn.k_norm.weight", at_block("k_norm", b));
    }
    const std::string o = base + (gpt2 ? "attn.c_proj.weight" : "self_attn.o_proj.weight");
    matrix(o, f.width, q, w("o"));
    if (f.output_bias) biased(o, weights.at(at_block("o", b) + "_bias"));
    if (f.norm_after) norm(base + "post_attention_layernorm.weight", at_block("post1", b));
    if (f.norm_before) {
      norm(base + (gpt2    ? "ln_2.weight"
                   : gemma ? "pre_feedforward_layernorm.weight"
                           : "post_attention_layernorm.weight"),
           at_block("norm2", b));
    }
    if (f.experts > 0) {
      const bool mixtral = f.hugging_face_class == "MixtralForCausalLM";
      const std::string moe = base + (mixtral ? "block_sparse_moe." : "mlp.");
      matrix(moe + "gate.weight", f.experts, f.width, w("router"));
      for (int64_t e = 0; e < f.experts; ++e) {
        const auto expert = [&](const char* role, const char* one, const char* other, int64_t rows,
                                int64_t columns) {
          const auto begin = w(role).begin() + e * rows * columns;
          matrix(moe + "experts." + std::to_string(e) + "." + (mixtral ? one : other) + ".weight",
                 rows, columns, std::vector<float>(begin, begin + rows * columns));
        };
        expert("gate", "w1", "gate_proj", f.inner, f.width);
        expert("down", "w2", "down_proj", f.width, f.inner);
        expert("up", "w3", "up_proj", f.inner, f.width);
      }
    } else if (f.fused_gate) {
      matrix(base + "mlp.gate_up_proj.weight", 2 * f.inner, f.width,
             joined({&w("gate"), &w("up")}));
      matrix(base + "mlp.down_proj.weight", f.width, f.inner, w("down"));
    } else {
      const std::string up = base + (gpt2 ? "mlp.c_fc.weight" : "mlp.up_proj.weight");
      const std::string down = base + (gpt2 ? "mlp.c_proj.weight" : "mlp.down_proj.weight");
      if (f.gated) matrix(base + "mlp.gate_proj.weight", f.inner, f.width, w("gate"));
      matrix(up, f.inner, f.width, w("up"));
      matrix(down, f.width, f.inner, w("down"));
      if (f.ffn_bias) {
        biased(up, weights.at(at_block("up", b) + "_bias"));
        biased(down, weights.at(at_block("down", b) + "_bias"));
      }
    }
    if (f.norm_after) norm(base + "post_feedforward_layernorm.weight", at_block("post2", b));
    if (gpt2) {  // The mask that its files hold.
      out.put(name(base + "attn.bias"), {1, 1, 2, 2}, {1, 0, 1, 1});
    }
  }
  norm(gpt2 ? "ln_f.weight" : "model.norm.weight", "final");
  if (!f.tied) out.put("lm_head.weight", {f.vocabulary, f.width}, weights.at("head"));

  std::filesystem::create_directories(folder);
  const auto n = [](int64_t value) { return std::to_string(value); };
  std::string config = "{\"architectures\":[\"" + f.hugging_face_class + "\"],";
  if (gpt2) {
    config += "\"n_embd\":" + n(f.width) + ",\"n_layer\":" + n(f.blocks) +
              ",\"n_head\":" + n(f.heads) + ",\"n_positions\":" + n(f.context) +
              ",\"layer_norm_epsilon\":1e-5";
  } else {
    config += "\"hidden_size\":" + n(f.width) + ",\"intermediate_size\":" + n(f.inner) +
              ",\"num_hidden_layers\":" + n(f.blocks) + ",\"num_attention_heads\":" + n(f.heads) +
              ",\"num_key_value_heads\":" + n(f.kv_heads) + ",\"head_dim\":" + n(f.head_dim) +
              ",\"max_position_embeddings\":" + n(f.context) +
              ",\"rms_norm_eps\":" + (f.epsilon == 1e-6 ? "1e-6" : "1e-5") +
              ",\"tie_word_embeddings\":" + (f.tied ? "true" : "false");
  }
  config += ",\"vocab_size\":" + n(f.vocabulary) + (f.config.empty() ? "" : "," + f.config) + "}";
  std::ofstream(folder / "config.json") << config;
  const ByteVector bytes = safetensors_bytes(out.tensors);
  std::ofstream(folder / "model.safetensors", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

namespace {

// As GGUF names them.
double frequency(const TinyRope& rope, int64_t rotary, int64_t pair, bool far) {
  const double plain =
      std::pow(rope.theta, -2.0 * static_cast<double>(pair) / static_cast<double>(rotary));
  const double n = static_cast<double>(rotary), pi2 = 2 * std::numbers::pi;
  if (rope.kind == "linear") return plain / rope.factor;
  if (rope.kind == "llama3") {
    const double wavelength = pi2 / plain;
    if (wavelength < rope.original / rope.high) return plain;
    if (wavelength > rope.original / rope.low) return plain / rope.factor;
    const double smooth = (rope.original / wavelength - rope.low) / (rope.high - rope.low);
    return (1 - smooth) * plain / rope.factor + smooth * plain;
  }
  if (rope.kind == "yarn") {
    const auto dim = [&](double beta) {
      return n * std::log(rope.original / (beta * pi2)) / (2 * std::log(rope.theta));
    };
    const double low = std::max(std::floor(dim(32)), 0.0);
    const double high = std::min(std::ceil(dim(1)), n - 1);
    const double ramp =
        std::clamp((static_cast<double>(pair) - low) / std::max(high - low, 0.001), 0.0, 1.0);
    return plain / rope.factor * ramp + plain * (1 - ramp);
  }
  if (rope.kind == "longrope") {
    const auto& factors = far ? rope.long_factors : rope.short_factors;
    return plain / factors[static_cast<size_t>(pair)];
  }
  return plain;
}

double magnitude(const TinyRope& rope) {
  if (rope.kind == "yarn") return 1 + 0.1 * std::log(rope.factor);
  if (rope.kind == "longrope")
    return std::sqrt(1 + std::log(rope.factor) / std::log(rope.original));
  return 1;
}

}  // namespace

GgufMaker gguf_of(const TinyFamily& f, const TinyWeights& weights, const TinyRows* rows) {
  GgufMaker maker;
  const std::string arch = f.gguf + ".";
  const auto number = [&](const std::string& key, int64_t value) {
    if (f.gguf_integers.count(key) == 0) maker.u32(arch + key, static_cast<uint32_t>(value));
  };
  maker.text("general.architecture", f.gguf);
  number("context_length", f.context);
  number("embedding_length", f.width);
  number("block_count", f.blocks);
  number("feed_forward_length", f.inner);
  number("attention.head_count", f.heads);
  maker.f32(
      arch + (f.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
      static_cast<float>(f.epsilon));
  if (!f.layer_norm) {
    number("attention.head_count_kv", f.kv_heads);
    number("attention.key_length", f.head_dim);
    number("attention.value_length", f.head_dim);
    number("rope.dimension_count", f.rotary);
  }
  for (const auto& [key, value] : f.gguf_integers)
    maker.u32(arch + key, static_cast<uint32_t>(value));
  for (const auto& [key, value] : f.gguf_numbers) maker.f32(arch + key, static_cast<float>(value));
  if (!f.gguf_scaling.empty()) maker.text(arch + "rope.scaling.type", f.gguf_scaling);

  Writer out{.rows = rows};
  const int64_t q = f.heads * f.head_dim, kv = f.kv_heads * f.head_dim;
  const auto norm = [&](const std::string& name, const std::string& role) {
    const auto length = static_cast<int64_t>(weights.at(role).size());
    out.put(name + ".weight", {length}, weights.at(role));
    if (f.layer_norm) out.put(name + ".bias", {length}, weights.at(role + "_bias"));
  };
  const auto matrix = [&](const std::string& name, int64_t rows, int64_t columns,
                          const std::vector<float>& values) {
    out.put(name + ".weight", {rows, columns}, values);
  };
  matrix("token_embd", f.vocabulary, f.width, weights.at("embedding"));
  if (f.learned_positions) matrix("position_embd", f.context, f.width, weights.at("positions"));
  const auto divisors = [&](const std::string& name, bool far) {
    std::vector<float> values;
    for (int64_t pair = 0; pair < f.rotary / 2; ++pair) {
      TinyRope plain = f.rope;
      plain.kind = "none";
      values.push_back(static_cast<float>(frequency(plain, f.rotary, pair, far) /
                                          frequency(f.rope, f.rotary, pair, far)));
    }
    out.put(name, {f.rotary / 2}, values);
  };
  if (f.rope.kind == "llama3") divisors("rope_freqs.weight", false);
  if (f.rope.kind == "longrope") {
    divisors("rope_factors_short.weight", false);
    divisors("rope_factors_long.weight", true);
  }
  for (int64_t b = 0; b < f.blocks; ++b) {
    const std::string base = "blk." + std::to_string(b) + ".";
    const auto w = [&](const std::string& role) -> const std::vector<float>& {
      return weights.at(at_block(role, b));
    };
    const auto bias = [&](const std::string& name, const std::vector<float>& values) {
      out.put(base + name + ".bias", {static_cast<int64_t>(values.size())}, values);
    };
    const auto own_bias = [&](const std::string& role) -> const std::vector<float>& {
      return weights.at(at_block(role, b) + "_bias");
    };
    if (f.norm_before) norm(base + "attn_norm", at_block("norm1", b));
    const std::vector<float> q_rows =
        f.pairs ? paired(w("q"), f.heads, f.head_dim, f.width) : w("q");
    const std::vector<float> k_rows =
        f.pairs ? paired(w("k"), f.kv_heads, f.head_dim, f.width) : w("k");
    if (f.fused_query) {
      matrix(base + "attn_qkv", q + 2 * kv, f.width, joined({&q_rows, &k_rows, &w("v")}));
      if (f.query_bias) bias("attn_qkv", joined({&own_bias("q"), &own_bias("k"), &own_bias("v")}));
    } else {
      matrix(base + "attn_q", q, f.width, q_rows);
      matrix(base + "attn_k", kv, f.width, k_rows);
      matrix(base + "attn_v", kv, f.width, w("v"));
      if (f.query_bias) {
        for (const char* part : {"q", "k", "v"}) bias(std::string("attn_") + part, own_bias(part));
      }
    }
    if (f.head_norms || f.whole_norms) {
      norm(base + "attn_q_norm", at_block("q_norm", b));
      norm(base + "attn_k_norm", at_block("k_norm", b));
    }
    matrix(base + "attn_output", f.width, q, w("o"));
    if (f.output_bias) bias("attn_output", own_bias("o"));
    if (f.norm_after) norm(base + "post_attention_norm", at_block("post1", b));
    if (f.norm_before) norm(base + "ffn_norm", at_block("norm2", b));
    if (f.experts > 0) {
      matrix(base + "ffn_gate_inp", f.experts, f.width, w("router"));
      out.put(base + "ffn_gate_exps.weight", {f.experts, f.inner, f.width}, w("gate"));
      out.put(base + "ffn_up_exps.weight", {f.experts, f.inner, f.width}, w("up"));
      out.put(base + "ffn_down_exps.weight", {f.experts, f.width, f.inner}, w("down"));
    } else if (f.fused_gate) {
      matrix(base + "ffn_up", 2 * f.inner, f.width, joined({&w("gate"), &w("up")}));
      matrix(base + "ffn_down", f.width, f.inner, w("down"));
    } else {
      if (f.gated) matrix(base + "ffn_gate", f.inner, f.width, w("gate"));
      matrix(base + "ffn_up", f.inner, f.width, w("up"));
      matrix(base + "ffn_down", f.width, f.inner, w("down"));
      if (f.ffn_bias) {
        bias("ffn_up", own_bias("up"));
        bias("ffn_down", own_bias("down"));
      }
    }
    if (f.norm_after) norm(base + "post_ffw_norm", at_block("post2", b));
  }
  norm("output_norm", "final");
  if (!f.tied) matrix("output", f.vocabulary, f.width, weights.at("head"));
  for (TensorToWrite& tensor : out.tensors) maker.tensor(std::move(tensor));
  return maker;
}

// --- float64 ---

namespace {

using Vector = std::vector<double>;

Vector times(const std::vector<float>& matrix, size_t rows, const Vector& x, size_t first_row = 0) {
  Vector y(rows);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < x.size(); ++c)
      y[r] += static_cast<double>(matrix[(first_row + r) * x.size() + c]) * x[c];
  }
  return y;
}

void add_to(Vector& x, const Vector& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// In blocks of 32, to 255 steps of the largest.
Vector in_steps(Vector x) {
  for (size_t at = 0; at < x.size(); at += 32) {
    double largest = 0;
    for (size_t i = at; i < at + 32; ++i) largest = std::max(largest, std::fabs(x[i]));
    const double step = largest / 127;
    for (size_t i = at; i < at + 32 && step > 0; ++i) x[i] = std::nearbyint(x[i] / step) * step;
  }
  return x;
}

Vector in_halves(Vector x) {
  for (double& value : x) {
    int exponent = 0;
    std::frexp(value, &exponent);
    const double step = std::ldexp(1, std::max(exponent - 11, -24));
    value = std::nearbyint(value / step) * step;
  }
  return x;
}

class Float64Family {
 public:
  Float64Family(const TinyFamily& family, const TinyWeights& weights, int64_t context,
                Rounding rounding)
      : f_(family),
        w_(weights),
        far_(static_cast<double>(context) > family.rope.original),
        rounded_(rounding == Rounding::kAsQuantised) {
    keys_.resize(static_cast<size_t>(f_.blocks));
    values_.resize(static_cast<size_t>(f_.blocks));
  }

  // Adds the experts that the token goes to.
  Vector step(int32_t token, std::vector<int64_t>& experts_used) {
    experts_used_ = &experts_used;
    Vector x = row("embedding", token);
    for (double& value : x) value *= f_.embedding_scale;
    if (f_.learned_positions) add_to(x, row("positions", position_));
    for (int64_t b = 0; b < f_.blocks; ++b) {
      Vector mixed = attention(f_.norm_before ? norm(x, at_block("norm1", b)) : x, b);
      if (f_.norm_after) mixed = norm(mixed, at_block("post1", b));
      add_to(x, mixed);
      const Vector in = f_.norm_before ? norm(x, at_block("norm2", b)) : x;
      Vector made = f_.experts > 0 ? experts(in, b) : feed_forward(in, b, 0);
      if (f_.norm_after) made = norm(made, at_block("post2", b));
      add_to(x, made);
    }
    ++position_;
    Vector logits = project(norm(x, "final"), f_.tied ? "embedding" : "head", f_.vocabulary, false);
    if (f_.final_cap != 0) {
      for (double& logit : logits) logit = f_.final_cap * std::tanh(logit / f_.final_cap);
    }
    return logits;
  }

 private:
  Vector row(const std::string& role, int64_t index) const {
    const auto begin = w_.at(role).begin() + index * f_.width;
    return Vector(begin, begin + f_.width);
  }

  Vector norm(const Vector& x, const std::string& role) const {
    const std::vector<float>& weight = w_.at(role);
    double mean = 0, squares = 0;
    if (f_.layer_norm) {
      for (const double value : x) mean += value / static_cast<double>(x.size());
    }
    for (const double value : x) squares += (value - mean) * (value - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + f_.epsilon);
    Vector y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = (x[i] - mean) * scale * static_cast<double>(weight[i]);
      if (f_.layer_norm) y[i] += static_cast<double>(w_.at(role + "_bias")[i]);
    }
    return y;
  }

  Vector project(const Vector& x, const std::string& role, int64_t rows, bool biased,
                 int64_t first = 0) const {
    const bool rounded = rounded_ && !role.starts_with("router");
    Vector y = times(w_.at(role), static_cast<size_t>(rows), rounded ? in_steps(x) : x,
                     static_cast<size_t>(first));
    if (biased) {
      for (size_t i = 0; i < y.size(); ++i) y[i] += static_cast<double>(w_.at(role + "_bias")[i]);
    }
    return y;
  }

  // Of each head alone, or of the whole row.
  Vector qk_norm(const Vector& x, const std::string& role) const {
    if (!f_.head_norms && !f_.whole_norms) return x;
    if (f_.whole_norms) return norm(x, role);
    Vector y;
    for (size_t at = 0; at < x.size(); at += static_cast<size_t>(f_.head_dim)) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(at);
      const Vector head = norm(Vector(begin, begin + f_.head_dim), role);
      y.insert(y.end(), head.begin(), head.end());
    }
    return y;
  }

  void turn(Vector& x, const TinyRope& rope) const {
    for (size_t head = 0; head < x.size(); head += static_cast<size_t>(f_.head_dim)) {
      for (int64_t pair = 0; pair < f_.rotary / 2; ++pair) {
        const double angle =
            static_cast<double>(position_) * frequency(rope, f_.rotary, pair, far_);
        double& a = x[head + static_cast<size_t>(pair)];
        double& b = x[head + static_cast<size_t>(pair + f_.rotary / 2)];
        const double c = std::cos(angle) * magnitude(rope), s = std::sin(angle) * magnitude(rope);
        const double turned = a * c - b * s;
        b = b * c + a * s;
        a = turned;
      }
    }
  }

  Vector attention(const Vector& x, int64_t b) {
    const auto at = static_cast<size_t>(b);
    const auto dim = static_cast<size_t>(f_.head_dim);
    Vector q = project(x, at_block("q", b), f_.heads * f_.head_dim, f_.query_bias);
    Vector k = project(x, at_block("k", b), f_.kv_heads * f_.head_dim, f_.query_bias);
    q = qk_norm(q, at_block("q_norm", b));
    k = qk_norm(k, at_block("k_norm", b));
    const int rope = f_.ropes.empty() ? 1 : f_.ropes[at];
    if (rope != 0) {
      turn(q, rope == 1 ? f_.rope : f_.local_rope);
      turn(k, rope == 1 ? f_.rope : f_.local_rope);
    }
    Vector v = project(x, at_block("v", b), f_.kv_heads * f_.head_dim, f_.query_bias);
    keys_[at].push_back(rounded_ ? in_halves(k) : k);
    values_[at].push_back(rounded_ ? in_halves(v) : v);
    const int window = f_.windows.empty() ? 0 : f_.windows[at];
    const size_t count = keys_[at].size();
    const size_t from = window == 0 || count <= static_cast<size_t>(window)
                            ? 0
                            : count - static_cast<size_t>(window);
    const double scale = f_.attention_scale != 0 ? f_.attention_scale
                                                 : 1 / std::sqrt(static_cast<double>(f_.head_dim));
    Vector attended(q.size());
    for (size_t h = 0; h < static_cast<size_t>(f_.heads); ++h) {
      const size_t shared = h / static_cast<size_t>(f_.heads / f_.kv_heads) * dim;
      Vector scores;
      double sum = 0;
      for (size_t p = from; p < count; ++p) {
        double score = 0;
        for (size_t i = 0; i < dim; ++i) score += q[h * dim + i] * keys_[at][p][shared + i];
        score *= scale;
        if (f_.attention_cap != 0) score = f_.attention_cap * std::tanh(score / f_.attention_cap);
        scores.push_back(std::exp(score));
        sum += scores.back();
      }
      for (size_t p = from; p < count; ++p) {
        for (size_t i = 0; i < dim; ++i)
          attended[h * dim + i] += scores[p - from] / sum * values_[at][p][shared + i];
      }
    }
    return project(attended, at_block("o", b), f_.width, f_.output_bias);
  }

  double activated(double x) const {
    if (f_.activation == "silu") return x / (1 + std::exp(-x));
    if (f_.activation == "gelu") return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }

  Vector feed_forward(const Vector& x, int64_t b, int64_t expert) const {
    Vector inner = project(x, at_block("up", b), f_.inner, f_.ffn_bias, expert * f_.inner);
    if (f_.gated) {
      const Vector gate = project(x, at_block("gate", b), f_.inner, f_.ffn_bias, expert * f_.inner);
      for (size_t i = 0; i < inner.size(); ++i) inner[i] *= activated(gate[i]);
    } else {
      for (double& value : inner) value = activated(value);
    }
    return project(inner, at_block("down", b), f_.width, f_.ffn_bias, expert * f_.width);
  }

  Vector experts(const Vector& x, int64_t b) {
    Vector shares = project(x, at_block("router", b), f_.experts, false);
    double all = 0;
    for (double& share : shares) all += share = std::exp(share);
    std::vector<int64_t> order;
    for (int64_t e = 0; e < f_.experts; ++e) order.push_back(e);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t c) {
      return shares[static_cast<size_t>(a)] > shares[static_cast<size_t>(c)];
    });
    order.resize(static_cast<size_t>(f_.experts_used));
    experts_used_->insert(experts_used_->end(), order.begin(), order.end());
    double used = 0;
    for (const int64_t e : order) used += shares[static_cast<size_t>(e)];
    Vector y(x.size());
    for (const int64_t e : order) {
      const Vector part = feed_forward(x, b, e);
      const double share = shares[static_cast<size_t>(e)] / (f_.renormalise ? used : all);
      for (size_t i = 0; i < y.size(); ++i) y[i] += share * part[i];
    }
    return y;
  }

  const TinyFamily& f_;
  const TinyWeights& w_;
  const bool far_, rounded_;
  std::vector<int64_t>* experts_used_ = nullptr;
  int64_t position_ = 0;
  std::vector<std::vector<Vector>> keys_, values_;
};

}  // namespace

Float64Rows float64_rows(const TinyFamily& family, const TinyWeights& weights,
                         const std::vector<int32_t>& tokens, int64_t context, Rounding rounding) {
  Float64Family model(family, weights, context, rounding);
  Float64Rows rows;
  for (const int32_t token : tokens) {
    rows.experts.emplace_back();
    rows.logits.push_back(model.step(token, rows.experts.back()));
  }
  return rows;
}

}  // namespace shoal::compute
