#pragma once
// Runs CUDA kernels as plain C++ on one thread, to test their logic where no card is: it is strict
// and slow. Blocks run one after another; the threads of a block are fibers, which are chosen at
// random (from a seed) wherever one may have to wait. Faults are found and named, not only likely
// to show:
// - shared memory that two threads touch with no barrier between, one of them writing (also when
// the
//   values would come out right), or that is read before it was written, or beyond its end;
// - threads that wait for others which ended or wait elsewhere.
// Races in global memory show when the order of threads changes a result: run with several seeds.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "base/result.h"

namespace shoal::compute::cuda::simt {

struct Index {
  uint32_t x = 0, y = 0, z = 0;
};

// The thread that is running. REQUIRES: one is.
const Index& thread_index();
const Index& block_index();
const Index& block_size();
const Index& grid_size();

// Runs `thread` once for each thread of each block, of which there are x * y. kInvalid names the
// first fault.
Result<void> run_grid(Index blocks, uint32_t threads, uint64_t seed,
                      const std::function<void()>& thread);

void block_barrier(int line);
void warp_barrier(int line);
uint32_t shuffle(uint32_t value, uint32_t from_lane, int line);
void warp_product(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b0);

// An array of the block; `key` tells it from others.
struct Shared;
Shared& shared_array(const void* key, size_t count, size_t element_bytes);
std::byte* shared_read(Shared& array, size_t index);  // After it was watched; never null.
std::byte* shared_write(Shared& array, size_t index);

template <class T>
class SharedElement {
 public:
  SharedElement(Shared& array, size_t index) : array_(array), index_(index) {}
  operator T() const {
    T value;
    std::memcpy(&value, shared_read(array_, index_), sizeof(T));
    return value;
  }
  SharedElement& operator=(T value) {
    std::memcpy(shared_write(array_, index_), &value, sizeof(T));
    return *this;
  }
  SharedElement& operator=(const SharedElement& other) { return *this = static_cast<T>(other); }
  SharedElement& operator+=(T value) { return *this = static_cast<T>(*this) + value; }

 private:
  Shared& array_;
  size_t index_;
};

template <class T>
class SharedArray {
 public:
  SharedArray(const void* key, size_t count) : array_(shared_array(key, count, sizeof(T))) {}
  SharedElement<T> operator[](size_t index) const { return {array_, index}; }

 private:
  Shared& array_;
};

template <class T>
T shuffle_of(T value, uint32_t from_lane, int line) {
  static_assert(sizeof(T) == 4);
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  bits = shuffle(bits, from_lane, line);
  std::memcpy(&value, &bits, 4);
  return value;
}

inline uint32_t lane() { return thread_index().x % 32; }

}  // namespace shoal::compute::cuda::simt

#define __global__
#define __device__
#define __launch_bounds__(...)
#define threadIdx (::shoal::compute::cuda::simt::thread_index())
#define blockIdx (::shoal::compute::cuda::simt::block_index())
#define blockDim (::shoal::compute::cuda::simt::block_size())
#define gridDim (::shoal::compute::cuda::simt::grid_size())

#define SHOAL_SHARED(type, name, count) \
  static char name##_key;               \
  const ::shoal::compute::cuda::simt::SharedArray<type> name(&name##_key, count)

namespace shoal::compute::cuda {

inline void __syncthreads(int line = __builtin_LINE()) { simt::block_barrier(line); }
inline void __syncwarp(int line = __builtin_LINE()) { simt::warp_barrier(line); }

template <class T>
T __shfl_sync(uint32_t, T value, uint32_t from, uint32_t width = 32, int line = __builtin_LINE()) {
  return simt::shuffle_of(value, simt::lane() / width * width + from % width, line);
}
template <class T>
T __shfl_xor_sync(uint32_t, T value, uint32_t mask, int line = __builtin_LINE()) {
  return simt::shuffle_of(value, simt::lane() ^ mask, line);
}

inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 32; i += 8) {
    sum += int{static_cast<int8_t>(a >> i)} * int{static_cast<int8_t>(b >> i)};
  }
  return sum;
}

// Threads change only where they wait, so a plain step is atomic.
inline uint32_t atomicMin(uint32_t* at, uint32_t value) {
  const uint32_t before = *at;
  if (value < before) *at = value;
  return before;
}

}  // namespace shoal::compute::cuda
