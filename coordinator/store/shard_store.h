#pragma once
// Sealed shards as files in DATA/shards, named by their digests, and the master key that wraps
// their keys. Holds ciphertext only; a key leaves as one sealed to a worker. No SQLite here.

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/digest.h"
#include "base/files.h"
#include "base/secrets.h"
#include "coordinator/store/model_table.h"

namespace shoal {

// The key that wraps all shard keys: DATA/master.key (mode 0600), or derived from a passphrase with
// the salt in DATA/master.salt. `make_master_key` fails with kExists when there is one.
Result<void> make_master_key(const std::filesystem::path& folder, std::string_view passphrase);
// kDenied with what to do when the passphrase is missing or, by the check kept beside the salt,
// wrong.
Result<SecretBytes> load_master_key(const std::filesystem::path& folder,
                                    std::string_view passphrase);

class ShardStore {
 public:
  // Removes what interrupted uploads left.
  static Result<ShardStore> open(const std::filesystem::path& folder, SecretBytes master);

  // One shard on its way in. Dropped before finish(), it leaves nothing.
  class Upload {
   public:
    Upload(Upload&&) noexcept;
    ~Upload();
    Result<void> write(ByteSpan bytes);
    // Proves length and digest, syncs, and gives the file its name.
    Result<void> finish();

   private:
    friend class ShardStore;
    struct Parts;
    explicit Upload(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;  // Null when moved from or finished.
  };
  Result<Upload> upload(const Digest& digest, uint64_t size);

  // At most `length` bytes from `offset`; fewer only at the end. Never reads the file whole.
  Result<ByteVector> read(const Digest& digest, uint64_t offset, uint32_t length) const;
  Result<void> remove(const Digest& digest);
  Result<std::vector<Digest>> list() const;  // Those that are whole.

  ByteVector wrap(const SecretBytes& key) const { return wrap_key(master_, key); }
  // The key of a shard, readable by one worker only.
  Result<ByteVector> seal_key_for(const BoxPublicKey& worker, const ShardRow& shard) const;

 private:
  ShardStore(std::filesystem::path folder, SecretBytes master)
      : folder_(std::move(folder)), master_(std::move(master)) {}
  std::filesystem::path path_of(const Digest& digest) const;

  std::filesystem::path folder_;
  SecretBytes master_;
};

}  // namespace shoal
