#include "compute/graph/tensor.h"

#include <string>

#include "base/check.h"

namespace shoal::compute {

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "f32";
    case DType::kF16: return "f16";
    case DType::kBF16: return "bf16";
    case DType::kQ8_0: return "q8_0";
    case DType::kQ4_0: return "q4_0";
    case DType::kI32: return "i32";
    case DType::kQ8Rows: return "q8_rows";
    case DType::kQ4_1: return "q4_1";
    case DType::kQ5_0: return "q5_0";
    case DType::kQ5_1: return "q5_1";
    case DType::kQ4_K: return "q4_k";
    case DType::kQ5_K: return "q5_k";
    case DType::kQ6_K: return "q6_k";
  }
  return "unknown";
}

bool is_weight_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         is_quantised_weight(dtype);
}

bool is_quantised_weight(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
    case DType::kQ6_K: return true;
    default: return false;
  }
}

int64_t block_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 4;
    case DType::kF16: return 2;
    case DType::kBF16: return 2;
    case DType::kQ8_0: return 34;
    case DType::kQ4_0: return 18;
    case DType::kI32: return 4;
    case DType::kQ8Rows: return 36;
    case DType::kQ4_1: return 20;
    case DType::kQ5_0: return 22;
    case DType::kQ5_1: return 24;
    case DType::kQ4_K: return 144;
    case DType::kQ5_K: return 176;
    case DType::kQ6_K: return 210;
  }
  SHOAL_UNREACHABLE();
}

uint32_t block_elements(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ8Rows: return 32;
    case DType::kQ4_K:
    case DType::kQ5_K:
    case DType::kQ6_K: return 256;
    default: return 1;
  }
}

Shape bind(const Shape& shape, const Dims& dims) {
  Shape bound = shape;
  for (int64_t& dim : bound) {
    if (dim == kRows)
      dim = dims.rows;
    else if (dim == kOutputs)
      dim = dims.outputs;
    else if (dim == kContext)
      dim = dims.context;
    else if (dim == kSequences)
      dim = dims.sequences;
  }
  return bound;
}

Result<int64_t> byte_size(DType dtype, const Shape& shape) {
  if (shape.empty()) return Error{ErrorCode::kCorrupt, "a shape has no dimensions"};
  const int64_t block = block_elements(dtype);
  if (shape.back() % block != 0) {
    return Error{ErrorCode::kCorrupt, "last dimension " + std::to_string(shape.back()) +
                                          " is no multiple of " + std::to_string(block) +
                                          ", the block of " + std::string(dtype_name(dtype))};
  }
  // The factors are positive, so that dividing the bound by each in turn never lets a product pass
  // it.
  int64_t left = (int64_t{1} << 62) / block_bytes(dtype);
  int64_t blocks = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] <= 0) {
      return Error{ErrorCode::kCorrupt,
                   "dimension " + std::to_string(i) + " is " + std::to_string(shape[i])};
    }
    const int64_t factor = i + 1 == shape.size() ? shape[i] / block : shape[i];
    if (factor > left) return Error{ErrorCode::kCorrupt, "a shape's size passes 2^62 bytes"};
    left /= factor;
    blocks *= factor;
  }
  return blocks * block_bytes(dtype);
}

}  // namespace shoal::compute
