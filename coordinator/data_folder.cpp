#include "coordinator/data_folder.h"

#include "base/files.h"
#include "base/host.h"
#include "base/random.h"
#include "coordinator/store/host_table.h"
#include "coordinator/store/setting_table.h"
#include "coordinator/store/shard_store.h"

namespace shoal {
namespace {

constexpr Bytes kCertificateBytesMax{64 << 10};
constexpr const char* kInitialised = "initialised";
constexpr size_t kInviteBytes = 16;

bool is_there(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

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

Result<std::string> make_invite(Store& store, const Clock& clock, Millis lifetime,
                                int64_t uses_max) {
  std::byte secret[kInviteBytes];
  fill_secret(secret);
  std::string invite = base64url_encode(secret);
  const Millis now = clock.now_wall();
  SHOAL_TRY(HostTable(store).add_invite(invite_digest(invite), now, now + lifetime, uses_max));
  return invite;
}

}  // namespace shoal
