#pragma once
// A device that holds a stage of a session: its lease, the open stage, and which positions its
// caches hold. Decides neither why this device, nor what follows when it is lost.
//
// Belongs to the coordinator's one thread. One coroutine at a time works on it.

#include <optional>

#include "coordinator/session/session_shared.h"
#include "schema/direct.capnp.h"
#include "schema/task.h"

namespace shoal {

class StageDevice {
 public:
  enum class Use {
    kStage,    // Of the session itself.
    kStandby,  // Ready to become that.
    kCheck,    // Runs again what another device answered.
  };

  // `rows_max`: of its steps. `hold` keeps its memory. `shared` outlives it.
  StageDevice(SessionShared& shared, size_t stage, DevicePlace place, int64_t rows_max,
              Pool::Hold hold, Use use);
  KJ_DISALLOW_COPY(StageDevice);

  // Stores a lease, then asks for the stage. Empty when it is open. Fails when the store does.
  // REQUIRES: the device is there and has a worker.
  rpc::Task<std::optional<StepFailure>> open();
  // One step over positions whose input is kept; the tail draws after each row from `draw_from` on.
  // REQUIRES: it is open, and first is at most filled().
  rpc::Task<StepResult> step(int64_t first, int64_t rows, int64_t draw_from);

  // A step whose hidden rows neighbours pass on to each other: it is on its way when this returns.
  // REQUIRES: it is open, and all before `first` is filled or on its way.
  struct Ways {
    bool from_neighbour = false, to_neighbour = false;
  };
  using DirectResponse = capnp::Response<rpc::DirectStage::StepDirectResults>;
  kj::Promise<DirectResponse> send_direct(int64_t first, int64_t rows, int64_t draw_from,
                                          Ways ways);
  // What came of it. Blames nobody: when the same step goes through the coordinator, that tells who
  // failed. `began`: when its rows were on their way; `alone`: nothing else was, so it is measured.
  struct DirectResult {
    std::string not_done;  // Why nothing came of it; empty: all is well.
    Digest received, passed_on;
    StepResult step;  // Of the last in a run.
  };
  rpc::Task<DirectResult> hear_direct(kj::Promise<DirectResponse> sent, kj::TimePoint began,
                                      Ways ways, int64_t rows, bool draw, bool alone);
  // All of the run have done it.
  void note_direct(int64_t first, int64_t rows) {
    filled_ = first + rows;
    rows_ += rows;
  }
  rpc::DirectStage::Client direct();

  // Positions from this one on will be given anew: a position that is given again replaces it.
  void rewind(int64_t position) { filled_ = std::min(filled_, position); }
  // A standby becomes the stage's own device: its memory is no longer on loan.
  void promote(Pool::Hold hold) {
    hold_ = std::move(hold);
    use_ = Use::kStage;
  }

  const DevicePlace& place() const { return place_; }
  const StageWho& who() const { return who_; }
  const std::optional<BoxPublicKey>& worker() const { return worker_; }
  bool is_open() const { return stage_ != nullptr; }
  int64_t filled() const { return filled_; }
  int64_t rows() const { return rows_; }
  int64_t rows_max() const { return rows_max_; }
  LeaseId lease() const { return lease_; }
  LeaseWork work() const;
  SessionStageRow row() const;  // As of its opening.

  int64_t row_in_store = 0;

 private:
  void fill_lease(rpc::StageLease::Builder lease) const;
  // Without `has_hidden`, the hidden rows are left out.
  void fill_step(rpc::StepInput::Builder input, int64_t first, int64_t rows, int64_t draw_from,
                 bool has_hidden = true);
  void note_time(double seconds, int64_t rows);
  void fill_draw(rpc::Draw::Builder draw, int64_t row_in_step, size_t position) const;
  Result<StepResult> read_output(rpc::StepOutput::Reader output, int64_t rows, int64_t draws) const;
  kj::Promise<void> silence(uint64_t reads_before);
  LossCause cause_of(const kj::Exception& exception) const;
  bool is_head() const { return shared_.is_head(stage_index_); }
  bool is_tail() const { return shared_.is_tail(stage_index_); }

  SessionShared& shared_;
  const size_t stage_index_;
  const DevicePlace place_;
  const int64_t rows_max_;
  Use use_;
  Pool::Hold hold_;
  StageWho who_;
  std::optional<BoxPublicKey> worker_;
  Millis opened_at_;
  LeaseId lease_;
  kj::Maybe<rpc::Stage::Client> stage_;  // Empty until it is open.
  int64_t filled_ = 0;                   // Positions that its caches hold.
  int64_t rows_ = 0;                     // Answered, replays among them.
  double row_seconds_ = 0;               // Its slowest so far.
};

// How fast a device is, without what it does for one session that is on it already.
PlanDevice speed_of(Pool& pool, const DevicePlace& place, bool works_on_it);

LossCause in_our_words(std::string text);

}  // namespace shoal
