#pragma once
// Keeps the ledger: writes what leases were worth as they end, signs what hosts are told of it, and
// checks all of it. work/credit.h decides what counts.
//
// Belongs to the coordinator's one thread.

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/secrets.h"
#include "coordinator/store/ledger_table.h"
#include "coordinator/work/credit.h"
#include "schema/merkle.h"
#include "schema/receipt.h"

namespace shoal {

// What was done under a lease.
struct LeaseWork {
  LeaseId lease;
  SessionId session;
  HostId host;
  std::string device;
  JobClass job_class;
  int64_t first_fragment = 0, last_fragment = 0;
  int64_t rows = 0;
  Flops flops;
  UnitId unit;        // Of a unit's lease, which has no session; else 0.
  std::string group;  // Whose hosts alone take part, when the class of work says so.
};

class Ledger {
 public:
  // All of them outlive it.
  Ledger(LedgerTable& table, const Clock& clock, const SigningKey& key)
      : table_(table), clock_(clock), key_(key) {}

  // Writes the lease's row and its first receipt. A lease that ended before changes nothing: it
  // is not paid twice. Whatever the judgement, what a banned host did is rejected.
  Result<void> lease_ended(const LeaseWork& work, const Judgement& judgement);
  // Judges a unit's or a stage's lease that is pending; one that was judged before, or is not
  // known, is left. What it was worth. What a banned host did is rejected, and worth nothing.
  Result<CreditParts> judge_lease(LeaseId lease, const Judgement& judgement);
  // The session is over: judges what of it is pending, but for leases that are still being checked.
  Result<void> settle(SessionId session, const std::set<HostId>& distrusted,
                      const std::set<LeaseId>& checked_later = {});
  // At start, before the former run's sessions and leases are marked as ended: settles them.
  Result<void> settle_former_run();

  struct Standing {
    uint64_t newest_receipt = 0;
    double confirmed = 0, pending = 0, rejected = 0;  // Credit.
  };
  Result<Standing> standing(HostId host);
  Result<std::vector<Receipt>> receipts(HostId host, uint64_t after_number, uint32_t count_max);
  const SigningPublicKey& receipt_key() const { return key_.public_key(); }

 private:
  Result<void> add_receipt(const LedgerRow& work, const Judgement& judgement, bool was_pending);

  LedgerTable& table_;
  const Clock& clock_;
  const SigningKey& key_;
};

// Checks a ledger from its first receipt to its last; work may go on between two steps of it.
class LedgerCheck {
 public:
  struct Report {
    int64_t leases = 0, receipts = 0, hosts = 0, pending = 0, days = 0;
    LedgerSums sums;
    std::vector<std::string> problems;  // The first kProblemsMax.
    int64_t problem_count = 0;
  };
  static constexpr size_t kProblemsMax = 100;

  // Both outlive it.
  LedgerCheck(LedgerTable& table, const SigningPublicKey& key) : table_(table), key_(key) {}

  Result<bool> go_on();  // Some more of it; false when it is done.
  const Report& report() const { return report_; }

 private:
  void check(const JudgedWork& judged);
  void check_day(const LedgerDayRow& day);
  void problem(const ReceiptRow& receipt, const std::string& what);
  void problem(const std::string& sentence);

  LedgerTable& table_;
  const SigningPublicKey& key_;
  struct Host {
    int64_t number = 0;
    LedgerSums sums;
  };
  std::map<HostId, Host> hosts_;
  std::set<int64_t> pending_;  // By the ledger's row.
  int64_t after_id_ = 0;
  // The days that had a root when the check began; of the next one, what was seen of it so far.
  std::optional<std::vector<LedgerDayRow>> days_;
  size_t next_day_ = 0;
  MerkleRoot day_so_far_;
  Report report_;
};

Receipt receipt_from(const JudgedWork& judged);

}  // namespace shoal
