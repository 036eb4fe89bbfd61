#pragma once
// What a kernel is given, and how an op finds its kernels: a row of a table for each op and
// variant, whose enqueue() chooses kernels and the shape of their launches. The .cu files of this
// folder are compiled by nvcc into the plug-in, and by any compiler against the shim (simt.h).

#include <cstring>

#include "compute/backends/cuda/simt.h"
#include "shaders/exact_math.h"
#include "shaders/op_params.h"

namespace shoal::compute::cuda {

// The words of shaders/exact_math.h, as shaders have them.
using exact::exact_bfloat16_to_float;
using exact::exact_exp;
using exact::exact_factor;
using exact::exact_float_to_half;
using exact::exact_flush;
using exact::exact_gelu_erf;
using exact::exact_gelu_tanh;
using exact::exact_half_to_float;
using exact::exact_is_finite;
using exact::exact_quant_inverse;
using exact::exact_quant_scale;
using exact::exact_quant_value;
using exact::exact_reciprocal;
using exact::exact_rsqrt;
using exact::exact_silu;
using exact::exact_soft_cap;
using exact::floatBitsToUint;

// Buffers in the order of shaders/op_params.h. Handed to a kernel by value.
struct Call {
  std::byte* buffers[6] = {};
  uint* status = nullptr;  // The lowest index of a call that made a NaN or an infinity.
  std::byte* scratch = nullptr;
  uint64_t scratch_bytes = 0;
  uint params[16] = {};
  uint index = 0;

  template <class T>
  SHOAL_HOST_DEVICE T* at(int buffer) const {
    return reinterpret_cast<T*>(buffers[buffer]);
  }
  template <class Params>
  SHOAL_HOST_DEVICE Params as() const {
    static_assert(sizeof(Params) <= sizeof params);
    Params result;
    std::memcpy(&result, params, sizeof result);
    return result;
  }
};

SHOAL_DEVICE void report_non_finite(const Call& call) { atomicMin(call.status, call.index); }

using Kernel = void (*)(Call);

// Runs kernels one after another; each sees what those before it wrote.
class Launcher {
 public:
  virtual void run(Kernel kernel, uint blocks_x, uint blocks_y, uint threads, const Call& call) = 0;

 protected:
  ~Launcher() = default;
};

struct KernelEntry {
  const char* op = nullptr;       // As op_name() says it,
  const char* variant = nullptr;  // and dtype_name().
  void (*enqueue)(Launcher& launcher, const Call& call) = nullptr;
};

struct KernelList {
  const KernelEntry* entries = nullptr;
  size_t count = 0;
};
// One for each file of kernels.
KernelList elementwise_kernels();
KernelList norm_kernels();
KernelList product_kernels();
KernelList expert_kernels();
KernelList attention_kernels();
constexpr KernelList (*kKernelLists[])() = {elementwise_kernels, norm_kernels, product_kernels,
                                            expert_kernels, attention_kernels};

// An entry for each type of weights of a template over DType.
#define SHOAL_FOR_WEIGHT_TYPES(op, enqueue)                                     \
  {op, "f32", enqueue<DType::kF32>}, {op, "f16", enqueue<DType::kF16>},         \
      {op, "bf16", enqueue<DType::kBF16>}, {op, "q8_0", enqueue<DType::kQ8_0>}, \
      {op, "q4_0", enqueue<DType::kQ4_0>}, {op, "q4_1", enqueue<DType::kQ4_1>}, \
      {op, "q5_0", enqueue<DType::kQ5_0>}, {op, "q5_1", enqueue<DType::kQ5_1>}, \
      {op, "q4_k", enqueue<DType::kQ4_K>}, {op, "q5_k", enqueue<DType::kQ5_K>}, \
      {op, "q6_k", enqueue<DType::kQ6_K>},

SHOAL_HOST_DEVICE constexpr uint divide_up(uint a, uint b) { return (a + b - 1) / b; }

}  // namespace shoal::compute::cuda
