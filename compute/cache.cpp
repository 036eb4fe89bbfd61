#include "compute/cache.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "base/check.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

constexpr uint32_t kSavedVersion = 1;

int64_t row_bytes(DType dtype, int64_t width) {
  const Result<int64_t> bytes = byte_size(dtype, {width});
  SHOAL_CHECK(bytes.ok());  // verify() passed the state's shape.
  return bytes.value();
}

// Whether an append could have stored this: kernels believe what stands in the caches.
bool is_stored(DType dtype, ByteSpan row) {
  if (dtype == DType::kF16) {
    for (size_t at = 0; at < row.size(); at += 2) {
      if ((load_le<uint16_t>(row.data() + at) & 0x7C00u) == 0x7C00u) return false;
    }
    return true;
  }
  SHOAL_CHECK(dtype == DType::kF32);
  for (size_t at = 0; at < row.size(); at += 4) {
    const auto bits = load_le<uint32_t>(row.data() + at);
    const float value = std::bit_cast<float>(bits);
    if (!exact::exact_is_finite(value)) return false;
    if (std::bit_cast<uint32_t>(exact::exact_factor(value)) != bits) return false;
  }
  return true;
}

Error invalid(std::string message) { return Error{ErrorCode::kInvalid, std::move(message)}; }
Error corrupt(std::string message) { return Error{ErrorCode::kCorrupt, std::move(message)}; }

}  // namespace

int64_t pages_for(int64_t positions) {
  return (positions + SHOAL_ATTENTION_CHUNK - 1) / SHOAL_ATTENTION_CHUNK;
}

int64_t cache_bytes(DType dtype, int64_t width, int64_t pages) {
  return row_bytes(dtype, width) * SHOAL_ATTENTION_CHUNK * pages;
}

Result<void> Cache::check_sequence(uint32_t sequence) const {
  if (sequence < lengths_.size()) return {};
  return invalid("sequence " + std::to_string(sequence) + " is beyond the stage's " +
                 std::to_string(lengths_.size()));
}

Result<void> Cache::make_writable(std::span<const CachePages::Range> ranges) {
  SHOAL_TRY_ASSIGN(copies, pages_.make_writable(ranges));
  ByteVector page;
  for (const CacheState& state : states_) {
    const int64_t bytes = cache_bytes(state.dtype, state.width, 1);
    page.resize(static_cast<size_t>(bytes));
    for (const CachePages::Copy& copy : copies) {
      SHOAL_TRY(device_.download(*state.buffer, copy.from * bytes, page));
      SHOAL_TRY(device_.upload(*state.buffer, copy.to * bytes, page));
    }
  }
  return {};
}

Result<void> Cache::make_writable(std::span<const RowInfo> rows) {
  std::map<uint32_t, CachePages::Range> by_sequence;
  for (const RowInfo& row : rows) {
    const int64_t position = row.position;
    const auto [found, is_new] =
        by_sequence.try_emplace(row.sequence, CachePages::Range{row.sequence, position, position});
    CachePages::Range& range = found->second;
    range.first = std::min(range.first, position);
    range.last = std::max(range.last, position + 1);
  }
  std::vector<CachePages::Range> ranges;
  for (const auto& [sequence, range] : by_sequence) ranges.push_back(range);
  return make_writable(ranges);
}

void Cache::list(std::span<const RowInfo> rows, size_t first_row,
                 std::vector<uint32_t>& row_info) const {
  std::map<uint32_t, uint32_t> listed;  // Where the pages of a sequence begin, from its rows on.
  for (size_t i = 0; i < rows.size(); ++i) {
    const size_t at = (first_row + i) * 2;
    const auto [found, is_new] = listed.try_emplace(
        rows[i].sequence, static_cast<uint32_t>(row_info.size() - first_row * 2));
    row_info[at] = found->second;
    row_info[at + 1] = rows[i].position;
    if (!is_new) continue;
    const std::span<const uint32_t> pages = pages_.pages_of(rows[i].sequence);
    row_info.insert(row_info.end(), pages.begin(), pages.end());
  }
}

void Cache::wrote(std::span<const RowInfo> rows) {
  for (const RowInfo& row : rows) {
    lengths_[row.sequence] = std::max<int64_t>(lengths_[row.sequence], int64_t{row.position} + 1);
  }
}

Result<void> Cache::fork(uint32_t from, uint32_t to, int64_t positions) {
  SHOAL_TRY(check_sequence(from));
  SHOAL_TRY(check_sequence(to));
  if (from == to) return invalid("a sequence is no fork of itself");
  if (positions < 0 || positions > length(from)) {
    return invalid("sequence " + std::to_string(from) + " has " + std::to_string(length(from)) +
                   " positions, not " + std::to_string(positions));
  }
  pages_.fork(from, to, positions);
  lengths_[to] = positions;
  return {};
}

Result<void> Cache::trim(uint32_t sequence, int64_t length) {
  SHOAL_TRY(check_sequence(sequence));
  if (length < 0) return invalid("a length is " + std::to_string(length));
  lengths_[sequence] = std::min(lengths_[sequence], length);
  pages_.trim(sequence, lengths_[sequence]);
  return {};
}

// "SHKV", the format's version, what the bytes belong to, which positions they are, then what each
// state's rows are. The rows follow, state by state, and a digest of everything.
ByteVector Cache::header(int64_t first, int64_t last) const {
  ByteWriter writer;
  writer.text("SHKV");
  writer.u32(kSavedVersion);
  writer.u32(SHOAL_NUMERICS_VERSION);
  writer.bytes(graphs_.bytes);
  writer.u32(static_cast<uint32_t>(first));
  writer.u32(static_cast<uint32_t>(last));
  writer.u32(static_cast<uint32_t>(states_.size()));
  for (const CacheState& state : states_) {
    writer.u8(static_cast<uint8_t>(state.dtype));
    writer.u32(static_cast<uint32_t>(state.width));
  }
  return writer.take();
}

Result<ByteVector> Cache::save(uint32_t sequence, int64_t first, int64_t last) {
  SHOAL_TRY(check_sequence(sequence));
  if (first < 0 || first >= last || last > length(sequence)) {
    return invalid("positions " + std::to_string(first) + " to " + std::to_string(last) +
                   " are not within the " + std::to_string(length(sequence)) + " of sequence " +
                   std::to_string(sequence));
  }
  ByteVector saved = header(first, last);
  const std::span<const uint32_t> pages = pages_.pages_of(sequence);
  ByteVector page;
  for (const CacheState& state : states_) {
    const int64_t row = row_bytes(state.dtype, state.width);
    const int64_t page_bytes = row * kPagePositions;
    page.resize(static_cast<size_t>(page_bytes));
    for (int64_t i = first / kPagePositions; i * kPagePositions < last; ++i) {
      const int64_t base = i * kPagePositions;
      SHOAL_TRY(device_.download(*state.buffer, pages[static_cast<size_t>(i)] * page_bytes, page));
      const int64_t begin = std::max(first - base, int64_t{0});
      const int64_t end = std::min(last - base, kPagePositions);
      saved.insert(saved.end(), page.begin() + begin * row, page.begin() + end * row);
    }
  }
  const Digest digest = digest_of(saved);
  saved.insert(saved.end(), digest.bytes.begin(), digest.bytes.end());
  return saved;
}

Result<void> Cache::load(uint32_t sequence, ByteSpan saved) {
  SHOAL_TRY(check_sequence(sequence));
  // Read only as far as to know what the whole must be.
  constexpr size_t kFirstAt = 4 + 4 + 4 + 32;
  if (saved.size() < kFirstAt + 8) return corrupt("saved caches: they end inside their header");
  const auto first = load_le<uint32_t>(saved.data() + kFirstAt);
  const auto last = load_le<uint32_t>(saved.data() + kFirstAt + 4);
  const ByteVector expected = header(first, last);
  if (saved.size() < expected.size() ||
      !std::equal(expected.begin(), expected.end(), saved.begin())) {
    return corrupt("saved caches: they are of another version, model or kind of cache");
  }
  if (first >= last || last > context_ || first > length(sequence)) {
    return invalid("saved caches: positions " + std::to_string(first) + " to " +
                   std::to_string(last) + " do not continue the " +
                   std::to_string(length(sequence)) + " of " + std::to_string(context_) +
                   " of sequence " + std::to_string(sequence));
  }
  const int64_t rows = int64_t{last} - first;
  int64_t size = static_cast<int64_t>(expected.size() + sizeof(Digest::bytes));
  for (const CacheState& state : states_) size += rows * row_bytes(state.dtype, state.width);
  if (static_cast<int64_t>(saved.size()) != size) {
    return corrupt("saved caches: they have " + std::to_string(saved.size()) + " bytes, not " +
                   std::to_string(size));
  }
  const size_t digested = saved.size() - sizeof(Digest::bytes);
  if (!std::ranges::equal(digest_of(saved.first(digested)).bytes, saved.subspan(digested))) {
    return corrupt("saved caches: a byte is wrong");
  }
  ByteSpan left = saved.subspan(expected.size());
  for (const CacheState& state : states_) {
    const auto bytes = static_cast<size_t>(row_bytes(state.dtype, state.width));
    for (int64_t i = 0; i < rows; ++i, left = left.subspan(bytes)) {
      if (!is_stored(state.dtype, left.first(bytes))) {
        return corrupt("saved caches: position " + std::to_string(first + i) +
                       " holds what no step stores");
      }
    }
  }

  const CachePages::Range range{sequence, first, last};
  SHOAL_TRY(make_writable({&range, 1}));
  const std::span<const uint32_t> pages = pages_.pages_of(sequence);
  left = saved.subspan(expected.size());
  ByteVector page;
  for (const CacheState& state : states_) {
    const int64_t row = row_bytes(state.dtype, state.width);
    const int64_t page_bytes = row * kPagePositions;
    page.resize(static_cast<size_t>(page_bytes));
    for (int64_t i = first / kPagePositions; i * kPagePositions < last; ++i) {
      const int64_t base = i * kPagePositions;
      const int64_t at = pages[static_cast<size_t>(i)] * page_bytes;
      const int64_t begin = std::max(first - base, int64_t{0});
      const int64_t end = std::min(last - base, kPagePositions);
      if (end - begin < kPagePositions) SHOAL_TRY(device_.download(*state.buffer, at, page));
      const auto bytes = static_cast<size_t>((end - begin) * row);
      std::copy_n(left.begin(), bytes, page.begin() + begin * row);
      left = left.subspan(bytes);
      SHOAL_TRY(device_.upload(*state.buffer, at, page));
    }
  }
  lengths_[sequence] = std::max<int64_t>(lengths_[sequence], last);
  return {};
}

}  // namespace shoal::compute
