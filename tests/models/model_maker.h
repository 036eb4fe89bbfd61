#pragma once
// Makes model files for tests: any key, any tensor, right or wrong, and whole tiny models with
// random weights. Nothing here reads.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "compute/graph/tensor.h"

namespace shoal::compute {

struct TensorToWrite {
  std::string name;
  std::string type;  // As the format spells it: "F32", "Q8_0".
  Shape shape;       // Contiguous dimension last.
  ByteVector bytes;
};

class GgufMaker {
 public:
  void u32(std::string_view key, uint32_t value);
  void f32(std::string_view key, float value);
  void boolean(std::string_view key, bool value);
  void text(std::string_view key, std::string_view value);
  void texts(std::string_view key, const std::vector<std::string>& values);
  void f32s(std::string_view key, const std::vector<float>& values);
  void i32s(std::string_view key, const std::vector<int32_t>& values);
  // `type` and what follows it, as given.
  void raw(std::string_view key, uint32_t type, ByteSpan value);
  void tensor(TensorToWrite tensor) { tensors_.push_back(std::move(tensor)); }

  // What a file is to claim instead of the truth.
  std::optional<uint64_t> tensor_count, key_count;
  std::optional<uint32_t> version;
  uint64_t offset_error = 0;  // Added to the second tensor's offset.

  ByteVector bytes() const;

 private:
  void begin(std::string_view key, uint32_t type);

  ByteWriter keys_;
  uint64_t keys_written_ = 0;
  std::vector<TensorToWrite> tensors_;
};

ByteVector safetensors_bytes(const std::vector<TensorToWrite>& tensors,
                             std::string_view metadata = {});
ByteVector safetensors_of_header(std::string_view header, size_t data_bytes);

struct TinyModel {
  int64_t width = 64, intermediate = 96, blocks = 2, heads = 4, kv_heads = 2, head_dim = 16;
  int64_t vocabulary = 96, context = 128;
  bool tied = true;
  float spread = 0.3f;       // Of the weights, about 0 or, for norms, 1.
  std::string type = "F32";  // Of the matrices.
  std::string down_type;     // Of "down" alone; empty: as the others.
  uint64_t seed = 1;
  bool tokenizer = true;  // Byte tokens, so vocabulary must be at least 259.
};

ByteVector random_tensor(const std::string& type, const Shape& shape, float scale, Random& random);

// A tokenizer of bytes and, up to the vocabulary, words. REQUIRES: vocabulary >= 259.
void add_byte_tokenizer(GgufMaker& maker, int64_t vocabulary);

GgufMaker tiny_gguf(const TinyModel& model);

// A Hugging Face folder without a tokenizer; `config` members are written over the config's.
void write_tiny_folder(const std::filesystem::path& folder, const TinyModel& model,
                       const std::string& config_extra = {});

}  // namespace shoal::compute
