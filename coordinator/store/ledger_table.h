#pragma once
// What was done under each lease, and what its host was told of it. Append-only: rows in and out,
// nothing is ever changed. Counts credit in parts of 2^-20 (coordinator/work/credit.h).

#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "coordinator/store/store.h"

namespace shoal {

struct LedgerRow {
  int64_t id = 0;
  LeaseId lease;
  SessionId session;  // Of a stage's lease; else 0.
  UnitId unit;        // Of a unit's; else 0.
  HostId host;
  std::string device, kind, model, privacy;
  std::string group;  // With the privacy "group": whose hosts alone took part.
  int64_t first_fragment = 0, last_fragment = 0;
  int64_t rows = 0;
  Flops flops;
  int64_t credit_parts = 0;
  Millis ended_at;
};

// A host's sums.
struct LedgerSums {
  int64_t confirmed = 0, pending = 0, rejected = 0;  // Credit parts.

  friend bool operator==(const LedgerSums&, const LedgerSums&) = default;
};

struct ReceiptRow {
  int64_t id = 0;
  HostId host;
  int64_t number = 0;  // Counts the host's receipts from 1.
  int64_t ledger_id = 0;
  std::string verdict;  // pending, confirmed, rejected
  std::string reason;
  Millis at;
  ByteVector signature;
  LedgerSums sums;  // With this verdict.
};

struct ReceiptPlace {
  int64_t id = 0, number = 0;
};

struct JudgedWork {
  LedgerRow work;
  ReceiptRow receipt;
};

// A lease that a former run of the coordinator granted and did not end.
struct UnendedLease {
  LeaseId lease;
  SessionId session;
  HostId host;
  std::string device, model, privacy, group;
  int64_t first_fragment = 0, last_fragment = 0;
};

// All receipts after those of the day before, up to `last_receipt_id`.
struct LedgerDayRow {
  int64_t day = 0;  // Since 1970-01-01, UTC.
  int64_t last_receipt_id = 0;
  int64_t receipts = 0;
  ByteVector chunks;  // See session/ledger_days.cpp. Empty in lists.
  Digest root, previous_root;
  ByteVector signature;
};

class LedgerTable {
 public:
  explicit LedgerTable(Store& store) : store_(store) {}  // The store outlives the table.

  // Several writes as one.
  Result<void> transaction(const std::function<Result<void>()>& body) {
    return store_.transaction(body);
  }

  Result<bool> has(LeaseId lease);
  Result<std::optional<LedgerRow>> find(LeaseId lease);
  Result<bool> is_judged(int64_t ledger_id);            // Confirmed or rejected.
  Result<int64_t> add(const LedgerRow& work);           // Its id is not used.
  Result<void> add_receipt(const ReceiptRow& receipt);  // Likewise.

  struct Newest {
    int64_t number = 0;  // 0: none.
    LedgerSums sums;
  };
  Result<Newest> newest(HostId host);

  Result<std::vector<LedgerRow>> pending(SessionId session);
  // Those that have not ended, and those that have with work that was still being checked.
  Result<std::vector<SessionId>> unsettled_sessions();
  Result<std::vector<UnendedLease>> unended_leases();

  // One host's in order of number.
  Result<std::vector<JudgedWork>> receipts(HostId host, int64_t after_number, int64_t count_max);
  // All hosts' in the order in which they were written.
  Result<std::vector<JudgedWork>> all_receipts(int64_t after_id, int64_t count_max);
  // One host's with ids up to `last_id` and numbers after `after_number`, in order.
  Result<std::vector<ReceiptPlace>> places(HostId host, int64_t after_number, int64_t last_id,
                                           int64_t count_max);
  // The id of a host's receipt; empty when there is none.
  Result<std::optional<int64_t>> receipt_id(HostId host, int64_t number);
  Result<int64_t> count();

  // Whether the host, or the account that it belongs to, is banned.
  Result<bool> is_banned(HostId host);

  Result<void> add_day(const LedgerDayRow& day);
  // Those from this day on, in order, without their chunks.
  Result<std::vector<LedgerDayRow>> days(int64_t from_day, int64_t count_max);
  Result<std::optional<LedgerDayRow>> day_from(int64_t day);    // The first from it on, whole.
  Result<std::optional<LedgerDayRow>> day_before(int64_t day);  // The last before it, likewise.

 private:
  Store& store_;
};

}  // namespace shoal
