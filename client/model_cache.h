#pragma once
// Holds the shards on this host's disk: ciphertext under its digest, within a limit, least recently
// used first to go. Decides what may be evicted and what must be proved again; fetches nothing
// itself.
//
// Long work (hashing) is cut into steps, so that a loop can do other things in between.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/digest.h"
#include "base/files.h"

namespace shoal::client {

struct CacheLimits {
  Bytes bytes_max;       // Of all shards, whole and partial.
  Bytes free_bytes_min;  // What must stay free on the disk.
};

// One thread.
class ModelCache {
 public:
  // Reads what an earlier run left. `clock` outlives the cache. Fails when the folder cannot be
  // written.
  static Result<std::unique_ptr<ModelCache>> open(const std::filesystem::path& folder,
                                                  CacheLimits limits, const Clock& clock);

  // Keeps a shard from eviction, whether it is there already or not. Ends before the cache.
  class Hold {
   public:
    Hold(ModelCache& cache, const Digest& digest);
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&&) = delete;
    ~Hold();

   private:
    ModelCache* cache_;  // Null when moved from.
    Digest digest_;
  };

  // A shard on its way. What has arrived stays on disk when it is dropped unfinished, even by a
  // crash. Ends before the cache.
  class Download {
   public:
    Download(Download&& other) noexcept;
    Download& operator=(Download&&) = delete;
    ~Download();

    uint64_t have() const { return file_->size(); }  // Where to go on.
    // Hashes a piece of what an earlier run left; true when there is no more of it.
    Result<bool> catch_up();
    // REQUIRES: catch_up() was true. When the disk is full, others are evicted; when that does not
    // help, the part is given up, so that a full disk is not kept full.
    Result<void> append(ByteSpan bytes);
    // Proves the digest and makes it a shard. kCorrupt drops the bytes: begin again.
    Result<void> finish();

   private:
    friend class ModelCache;
    Download(ModelCache& cache, const Digest& digest, uint64_t size, AppendFile file);

    ModelCache* cache_;  // Null when moved from, and when it ended.
    Digest digest_;
    uint64_t size_;
    std::optional<AppendFile> file_;
    std::optional<InputFile> earlier_;
    uint64_t hashed_ = 0;
    DigestBuilder builder_;
  };

  // Makes room and begins, or goes on. kNoSpace with figures when there can be no room.
  // REQUIRES: !has(digest), and no other download of it.
  Result<Download> download(const Digest& digest, uint64_t size);

  // Whole on disk. It may still be damaged: see proved().
  bool has(const Digest& digest) const;
  // Proved by this process, and not touched by another program since.
  bool proved(const Digest& digest) const;

  class Proof {
   public:
    // Hashes a piece; true when all of it is proved. kCorrupt: the shard was damaged and is gone.
    Result<bool> step();

   private:
    friend class ModelCache;
    Proof(ModelCache& cache, const Digest& digest, InputFile file)
        : cache_(&cache), digest_(digest), file_(std::move(file)) {}

    ModelCache* cache_;  // Never null.
    Digest digest_;
    InputFile file_;
    uint64_t done_ = 0;
    DigestBuilder builder_;
  };
  Result<Proof> prove(const Digest& digest);  // REQUIRES: has(digest).

  // Counts as a use. REQUIRES: has(digest).
  Result<InputFile> read(const Digest& digest);
  void discard(const Digest& digest);
  void doubt(const Digest& digest);  // To be proved again before its next use.

  Bytes used() const;
  const CacheLimits& limits() const { return limits_; }
  // What is over a lower limit goes when room is needed next.
  void set_limits(CacheLimits limits) { limits_ = limits; }

 private:
  struct Entry {
    uint64_t bytes = 0;  // On disk; while downloading, the whole size: it is promised.
    bool whole = false;
    bool downloading = false;
    bool proved = false;
    std::filesystem::file_time_type stamp;  // Of the file when it was proved or last used.
    uint64_t last_use = 0;                  // A count, not a time: clocks jump.
  };

  struct Opened {};  // Only open() can make one.

 public:
  ModelCache(Opened, std::filesystem::path folder, CacheLimits limits, const Clock& clock)
      : folder_(std::move(folder)), limits_(limits), clock_(clock) {}

 private:
  std::filesystem::path path(const Digest& digest) const;
  std::filesystem::path part_path(const Digest& digest) const;
  void remove_files(const Digest& digest);
  bool evict_one();  // False when nothing may go.
  void touch(const Digest& digest, Entry& entry);

  std::filesystem::path folder_;
  CacheLimits limits_;
  const Clock& clock_;
  std::map<Digest, Entry> entries_;
  std::map<Digest, int> holds_;
  uint64_t uses_ = 0;
};

}  // namespace shoal::client
