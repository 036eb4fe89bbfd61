#include "coordinator/data_folder.h"

#include "base/files.h"
#include "base/host.h"
#include "base/random.h"
#include "coordinator/store/model_table.h"
#include "coordinator/store/setting_table.h"
#include "coordinator/store/shard_store.h"

namespace shoal {
namespace {

constexpr Bytes kCertificateBytesMax{64 << 10};
constexpr const char* kInitialised = "initialised";
constexpr const char* kReceiptKey = "receipt_key";  // Its seed, wrapped by the master key.
constexpr size_t kInviteBytes = 16;

// The setting that tells the right master key from a wrong one: this text, wrapped by it.
constexpr const char* kMasterCheck = "master_check";
constexpr std::string_view kMasterCheckText = "shoal-master-check-1";

Result<rpc::Certificate> load_certificate(const std::filesystem::path& folder) {
  rpc::Certificate certificate;
  SHOAL_TRY_ASSIGN(der, read_file(folder / "certificate.der", kCertificateBytesMax));
  SHOAL_TRY_ASSIGN(key, read_file(folder / "certificate.key", kCertificateBytesMax));
  certificate.der = std::move(der);
  certificate.private_key_pem = as_text(key);
  wipe(key);
  return certificate;
}

Result<void> write_certificate(const std::filesystem::path& folder) {
  SHOAL_TRY_ASSIGN(certificate, rpc::make_certificate());
  SHOAL_TRY(
      write_file_durably(folder / "certificate.key", as_bytes(certificate.private_key_pem), 0600));
  return write_file_durably(folder / "certificate.der", certificate.der);
}

// Refuses a master key that is not the one of this store: it would open no model and no receipt.
// A store from before there was a check gets one, if the key opens what is there.
Result<void> check_master_key(const std::filesystem::path& path, Store& store,
                              const SecretBytes& master) {
  SettingTable facts(store);
  SHOAL_TRY_ASSIGN(check, facts.get(kMasterCheck));
  ByteVector wrapped;
  if (check) {
    SHOAL_TRY_ASSIGN(bytes, hex_decode(*check));
    wrapped = std::move(bytes);
  } else {
    SHOAL_TRY_ASSIGN(some_key, ModelTable(store).some_wrapped_key());
    if (some_key) wrapped = std::move(*some_key);
  }
  if (!wrapped.empty() && !unwrap_key(master, wrapped).ok()) {
    return Error{ErrorCode::kDenied,
                 "the master key in " + path.string() +
                     " is not the one that this coordinator's store was made with: put the right " +
                     "master.key back, or restore the whole folder from a backup"};
  }
  if (check) return {};
  return facts.set(kMasterCheck,
                   hex_encode(wrap_key(master, SecretBytes(as_bytes(kMasterCheckText)))));
}

// The key that signs receipts; a store from before there were any gets one.
Result<SigningKey> load_receipt_key(Store& store, const SecretBytes& master) {
  SettingTable facts(store);
  SHOAL_TRY_ASSIGN(text, facts.get(kReceiptKey));
  if (!text) {
    SigningKey key = SigningKey::generate();
    SHOAL_TRY(facts.set(kReceiptKey, hex_encode(wrap_key(master, key.seed()))));
    return key;
  }
  SHOAL_TRY_ASSIGN(wrapped, hex_decode(*text));
  Result<SecretBytes> seed = unwrap_key(master, wrapped);
  if (!seed.ok()) return with_context(seed.error(), "the key that signs receipts");
  return SigningKey::from_seed(seed.value().view());
}

Result<DataFolder> read_folder(const std::filesystem::path& path, std::string_view passphrase,
                               std::unique_ptr<Store> store) {
  DataFolder folder;
  folder.path = path;
  SHOAL_TRY_ASSIGN(settings, load_coordinator_settings(path));
  folder.settings = std::move(settings);
  SHOAL_TRY_ASSIGN(certificate, load_certificate(path));
  folder.certificate = std::move(certificate);
  folder.pin = rpc::pin_of(folder.certificate.der);
  SHOAL_TRY_ASSIGN(master, load_master_key(path, passphrase));
  SHOAL_TRY(check_master_key(path, *store, master));
  SHOAL_TRY_ASSIGN(receipt_key, load_receipt_key(*store, master));
  folder.receipt_key = std::move(receipt_key);
  folder.master = std::move(master);
  folder.store = std::move(store);
  return folder;
}

}  // namespace

Result<std::filesystem::path> default_data_folder() {
  SHOAL_TRY_ASSIGN(folders, user_folders());
  return folders.state / "coordinator";
}

Result<DataFolder> make_data_folder(const std::filesystem::path& path,
                                    std::string_view passphrase) {
  SHOAL_TRY(make_folder(path));
  SHOAL_TRY_ASSIGN(store, Store::open(path));
  SettingTable facts(*store);
  SHOAL_TRY_ASSIGN(initialised, facts.get(kInitialised));
  if (initialised) {
    return Error{ErrorCode::kExists,
                 path.string() + " holds a coordinator already; nothing was changed"};
  }
  if (!is_there(path / "coordinator.toml")) {
    const std::string text = Settings(coordinator_setting_table()).document();
    SHOAL_TRY(write_file_durably(path / "coordinator.toml", as_bytes(text)));
  }
  if (!is_there(path / "certificate.der")) SHOAL_TRY(write_certificate(path));
  if (!is_there(path / "master.key") && !is_there(path / "master.salt")) {
    SHOAL_TRY(make_master_key(path, passphrase));
  }
  SHOAL_TRY(facts.set(kInitialised, "1"));
  return read_folder(path, passphrase, std::move(store));
}

Result<DataFolder> open_data_folder(const std::filesystem::path& path,
                                    std::string_view passphrase) {
  const Error none{ErrorCode::kNotFound,
                   path.string() + " holds no coordinator: make one with shoalctl --data " +
                       path.string() + " init"};
  // Looked for first, so that a wrong --data does not litter somebody's folder.
  if (!is_there(path / "store.sqlite")) return none;
  SHOAL_TRY_ASSIGN(store, Store::open(path));
  SHOAL_TRY_ASSIGN(initialised, SettingTable(*store).get(kInitialised));
  if (!initialised) return none;
  return read_folder(path, passphrase, std::move(store));
}

Digest invite_digest(std::string_view invite) { return digest_of(as_bytes(invite)); }

Result<std::string> make_invite(Store& store, const Clock& clock, Millis lifetime, int64_t uses_max,
                                const Membership& membership) {
  std::byte secret[kInviteBytes];
  fill_secret(secret);
  std::string invite = base64url_encode(secret);
  const Millis now = clock.now_wall();
  SHOAL_TRY(HostTable(store).add_invite(invite_digest(invite), now, now + lifetime, uses_max,
                                        membership));
  return invite;
}

}  // namespace shoal
