#pragma once
// Rounds a model's 16- and 32-bit matrices to quantised types when it is opened, and keeps account
// of what that costs.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "compute/graph/tensor.h"

namespace shoal::compute {

// q4_k_m: q4_k, and q6_k for the head, the embedding, and values and down-projections of the blocks
// where errors cost most.
enum class QuantMode : uint8_t { kNone, kQ8_0, kQ4_0, kQ4_K_M };

// "q8_0", "q4_0", "q4_k_m"; kInvalid for anything else.
Result<QuantMode> quant_mode(std::string_view name);

// The type for a matrix of `columns` columns, or none where it stays as it is: routers and learned
// positions, which are small; and rows that no block divides, where q8_0 does not either.
std::optional<DType> quant_type(QuantMode mode, std::string_view role, int64_t block,
                                int64_t blocks, int64_t columns);

// Whole rows of numbers as a q8_0, q4_0, q4_k or q6_k tensor. Rounds to nearest, and for the k
// types looks for the scales that make the squared error small. REQUIRES: the count is a multiple
// of the type's block; every number is finite.
ByteVector quantise(DType type, std::span<const float> values);

// Squared lengths of a tensor and of what quantising it changed.
struct QuantError {
  double squares = 0, errors = 0;
};

// The same of an f32, f16 or bf16 tensor, a piece at a time, adding to `error`. kUnsupported where
// a number is not finite.
Result<ByteVector> quantise_tensor(DType from, ByteSpan bytes, DType to, QuantError& error);

// What quantising cost, by role: the error's length over the weights' own.
class QuantCost {
 public:
  void add(const std::string& role, const std::string& tensor, DType type, const QuantError& error);

  struct Line {
    std::string role, types;    // "down", "q4_k, q6_k"
    double relative_error = 0;  // Over all tensors of the role.
    double worst = 0;           // Of one tensor,
    std::string worst_tensor;   // and its name.
  };
  std::vector<Line> lines() const;

 private:
  struct Sums {
    double squares = 0, errors = 0, worst = 0;
    std::string types, worst_tensor;
  };
  std::map<std::string, Sums> roles_;
};

}  // namespace shoal::compute
