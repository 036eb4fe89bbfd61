#include "client/model_cache.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/log.h"

namespace shoal::client {
namespace {

constexpr size_t kPieceBytes = 4 << 20;  // Hashed at once: about 4 ms.
constexpr std::string_view kPart = ".part";

// What tells backup programs that this folder can be made again.
constexpr std::string_view kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder holds shards that Shoal can fetch again.\n";

Error full(const std::string& what, Bytes need, Bytes have, const std::string& remedy) {
  return {ErrorCode::kNoSpace, what + ": " + std::to_string(need.count) + " bytes are needed and " +
                                   std::to_string(std::max<int64_t>(have.count, 0)) +
                                   " can be had; " + remedy};
}

// Hashes the next piece of `file`, up to `end`. Fewer bytes than expected are no error here: the
// digest will be another.
Result<bool> hash_piece(const InputFile& file, uint64_t& done, uint64_t end,
                        DigestBuilder& builder) {
  ByteVector piece(static_cast<size_t>(std::min<uint64_t>(kPieceBytes, end - done)));
  SHOAL_TRY_ASSIGN(count, file.read_at(done, piece));
  builder.update(ByteSpan(piece).first(count));
  done += count;
  return done >= end || count == 0;
}

}  // namespace

Result<std::unique_ptr<ModelCache>> ModelCache::open(const std::filesystem::path& folder,
                                                     CacheLimits limits, const Clock& clock) {
  const std::string context = "the shard cache";
  if (const Result<void> made = make_folder(folder); !made.ok())
    return with_context(made.error(), context);
  const Result<void> tagged = write_file_durably(folder / "CACHEDIR.TAG", as_bytes(kCacheTag));
  if (!tagged.ok()) return with_context(tagged.error(), context);

  auto cache = std::make_unique<ModelCache>(Opened{}, folder, limits, clock);
  struct Found {
    Digest digest;
    Entry entry;
  };
  std::vector<Found> found;
  std::error_code code;
  std::filesystem::directory_iterator files(folder, code);
  if (code)
    return Error{ErrorCode::kIo,
                 context + ": cannot list " + folder.string() + ": " + code.message()};
  for (const std::filesystem::directory_entry& file : files) {
    std::string name = file.path().filename().string();
    const bool part = name.ends_with(kPart);
    if (part) name.resize(name.size() - kPart.size());
    const Result<Digest> digest = Digest::from_hex(name);
    if (!digest.ok() || digest.value().hex() != name || !file.is_regular_file(code))
      continue;  // Not ours.
    Entry entry;
    entry.bytes = file.file_size(code);
    entry.whole = !part;
    entry.stamp = file.last_write_time(code);
    found.push_back({digest.value(), entry});
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.entry.stamp, a.digest) < std::tie(b.entry.stamp, b.digest);
  });
  for (Found& one : found) {
    Entry& entry = cache->entries_[one.digest];
    if (entry.whole || (entry.bytes > 0 && one.entry.whole)) {  // Both a shard and a part of it.
      std::filesystem::remove(cache->part_path(one.digest), code);
      if (entry.whole) continue;
    }
    entry = one.entry;
    entry.last_use = ++cache->uses_;
  }
  while (cache->used() > limits.bytes_max && cache->evict_one()) {
  }
  return cache;
}

std::filesystem::path ModelCache::path(const Digest& digest) const {
  return folder_ / digest.hex();
}

std::filesystem::path ModelCache::part_path(const Digest& digest) const {
  return folder_ / (digest.hex() + std::string(kPart));
}

void ModelCache::remove_files(const Digest& digest) {
  std::error_code code;
  std::filesystem::remove(path(digest), code);
  std::filesystem::remove(part_path(digest), code);
}

Bytes ModelCache::used() const {
  Bytes sum;
  for (const auto& [digest, entry] : entries_) sum += Bytes{static_cast<int64_t>(entry.bytes)};
  return sum;
}

bool ModelCache::evict_one() {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->second.downloading || holds_.contains(it->first)) continue;
    if (oldest == entries_.end() || it->second.last_use < oldest->second.last_use) oldest = it;
  }
  if (oldest == entries_.end()) return false;
  log_info("cache", "evicted", {{"shard", oldest->first.hex()}, {"bytes", oldest->second.bytes}});
  remove_files(oldest->first);
  entries_.erase(oldest);
  return true;
}

// The file's own time carries the order over restarts.
void ModelCache::touch(const Digest& digest, Entry& entry) {
  entry.last_use = ++uses_;
  const auto now =
      std::chrono::file_clock::from_sys(std::chrono::sys_time<std::chrono::milliseconds>(
          std::chrono::milliseconds(clock_.now_wall().count)));
  std::error_code code;
  std::filesystem::last_write_time(path(digest), now, code);
  entry.stamp = std::filesystem::last_write_time(path(digest), code);
}

bool ModelCache::has(const Digest& digest) const {
  const auto found = entries_.find(digest);
  return found != entries_.end() && found->second.whole;
}

bool ModelCache::proved(const Digest& digest) const {
  const auto found = entries_.find(digest);
  if (found == entries_.end() || !found->second.proved) return false;
  std::error_code code;
  const auto stamp = std::filesystem::last_write_time(path(digest), code);
  if (code || stamp != found->second.stamp) return false;
  const uint64_t bytes = std::filesystem::file_size(path(digest), code);
  return !code && bytes == found->second.bytes;
}

void ModelCache::discard(const Digest& digest) {
  const auto found = entries_.find(digest);
  if (found == entries_.end() || found->second.downloading) return;
  remove_files(digest);
  entries_.erase(found);
}

void ModelCache::doubt(const Digest& digest) {
  const auto found = entries_.find(digest);
  if (found != entries_.end()) found->second.proved = false;
}

Result<ModelCache::Proof> ModelCache::prove(const Digest& digest) {
  SHOAL_CHECK(has(digest));
  Result<InputFile> file = InputFile::open(path(digest));
  if (!file.ok()) {
    if (file.error().code != ErrorCode::kNotFound) return file.error();
    discard(digest);  // Somebody emptied the cache.
    return Error{ErrorCode::kCorrupt, "shard " + digest.hex() + " is gone from the cache"};
  }
  return Proof(*this, digest, std::move(file).value());
}

Result<bool> ModelCache::Proof::step() {
  SHOAL_TRY_ASSIGN(done, hash_piece(file_, done_, file_.size(), builder_));
  if (!done) return false;
  const auto found = cache_->entries_.find(digest_);
  if (found == cache_->entries_.end()) {
    return Error{ErrorCode::kCorrupt, "shard " + digest_.hex() + " is gone from the cache"};
  }
  if (builder_.finish() != digest_) {
    log_warning("cache", "corrupt", {{"shard", digest_.hex()}});
    cache_->discard(digest_);
    return Error{ErrorCode::kCorrupt, "shard " + digest_.hex() + " was damaged on disk"};
  }
  found->second.proved = true;
  found->second.bytes = file_.size();
  cache_->touch(digest_, found->second);
  return true;
}

Result<InputFile> ModelCache::read(const Digest& digest) {
  SHOAL_CHECK(has(digest));
  SHOAL_TRY_ASSIGN(file, InputFile::open(path(digest)));
  // A changed file must not look proved because it was touched.
  const bool was_proved = proved(digest);
  Entry& entry = entries_.at(digest);
  entry.proved = was_proved;
  touch(digest, entry);
  return file;
}

Result<ModelCache::Download> ModelCache::download(const Digest& digest, uint64_t size) {
  SHOAL_CHECK(!has(digest));
  const Hold hold(*this, digest);  // Its own part must not make room for it.
  std::error_code code;
  uint64_t have = std::filesystem::file_size(part_path(digest), code);
  if (code) have = 0;
  if (have > size) {
    std::filesystem::remove(part_path(digest), code);
    have = 0;
  }
  {
    Entry& entry = entries_[digest];
    SHOAL_CHECK(!entry.downloading);
    entry.bytes = have;
    entry.last_use = ++uses_;
  }
  const Bytes need{static_cast<int64_t>(size - have)};
  const auto give_up = [&](Error error) {
    if (have == 0) entries_.erase(digest);
    return error;
  };
  while (used() + need > limits_.bytes_max) {
    if (evict_one()) continue;
    return give_up(full("the shard cache is full", need, limits_.bytes_max - used(),
                        "raise cache.bytes_max, or wait until a stage ends"));
  }
  while (true) {
    const Result<Bytes> free = free_space(folder_);
    if (!free.ok()) return give_up(free.error());
    if (free.value() - need >= limits_.free_bytes_min) break;
    if (evict_one()) continue;
    return give_up(full("the disk of " + folder_.string() + " is nearly full", need,
                        free.value() - limits_.free_bytes_min,
                        "free some space, or lower cache.free_bytes_min"));
  }
  Result<AppendFile> file = AppendFile::open(part_path(digest));
  if (!file.ok()) return give_up(file.error());
  entries_[digest].bytes = size;
  entries_[digest].downloading = true;
  return Download(*this, digest, size, std::move(file).value());
}

ModelCache::Download::Download(ModelCache& cache, const Digest& digest, uint64_t size,
                               AppendFile file)
    : cache_(&cache), digest_(digest), size_(size), file_(std::move(file)) {}

ModelCache::Download::Download(Download&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      digest_(other.digest_),
      size_(other.size_),
      file_(std::move(other.file_)),
      earlier_(std::move(other.earlier_)),
      hashed_(other.hashed_),
      builder_(other.builder_) {}

ModelCache::Download::~Download() {
  if (cache_ == nullptr) return;
  Entry& entry = cache_->entries_.at(digest_);
  entry.downloading = false;
  entry.bytes = file_->size();
  if (entry.bytes == 0) {
    cache_->remove_files(digest_);
    cache_->entries_.erase(digest_);
  }
}

Result<bool> ModelCache::Download::catch_up() {
  if (hashed_ >= file_->size()) return true;
  if (!earlier_) {
    SHOAL_TRY_ASSIGN(earlier, InputFile::open(cache_->part_path(digest_)));
    earlier_ = std::move(earlier);
  }
  SHOAL_TRY_ASSIGN(done, hash_piece(*earlier_, hashed_, file_->size(), builder_));
  if (done && hashed_ < file_->size()) {
    return Error{ErrorCode::kIo,
                 "the part of shard " + digest_.hex() + " was cut by another program"};
  }
  return done;
}

Result<void> ModelCache::Download::append(ByteSpan bytes) {
  SHOAL_CHECK(cache_ != nullptr && hashed_ == file_->size());
  if (bytes.size() > size_ - file_->size()) {
    return Error{ErrorCode::kCorrupt, "shard " + digest_.hex() + " is longer than was announced"};
  }
  while (true) {
    const Result<void> written = file_->append(bytes);
    if (written.ok()) break;
    if (written.error().code != ErrorCode::kNoSpace) return written;
    if (cache_->evict_one()) continue;
    ModelCache& cache = *std::exchange(cache_, nullptr);
    cache.remove_files(digest_);
    cache.entries_.erase(digest_);
    return with_context(written.error(), "the shard cache");
  }
  builder_.update(bytes);
  hashed_ += bytes.size();
  return {};
}

Result<void> ModelCache::Download::finish() {
  SHOAL_CHECK(cache_ != nullptr);
  ModelCache& cache = *cache_;
  if (file_->size() != size_) {
    return Error{ErrorCode::kCorrupt, "shard " + digest_.hex() + " ended after " +
                                          std::to_string(file_->size()) + " of " +
                                          std::to_string(size_) + " bytes"};
  }
  if (builder_.finish() != digest_) {
    cache_ = nullptr;
    cache.remove_files(digest_);
    cache.entries_.erase(digest_);
    return Error{ErrorCode::kCorrupt, "shard " + digest_.hex() + " arrived with another content"};
  }
  SHOAL_TRY(file_->sync_and_rename(cache.path(digest_)));
  cache_ = nullptr;
  Entry& entry = cache.entries_.at(digest_);
  entry.downloading = false;
  entry.whole = true;
  entry.proved = true;
  cache.touch(digest_, entry);
  return {};
}

ModelCache::Hold::Hold(ModelCache& cache, const Digest& digest) : cache_(&cache), digest_(digest) {
  ++cache.holds_[digest];
}

ModelCache::Hold::Hold(Hold&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)), digest_(other.digest_) {}

ModelCache::Hold::~Hold() {
  if (cache_ != nullptr && --cache_->holds_.at(digest_) == 0) cache_->holds_.erase(digest_);
}

}  // namespace shoal::client
