#pragma once
// The parts of a running coordinator, introduced to each other, as its servers use them.
//
// All of it belongs to the one thread of the KJ loop, and outlives every server and session.

#include <kj/timer.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "coordinator/data_folder.h"
#include "coordinator/jobs/job_service.h"
#include "coordinator/session/auditor.h"
#include "coordinator/session/journal.h"
#include "coordinator/session/ledger.h"
#include "coordinator/session/ledger_days.h"
#include "coordinator/session/pool.h"
#include "coordinator/session/session_shared.h"
#include "coordinator/store/account_table.h"
#include "coordinator/store/host_table.h"
#include "coordinator/store/model_table.h"
#include "coordinator/store/session_table.h"
#include "coordinator/store/shard_store.h"

namespace shoal {

class Session;

// What a model's manifest says that lists show.
struct ModelFacts {
  std::string architecture;  // "damaged" when the manifest cannot be read.
  int64_t context = 0;
  double credit_per_row = 0;
  Bytes smallest_need;  // Of its fragments, for one row of one position.
  bool damaged = false;
};

// A model that sessions may be asked of.
struct OfferedModel {
  std::string name, purpose, group;
  ModelFacts facts;
  int64_t sealed_bytes = 0;
};

struct Parts {
  Parts(DataFolder data_folder, ShardStore shard_store, kj::Timer& timer, const Clock& clock,
        Random& random)
      : folder(std::move(data_folder)),
        timer(timer),
        clock(clock),
        random(random),
        hosts(*folder.store),
        accounts(*folder.store),
        models(*folder.store),
        sessions(*folder.store),
        ledger_table(*folder.store),
        ledger(ledger_table, clock, *folder.receipt_key),
        days(ledger_table, clock, *folder.receipt_key),
        shards(std::move(shard_store)),
        journal(sessions, clock),
        ends(timer, sessions, ledger, journal),
        auditor(timer, random, ends, ledger, folder.settings.jobs.rules),
        needs{timer,   clock,
              pool,    sessions,
              shards,  journal,
              ends,    folder.settings.session,
              auditor, folder.path / "spill"},
        started(clock.now_monotonic()) {}
  KJ_DISALLOW_COPY(Parts);

  DataFolder folder;
  kj::Timer& timer;
  const Clock& clock;
  Random& random;
  HostTable hosts;
  AccountTable accounts;
  ModelTable models;
  SessionTable sessions;
  LedgerTable ledger_table;
  Ledger ledger;
  LedgerDays days;
  ShardStore shards;
  Journal journal;
  SessionEnds ends;
  Pool pool;
  Auditor auditor;
  SessionNeeds needs;
  std::unique_ptr<JobService> jobs;  // Null until the coordinator is open.
  std::set<Session*> live;           // Sessions register themselves.
  std::map<std::string, std::shared_ptr<const LiveModel>> live_models;  // Those that were used.
  std::map<ModelId, ModelFacts> model_facts;                            // Those that were listed.
  std::optional<std::vector<OfferedModel>> offered;                     // Empty: to be read.

  Millis started;             // Monotonic.
  uint16_t port = 0;          // Of the hosts' door, once it is open.
  int64_t relayed_bytes = 0;  // Of sessions that ended.
};

// The attach URL of the hosts' door, with an invite or without.
std::string attach_url_of(const Parts& parts, const std::string& invite);

}  // namespace shoal
