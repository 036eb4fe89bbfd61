#pragma once
// What the stages of one session share with each other and with those who check them: the request,
// the tokens, what went into each stage and who answered it. Values; decides nothing.
//
// Belongs to the coordinator's one thread. Lives until the last of the session and its audits is
// over: only in memory, and never written anywhere but into files without a name.

#include <kj/refcount.h>
#include <kj/timer.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "coordinator/session/journal.h"
#include "coordinator/session/kept_inputs.h"
#include "coordinator/session/live_model.h"
#include "coordinator/session/options.h"
#include "coordinator/session/pool.h"
#include "coordinator/session/session_ends.h"
#include "coordinator/session/session_types.h"
#include "coordinator/store/session_table.h"
#include "coordinator/store/shard_store.h"

namespace shoal {

class Auditor;

// What a session needs of its surroundings. All of it outlives the session.
struct SessionNeeds {
  kj::Timer& timer;
  const Clock& clock;
  Pool& pool;
  SessionTable& table;
  const ShardStore& shards;
  Journal& journal;
  SessionEnds& ends;
  const SessionOptions& options;
  Auditor& auditor;
  std::filesystem::path spill_folder;
  bool stopping = false;  // The coordinator ends: no new sessions.
};

// How often and how a device has failed a session.
struct DeviceLoss {
  int64_t count = 0;
  uint64_t login = 0;
  std::optional<BoxPublicKey> worker_key;
  kj::TimePoint at = kj::origin<kj::TimePoint>();
};

// Who answered a range of a stage's positions.
struct AnsweredRange {
  HostId host;
  std::string host_name, device;
  LeaseId lease;
  bool trusted = false;
  int64_t first = 0, end = 0;
  // As it was then: who is gone is still the owner of his other hosts.
  int64_t owner = 0;
  uint64_t address_block = 0;
};

// A stage as its replacements and those who check it need it.
struct StageTrace {
  int64_t first_fragment = 0, last_fragment = 0;
  std::optional<KeptInputs> inputs;     // Empty for the first stage, whose input is the tokens.
  std::vector<AnsweredRange> answered;  // In order, without gaps.
};

// "fragments 0-3", for events.
std::string range_of(const StageTrace& trace);

inline kj::Duration duration_of(Millis time) { return time.count * kj::MILLISECONDS; }

// What a check found: from this position on, what a stage answered is wrong.
struct WrongAnswer {
  int64_t first = 0;
  size_t stage = 0;
};

struct SessionShared : public kj::Refcounted {
  SessionShared(SessionNeeds& needs, std::shared_ptr<const LiveModel> model, SessionRequest request)
      : needs(needs), model(std::move(model)), request(std::move(request)) {}

  SessionNeeds& needs;
  std::shared_ptr<const LiveModel> model;
  SessionRequest request;
  JobClass job_class;
  Digest class_digest;  // Of job_class: asked for at every step.
  SessionId id;
  std::vector<int32_t> tokens;  // The prompt's, then the generated ones.
  int64_t context = 0;          // Positions of each stage's cache.
  int64_t rows_max = 1;
  int64_t relayed_bytes = 0;
  std::map<std::pair<HostId, std::string>, DeviceLoss> losses;
  std::set<HostId> distrusted;  // Hosts that gave a wrong answer.
  std::set<LeaseId> convicted;  // Of stages: a check found what was answered under them wrong.
  // Hosts whose owner said no to this class of work when a stage was opened, by their login.
  std::map<HostId, uint64_t> denied_by;
  // What is stored of the session's failure, where what its requester is told may not be.
  std::optional<std::string> failure_to_store;

  std::vector<StageTrace> stages;  // Does not grow once there are stage runners.
  int64_t prompt_tokens = 0;
  std::optional<WrongAnswer> wrong;  // Found, and not undone by the session yet.
  std::vector<int64_t> rewinds;      // From which position on rows were taken back, each time.
  bool over = false;
  // Once it is over: what stays pending until its checks are.
  std::map<LeaseId, HostId> checked_later;

  bool is_head(size_t stage) const { return stages[stage].first_fragment == 0; }
  bool is_tail(size_t stage) const {
    return stages[stage].last_fragment + 1 == static_cast<int64_t>(model->shards.size());
  }
  bool needs_trust(size_t stage) const {
    return request.anchored && (is_head(stage) || is_tail(stage));
  }
  std::span<const FragmentCost> costs(size_t stage) const {
    const StageTrace& trace = stages[stage];
    return std::span(model->costs)
        .subspan(static_cast<size_t>(trace.first_fragment),
                 static_cast<size_t>(trace.last_fragment - trace.first_fragment + 1));
  }
  std::vector<Digest> digests(size_t stage) const;
  // Devices that may take part, as they are now.
  std::vector<Pool::Offer> offers() const;
};

// Why a stage was lost.
struct LossCause {
  // For the store and the log. Of a stage that sees tokens it holds our own words only: what a
  // peer says there can be the text that it works on.
  std::string stored;
  std::string told;  // For the requester, whose text it is.
};

// How an opening or a step failed.
struct StepFailure {
  LossCause cause;
  bool refused = false;   // The device said no to what it was asked.
  bool distrust = false;  // It answered what cannot be right.
  bool denied = false;    // Its owner does not allow it.
  bool no_room = false;   // Its memory is full.
};

struct StepResult {
  bool lost = false;  // The device was lost, so: there is nothing else.
  StepFailure failure;
  ByteVector hidden;            // f32, rows x width; or, from the tail,
  std::vector<int32_t> tokens;  // one for each draw.
};

}  // namespace shoal
