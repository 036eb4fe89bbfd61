#pragma once
// What went into a stage, kept so that its replacement can be given the same again: rows of equal
// size, in memory up to a limit, then in a file that has no name any more and dies with the
// process.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/files.h"
#include "base/result.h"

namespace shoal {

class KeptInputs {
 public:
  // `memory_max` bytes stay in memory; what comes after goes to a file in `folder`.
  KeptInputs(size_t row_bytes, size_t memory_max, std::filesystem::path folder);

  uint64_t rows() const { return rows_; }
  // REQUIRES: a whole number of rows. An error leaves the rows as they were.
  Result<void> append(ByteSpan rows);
  // Forgets the rows from `rows` on. An error leaves them forgotten, and nothing can be kept any
  // more. REQUIRES: rows <= rows().
  Result<void> truncate(uint64_t rows);
  // REQUIRES: first + count <= rows().
  Result<ByteVector> read(uint64_t first, uint64_t count) const;

 private:
  Result<void> open_spill();

  size_t row_bytes_;
  size_t memory_max_;
  std::filesystem::path folder_;
  uint64_t rows_ = 0;
  ByteVector memory_;
  std::optional<AppendFile> spill_;  // Empty until the memory is full.
  std::optional<InputFile> spilled_;
};

}  // namespace shoal
