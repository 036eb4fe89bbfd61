#pragma once
// Holds millions of small things by number, and finds them by id: what the broker's memory is made
// of. Places are reused; nothing moves.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"

namespace shoal {

using Slot = uint32_t;
constexpr Slot kNoSlot = UINT32_MAX;

// Things in blocks, so that growing copies nothing. A freed place is the next one given.
template <class T>
class Slab {
 public:
  T& operator[](Slot slot) {
    SHOAL_CHECK(slot < size_);
    return (*blocks_[slot / kBlock])[slot % kBlock];
  }
  const T& operator[](Slot slot) const {
    SHOAL_CHECK(slot < size_);
    return (*blocks_[slot / kBlock])[slot % kBlock];
  }

  Slot add() {
    ++live_;
    if (!free_.empty()) {
      const Slot slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (size_ % kBlock == 0) blocks_.push_back(std::make_unique<std::array<T, kBlock>>());
    return size_++;
  }

  void remove(Slot slot) {
    (*this)[slot] = T();
    free_.push_back(slot);
    --live_;
  }

  Slot size() const { return size_; }  // Of places, freed ones included.
  size_t live() const { return live_; }

 private:
  static constexpr Slot kBlock = 1024;
  std::vector<std::unique_ptr<std::array<T, kBlock>>> blocks_;
  std::vector<Slot> free_;
  Slot size_ = 0;
  size_t live_ = 0;
};

// From a positive id to a slot: open addressing, at most two thirds full.
class SlotMap {
 public:
  SlotMap() : entries_(16) {}

  Slot find(int64_t id) const {
    if (id <= 0) return kNoSlot;
    for (size_t at = place(id);; at = (at + 1) & (entries_.size() - 1)) {
      if (entries_[at].id == id) return entries_[at].slot;
      if (entries_[at].id == 0) return kNoSlot;
    }
  }

  // REQUIRES: the id is positive and not there yet.
  void add(int64_t id, Slot slot) {
    SHOAL_CHECK(id > 0);
    if (3 * (count_ + 1) > 2 * entries_.size()) grow();
    put({id, slot});
    ++count_;
  }

  void remove(int64_t id) {
    size_t at = place(id);
    const size_t mask = entries_.size() - 1;
    while (entries_[at].id != id) {
      if (entries_[at].id == 0) return;
      at = (at + 1) & mask;
    }
    // What was pushed on by this entry moves back, so that no search ends too early.
    for (size_t next = (at + 1) & mask; entries_[next].id != 0; next = (next + 1) & mask) {
      const size_t home = place(entries_[next].id);
      if (((next - home) & mask) < ((next - at) & mask)) continue;
      entries_[at] = entries_[next];
      at = next;
    }
    entries_[at] = {};
    --count_;
  }

  size_t size() const { return count_; }

 private:
  // Packed into 12 bytes: there are millions.
  struct __attribute__((packed)) Entry {
    int64_t id = 0;
    Slot slot = 0;
  };

  size_t place(int64_t id) const {
    return (static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15ull >> 20) & (entries_.size() - 1);
  }
  void put(Entry entry) {
    size_t at = place(entry.id);
    while (entries_[at].id != 0) at = (at + 1) & (entries_.size() - 1);
    entries_[at] = entry;
  }
  void grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.id != 0) put(entry);
    }
  }

  std::vector<Entry> entries_;
  size_t count_ = 0;
};

}  // namespace shoal
