#pragma once
// What a weight file holds, whatever its format: named tensors with their type, shape and bytes.
// The readers (safetensors.h, gguf.h) fill it from hostile bytes; nothing here owns memory.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/graph/tensor.h"

namespace shoal::compute {

struct StoredTensor {
  std::string type;            // The file's own word: "BF16", "Q4_K".
  std::optional<DType> dtype;  // Empty for a type that no op takes.
  Shape shape;                 // Row-major, contiguous dimension last.
  ByteSpan bytes;              // As long as type and shape say: the reader has checked it.
};

using WeightTable = std::map<std::string, StoredTensor, std::less<>>;

// For messages: printable ASCII stays, other bytes become \xNN, long texts end in "...".
std::string printable(std::string_view text);

std::string shape_text(const Shape& shape);  // "[64, 172]"

// Bytes of `shape` in blocks of `block_elements` along the last dimension. Fails when a product
// overflows or the last dimension is no multiple of a block.
Result<uint64_t> stored_size(const Shape& shape, uint64_t block_elements, uint64_t block_bytes);

// A vector (norm weights) as f32, from f32, f16 or bf16. Fails for other types.
Result<ByteVector> to_f32(const StoredTensor& tensor);

}  // namespace shoal::compute
