#pragma once
// Memory for large arrays that are read from end to end: zeroed, in large pages where the system
// has them, as looking up each 4 KiB page costs more than reading it.

#include <cstddef>
#include <utility>

namespace shoal {

class ZeroedMemory {
 public:
  // Null data when it can not be had.
  explicit ZeroedMemory(size_t bytes);
  ~ZeroedMemory();
  ZeroedMemory(ZeroedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}
  ZeroedMemory& operator=(ZeroedMemory&&) = delete;

  std::byte* data() const { return data_; }  // At a multiple of 64.

 private:
  std::byte* data_ = nullptr;
  size_t mapped_ = 0;  // Bytes of pages of its own; 0: from the heap.
};

}  // namespace shoal
