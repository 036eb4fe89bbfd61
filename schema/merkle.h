#pragma once
// A Merkle tree over a list of entries: one root that stands for all of them, and short proofs that
// an entry is among them. Pure.
//
// A leaf is the BLAKE2b-256 of 0x00 and the entry's bytes, a node that of 0x01, its left child and
// its right child. On each level neighbours are paired from the left; the last one without a
// partner is moved up as it is.

#include <cstdint>
#include <span>
#include <vector>

#include "base/digest.h"

namespace shoal {

Digest merkle_leaf(ByteSpan entry);
Digest merkle_node(const Digest& left, const Digest& right);

class MerkleTree {
 public:
  explicit MerkleTree(std::vector<Digest> leaves);

  const Digest& root() const { return root_; }  // All zeros without leaves.
  uint64_t count() const { return levels_.front().size(); }
  // The partners on the way from a leaf to the root. REQUIRES: place < count().
  std::vector<Digest> path(uint64_t place) const;

 private:
  std::vector<std::vector<Digest>> levels_;  // The leaves first.
  Digest root_;
};

// The same root with little memory, from leaves that come one by one.
class MerkleRoot {
 public:
  void add(const Digest& leaf);
  uint64_t count() const { return count_; }
  Digest root() const;

 private:
  std::vector<Digest> whole_;  // Roots of whole trees, of as many leaves as count_ has bits set.
  uint64_t count_ = 0;
};

// Whether the leaf stands at `place` among `count` leaves with that root. Anything may be given.
bool merkle_path_fits(const Digest& root, uint64_t count, uint64_t place, const Digest& leaf,
                      std::span<const Digest> path);

}  // namespace shoal
