#include "schema/merkle.h"

#include "base/check.h"

namespace shoal {

Digest merkle_leaf(ByteSpan entry) {
  static constexpr std::byte kLeaf[] = {std::byte{0}};
  DigestBuilder builder;
  builder.update(kLeaf);
  builder.update(entry);
  return builder.finish();
}

Digest merkle_node(const Digest& left, const Digest& right) {
  static constexpr std::byte kNode[] = {std::byte{1}};
  DigestBuilder builder;
  builder.update(kNode);
  builder.update(left.bytes);
  builder.update(right.bytes);
  return builder.finish();
}

MerkleTree::MerkleTree(std::vector<Digest> leaves) {
  levels_.push_back(std::move(leaves));
  while (levels_.back().size() > 1) {
    const std::vector<Digest>& below = levels_.back();
    std::vector<Digest> level;
    level.reserve((below.size() + 1) / 2);
    for (size_t i = 0; i + 1 < below.size(); i += 2) {
      level.push_back(merkle_node(below[i], below[i + 1]));
    }
    if (below.size() % 2 == 1) level.push_back(below.back());
    levels_.push_back(std::move(level));
  }
  if (!levels_.back().empty()) root_ = levels_.back().front();
}

std::vector<Digest> MerkleTree::path(uint64_t place) const {
  SHOAL_CHECK(place < count());
  std::vector<Digest> path;
  for (const std::vector<Digest>& level : levels_) {
    const uint64_t partner = place ^ 1;
    if (partner < level.size()) path.push_back(level[partner]);
    place /= 2;
  }
  return path;
}

void MerkleRoot::add(const Digest& leaf) {
  Digest top = leaf;
  for (uint64_t bits = count_; bits & 1; bits >>= 1) {
    top = merkle_node(whole_.back(), top);
    whole_.pop_back();
  }
  whole_.push_back(top);
  ++count_;
}

Digest MerkleRoot::root() const {
  if (whole_.empty()) return {};
  Digest root = whole_.back();
  for (size_t i = whole_.size() - 1; i-- > 0;) root = merkle_node(whole_[i], root);
  return root;
}

bool merkle_path_fits(const Digest& root, uint64_t count, uint64_t place, const Digest& leaf,
                      std::span<const Digest> path) {
  if (place >= count) return false;
  Digest digest = leaf;
  size_t used = 0;
  for (; count > 1; count = count / 2 + count % 2, place /= 2) {
    if ((place ^ 1) >= count) continue;  // Moved up.
    if (used == path.size()) return false;
    const Digest& partner = path[used++];
    digest = place % 2 == 1 ? merkle_node(partner, digest) : merkle_node(digest, partner);
  }
  return used == path.size() && digest == root;
}

}  // namespace shoal
