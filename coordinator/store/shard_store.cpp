#include "coordinator/store/shard_store.h"

#include <algorithm>
#include <system_error>

#include "base/files.h"
#include "base/random.h"

namespace shoal {
namespace {

constexpr Bytes kKeyFileBytesMax{4096};

// What master.salt holds after the salt: this text, wrapped. It tells a wrong passphrase from a
// right one.
constexpr std::string_view kCheckText = "shoal-master-key-1";

}  // namespace

Result<void> make_master_key(const std::filesystem::path& folder, std::string_view passphrase) {
  if (is_there(folder / "master.key") || is_there(folder / "master.salt")) {
    return Error{ErrorCode::kExists, folder.string() + " has a master key already"};
  }
  if (passphrase.empty()) {
    const SecretBytes key = random_key();
    return write_file_durably(folder / "master.key", key.view(), 0600);
  }
  const PassphraseSalt salt = random_salt();
  SHOAL_TRY_ASSIGN(key, derive_key_from_passphrase(passphrase, salt));
  ByteVector file(salt.begin(), salt.end());
  const ByteVector check = wrap_key(key, SecretBytes(as_bytes(kCheckText)));
  file.insert(file.end(), check.begin(), check.end());
  return write_file_durably(folder / "master.salt", file, 0600);
}

Result<SecretBytes> load_master_key(const std::filesystem::path& folder,
                                    std::string_view passphrase) {
  if (is_there(folder / "master.salt")) {
    if (passphrase.empty()) {
      return Error{ErrorCode::kDenied,
                   "the shard keys are under a passphrase: set SHOAL_PASSPHRASE"};
    }
    SHOAL_TRY_ASSIGN(file, read_file(folder / "master.salt", kKeyFileBytesMax));
    PassphraseSalt salt;
    if (file.size() <= salt.size()) {
      return Error{ErrorCode::kCorrupt, (folder / "master.salt").string() + " ends too early"};
    }
    std::copy_n(file.begin(), salt.size(), salt.begin());
    SHOAL_TRY_ASSIGN(key, derive_key_from_passphrase(passphrase, salt));
    if (!unwrap_key(key, ByteSpan(file).subspan(salt.size())).ok()) {
      return Error{ErrorCode::kDenied,
                   "SHOAL_PASSPHRASE is not the passphrase of this data folder"};
    }
    return key;
  }
  const Result<InputFile> file = InputFile::open(folder / "master.key");
  if (!file.ok()) return with_context(file.error(), "master key");
  SecretBytes key(kKeyBytes);  // Read into its place, so that no copy stays behind.
  if (file.value().size() != kKeyBytes) {
    return Error{ErrorCode::kCorrupt,
                 (folder / "master.key").string() + " is not a key of 32 bytes"};
  }
  SHOAL_TRY_ASSIGN(count, file.value().read_at(0, key.edit()));
  if (count != kKeyBytes) {
    return Error{ErrorCode::kIo, (folder / "master.key").string() + " ends too early"};
  }
  return key;
}

Result<ShardStore> ShardStore::open(const std::filesystem::path& folder, SecretBytes master) {
  SHOAL_TRY(make_folder(folder));
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    if (entry.path().extension() == ".part") {
      std::error_code ignored;  // It is tried again at the next start.
      std::filesystem::remove(entry.path(), ignored);
    }
  }
  if (code) return Error{ErrorCode::kIo, "cannot read " + folder.string() + ": " + code.message()};
  return ShardStore(folder, std::move(master));
}

std::filesystem::path ShardStore::path_of(const Digest& digest) const {
  return folder_ / (digest.hex() + ".shard");
}

struct ShardStore::Upload::Parts {
  std::filesystem::path temporary, final_path;
  AppendFile file;
  DigestBuilder builder;
  Digest digest;
  uint64_t size = 0;
};

ShardStore::Upload::Upload(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ShardStore::Upload::Upload(Upload&&) noexcept = default;

ShardStore::Upload::~Upload() {
  if (parts_ == nullptr) return;
  std::error_code ignored;  // The next start removes it.
  std::filesystem::remove(parts_->temporary, ignored);
}

Result<ShardStore::Upload> ShardStore::upload(const Digest& digest, uint64_t size) {
  SHOAL_TRY_ASSIGN(space, free_space(folder_));
  if (static_cast<uint64_t>(space.count) < size) {
    return Error{ErrorCode::kNoSpace, "shard " + digest.hex() + " needs " + std::to_string(size) +
                                          " bytes, but " + folder_.string() + " has " +
                                          std::to_string(space.count) + " free"};
  }
  std::byte suffix[6];
  fill_secret(suffix);
  const std::filesystem::path temporary =
      folder_ / (digest.hex() + "." + hex_encode(suffix) + ".part");
  SHOAL_TRY_ASSIGN(file, AppendFile::open(temporary));
  return Upload(std::make_unique<Upload::Parts>(
      Upload::Parts{temporary, path_of(digest), std::move(file), DigestBuilder(), digest, size}));
}

Result<void> ShardStore::Upload::write(ByteSpan bytes) {
  if (bytes.size() > parts_->size - parts_->file.size()) {
    return Error{ErrorCode::kCorrupt, "shard " + parts_->digest.hex() + " is longer than the " +
                                          std::to_string(parts_->size) + " bytes of the manifest"};
  }
  parts_->builder.update(bytes);
  return parts_->file.append(bytes);
}

Result<void> ShardStore::Upload::finish() {
  if (parts_->file.size() != parts_->size) {
    return Error{ErrorCode::kCorrupt,
                 "shard " + parts_->digest.hex() + " has " + std::to_string(parts_->file.size()) +
                     " bytes where the manifest says " + std::to_string(parts_->size)};
  }
  if (parts_->builder.finish() != parts_->digest) {
    return Error{ErrorCode::kCorrupt,
                 "shard " + parts_->digest.hex() + " does not match its digest"};
  }
  SHOAL_TRY(parts_->file.sync_and_rename(parts_->final_path));
  parts_.reset();
  return {};
}

Result<ByteVector> ShardStore::read(const Digest& digest, uint64_t offset, uint32_t length) const {
  Result<InputFile> file = InputFile::open(path_of(digest));
  if (!file.ok()) return with_context(file.error(), "shard " + digest.hex());
  const uint64_t size = file.value().size();
  if (offset > size) {
    return Error{ErrorCode::kInvalid, "offset " + std::to_string(offset) + " is beyond the " +
                                          std::to_string(size) + " bytes of shard " + digest.hex()};
  }
  ByteVector bytes(std::min<uint64_t>(length, size - offset));
  SHOAL_TRY_ASSIGN(count, file.value().read_at(offset, bytes));
  bytes.resize(count);
  return bytes;
}

Result<void> ShardStore::remove(const Digest& digest) {
  std::error_code code;
  std::filesystem::remove(path_of(digest), code);
  if (code) {
    return Error{ErrorCode::kIo,
                 "cannot remove " + path_of(digest).string() + ": " + code.message()};
  }
  return {};
}

Result<std::vector<Digest>> ShardStore::list() const {
  std::vector<Digest> digests;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, code)) {
    if (entry.path().extension() != ".shard") continue;
    const Result<Digest> digest = Digest::from_hex(entry.path().stem().string());
    if (digest.ok()) digests.push_back(digest.value());
  }
  if (code) return Error{ErrorCode::kIo, "cannot read " + folder_.string() + ": " + code.message()};
  return digests;
}

Result<ByteVector> ShardStore::seal_key_for(const BoxPublicKey& worker,
                                            const ShardRow& shard) const {
  Result<SecretBytes> key = unwrap_key(master_, shard.wrapped_key);
  if (!key.ok()) return with_context(key.error(), "key of shard " + shard.digest.hex());
  return seal_to(worker, key.value().view());
}

}  // namespace shoal
