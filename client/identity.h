#pragma once
// Holds who this host is: an Ed25519 key in a file that only its owner can read.

#include <filesystem>

#include "base/secrets.h"

namespace shoal::client {

// Makes the key at the first call. A damaged file is an error, and so is an absent one of a host
// that is `attached`, never a new identity: that would be another host in the eyes of every
// coordinator.
Result<SigningKey> load_or_make_identity(const std::filesystem::path& path, bool attached);

}  // namespace shoal::client
