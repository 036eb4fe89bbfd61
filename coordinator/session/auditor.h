#pragma once
// Has stages of sessions run again by other devices, compares what comes out bit by bit, and names
// who lied. Works beside the stream: it takes only devices that nobody else wants, and lets go of
// them as soon as somebody does. work/stage_audit.h and work/audit.h decide.
//
// Belongs to the coordinator's one thread.

#include <kj/async.h>

#include <memory>
#include <set>
#include <vector>

#include "base/random.h"
#include "coordinator/session/host_records.h"
#include "coordinator/session/session_shared.h"
#include "schema/task.h"

namespace shoal {

struct BrokerRules;

class Auditor {
 public:
  // All of them outlive it.
  Auditor(kj::Timer& timer, Random& chance, SessionEnds& ends, Ledger& ledger,
          const BrokerRules& rules);
  ~Auditor() noexcept(false);
  KJ_DISALLOW_COPY(Auditor);

  // Between the two, `records` is there. stop() ends all checks; what waits for one stays pending
  // until the next start.
  void begin(HostRecords& records) { records_ = &records; }
  void stop();

  bool mistrusts(HostId host) const;
  bool units_wait() const { return records_ != nullptr && records_->units_wait(); }

  // What sessions tell. `shared` is in a kj::Own.
  void session_began(SessionShared& shared) { live_.insert(&shared); }
  void stage_opened(SessionShared& shared, size_t stage, const StageWho& who);
  // Something speaks against what the stage answered: it is checked, where streams are.
  void look_at(SessionShared& shared, size_t stage);
  // Which leases stay pending, as they are still being checked.
  std::set<LeaseId> session_over(SessionShared& shared);

 private:
  struct Audit;
  struct Difference;
  class Rows;

  void begin_audit(SessionShared& shared, size_t stage);
  void start(Audit& audit);
  rpc::Task<void> run(Audit& audit);
  rpc::Task<bool> open(Audit& audit);
  bool may_work(const Audit& audit) const;
  std::optional<Pool::Offer> choose(const Audit& audit);
  bool somebody_could(const Audit& audit) const;
  bool is_fit(const Audit& audit) const;
  void note_rewinds(Audit& audit);
  int64_t rows_to_compare(const Audit& audit) const;
  Rows rows_of(const Audit& audit, int64_t first, int64_t rows, const StepResult& result) const;
  std::optional<Difference> compare(const Audit& audit, const Rows& rows) const;
  void differs(Audit& audit, const Difference& difference);
  void judged(Audit& audit, const std::optional<Difference>& difference, const Rows& rows);
  void convict(Audit& audit, const AnsweredRange& accused, int64_t row, const std::string& judges);
  void convict_auditor(Audit& audit, const std::string& judges);
  void reject_work(SessionShared& shared, HostId host);
  void give_way(Audit& audit);
  void close(Audit& audit, const Judgement& judgement);
  void drop_dispute(Audit& audit);
  void finish(Audit& audit);
  void pay(EndedLease lease);
  void sweep();
  kj::Promise<void> keep_sweeping(kj::Duration after);
  bool store_owed();

  kj::Timer& timer_;
  Random& chance_;
  SessionEnds& ends_;
  Ledger& ledger_;
  const BrokerRules& rules_;
  HostRecords* records_ = nullptr;  // Null before begin() and after stop().
  std::set<SessionShared*> live_;
  std::vector<std::unique_ptr<Audit>> audits_;  // The oldest first.
  std::vector<EndedLease> owed_;                // To be stored.
  std::vector<std::pair<LeaseId, Judgement>> verdicts_;
  bool sweep_waits_ = false;
  kj::Promise<void> sweeping_ = nullptr;
};

}  // namespace shoal
