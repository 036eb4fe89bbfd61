#pragma once
// The words that kernels are written in: CUDA's own under nvcc, and under any other compiler the
// same words as plain C++, run by simt_shim.h. So every kernel is one text, and its logic is tested
// where no card is.
//
// Kernels use threadIdx.x, blockIdx, blockDim.x, __syncthreads(), __syncwarp(), __shfl_sync(),
// __shfl_xor_sync(), __dp4a(), atomicMin(), and what this file adds: SHOAL_SHARED and the int8
// product of a warp. Blocks have a multiple of 32 threads, in one dimension; all 32 lanes of a warp
// take part in whatever a warp does together.

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__

#define SHOAL_DEVICE __device__ __forceinline__
#define SHOAL_HOST_DEVICE __host__ __device__ __forceinline__
// An array of the block. Only its elements are named, one by one: in the shim they watch who does.
#define SHOAL_SHARED(type, name, count) __shared__ type name[count]
#define SHOAL_UNROLL _Pragma("unroll")

#else

#include "compute/backends/cuda/simt_shim.h"

#define SHOAL_DEVICE inline
#define SHOAL_HOST_DEVICE inline
#define SHOAL_UNROLL

#endif

namespace shoal::compute::cuda {

using uint = uint32_t;
constexpr uint kWarp = 32;
constexpr uint kAllLanes = 0xFFFFFFFFu;

// 16 bytes in one load. REQUIRES: `from` is a multiple of 16.
struct alignas(16) FourWords {
  uint at[4];
};
SHOAL_DEVICE FourWords load_four_words(const void* from) {
  return *static_cast<const FourWords*>(from);
}

SHOAL_DEVICE int dot_bytes(uint a, uint b, int sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}

// c += a * b for a warp: a is 16 x 16 and b 16 x 8 of int8, c 16 x 8 of int32. With g = lane / 4
// and t = lane % 4, a lane holds a[g][4t .. 4t + 3] in a0, a[g + 8][4t ..] in a1, b[4t ..][g] in
// b0, and c[g][2t], c[g][2t + 1], c[g + 8][2t], c[g + 8][2t + 1].
SHOAL_DEVICE void warp_product(int (&c)[4], uint a0, uint a1, uint b0) {
#ifndef __CUDACC__
  simt::warp_product(c, a0, a1, b0);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a0), "r"(a1), "r"(b0));
#else
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a0), "r"(b0));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+r"(c[2]), "+r"(c[3])
      : "r"(a1), "r"(b0));
#endif
}

}  // namespace shoal::compute::cuda
