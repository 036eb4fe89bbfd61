#pragma once
// The CPU plane's kernels: each op as pieces that may run in any order on any thread, in the exact
// order of sums that the op's reference follows. Tables for what processors have: the same bits.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compute/graph/graph.h"
#include "shaders/exact_math.h"
#include "shaders/op_params.h"

namespace shoal::compute {

struct KernelCall {
  DType variant = DType::kF32;
  std::array<std::byte, 64> params{};
  std::array<std::byte*, 5> buffers{};  // In the order of shaders/op_params.h.

  template <class Params>
  Params as() const {
    Params params_block;
    std::memcpy(&params_block, params.data(), sizeof(Params));
    return params_block;
  }
  const float* floats(size_t i) const { return reinterpret_cast<const float*>(buffers[i]); }
  float* floats_out(size_t i) const { return reinterpret_cast<float*>(buffers[i]); }
};

// Where a row is in its sequence, and where a position of that sequence is in the caches. Of the
// buffer that op_params.h calls row_info.
static inline int64_t position_of(const std::byte* row_info, int64_t row) {
  uint32_t position;
  std::memcpy(&position, row_info + row * 8 + 4, 4);
  return position;
}
static inline int64_t place_of(const std::byte* row_info, int64_t row, int64_t position) {
  uint32_t pages, page;
  std::memcpy(&pages, row_info + row * 8, 4);
  std::memcpy(&page, row_info + (pages + position / SHOAL_ATTENTION_CHUNK) * 4, 4);
  return int64_t{page} * SHOAL_ATTENTION_CHUNK + position % SHOAL_ATTENTION_CHUNK;
}

struct Work {
  int64_t pieces = 0;
  int64_t piece_cost = 0;  // About how many cycles, to decide whether sharing pays.
};

struct Kernel {
  Work (*work)(const KernelCall& call);
  // Runs pieces first .. last-1. False when an element was not finite.
  bool (*run)(const KernelCall& call, int64_t first, int64_t last);
};

// Memory that a kernel needs while it runs; not zeroed, null when it is none.
class Scratch {
 public:
  explicit Scratch(int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }

 private:
  void* data_;
};

using KernelTable = std::array<Kernel, kOpKinds>;

const KernelTable& portable_kernels();
// Null where the machine or the build has no such instructions.
const KernelTable* avx2_kernels();
const KernelTable* avxvnni_kernels();  // Whose quantised products are faster; else as AVX2's.
const KernelTable* avx512_kernels();   // Faster still.

}  // namespace shoal::compute
