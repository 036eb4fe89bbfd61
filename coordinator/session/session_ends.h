#pragma once
// Stores how sessions ended, what their leases were worth and that they are over, all of it or
// nothing; and keeps what the store cannot take until it can, so that no work goes unpaid.
//
// Belongs to the coordinator's one thread.

#include <kj/async.h>
#include <kj/timer.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "coordinator/session/journal.h"
#include "coordinator/session/ledger.h"
#include "coordinator/store/session_table.h"

namespace shoal {

// A lease that is over.
struct EndedLease {
  LeaseWork work;
  Judgement judgement;
  bool has_worth = false;  // It answered something, or wrongly.
  int64_t stage_row = 0;   // Of the stage that was lost; 0: none was.
  std::string cause;       // Of that loss.
  Millis at;
};

struct SessionEnd {
  SessionRow row;
  std::vector<EndedLease> leases;
  std::set<HostId> distrusted;
  std::set<LeaseId> checked_later;  // These stay pending.
  SessionFigures figures;           // Without a plan when there was none.
  std::string event;
};

class SessionEnds {
 public:
  // All of them outlive it.
  SessionEnds(kj::Timer& timer, SessionTable& table, Ledger& ledger, Journal& journal)
      : timer_(timer), table_(table), ledger_(ledger), journal_(journal) {}
  ~SessionEnds();  // Tries a last time: the next start counts what is left as forgotten.
  KJ_DISALLOW_COPY(SessionEnds);

  // In mid-session. After an error nothing is stored, and it is to be given with the session's end.
  Result<void> store(const EndedLease& lease);
  // Now, or as soon as the store takes it.
  void store(SessionEnd end);

 private:
  Result<void> try_to_store(const SessionEnd& end);
  kj::Promise<void> keep_trying();

  kj::Timer& timer_;
  SessionTable& table_;
  Ledger& ledger_;
  Journal& journal_;
  std::deque<SessionEnd> waiting_;  // Oldest first.
  kj::Promise<void> trying_ = nullptr;
};

}  // namespace shoal
