#include "coordinator/session/kept_inputs.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace shoal {

KeptInputs::KeptInputs(size_t row_bytes, size_t memory_max, std::filesystem::path folder)
    : row_bytes_(row_bytes), memory_max_(memory_max), folder_(std::move(folder)) {
  SHOAL_CHECK(row_bytes > 0);
}

Result<void> KeptInputs::open_spill() {
  SHOAL_TRY(make_folder(folder_));
  std::byte name[8];
  fill_secret(name);
  const std::filesystem::path path = folder_ / (hex_encode(name) + ".spill");
  SHOAL_TRY_ASSIGN(spill, AppendFile::open(path));
  Result<InputFile> spilled = InputFile::open(path);
  // Without a name it cannot outlive us, whatever happens.
  std::error_code code;
  std::filesystem::remove(path, code);
  if (!spilled.ok()) return spilled.error();
  spill_.emplace(std::move(spill));
  spilled_.emplace(std::move(spilled).value());
  return {};
}

Result<void> KeptInputs::append(ByteSpan rows) {
  SHOAL_CHECK(rows.size() % row_bytes_ == 0);
  if (!spill_ && memory_.size() + rows.size() <= memory_max_) {
    memory_.insert(memory_.end(), rows.begin(), rows.end());
  } else {
    if (!spill_) {
      const Result<void> opened = open_spill();
      if (!opened.ok()) return with_context(opened.error(), "keeping a session's inputs");
    }
    const Result<void> written = spill_->append(rows);
    if (!written.ok()) return with_context(written.error(), "keeping a session's inputs");
  }
  rows_ += rows.size() / row_bytes_;
  return {};
}

Result<void> KeptInputs::truncate(uint64_t rows) {
  SHOAL_CHECK(rows <= rows_);
  const uint64_t bytes = rows * row_bytes_;
  if (bytes <= memory_.size()) {
    memory_.resize(bytes);
    spill_.reset();
    spilled_.reset();
    rows_ = rows;
    return {};
  }
  // A file without a name cannot be cut: what stays of it goes into another one.
  const uint64_t in_memory = memory_.size() / row_bytes_;
  SHOAL_CHECK(in_memory * row_bytes_ == memory_.size());
  const Result<ByteVector> rest = read(in_memory, rows - in_memory);
  spill_.reset();
  spilled_.reset();
  rows_ = in_memory;
  if (!rest.ok()) return rest.error();
  const size_t limit = std::exchange(memory_max_, memory_.size());
  const Result<void> kept = append(rest.value());
  memory_max_ = limit;
  return kept;
}

Result<ByteVector> KeptInputs::read(uint64_t first, uint64_t count) const {
  SHOAL_CHECK(first <= rows_ && count <= rows_ - first);
  ByteVector bytes(count * row_bytes_);
  const uint64_t begin = first * row_bytes_;
  const uint64_t from_memory =
      begin < memory_.size() ? std::min<uint64_t>(memory_.size() - begin, bytes.size()) : 0;
  std::copy_n(memory_.begin() + static_cast<ptrdiff_t>(std::min<uint64_t>(begin, memory_.size())),
              from_memory, bytes.begin());
  if (from_memory < bytes.size()) {
    const auto rest = std::span(bytes).subspan(from_memory);
    SHOAL_TRY_ASSIGN(read, spilled_->read_at(begin + from_memory - memory_.size(), rest));
    if (read != rest.size()) {
      return Error{ErrorCode::kIo, "a session's kept inputs end too early in their file"};
    }
  }
  return bytes;
}

}  // namespace shoal
