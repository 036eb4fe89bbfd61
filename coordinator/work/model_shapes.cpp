#include "coordinator/work/model_shapes.h"

#include <string>

#include "coordinator/work/hardware.h"

namespace shoal {
namespace {

constexpr const char* kGptPaper = "Brown et al. 2020 (arXiv 2005.14165), table 2.1 [R]";

constexpr ModelShape kShapes[] = {
    {"Bert-Large", ModelFamily::kBert, 24, 1024, 16, 16, 64, 4096, 30522, 512, true, false,
     "Devlin et al. 2018 (arXiv 1810.04805) [R]; docs/SOURCES.md 1 has width and sequence"},
    {"GPT3-Medium", ModelFamily::kGpt, 24, 1024, 16, 16, 64, 4096, 50257, 2048, true, false,
     kGptPaper},
    {"GPT3-Large", ModelFamily::kGpt, 24, 1536, 16, 16, 96, 6144, 50257, 2048, true, false,
     kGptPaper},
    {"GPT3-24L", ModelFamily::kGpt, 24, 2048, 16, 16, 128, 8192, 50257, 2048, true, false,
     "GPT-3 XL, the widest row with 24 layers in Brown et al. 2020, table 2.1 [R] (which prints 24 "
     "heads of 128 for it; 16 of them fill its width). FusionAI names no width: other readings are "
     "GPT3-Medium, GPT3-Large and GPT3-24L-Wide"},
    {"GPT3-24L-Wide", ModelFamily::kGpt, 24, 12288, 96, 96, 128, 49152, 50257, 2048, true, false,
     "24 of the 96 layers of GPT-3 175B: the other reading of FusionAI's 24-layer GPT-3 [D]"},
    {"GPT3-175B", ModelFamily::kGpt, 96, 12288, 96, 96, 128, 49152, 50257, 2048, true, false,
     "Brown et al. 2020 (arXiv 2005.14165), table 2.1 [R]; docs/SOURCES.md 1 has width and "
     "sequence"},
    {"Llama2-7B", ModelFamily::kLlama, 32, 4096, 32, 32, 128, 11008, 32000, 4096, false, false,
     "config.json of meta-llama/Llama-2-7b-hf [R]"},
    {"Llama2-13B", ModelFamily::kLlama, 40, 5120, 40, 40, 128, 13824, 32000, 4096, false, false,
     "config.json of meta-llama/Llama-2-13b-hf [R]"},
    {"Llama2-70B", ModelFamily::kLlama, 80, 8192, 64, 8, 128, 28672, 32000, 4096, false, false,
     "config.json of meta-llama/Llama-2-70b-hf [R]"},
    {"Llama3-8B", ModelFamily::kLlama, 32, 4096, 32, 8, 128, 14336, 128256, 8192, false, false,
     "config.json of meta-llama/Meta-Llama-3-8B [R]"},
    {"Llama3-70B", ModelFamily::kLlama, 80, 8192, 64, 8, 128, 28672, 128256, 8192, false, false,
     "config.json of meta-llama/Meta-Llama-3-70B [R]"},
    {"TinyLlama-1.1B", ModelFamily::kLlama, 22, 2048, 32, 4, 64, 5632, 32000, 2048, false, false,
     "config.json of TinyLlama/TinyLlama-1.1B-Chat-v1.0 [R]"},
    {"Qwen3-0.6B", ModelFamily::kLlama, 28, 1024, 16, 8, 128, 3072, 151936, 40960, true, true,
     "config.json of Qwen/Qwen3-0.6B [R]"},
    {"Qwen3-8B", ModelFamily::kLlama, 36, 4096, 32, 8, 128, 12288, 151936, 40960, false, true,
     "config.json of Qwen/Qwen3-8B [R]"},
};

bool is_gated(const ModelShape& shape) { return shape.family == ModelFamily::kLlama; }
bool has_biases(const ModelShape& shape) { return shape.family != ModelFamily::kLlama; }
int64_t query_width(const ModelShape& shape) { return shape.heads * shape.head_size; }
int64_t key_width(const ModelShape& shape) { return shape.kv_heads * shape.head_size; }
// A norm has a scale, and with biases a shift.
int64_t norm_parameters(const ModelShape& shape) {
  return shape.width * (has_biases(shape) ? 2 : 1);
}

int64_t block_matrices(const ModelShape& shape) {
  return shape.width * (2 * query_width(shape) + 2 * key_width(shape) +
                        (is_gated(shape) ? 3 : 2) * shape.ffn_width);
}

}  // namespace

std::span<const ModelShape> all_model_shapes() { return kShapes; }

Result<const ModelShape*> find_model_shape(std::string_view name) {
  const std::string wanted = plain_name(name);
  std::string known;
  for (const ModelShape& shape : kShapes) {
    if (plain_name(shape.name) == wanted) return &shape;
    known += (known.empty() ? "" : ", ") + std::string(shape.name);
  }
  return Error{ErrorCode::kNotFound,
               "no model is known as \"" + std::string(name) + "\"; known are " + known};
}

int64_t block_parameters(const ModelShape& shape) {
  const int64_t biases = has_biases(shape) ? query_width(shape) + 2 * key_width(shape) +
                                                 shape.width + shape.ffn_width + shape.width
                                           : 0;
  const int64_t head_norms = shape.qk_norm ? 2 * shape.head_size : 0;
  return block_matrices(shape) + biases + 2 * norm_parameters(shape) + head_norms;
}

int64_t embedding_parameters(const ModelShape& shape) {
  const int64_t words = shape.vocabulary * shape.width;
  switch (shape.family) {
    case ModelFamily::kBert:  // Positions, two kinds of segments, a norm.
      return words + (shape.sequence + 2) * shape.width + norm_parameters(shape);
    case ModelFamily::kGpt: return words + shape.sequence * shape.width;
    case ModelFamily::kLlama: return words;
  }
  SHOAL_UNREACHABLE();
}

int64_t head_parameters(const ModelShape& shape) {
  if (shape.family == ModelFamily::kBert) return shape.width * shape.width + shape.width;
  return norm_parameters(shape) + (shape.tied_head ? 0 : shape.vocabulary * shape.width);
}

int64_t parameters(const ModelShape& shape) {
  return embedding_parameters(shape) + shape.layers * block_parameters(shape) +
         head_parameters(shape);
}

double block_flops(const ModelShape& shape, double positions) {
  return 2.0 * static_cast<double>(block_matrices(shape)) +
         4.0 * static_cast<double>(query_width(shape)) * positions;
}

double head_flops(const ModelShape& shape) {
  return 2.0 * static_cast<double>(shape.vocabulary * shape.width);
}

double mean_positions(const ModelShape& shape, int64_t sequence) {
  const auto all = static_cast<double>(sequence);
  return shape.family == ModelFamily::kBert ? all : (all + 1) / 2;
}

double forward_flops(const ModelShape& shape, int64_t sequence) {
  return static_cast<double>(shape.layers) * block_flops(shape, mean_positions(shape, sequence)) +
         head_flops(shape);
}

double backward_flops(const ModelShape& shape, int64_t sequence) {
  return 2 * forward_flops(shape, sequence);
}

double forward_flops_by_rule(const ModelShape& shape) {
  return 2.0 * static_cast<double>(parameters(shape));
}

double boundary_bytes(const ModelShape& shape, double bytes_per_value) {
  return static_cast<double>(shape.width) * bytes_per_value;
}

double cache_bytes(const ModelShape& shape) {
  return 2.0 * static_cast<double>(key_width(shape)) * kHalfBytes;
}

}  // namespace shoal
