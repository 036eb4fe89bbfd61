#pragma once
// What a published model is: its shards in order, what each costs, and what a session needs to know
// of it. A manifest is JSON that names itself by its digest; it is checked as hostile input when
// read.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"

namespace shoal::compute {

constexpr int kManifestVersion = 1;
constexpr size_t kManifestShardsMax = 1024;

enum class FragmentKind { kEmbedding, kBlock, kHead };
std::string_view fragment_kind_name(FragmentKind kind);  // "embedding", "block", "head"

struct ShardInfo {
  FragmentKind kind = FragmentKind::kBlock;
  Digest digest;  // Of the ciphertext; also its address.
  int64_t sealed_bytes = 0;
  int64_t weight_bytes = 0;  // From here on: computed from the graph.
  int64_t flops_per_row = 0;
  int64_t state_bytes_per_position = 0;  // Caches, for each position of each sequence.
  int64_t workspace_bytes_per_row = 0;
};

struct Manifest {
  std::string name;
  std::string architecture;
  uint32_t numerics_version = 1;
  int64_t width = 0;
  int64_t blocks = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t intermediate = 0;
  int64_t vocabulary = 0;
  int64_t context = 0;
  std::optional<int32_t> bos;
  std::vector<int32_t> eos;
  std::string tokenizer;          // A tokenizer definition; may be empty.
  std::vector<ShardInfo> shards;  // Embedding, blocks in order, head.
};

// The manifest's JSON text, with its own digest inside. One text for one manifest.
std::string write_manifest(const Manifest& manifest);
Digest manifest_digest(const Manifest& manifest);

// Refuses, by field, what is missing, of a wrong type or out of bounds, and a digest that is not
// its own.
Result<Manifest> read_manifest(std::string_view text);

}  // namespace shoal::compute
