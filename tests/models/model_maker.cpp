#include "tests/models/model_maker.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "base/check.h"

namespace shoal::compute {
namespace {

const std::map<std::string, uint32_t>& gguf_types() {
  static const std::map<std::string, uint32_t> kTypes = {
      {"F32", 0},  {"F16", 1},   {"Q4_0", 2},  {"Q4_1", 3},  {"Q5_0", 6}, {"Q5_1", 7},
      {"Q8_0", 8}, {"Q4_K", 12}, {"Q5_K", 13}, {"Q6_K", 14}, {"I32", 26}, {"BF16", 30}};
  return kTypes;
}

void put_text(ByteWriter& writer, std::string_view text) {
  writer.u64(text.size());
  writer.text(text);
}

std::string shape_json(const Shape& shape) {
  std::string text = "[";
  for (const int64_t d : shape) text += (text.size() > 1 ? "," : "") + std::to_string(d);
  return text + "]";
}

void write_file(const std::filesystem::path& path, ByteSpan bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  SHOAL_CHECK(out.good());
}

// The weights of a model, `name` giving the file's own names.
std::vector<TensorToWrite> tiny_tensors(const TinyModel& m,
                                        const std::map<std::string, std::string>& names) {
  Random random(m.seed);
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& role, int64_t block, const std::string& type,
                       Shape shape) {
    std::string name = names.at(role);
    if (const size_t at = name.find("{}"); at != std::string::npos)
      name.replace(at, 2, std::to_string(block));
    tensors.push_back({name, type, shape, random_tensor(type, shape, m.spread, random)});
  };
  add("embedding", 0, m.type, {m.vocabulary, m.width});
  for (int64_t i = 0; i < m.blocks; ++i) {
    add("attention_norm", i, "F32", {m.width});
    add("query", i, m.type, {m.heads * m.head_dim, m.width});
    add("key", i, m.type, {m.kv_heads * m.head_dim, m.width});
    add("value", i, m.type, {m.kv_heads * m.head_dim, m.width});
    add("output", i, m.type, {m.width, m.heads * m.head_dim});
    add("ffn_norm", i, "F32", {m.width});
    add("gate", i, m.type, {m.intermediate, m.width});
    add("up", i, m.type, {m.intermediate, m.width});
    add("down", i, m.down_type.empty() ? m.type : m.down_type, {m.width, m.intermediate});
  }
  add("norm", 0, "F32", {m.width});
  if (!m.tied) add("head", 0, m.type, {m.vocabulary, m.width});
  return tensors;
}

}  // namespace

void GgufMaker::begin(std::string_view key, uint32_t type) {
  put_text(keys_, key);
  keys_.u32(type);
  ++keys_written_;
}
void GgufMaker::u32(std::string_view key, uint32_t value) {
  begin(key, 4);
  keys_.u32(value);
}
void GgufMaker::f32(std::string_view key, float value) {
  begin(key, 6);
  keys_.f32(value);
}
void GgufMaker::boolean(std::string_view key, bool value) {
  begin(key, 7);
  keys_.u8(value ? 1 : 0);
}
void GgufMaker::text(std::string_view key, std::string_view value) {
  begin(key, 8);
  put_text(keys_, value);
}
void GgufMaker::texts(std::string_view key, const std::vector<std::string>& values) {
  begin(key, 9);
  keys_.u32(8);
  keys_.u64(values.size());
  for (const std::string& value : values) put_text(keys_, value);
}
void GgufMaker::f32s(std::string_view key, const std::vector<float>& values) {
  begin(key, 9);
  keys_.u32(6);
  keys_.u64(values.size());
  for (const float value : values) keys_.f32(value);
}
void GgufMaker::i32s(std::string_view key, const std::vector<int32_t>& values) {
  begin(key, 9);
  keys_.u32(5);
  keys_.u64(values.size());
  for (const int32_t value : values) keys_.u32(static_cast<uint32_t>(value));
}
void GgufMaker::raw(std::string_view key, uint32_t type, ByteSpan value) {
  begin(key, type);
  keys_.bytes(value);
}

ByteVector GgufMaker::bytes() const {
  ByteWriter writer;
  writer.text("GGUF");
  writer.u32(version.value_or(3));
  writer.u64(tensor_count.value_or(tensors_.size()));
  writer.u64(key_count.value_or(keys_written_));
  writer.bytes(keys_.view());
  uint64_t offset = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorToWrite& tensor = tensors_[i];
    put_text(writer, tensor.name);
    writer.u32(static_cast<uint32_t>(tensor.shape.size()));
    for (auto d = tensor.shape.rbegin(); d != tensor.shape.rend(); ++d)
      writer.u64(static_cast<uint64_t>(*d));
    writer.u32(gguf_types().at(tensor.type));
    writer.u64(offset + (i == 1 ? offset_error : 0));
    offset += (tensor.bytes.size() + 31) / 32 * 32;
  }
  for (const TensorToWrite& tensor : tensors_) {
    while (writer.size() % 32 != 0) writer.u8(0);
    writer.bytes(tensor.bytes);
  }
  return writer.take();
}

ByteVector safetensors_of_header(std::string_view header, size_t data_bytes) {
  ByteWriter writer;
  writer.u64(header.size());
  writer.text(header);
  writer.bytes(ByteVector(data_bytes));
  return writer.take();
}

ByteVector safetensors_bytes(const std::vector<TensorToWrite>& tensors, std::string_view metadata) {
  std::string header = "{";
  if (!metadata.empty()) header += "\"__metadata__\":" + std::string(metadata);
  size_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    if (header.size() > 1) header += ",";
    header += "\"" + tensor.name + "\":{\"dtype\":\"" + tensor.type +
              "\",\"shape\":" + shape_json(tensor.shape) + ",\"data_offsets\":[" +
              std::to_string(offset) + "," + std::to_string(offset + tensor.bytes.size()) + "]}";
    offset += tensor.bytes.size();
  }
  header += "}";
  ByteWriter writer;
  writer.u64(header.size());
  writer.text(header);
  for (const TensorToWrite& tensor : tensors) writer.bytes(tensor.bytes);
  return writer.take();
}

ByteVector random_tensor(const std::string& type, const Shape& shape, float scale, Random& random) {
  int64_t count = 1;
  for (const int64_t d : shape) count *= d;
  const auto uniform = [&] { return static_cast<float>(random.uniform() * 2.0 - 1.0) * scale; };
  ByteWriter writer;
  if (type == "F32") {
    // Norms stay near one, as trained ones do.
    for (int64_t i = 0; i < count; ++i)
      writer.f32(shape.size() == 1 ? 1.0f + uniform() : uniform());
  } else if (type == "BF16") {
    for (int64_t i = 0; i < count; ++i) {
      writer.u16(static_cast<uint16_t>(std::bit_cast<uint32_t>(uniform()) >> 16));
    }
  } else if (type == "F16") {
    // A sign, an exponent from 2^-4 to 2^-2, any fraction.
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = random.next_u64();
      writer.u16(static_cast<uint16_t>(((bits & 1) << 15) | ((11 + ((bits >> 1) % 3)) << 10) |
                                       ((bits >> 8) & 1023)));
    }
  } else {
    SHOAL_CHECK(type == "Q8_0" || type == "Q4_0");
    const int bytes = type == "Q8_0" ? 32 : 16;
    for (int64_t i = 0; i < count / 32; ++i) {
      // Scales of about scale / 127 (2^-9) or scale / 8 (2^-5).
      const int exponent = type == "Q8_0" ? 15 - 9 : 15 - 5;
      writer.u16(static_cast<uint16_t>((exponent << 10) | (random.next_u64() & 1023)));
      for (int j = 0; j < bytes; ++j) writer.u8(static_cast<uint8_t>(random.next_u64()));
    }
  }
  return writer.take();
}

void add_byte_tokenizer(GgufMaker& maker, int64_t vocabulary) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};
  std::vector<float> scores = {0, 0, 0};
  for (int i = 0; i < 256; ++i) {
    static constexpr char kDigits[] = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + kDigits[i >> 4] + kDigits[i & 15] + ">");
    types.push_back(6);
    scores.push_back(0);
  }
  while (static_cast<int64_t>(tokens.size()) < vocabulary) {
    tokens.push_back("word" + std::to_string(tokens.size()));
    types.push_back(1);
    scores.push_back(-static_cast<float>(tokens.size()));
  }
  maker.text("tokenizer.ggml.model", "llama");
  maker.texts("tokenizer.ggml.tokens", tokens);
  maker.f32s("tokenizer.ggml.scores", scores);
  maker.i32s("tokenizer.ggml.token_type", types);
  maker.u32("tokenizer.ggml.bos_token_id", 1);
  maker.u32("tokenizer.ggml.eos_token_id", 2);
  maker.boolean("tokenizer.ggml.add_bos_token", true);
}

GgufMaker tiny_gguf(const TinyModel& m) {
  static const std::map<std::string, std::string> kNames = {
      {"embedding", "token_embd.weight"},     {"attention_norm", "blk.{}.attn_norm.weight"},
      {"query", "blk.{}.attn_q.weight"},      {"key", "blk.{}.attn_k.weight"},
      {"value", "blk.{}.attn_v.weight"},      {"output", "blk.{}.attn_output.weight"},
      {"ffn_norm", "blk.{}.ffn_norm.weight"}, {"gate", "blk.{}.ffn_gate.weight"},
      {"up", "blk.{}.ffn_up.weight"},         {"down", "blk.{}.ffn_down.weight"},
      {"norm", "output_norm.weight"},         {"head", "output.weight"}};
  GgufMaker maker;
  const auto number = [&](const char* key, int64_t value) {
    maker.u32(key, static_cast<uint32_t>(value));
  };
  maker.text("general.architecture", "llama");
  number("llama.context_length", m.context);
  number("llama.embedding_length", m.width);
  number("llama.block_count", m.blocks);
  number("llama.feed_forward_length", m.intermediate);
  number("llama.attention.head_count", m.heads);
  number("llama.attention.head_count_kv", m.kv_heads);
  number("llama.attention.key_length", m.head_dim);
  number("llama.attention.value_length", m.head_dim);
  maker.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  if (m.tokenizer && m.vocabulary >= 259) {
    add_byte_tokenizer(maker, m.vocabulary);
  }
  for (TensorToWrite& tensor : tiny_tensors(m, kNames)) maker.tensor(std::move(tensor));
  return maker;
}

void write_tiny_folder(const std::filesystem::path& folder, const TinyModel& m,
                       const std::string& config_extra) {
  static const std::map<std::string, std::string> kNames = {
      {"embedding", "model.embed_tokens.weight"},
      {"attention_norm", "model.layers.{}.input_layernorm.weight"},
      {"query", "model.layers.{}.self_attn.q_proj.weight"},
      {"key", "model.layers.{}.self_attn.k_proj.weight"},
      {"value", "model.layers.{}.self_attn.v_proj.weight"},
      {"output", "model.layers.{}.self_attn.o_proj.weight"},
      {"ffn_norm", "model.layers.{}.post_attention_layernorm.weight"},
      {"gate", "model.layers.{}.mlp.gate_proj.weight"},
      {"up", "model.layers.{}.mlp.up_proj.weight"},
      {"down", "model.layers.{}.mlp.down_proj.weight"},
      {"norm", "model.norm.weight"},
      {"head", "lm_head.weight"}};
  std::filesystem::create_directories(folder);
  const auto n = [](int64_t value) { return std::to_string(value); };
  const std::string config =
      "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":" + n(m.width) +
      ",\"intermediate_size\":" + n(m.intermediate) + ",\"num_hidden_layers\":" + n(m.blocks) +
      ",\"num_attention_heads\":" + n(m.heads) + ",\"num_key_value_heads\":" + n(m.kv_heads) +
      ",\"head_dim\":" + n(m.head_dim) + ",\"vocab_size\":" + n(m.vocabulary) +
      ",\"max_position_embeddings\":" + n(m.context) +
      ",\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":" + (m.tied ? "true" : "false") +
      (config_extra.empty() ? "" : "," + config_extra) + "}";
  write_file(folder / "config.json", as_bytes(config));
  write_file(folder / "model.safetensors", safetensors_bytes(tiny_tensors(m, kNames)));
}

}  // namespace shoal::compute
