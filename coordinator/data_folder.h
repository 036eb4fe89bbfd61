#pragma once
// The coordinator's data folder: makes one, and opens what lies in it (certificate, master key,
// settings).
//
//   coordinator.toml  settings            certificate.der, certificate.key  who it is on the wire
//   store.sqlite      everything known    master.key or master.salt         what wraps the shards'
//   keys shards/           sealed shards       spill/  kept inputs, without names address host:port
//   while it runs      admin.sock  the administrators' door while it runs

#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/secrets.h"
#include "coordinator/settings.h"
#include "coordinator/store/host_table.h"
#include "coordinator/store/store.h"
#include "schema/transport.h"

namespace shoal {

// Where a coordinator's data lies when nothing else is said.
Result<std::filesystem::path> default_data_folder();

struct DataFolder {
  std::filesystem::path path;
  CoordinatorSettings settings;
  rpc::Certificate certificate;
  std::string pin;
  SecretBytes master;
  std::optional<SigningKey> receipt_key;  // Never empty once it is open. It never changes.
  std::unique_ptr<Store> store;
};

// Keys, certificate, settings with their documentation, an empty store. kExists when the folder
// holds a coordinator already, which is then untouched; one that was interrupted is completed.
Result<DataFolder> make_data_folder(const std::filesystem::path& path, std::string_view passphrase);

// kNotFound with what to do when there is none.
Result<DataFolder> open_data_folder(const std::filesystem::path& path, std::string_view passphrase);

// A fresh invite, stored by its digest alone.
Result<std::string> make_invite(Store& store, const Clock& clock, Millis lifetime, int64_t uses_max,
                                const Membership& membership = {});
Digest invite_digest(std::string_view invite);

}  // namespace shoal
