#pragma once
// One stage of a session: the device that runs it now, what went into it, and how another device
// takes over when this one is lost. Knows nothing of the other stages but which devices they are
// on.
//
// Belongs to the coordinator's one thread. One coroutine at a time works on a runner.

#include <kj/timer.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
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
#include "schema/task.h"

namespace shoal {

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

// What the stages of one session share.
struct SessionShared {
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
  // Hosts whose owner said no to this class of work when a stage was opened, by their login.
  std::map<HostId, uint64_t> denied_by;
  // What is stored of the session's failure, where what its requester is told may not be.
  std::optional<std::string> failure_to_store;
};

// Why a stage was lost.
struct LossCause {
  // For the store and the log. Of a stage that sees tokens it holds our own words only: what a
  // peer says there can be the text that it works on.
  std::string stored;
  std::string told;  // For the requester, whose text it is.
};

struct StepResult {
  bool lost = false;            // The device was lost; there is nothing else.
  ByteVector hidden;            // f32, rows x width; or, from the tail,
  std::vector<int32_t> tokens;  // one for each draw.
};

class StageRunner {
 public:
  // What a runner asks of its session.
  class Owner {
   public:
    virtual bool in_use(const DevicePlace& place, const StageRunner& besides) const = 0;
    virtual void stage_lost(const StageRunner& stage, const LossCause& cause) = 0;
    virtual int64_t tokens_left() const = 0;
    // Predicted, of all stages but this one.
    virtual double seconds_per_token(const StageRunner& besides) const = 0;

   protected:
    ~Owner() = default;
  };

  // Begins on `planned`, if that device is still there. `shared` and `owner` outlive the runner.
  StageRunner(SessionShared& shared, Owner& owner, size_t index, int64_t first_fragment,
              int64_t last_fragment, DevicePlace planned);
  ~StageRunner() noexcept(false);
  KJ_DISALLOW_COPY(StageRunner);

  // The input of positions kept_rows() and on: rows x width. Not for the first stage, whose input
  // is the session's tokens.
  Result<void> keep(ByteSpan hidden_rows);

  // Whether the device is open, there, and has seen all that the stage has completed.
  bool is_ready() const;
  // Opens a device, replays what the stage has completed, and again with another one when it is
  // lost. Fails when no device can take the stage.
  rpc::Task<void> make_ready();
  // One step over positions that are kept. When the device was lost, make_ready() and try again.
  // With `draw`, the tail draws a token from the last row. REQUIRES: is_ready(), and first is what
  // the stage has completed.
  rpc::Task<StepResult> step(int64_t first, int64_t rows, bool draw);

  // Gives the device back at the session's end. What of its leases is to be stored.
  std::vector<EndedLease> release();

  size_t index() const { return index_; }
  const std::optional<StageWho>& who() const { return who_; }  // Who ran it last.
  const DevicePlace* place() const { return device_ == nullptr ? nullptr : &device_->place; }
  double seconds_per_token() const;  // Predicted; 0 while it has no device.

 private:
  struct Device {
    DevicePlace place;
    Pool::Hold hold;
    LeaseId lease;
    kj::Maybe<rpc::Stage::Client> stage;  // Empty until it is open.
    int64_t filled = 0;                   // Positions that its caches hold.
    int64_t rows = 0;                     // Answered, replays among them.
    double row_seconds = 0;               // Its slowest so far.
    int64_t row_in_store = 0;
  };

  bool is_head() const { return first_fragment_ == 0; }
  bool is_tail() const;
  std::span<const FragmentCost> costs() const;
  bool needs_trust() const;
  const char* unfit_because() const;
  void notice_gone();
  std::optional<Pool::Offer> choose();
  rpc::Task<bool> open(Pool::Offer offer);
  void fill_lease(rpc::StageLease::Builder lease, const BoxPublicKey& worker);
  rpc::Task<StepResult> run_step(int64_t first, int64_t rows, bool draw);
  void fill_step(rpc::StepInput::Builder input, int64_t first, int64_t rows, bool draw);
  Result<StepResult> read_output(rpc::StepOutput::Reader output, int64_t rows, bool draw) const;
  kj::Promise<void> silence(DevicePlace place, uint64_t reads_before);
  PlanDevice speed_of(const DevicePlace& place) const;
  LeaseWork work_of(const Device& device) const;
  LossCause cause_of(const kj::Exception& exception) const;
  void lose(const LossCause& cause, bool refused, bool distrust, bool denied = false);
  [[noreturn]] void fail(ErrorCode code, const std::string& text, const std::string& stored);

  SessionShared& shared_;
  Owner& owner_;
  const size_t index_;
  const int64_t first_fragment_, last_fragment_;
  std::optional<DevicePlace> planned_;  // Until it was tried.
  std::optional<KeptInputs> kept_;      // Empty for the first stage.
  int64_t completed_ = 0;               // Positions whose output the session has.
  std::unique_ptr<Device> device_;      // Null when there is none.
  std::vector<EndedLease> unstored_;    // Lost while the store took nothing.
  std::optional<StageWho> who_;
  std::set<std::pair<HostId, std::string>> refused_by_;  // Devices that refused the stage's input.
  LossCause last_cause_;
};

}  // namespace shoal
