#include "base/host_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace shoal {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kBytesMax = std::numeric_limits<size_t>::max() / 4;

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

ZeroedMemory::ZeroedMemory(size_t bytes) {
  if (bytes > kBytesMax) return;
  if (bytes < kLargePage) {
    const size_t size = rounded(bytes + 1, kAlignment);
    data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
    if (data_ != nullptr) std::memset(data_, 0, size);
    return;
  }
  // One page more than is needed, so that the pages can begin where large ones do.
  const size_t size = rounded(bytes, kLargePage), reserved = size + kLargePage;
  void* const found =
      mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return;
  auto* const begin = static_cast<std::byte*>(found);
  const size_t before = (kLargePage - reinterpret_cast<uintptr_t>(begin) % kLargePage) % kLargePage;
  if (before > 0) munmap(begin, before);
  if (before < kLargePage) munmap(begin + before + size, kLargePage - before);
  data_ = begin + before;
  mapped_ = size;
  // Not for the end, of which the rest of a large page would be memory too. Small pages do as well
  // where it is refused.
  madvise(data_, bytes / kLargePage * kLargePage, MADV_HUGEPAGE);
}

ZeroedMemory::~ZeroedMemory() {
  if (mapped_ > 0) {
    munmap(data_, mapped_);
  } else {
    std::free(data_);
  }
}

}  // namespace shoal
