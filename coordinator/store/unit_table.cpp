#include "coordinator/store/unit_table.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "coordinator/store/columns.h"

namespace shoal {
namespace {

constexpr std::array<std::string_view, 3> kWants = {"nothing", "audit", "judge"};
constexpr std::array<std::string_view, 5> kPurposes = {"work", "audit", "recheck", "judge",
                                                       "known"};
constexpr std::array<std::string_view, 6> kEnds = {"submitted", "expired",     "given_back",
                                                   "failed",    "quarantined", "cancelled"};
constexpr std::array<std::string_view, 5> kResults = {"none", "pending", "suspect", "confirmed",
                                                      "rejected"};

// What a batch of changes does to one lease, and to one unit.
struct LeaseDelta {
  const LeaseGranted* granted = nullptr;  // Null: it has a row.
  std::optional<Millis> until;
  const LeaseEnded* ended = nullptr;
  const ResultReceived* received = nullptr;
  std::optional<ResultState> state;
};
struct UnitDelta {
  const UnitCut* cut = nullptr;  // Null: it has a row.
  std::optional<UnitWant> want;
  const UnitDone* done = nullptr;
  bool poisoned = false;
};

// Deltas in the order in which their rows were first touched.
template <class Id, class Delta>
class Deltas {
 public:
  Delta& of(Id id) {
    const auto [found, is_new] = places_.try_emplace(id, deltas_.size());
    if (is_new) deltas_.push_back({id, {}});
    return deltas_[found->second].second;
  }
  const std::vector<std::pair<Id, Delta>>& all() const { return deltas_; }

 private:
  std::unordered_map<Id, size_t> places_;
  std::vector<std::pair<Id, Delta>> deltas_;
};

struct Collected {
  Deltas<UnitId, UnitDelta> units;
  Deltas<LeaseId, LeaseDelta> leases;
  std::unordered_map<HostId, const HostChanged*> hosts;

  void operator()(const UnitCut& change) { units.of(change.unit).cut = &change; }
  void operator()(const UnitWants& change) { units.of(change.unit).want = change.want; }
  void operator()(const LeaseGranted& change) { leases.of(change.lease).granted = &change; }
  void operator()(const LeaseExtended& change) { leases.of(change.lease).until = change.until; }
  void operator()(const LeaseEnded& change) { leases.of(change.lease).ended = &change; }
  void operator()(const ResultReceived& change) {
    LeaseDelta& lease = leases.of(change.lease);
    lease.received = &change;
    lease.state = change.state;
  }
  void operator()(const ResultSuspected& change) {
    leases.of(change.lease).state = ResultState::kSuspect;
  }
  void operator()(const ResultConfirmed& change) {
    leases.of(change.lease).state = ResultState::kConfirmed;
  }
  void operator()(const ResultRejected& change) {
    leases.of(change.lease).state = ResultState::kRejected;
  }
  void operator()(const UnitDone& change) { units.of(change.unit).done = &change; }
  void operator()(const UnitPoisoned& change) { units.of(change.unit).poisoned = true; }
  void operator()(const TaskChanged&) {}  // Of the job table.
  void operator()(const JobChanged&) {}
  void operator()(const HostChanged& change) { hosts[change.host] = &change; }
};

// "" means NULL, which leaves the column as it is.
void bind_or_keep(Query& query, std::string_view text) {
  if (text.empty()) {
    query.bind_null();
  } else {
    query.bind(text);
  }
}

}  // namespace

Result<void> UnitTable::insert_lease(const LeaseRow& lease) {
  Query query = store_.query(
      "INSERT INTO unit_lease (id, unit_id, host_id, device_id, purpose, granted_at_ms, until_ms, "
      "ended_at_ms, end_reason, result, digest, serial, result_at_ms) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const LeaseGranted& granted = lease.granted;
  return query.bind(granted.lease.value)
      .bind(granted.unit.value)
      .bind(granted.host.value)
      .bind(granted.device.value)
      .bind(word(kPurposes, granted.purpose))
      .bind(granted.at.count)
      .bind(granted.until.count)
      .bind(lease.live ? int64_t{0} : std::max<int64_t>(lease.result_at.count, 1))
      .bind(lease.live ? std::string_view() : word(kEnds, lease.why))
      .bind(word(kResults, lease.state))
      .bind(lease.state == ResultState::kNone ? ByteSpan() : ByteSpan(lease.digest.bytes))
      .bind(static_cast<int64_t>(lease.serial))
      .bind(lease.state == ResultState::kNone ? int64_t{0} : lease.result_at.count)
      .run();
}

Result<void> UnitTable::write(std::span<const Change> changes,
                              std::span<const std::pair<HostId, uint64_t>> serials) {
  Collected collected;
  for (const Change& change : changes) std::visit(collected, change);

  for (const auto& [id, unit] : collected.units.all()) {
    const std::string_view state = unit.done != nullptr ? "done" : unit.poisoned ? "poisoned" : "";
    const ByteSpan digest = unit.done != nullptr ? ByteSpan(unit.done->digest.bytes) : ByteSpan();
    const int64_t lease = unit.done != nullptr ? unit.done->lease.value : 0;
    if (unit.cut != nullptr) {
      Query query = store_.query(
          "INSERT INTO unit (id, task_id, first_item, item_count, state, want, digest, lease_id) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
      SHOAL_TRY(query.bind(id.value)
                    .bind(unit.cut->task.value)
                    .bind(unit.cut->first_item)
                    .bind(unit.cut->items)
                    .bind(state.empty() ? "open" : state)
                    .bind(word(kWants, unit.want.value_or(UnitWant::kNothing)))
                    .bind(digest)
                    .bind(lease)
                    .run());
      continue;
    }
    Query query = store_.query(
        "UPDATE unit SET state = coalesce(?, state), want = coalesce(?, want), "
        "digest = coalesce(?, digest), lease_id = coalesce(?, lease_id) WHERE id = ?");
    bind_or_keep(query, state);
    bind_or_keep(query, unit.want ? word(kWants, *unit.want) : std::string_view());
    if (unit.done != nullptr) {
      query.bind(digest).bind(lease);
    } else {
      query.bind_null().bind_null();
    }
    SHOAL_TRY(query.bind(id.value).run());
  }

  for (const auto& [id, lease] : collected.leases.all()) {
    if (lease.granted != nullptr) {
      LeaseRow row;
      row.granted = *lease.granted;
      if (lease.until) row.granted.until = *lease.until;
      if (lease.ended != nullptr) {
        row.live = false;
        row.why = lease.ended->why;
        row.result_at = lease.ended->at;
      }
      if (lease.received != nullptr) {
        row.digest = lease.received->digest;
        row.serial = lease.received->serial;
        row.result_at = lease.received->at;
      }
      row.state = lease.state.value_or(ResultState::kNone);
      SHOAL_TRY(insert_lease(row));
      continue;
    }
    Query query = store_.query(
        "UPDATE unit_lease SET until_ms = coalesce(?, until_ms), "
        "ended_at_ms = coalesce(?, ended_at_ms), end_reason = coalesce(?, end_reason), "
        "result = coalesce(?, result), digest = coalesce(?, digest), "
        "serial = coalesce(?, serial), result_at_ms = coalesce(?, result_at_ms) WHERE id = ?");
    if (lease.until) {
      query.bind(lease.until->count);
    } else {
      query.bind_null();
    }
    if (lease.ended != nullptr) {
      query.bind(std::max<int64_t>(lease.ended->at.count, 1)).bind(word(kEnds, lease.ended->why));
    } else {
      query.bind_null().bind_null();
    }
    bind_or_keep(query, lease.state ? word(kResults, *lease.state) : std::string_view());
    if (lease.received != nullptr) {
      query.bind(ByteSpan(lease.received->digest.bytes))
          .bind(static_cast<int64_t>(lease.received->serial))
          .bind(lease.received->at.count);
    } else {
      query.bind_null().bind_null().bind_null();
    }
    SHOAL_TRY(query.bind(id.value).run());
  }

  for (const auto& [host, change] : collected.hosts) {
    Query query = store_.query(
        "INSERT INTO host_record (host_id, valid_in_row, wrong, quarantined_until_ms, serial) "
        "VALUES (?, ?, ?, ?, 0) ON CONFLICT (host_id) DO UPDATE SET "
        "valid_in_row = excluded.valid_in_row, wrong = excluded.wrong, "
        "quarantined_until_ms = excluded.quarantined_until_ms");
    SHOAL_TRY(query.bind(host.value)
                  .bind(change->valid_in_row)
                  .bind(change->wrong)
                  .bind(change->quarantined_until.count)
                  .run());
  }
  for (const auto& [host, serial] : serials) {
    Query query = store_.query(
        "INSERT INTO host_record (host_id, valid_in_row, wrong, quarantined_until_ms, serial) "
        "VALUES (?, 0, 0, 0, ?) ON CONFLICT (host_id) DO UPDATE SET "
        "serial = max(serial, excluded.serial)");
    SHOAL_TRY(query.bind(host.value).bind(static_cast<int64_t>(serial)).run());
  }
  return {};
}

Result<void> UnitTable::add_result(UnitId unit, const Digest& digest, int64_t size,
                                   ByteSpan bytes) {
  Query query = store_.query(
      "INSERT INTO result (unit_id, digest, size, bytes) VALUES (?, ?, ?, ?) "
      "ON CONFLICT (unit_id, digest) DO NOTHING");
  return query.bind(unit.value).bind(ByteSpan(digest.bytes)).bind(size).bind(bytes).run();
}

namespace {

#define SHOAL_REMOVED " RETURNING unit_id, digest, length(bytes)"

UnitTable::Removed removed_by(Query query) {
  std::vector<LargeResult> large;
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return large;
    if (query.integer(2) > 0) continue;
    SHOAL_TRY_ASSIGN(digest, digest_of_column(query, 1));
    large.push_back({UnitId{query.integer(0)}, digest.value_or(Digest())});
  }
}

}  // namespace

UnitTable::Removed UnitTable::remove_other_results(UnitId unit, const Digest& digest) {
  Query query = store_.query("DELETE FROM result WHERE unit_id = ? AND digest <> ?" SHOAL_REMOVED);
  query.bind(unit.value).bind(ByteSpan(digest.bytes));
  return removed_by(std::move(query));
}

UnitTable::Removed UnitTable::remove_results(UnitId unit) {
  Query query = store_.query("DELETE FROM result WHERE unit_id = ?" SHOAL_REMOVED);
  query.bind(unit.value);
  return removed_by(std::move(query));
}

UnitTable::Removed UnitTable::remove_results(TaskId task) {
  Query query = store_.query(
      "DELETE FROM result WHERE unit_id IN (SELECT id FROM unit WHERE task_id = ?)" SHOAL_REMOVED);
  query.bind(task.value);
  return removed_by(std::move(query));
}

UnitTable::Removed UnitTable::remove_undone_results(JobId job) {
  Query query = store_.query(
      "DELETE FROM result WHERE unit_id IN (SELECT unit.id FROM task JOIN unit ON "
      "unit.task_id = task.id WHERE task.job_id = ? AND unit.state <> 'done')" SHOAL_REMOVED);
  query.bind(job.value);
  return removed_by(std::move(query));
}

Result<std::optional<JobId>> UnitTable::job_of(UnitId unit) {
  Query query = store_.query(
      "SELECT task.job_id FROM unit JOIN task ON task.id = unit.task_id WHERE unit.id = ?");
  SHOAL_TRY_ASSIGN(some, query.bind(unit.value).row());
  return some ? std::optional<JobId>(JobId{query.integer(0)}) : std::nullopt;
}

Result<bool> UnitTable::has_result_file(UnitId unit, const Digest& digest) {
  Query query =
      store_.query("SELECT 1 FROM result WHERE unit_id = ? AND digest = ? AND bytes = x''");
  return query.bind(unit.value).bind(ByteSpan(digest.bytes)).row();
}

namespace {

#define SHOAL_LEASE_COLUMNS                                                                   \
  "unit_lease.id, unit_lease.unit_id, host_id, device_id, purpose, granted_at_ms, until_ms, " \
  "ended_at_ms, end_reason, result, unit_lease.digest, serial, result_at_ms"
constexpr int kLeaseColumns = 13;
// A lease with a result of what its unit asked for before it was made anew: it says nothing of the
// unit of now. A lease that was given back has no result else.
#define SHOAL_FORMER "(unit_lease.end_reason = 'given_back' AND unit_lease.result <> 'none')"
#define SHOAL_UNIT_COLUMNS                                                           \
  "unit.id, unit.task_id, unit.first_item, unit.item_count, unit.state, unit.want, " \
  "unit.digest"

Result<LeaseRow> lease_of(const Query& query) {
  LeaseRow row;
  row.granted.lease = LeaseId{query.integer(0)};
  row.granted.unit = UnitId{query.integer(1)};
  row.granted.host = HostId{query.integer(2)};
  row.granted.device = DeviceId{query.integer(3)};
  row.granted.purpose = value_of<Purpose>(kPurposes, query.text(4));
  row.granted.at = Millis{query.integer(5)};
  row.granted.until = Millis{query.integer(6)};
  row.live = query.integer(7) == 0;
  if (!row.live) row.why = value_of<LeaseEndReason>(kEnds, query.text(8));
  row.state = value_of<ResultState>(kResults, query.text(9));
  SHOAL_TRY_ASSIGN(digest, digest_of_column(query, 10));
  row.digest = digest.value_or(Digest());
  row.serial = static_cast<uint64_t>(query.integer(11));
  row.result_at = Millis{query.integer(12)};
  return row;
}

UnitCut cut_of(const Query& query, int first) {
  return {UnitId{query.integer(first)}, TaskId{query.integer(first + 1)}, query.integer(first + 2),
          query.integer(first + 3)};
}

}  // namespace

Result<std::optional<FoundLease>> UnitTable::find_lease(LeaseId id) {
  Query query = store_.query("SELECT " SHOAL_LEASE_COLUMNS ", " SHOAL_UNIT_COLUMNS
                             " FROM unit_lease JOIN unit ON unit.id = unit_lease.unit_id "
                             "WHERE unit_lease.id = ?");
  SHOAL_TRY_ASSIGN(some, query.bind(id.value).row());
  if (!some) return std::optional<FoundLease>();
  FoundLease found;
  SHOAL_TRY_ASSIGN(row, lease_of(query));
  found.row = row;
  found.cut = cut_of(query, kLeaseColumns);
  found.unit_done = query.text(kLeaseColumns + 4) == "done";
  SHOAL_TRY_ASSIGN(digest, digest_of_column(query, kLeaseColumns + 6));
  found.unit_digest = digest.value_or(Digest());
  return std::optional<FoundLease>(found);
}

Result<std::vector<HostId>> UnitTable::hosts_with_results(UnitId unit) {
  Query query = store_.query(
      "SELECT host_id FROM unit_lease WHERE unit_id = ? AND result <> 'none' AND "
      "NOT " SHOAL_FORMER);
  query.bind(unit.value);
  std::vector<HostId> hosts;
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return hosts;
    hosts.push_back(HostId{query.integer(0)});
  }
}

Result<TaskFigures> UnitTable::figures(TaskId task) {
  SHOAL_TRY_ASSIGN(figures, counts(task));
  SHOAL_TRY(look_at_open(task, figures));
  return figures;
}

Result<TaskFigures> UnitTable::counts(TaskId task) {
  TaskFigures figures;
  Query query = store_.query(
      "SELECT state, sum(item_count), count(*) FROM unit WHERE task_id = ? GROUP BY state");
  query.bind(task.value);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return figures;
    const std::string state = query.text(0);
    figures.cut += query.integer(1);
    if (state == "done") figures.done = query.integer(1);
    if (state == "poisoned") {
      figures.poisoned = query.integer(1);
      figures.units_poisoned = query.integer(2);
    }
  }
}

Result<int64_t> UnitTable::items_of(UnitId unit) {
  Query query = store_.query("SELECT item_count FROM unit WHERE id = ?");
  query.bind(unit.value);
  return one_number(std::move(query));
}

Result<void> UnitTable::look_at_open(TaskId task, TaskFigures& figures) {
  Query pending = store_.query(
      "SELECT coalesce(sum(item_count), 0) FROM unit WHERE task_id = ? AND state = 'open' AND "
      "EXISTS (SELECT 1 FROM unit_lease WHERE unit_id = unit.id AND result IN ('pending', "
      "'suspect'))");
  pending.bind(task.value);
  SHOAL_TRY_ASSIGN(pending_items, one_number(std::move(pending)));
  Query leased = store_.query(
      "SELECT coalesce(sum(item_count), 0) FROM unit WHERE task_id = ? AND state = 'open' AND "
      "EXISTS (SELECT 1 FROM unit_lease WHERE unit_id = unit.id AND ended_at_ms = 0)");
  leased.bind(task.value);
  SHOAL_TRY_ASSIGN(leased_items, one_number(std::move(leased)));
  figures.pending = pending_items;
  figures.leased = leased_items;
  return {};
}

Result<std::vector<EndedUnit>> UnitTable::ended_units(TaskId task, int64_t first_item,
                                                      int64_t count_max) {
  Query query = store_.query(
      "SELECT " SHOAL_UNIT_COLUMNS
      ", coalesce(result.bytes, x'') FROM unit LEFT JOIN result ON "
      "result.unit_id = unit.id AND result.digest = unit.digest WHERE unit.task_id = ? AND "
      "first_item >= ? AND state <> 'open' ORDER BY first_item LIMIT ?");
  query.bind(task.value).bind(first_item).bind(count_max);
  std::vector<EndedUnit> units;
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return units;
    EndedUnit unit;
    unit.cut = cut_of(query, 0);
    unit.done = query.text(4) == "done";
    SHOAL_TRY_ASSIGN(digest, digest_of_column(query, 6));
    unit.digest = digest.value_or(Digest());
    unit.bytes = query.blob(7);
    units.push_back(std::move(unit));
  }
}

Result<void> UnitTable::add_late_result(LeaseId lease, const Digest& digest, bool agrees,
                                        Millis at) {
  Query query = store_.query(
      "UPDATE unit_lease SET result = ?, digest = ?, result_at_ms = ? WHERE id = ? AND "
      "result = 'none'");
  return query.bind(agrees ? "confirmed" : "rejected")
      .bind(ByteSpan(digest.bytes))
      .bind(at.count)
      .bind(lease.value)
      .run();
}

Result<void> UnitTable::reopen_poisoned(TaskId task) {
  // Who failed may try again: a failure of before is but a loss.
  Query forget = store_.query(
      "UPDATE unit_lease SET end_reason = 'expired' WHERE end_reason = 'failed' AND "
      "result = 'none' AND unit_id IN (SELECT id FROM unit WHERE task_id = ? AND state <> 'done')");
  SHOAL_TRY(forget.bind(task.value).run());
  Query query = store_.query(
      "UPDATE unit SET state = 'open', want = 'nothing' WHERE task_id = ? AND "
      "state = 'poisoned'");
  return query.bind(task.value).run();
}

UnitTable::Removed UnitTable::reopen_changed(TaskId task, std::optional<TaskId> source) {
#define SHOAL_MADE_ANEW                                                                   \
  "task_id = ?1 AND (EXISTS (SELECT 1 FROM unit AS made WHERE made.task_id = ?2 AND "     \
  "made.state = 'open' AND made.first_item < unit.first_item + unit.item_count AND "      \
  "unit.first_item < made.first_item + made.item_count) OR (unit.state = 'done' AND NOT " \
  "EXISTS (SELECT 1 FROM result WHERE result.unit_id = unit.id AND result.digest = unit.digest)))"
  // What was computed under a lease of before is not what is asked for now: a result that comes yet
  // is compared with nothing, and who sent one may send one of the new unit (SHOAL_FORMER).
  const int64_t from = source ? source->value : 0;
  Query leases = store_.query(
      "UPDATE unit_lease SET end_reason = 'given_back' WHERE ended_at_ms <> 0 AND "
      "unit_id IN (SELECT id FROM unit WHERE " SHOAL_MADE_ANEW ")");
  SHOAL_TRY(leases.bind(task.value).bind(from).run());
  Query units = store_.query(
      "UPDATE unit SET state = 'open', want = 'nothing', digest = x'', lease_id = 0 "
      "WHERE state = 'done' AND " SHOAL_MADE_ANEW);
  SHOAL_TRY(units.bind(task.value).bind(from).run());
  Query results = store_.query(
      "DELETE FROM result WHERE unit_id IN (SELECT id FROM unit WHERE task_id = ? AND "
      "state = 'open')" SHOAL_REMOVED);
  results.bind(task.value);
  return removed_by(std::move(results));
#undef SHOAL_MADE_ANEW
}

Result<void> UnitTable::load_open(TaskId task, BrokerRows& rows) {
  Query query = store_.query("SELECT " SHOAL_UNIT_COLUMNS
                             " FROM unit WHERE task_id = ? AND state = 'open' ORDER BY id");
  query.bind(task.value);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) break;
    rows.units.push_back({cut_of(query, 0), UnitWant::kNothing, false});
  }
  Query leases = store_.query(
      "SELECT " SHOAL_LEASE_COLUMNS
      " FROM unit CROSS JOIN unit_lease ON unit_lease.unit_id = unit.id WHERE task_id = ? AND "
      "state = 'open' AND result = 'confirmed' AND NOT " SHOAL_FORMER " ORDER BY unit_lease.id");
  leases.bind(task.value);
  while (true) {
    SHOAL_TRY_ASSIGN(some, leases.row());
    if (!some) return {};
    SHOAL_TRY_ASSIGN(lease, lease_of(leases));
    rows.leases.push_back(lease);
  }
}

Result<void> UnitTable::load(BrokerRows& rows) {
  {
    Query query = store_.query(
        "SELECT host_id, valid_in_row, wrong, quarantined_until_ms, serial FROM host_record");
    while (true) {
      SHOAL_TRY_ASSIGN(some, query.row());
      if (!some) break;
      KnownHostRow host;
      host.facts.host = HostId{query.integer(0)};
      host.record = {host.facts.host, query.integer(1), query.integer(2), Millis{query.integer(3)}};
      host.serial = static_cast<uint64_t>(query.integer(4));
      rows.hosts.push_back(host);
    }
  }
  // Of jobs that ended only what is still to be judged. The joins are CROSS so that they stay in
  // this order, which reads what is open by its indexes, and not all units that ever were.
  {
    Query query = store_.query(
        "SELECT " SHOAL_UNIT_COLUMNS
        " FROM job CROSS JOIN task ON task.job_id = job.id "
        "CROSS JOIN unit ON unit.task_id = task.id "
        "WHERE job.ended_at_ms = 0 AND unit.state = 'open' "
        "UNION SELECT " SHOAL_UNIT_COLUMNS
        " FROM unit_lease JOIN unit ON unit.id = unit_id WHERE unit_lease.ended_at_ms = 0 OR "
        "unit_lease.result IN ('pending', 'suspect') ORDER BY 1");
    while (true) {
      SHOAL_TRY_ASSIGN(some, query.row());
      if (!some) break;
      UnitRow unit;
      unit.cut = cut_of(query, 0);
      unit.done = query.text(4) == "done";
      unit.want = value_of<UnitWant>(kWants, query.text(5));
      rows.units.push_back(unit);
    }
  }
  for (const UnitRow& unit : rows.units) {
    Query query = store_.query("SELECT " SHOAL_LEASE_COLUMNS
                               " FROM unit_lease WHERE unit_id = ? AND NOT " SHOAL_FORMER);
    query.bind(unit.cut.unit.value);
    while (true) {
      SHOAL_TRY_ASSIGN(some, query.row());
      if (!some) break;
      SHOAL_TRY_ASSIGN(lease, lease_of(query));
      rows.leases.push_back(lease);
    }
  }
  std::ranges::sort(rows.leases, {}, [](const LeaseRow& row) { return row.granted.lease; });
  SHOAL_TRY_ASSIGN(last_unit, one_number(store_.query("SELECT max(id) FROM unit")));
  SHOAL_TRY_ASSIGN(last_lease, one_number(store_.query("SELECT max(id) FROM unit_lease")));
  rows.last_unit = UnitId{last_unit};
  rows.last_lease = LeaseId{std::max(last_lease, kUnitLeasesBegin)};
  return {};
}

}  // namespace shoal
