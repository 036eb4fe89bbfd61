#pragma once
// Hosts, their devices and what these measured, and the invites by which hosts come. Rows in and
// out; decides nothing but whether an invite may still be used.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/secrets.h"
#include "coordinator/store/account_table.h"
#include "coordinator/store/store.h"
#include "schema/limits.h"

namespace shoal {

enum class Standing { kVolunteer, kTrusted, kBanned };
std::string_view standing_name(Standing standing);

struct HostRow {
  HostId id;
  SigningPublicKey public_key;
  std::string name, system, version;
  Standing standing = Standing::kVolunteer;
  Millis enrolled_at, last_seen;
  AccountId account;  // Who answers for it; 0: nobody else.
  bool account_banned = false;
  std::string group;  // Whose work at the level of privacy `group` it may do. May be empty.
};

// What hosts that are enrolled by an invite belong to.
struct Membership {
  AccountId account;  // 0: to none.
  std::string group;

  friend bool operator==(const Membership&, const Membership&) = default;
};

struct DeviceRow {
  std::string name_on_host;  // "cpu", "vulkan:<uuid>".
  std::string selector, plane, name, driver;
  Bytes memory;
  bool software = false;

  // Its last benchmark and self-test; measured_at is 0 before the first.
  Millis measured_at;
  double decode_rows_per_second = 0, prefill_rows_per_second = 0;
  double weight_bytes_per_second = 0, flops_per_second = 0, copy_bytes_per_second = 0;
  bool exact = false;
  int64_t samples = 0, failed = 0, unsupported = 0;
  std::string first_failure;

  friend bool operator==(const DeviceRow&, const DeviceRow&) = default;
};

// A host says what it likes about itself, as often as it likes: so much of it is kept.
constexpr int64_t kBenchmarksKept = 16;  // Of one device.
constexpr int64_t kDevicesKept = 128;    // Of one host, those of its last report among them.
static_assert(kDevicesKept >= limits::kDevicesPerHostMax);

class HostTable {
 public:
  explicit HostTable(Store& store) : store_(store) {}  // The store outlives the table.

  Result<std::optional<HostRow>> find(HostId id);
  Result<std::optional<HostRow>> find(const SigningPublicKey& key);
  Result<std::vector<HostRow>> list(int64_t count_max);
  Result<int64_t> count();
  Result<HostId> enrol(const HostRow& host);  // Its id is not used.
  Result<void> update(const HostRow& host);   // Name, system, version, last seen.
  Result<void> set_last_seen(HostId id, Millis at);
  Result<void> set_standing(HostId id, Standing standing);  // kNotFound for an unknown host.
  Result<void> set_membership(HostId id, const Membership& membership);  // Likewise.

  // What the host reports of a device; a new benchmark is added to the old ones. The newest
  // kBenchmarksKept of a device stay.
  Result<void> save_device(HostId host, const DeviceRow& device, Millis now);
  // Forgets the host's devices that were unseen for longest, so that kDevicesKept stay. Those in
  // `present` are seen now.
  Result<void> forget_devices(HostId host, std::span<const std::string> present, Millis now);
  Result<std::vector<DeviceRow>> devices(HostId host);
  // Its number, which no other device ever has. Nothing when it is not known (any more).
  Result<std::optional<DeviceId>> device_id(HostId host, const std::string& name_on_host);
  Result<std::string> device_name(DeviceId device);  // On its host; empty likewise.

  // Only the digest of an invite's secret is kept.
  Result<void> add_invite(const Digest& secret, Millis now, Millis expires_at, int64_t uses_max,
                          const Membership& membership = {});
  // Counts one use. kDenied with a sentence for the owner when unknown, expired, used up, or of an
  // account that is banned.
  Result<Membership> use_invite(const Digest& secret, Millis now);

 private:
  Result<void> add_benchmark(int64_t device_id, const DeviceRow& device);

  Store& store_;
};

}  // namespace shoal
