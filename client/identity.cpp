#include "client/identity.h"

#include "base/files.h"

namespace shoal::client {

Result<SigningKey> load_or_make_identity(const std::filesystem::path& path, bool attached) {
  const StateFile file(path, 0600);
  Result<StateFile::Loaded> loaded = file.load();
  if (!loaded.ok()) {
    if (loaded.error().code != ErrorCode::kNotFound) {
      return with_context(loaded.error(), "this host's identity");
    }
    if (attached) {
      return Error{ErrorCode::kNotFound,
                   "this host's identity, " + path.string() +
                       ", is gone, and with it what coordinators know it by: put it back from a "
                       "backup, or leave them by shoal-client detach and join anew by an invite"};
    }
    SHOAL_TRY(make_folder(path.parent_path()));
    SigningKey key = SigningKey::generate();
    const SecretBytes seed = key.seed();
    SHOAL_TRY(file.save(seed.view()));
    return key;
  }
  ByteVector& seed = loaded.value().bytes;
  Result<SigningKey> key = SigningKey::from_seed(seed);
  wipe(seed);
  if (!key.ok()) return with_context(key.error(), "this host's identity in " + path.string());
  return key;
}

}  // namespace shoal::client
