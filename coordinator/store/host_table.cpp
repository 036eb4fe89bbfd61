#include "coordinator/store/host_table.h"

#include <algorithm>

namespace shoal {
namespace {

#define SHOAL_HOST_COLUMNS                                                          \
  "id, public_key, name, system, version, standing, enrolled_at_ms, last_seen_ms, " \
  "coalesce(account_id, 0), group_name, "                                           \
  "coalesce((SELECT account.banned FROM account WHERE account.id = host.account_id), 0)"

Result<Standing> standing_from(std::string_view name) {
  for (const Standing standing : {Standing::kVolunteer, Standing::kTrusted, Standing::kBanned}) {
    if (standing_name(standing) == name) return standing;
  }
  return Error{ErrorCode::kCorrupt, "store: host has the unknown standing " + std::string(name)};
}

Result<HostRow> host_of(const Query& query) {
  HostRow host;
  host.id = HostId{query.integer(0)};
  SHOAL_TRY_ASSIGN(key, SigningPublicKey::from_bytes(query.blob(1)));
  host.public_key = key;
  host.name = query.text(2);
  host.system = query.text(3);
  host.version = query.text(4);
  SHOAL_TRY_ASSIGN(standing, standing_from(query.text(5)));
  host.standing = standing;
  host.enrolled_at = Millis{query.integer(6)};
  host.last_seen = Millis{query.integer(7)};
  host.account = AccountId{query.integer(8)};
  host.group = query.text(9);
  host.account_banned = query.integer(10) != 0;
  return host;
}

Error unknown_host(HostId id) {
  return {ErrorCode::kNotFound, "there is no host " + std::to_string(id.value) +
                                    "; shoalctl host list shows those that are known"};
}

Result<std::optional<HostRow>> one_host(Query query) {
  SHOAL_TRY_ASSIGN(some, query.row());
  if (!some) return std::optional<HostRow>();
  SHOAL_TRY_ASSIGN(host, host_of(query));
  return std::optional<HostRow>(std::move(host));
}

}  // namespace

std::string_view standing_name(Standing standing) {
  switch (standing) {
    case Standing::kVolunteer: return "volunteer";
    case Standing::kTrusted: return "trusted";
    case Standing::kBanned: return "banned";
  }
  SHOAL_UNREACHABLE();
}

Result<std::optional<HostRow>> HostTable::find(HostId id) {
  Query query = store_.query("SELECT " SHOAL_HOST_COLUMNS " FROM host WHERE id = ?");
  query.bind(id.value);
  return one_host(std::move(query));
}

Result<std::optional<HostRow>> HostTable::find(const SigningPublicKey& key) {
  Query query = store_.query("SELECT " SHOAL_HOST_COLUMNS " FROM host WHERE public_key = ?");
  query.bind(ByteSpan(key.bytes));
  return one_host(std::move(query));
}

Result<int64_t> HostTable::count() {
  Query query = store_.query("SELECT count(*) FROM host");
  SHOAL_TRY_ASSIGN(some, query.row());
  SHOAL_CHECK(some);
  return query.integer(0);
}

Result<std::vector<HostRow>> HostTable::list(int64_t count_max) {
  std::vector<HostRow> hosts;
  Query query = store_.query("SELECT " SHOAL_HOST_COLUMNS " FROM host ORDER BY id LIMIT ?");
  query.bind(count_max);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return hosts;
    SHOAL_TRY_ASSIGN(host, host_of(query));
    hosts.push_back(std::move(host));
  }
}

Result<HostId> HostTable::enrol(const HostRow& host) {
  Query query = store_.query(
      "INSERT INTO host (public_key, name, system, version, standing, enrolled_at_ms, "
      "last_seen_ms, account_id, group_name) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, 0), ?)");
  query.bind(ByteSpan(host.public_key.bytes))
      .bind(host.name)
      .bind(host.system)
      .bind(host.version)
      .bind(standing_name(host.standing))
      .bind(host.enrolled_at.count)
      .bind(host.last_seen.count)
      .bind(host.account.value)
      .bind(host.group);
  SHOAL_TRY(query.run());
  return HostId{store_.last_id()};
}

Result<void> HostTable::update(const HostRow& host) {
  Query query = store_.query(
      "UPDATE host SET name = ?, system = ?, version = ?, last_seen_ms = ? WHERE id = ?");
  return query.bind(host.name)
      .bind(host.system)
      .bind(host.version)
      .bind(host.last_seen.count)
      .bind(host.id.value)
      .run();
}

Result<void> HostTable::set_last_seen(HostId id, Millis at) {
  Query query = store_.query("UPDATE host SET last_seen_ms = ? WHERE id = ?");
  return query.bind(at.count).bind(id.value).run();
}

Result<void> HostTable::set_standing(HostId id, Standing standing) {
  Query query = store_.query("UPDATE host SET standing = ? WHERE id = ?");
  SHOAL_TRY(query.bind(standing_name(standing)).bind(id.value).run());
  if (store_.changes() == 0) return unknown_host(id);
  return {};
}

Result<void> HostTable::set_membership(HostId id, const Membership& membership) {
  Query query =
      store_.query("UPDATE host SET account_id = nullif(?, 0), group_name = ? WHERE id = ?");
  SHOAL_TRY(query.bind(membership.account.value).bind(membership.group).bind(id.value).run());
  if (store_.changes() == 0) return unknown_host(id);
  return {};
}

Result<void> HostTable::save_device(HostId host, const DeviceRow& device, Millis now) {
  return store_.transaction([&]() -> Result<void> {
    int64_t device_id = 0;
    {
      Query query = store_.query(
          "INSERT INTO device (host_id, name_on_host, selector, plane, name, driver, memory_bytes, "
          "software, last_seen_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
          "ON CONFLICT (host_id, name_on_host) DO UPDATE SET selector = excluded.selector, "
          "plane = excluded.plane, name = excluded.name, driver = excluded.driver, "
          "memory_bytes = excluded.memory_bytes, software = excluded.software, "
          "last_seen_ms = excluded.last_seen_ms");
      SHOAL_TRY(query.bind(host.value)
                    .bind(device.name_on_host)
                    .bind(device.selector)
                    .bind(device.plane)
                    .bind(device.name)
                    .bind(device.driver)
                    .bind(device.memory.count)
                    .bind(int64_t{device.software})
                    .bind(now.count)
                    .run());
    }
    int64_t last_measured = 0;
    {
      Query query = store_.query(
          "SELECT device.id, coalesce(max(benchmark.measured_at_ms), 0) FROM device "
          "LEFT JOIN benchmark ON benchmark.device_id = device.id "
          "WHERE host_id = ? AND name_on_host = ? GROUP BY device.id");
      SHOAL_TRY_ASSIGN(some, query.bind(host.value).bind(device.name_on_host).row());
      SHOAL_CHECK(some);
      device_id = query.integer(0);
      last_measured = query.integer(1);
    }
    if (device.measured_at.count == 0 || device.measured_at.count == last_measured) return {};
    SHOAL_TRY(add_benchmark(device_id, device));
    Query query = store_.query(
        "DELETE FROM benchmark WHERE device_id = ?1 AND id NOT IN "
        "(SELECT id FROM benchmark WHERE device_id = ?1 ORDER BY id DESC LIMIT ?2)");
    return query.bind(device_id).bind(kBenchmarksKept).run();
  });
}

Result<void> HostTable::add_benchmark(int64_t device_id, const DeviceRow& device) {
  Query query = store_.query(
      "INSERT INTO benchmark (device_id, measured_at_ms, decode_rows_per_second, "
      "prefill_rows_per_second, weight_bytes_per_second, flops_per_second, "
      "copy_bytes_per_second, "
      "exact, samples, failed, unsupported, first_failure) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?)");
  return query.bind(device_id)
      .bind(device.measured_at.count)
      .bind(device.decode_rows_per_second)
      .bind(device.prefill_rows_per_second)
      .bind(device.weight_bytes_per_second)
      .bind(device.flops_per_second)
      .bind(device.copy_bytes_per_second)
      .bind(int64_t{device.exact})
      .bind(device.samples)
      .bind(device.failed)
      .bind(device.unsupported)
      .bind(device.first_failure)
      .run();
}

Result<void> HostTable::forget_devices(HostId host, std::span<const std::string> present,
                                       Millis now) {
  return store_.transaction([&]() -> Result<void> {
    {
      Query query = store_.query("SELECT count(*) FROM device WHERE host_id = ?");
      SHOAL_TRY_ASSIGN(some, query.bind(host.value).row());
      SHOAL_CHECK(some);
      if (query.integer(0) <= kDevicesKept) return {};
    }
    for (const std::string& name : present) {
      Query query =
          store_.query("UPDATE device SET last_seen_ms = ? WHERE host_id = ? AND name_on_host = ?");
      SHOAL_TRY(query.bind(now.count).bind(host.value).bind(name).run());
    }
    Query query = store_.query(
        "DELETE FROM device WHERE host_id = ?1 AND id NOT IN (SELECT id FROM device WHERE "
        "host_id = ?1 ORDER BY last_seen_ms DESC, id DESC LIMIT ?2)");
    return query.bind(host.value).bind(kDevicesKept).run();
  });
}

Result<std::vector<DeviceRow>> HostTable::devices(HostId host) {
  std::vector<DeviceRow> devices;
  Query query = store_.query(
      "SELECT name_on_host, selector, plane, name, driver, memory_bytes, software, "
      "coalesce(measured_at_ms, 0), coalesce(decode_rows_per_second, 0.0), "
      "coalesce(prefill_rows_per_second, 0.0), coalesce(weight_bytes_per_second, 0.0), "
      "coalesce(flops_per_second, 0.0), coalesce(copy_bytes_per_second, 0.0), coalesce(exact, 0), "
      "coalesce(samples, 0), coalesce(failed, 0), coalesce(unsupported, 0), "
      "coalesce(first_failure, '') "
      "FROM device LEFT JOIN benchmark ON benchmark.id = "
      "(SELECT max(id) FROM benchmark WHERE device_id = device.id) WHERE host_id = ? ORDER BY "
      "device.id");
  query.bind(host.value);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return devices;
    DeviceRow device;
    device.name_on_host = query.text(0);
    device.selector = query.text(1);
    device.plane = query.text(2);
    device.name = query.text(3);
    device.driver = query.text(4);
    device.memory = Bytes{query.integer(5)};
    device.software = query.integer(6) != 0;
    device.measured_at = Millis{query.integer(7)};
    device.decode_rows_per_second = query.real(8);
    device.prefill_rows_per_second = query.real(9);
    device.weight_bytes_per_second = query.real(10);
    device.flops_per_second = query.real(11);
    device.copy_bytes_per_second = query.real(12);
    device.exact = query.integer(13) != 0;
    device.samples = query.integer(14);
    device.failed = query.integer(15);
    device.unsupported = query.integer(16);
    device.first_failure = query.text(17);
    devices.push_back(std::move(device));
  }
}

Result<std::optional<DeviceId>> HostTable::device_id(HostId host, const std::string& name_on_host) {
  Query query = store_.query("SELECT id FROM device WHERE host_id = ? AND name_on_host = ?");
  SHOAL_TRY_ASSIGN(some, query.bind(host.value).bind(name_on_host).row());
  return some ? std::optional<DeviceId>(DeviceId{query.integer(0)}) : std::nullopt;
}

Result<std::string> HostTable::device_name(DeviceId device) {
  Query query = store_.query("SELECT name_on_host FROM device WHERE id = ?");
  SHOAL_TRY_ASSIGN(some, query.bind(device.value).row());
  return some ? query.text(0) : std::string();
}

Result<void> HostTable::add_invite(const Digest& secret, Millis now, Millis expires_at,
                                   int64_t uses_max, const Membership& membership) {
  Query query = store_.query(
      "INSERT INTO invite (secret_digest, created_at_ms, expires_at_ms, uses_max, account_id, "
      "group_name) VALUES (?, ?, ?, ?, nullif(?, 0), ?)");
  return query.bind(ByteSpan(secret.bytes))
      .bind(now.count)
      .bind(expires_at.count)
      .bind(uses_max)
      .bind(membership.account.value)
      .bind(membership.group)
      .run();
}

Result<Membership> HostTable::use_invite(const Digest& secret, Millis now) {
  Membership membership;
  SHOAL_TRY(store_.transaction([&]() -> Result<void> {
    int64_t id = 0;
    {
      Query query = store_.query(
          "SELECT invite.id, expires_at_ms, uses_max, uses, coalesce(account_id, 0), group_name, "
          "coalesce(banned, 0) FROM invite LEFT JOIN account ON account.id = account_id WHERE "
          "secret_digest = ?");
      SHOAL_TRY_ASSIGN(some, query.bind(ByteSpan(secret.bytes)).row());
      if (!some) {
        return Error{ErrorCode::kDenied,
                     "the attach URL's invite is not one of this coordinator; ask its "
                     "administrator for a new URL"};
      }
      if (now.count >= query.integer(1)) {
        return Error{ErrorCode::kDenied,
                     "the attach URL's invite has expired; ask the administrator for a new URL"};
      }
      if (query.integer(3) >= query.integer(2)) {
        return Error{ErrorCode::kDenied,
                     "the attach URL's invite has been used as often as it may be; "
                     "ask the administrator for a new URL"};
      }
      if (query.integer(6) != 0) {
        return Error{ErrorCode::kDenied,
                     "the attach URL's invite belongs to an account that is banned by the "
                     "coordinator's administrator"};
      }
      id = query.integer(0);
      membership = {AccountId{query.integer(4)}, query.text(5)};
    }
    Query query = store_.query("UPDATE invite SET uses = uses + 1 WHERE id = ?");
    return query.bind(id).run();
  }));
  return membership;
}

}  // namespace shoal
