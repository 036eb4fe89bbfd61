#pragma once
// What a plain shard holds: one fragment, its graph and its weights, as bytes that are checked as
// hostile input when they are opened. Seals and opens them; knows no keys' owners, no stores and no
// wires.

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/secrets.h"
#include "compute/compute.h"

namespace shoal::compute {

// Layout, all numbers little-endian:
//   "SHOALSHD", u32 version 1, u32 weights, u64 bytes of the whole, u64 bytes of the graph,
//   the encoded graph,
//   for each weight, in the order of names: u16 length of the name, name, u8 type, u8 dimensions,
//     u64 each dimension, u64 offset from the shard's start, u64 bytes,
//   zeros up to a multiple of 64, then the weights, each at a multiple of 64, zeros between.
constexpr uint32_t kShardVersion = 1;
constexpr uint64_t kShardAlignment = 64;
constexpr uint32_t kShardWeightsMax = 4096;

// Bytes of the fragment's plain shard. REQUIRES, as write_shard: the fragment's graph is verified
// and has just the weights that it names, each of its size.
uint64_t shard_size(const Fragment& fragment);

// Hands the plain shard to `sink` piece by piece; weights straight from where they are.
Result<void> write_shard(const Fragment& fragment, const ByteSink& sink);

// The fragment in a plain shard; its weights are views into `bytes`, which outlive it. Refuses by
// field whatever breaks the layout, a graph that could not run, and weights that are not the
// graph's own.
Result<Fragment> open_shard(ByteSpan bytes);

// A fragment opened from plain bytes that it owns. The bytes are wiped at the end of its life: end
// it once the weights are on the device.
class PlainShard {
 public:
  PlainShard(PlainShard&&) noexcept = default;
  PlainShard& operator=(PlainShard&& other) noexcept;
  ~PlainShard();

  const Fragment& fragment() const { return fragment_; }
  uint64_t size() const { return bytes_.size(); }

 private:
  friend class ShardOpener;
  PlainShard() = default;

  ByteVector bytes_;
  Fragment fragment_;
};

// Opens one sealed shard from its ciphertext, in order and in pieces of any length. One thread.
class ShardOpener {
 public:
  // `sealed_bytes`: what the manifest says; the plain bytes take about as much memory.
  // REQUIRES: key has kKeyBytes.
  ShardOpener(const SecretBytes& key, const Digest& digest, uint64_t sealed_bytes);
  ShardOpener(ShardOpener&&) noexcept;
  ~ShardOpener();

  // kCorrupt with the digest when a byte is wrong or there are too many.
  Result<void> feed(ByteSpan sealed);
  uint64_t fed() const;

  // kCorrupt unless all bytes came and their digest is right. REQUIRES: called once, last.
  Result<PlainShard> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shoal::compute
