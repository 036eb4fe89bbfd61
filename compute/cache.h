#pragma once
// The caches of a stage: its keys and values in pages on the device, which sequences may share, and
// their bytes for another stage to go on from. Knows no ops.

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/result.h"
#include "compute/backends/backend.h"
#include "compute/cache_pages.h"
#include "shaders/exact_math.h"

namespace shoal::compute {

// A cache's rows as they stand on every plane: `width` elements each, without gaps.
struct CacheState {
  Buffer* buffer = nullptr;  // Of cache_bytes(). Outlives the cache.
  DType dtype = DType::kF16;
  int64_t width = 0;
};

int64_t pages_for(int64_t positions);
int64_t cache_bytes(DType dtype, int64_t width, int64_t pages);

class Cache {
 public:
  // `graphs`: the digest of what the states belong to. `device` outlives the cache.
  Cache(Device& device, int64_t sequences, int64_t context, int64_t pages, const Digest& graphs)
      : device_(device),
        context_(context),
        pages_(sequences, pages, kPagePositions),
        lengths_(static_cast<size_t>(sequences)),
        graphs_(graphs) {}

  void add(const CacheState& state) { states_.push_back(state); }

  // Positions of each sequence that were ever written, from 0 on.
  int64_t length(uint32_t sequence) const { return lengths_[sequence]; }

  // Makes room for the rows of a step; nothing has changed when there is none. REQUIRES: their
  // sequences and positions are the stage's, and none leaves a gap.
  Result<void> make_writable(std::span<const RowInfo> rows);
  // Puts what kernels read of the rows into row_info (op_params.h), which has room for the rows of
  // all stages of a step and gets their pages behind these. A kernel of this cache is given
  // row_info from its first row on. REQUIRES: they are writable.
  void list(std::span<const RowInfo> rows, size_t first_row, std::vector<uint32_t>& row_info) const;
  void wrote(std::span<const RowInfo> rows);

  // As of the Stage in compute.h.
  Result<void> fork(uint32_t from, uint32_t to, int64_t positions);
  Result<void> trim(uint32_t sequence, int64_t length);
  Result<ByteVector> save(uint32_t sequence, int64_t first, int64_t last);
  Result<void> load(uint32_t sequence, ByteSpan saved);

 private:
  static constexpr int64_t kPagePositions = SHOAL_ATTENTION_CHUNK;

  Result<void> check_sequence(uint32_t sequence) const;
  Result<void> make_writable(std::span<const CachePages::Range> ranges);
  ByteVector header(int64_t first, int64_t last) const;

  Device& device_;
  int64_t context_;
  CachePages pages_;
  std::vector<CacheState> states_;
  std::vector<int64_t> lengths_;
  Digest graphs_;
};

}  // namespace shoal::compute
