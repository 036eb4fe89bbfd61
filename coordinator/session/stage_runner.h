#pragma once
// One stage of a session: the device that runs it now, what went into it, and how another device
// takes over when this one is lost. Knows nothing of the other stages but which devices they are
// on.
//
// Belongs to the coordinator's one thread. One coroutine at a time works on a runner.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/session/stage_device.h"

namespace shoal {

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
  // REQUIRES: shared.stages[index] says which fragments it has.
  StageRunner(SessionShared& shared, Owner& owner, size_t index, DevicePlace planned);
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

  // What was answered from this position on is forgotten: it will be given anew.
  void rewind(int64_t position);
  // A check found that its device lied: the device is lost. False when it is not there any more.
  bool give_up_liar(const std::string& cause);

  // Of direct steps, which several stages do at once.
  StageDevice* device() const { return device_.get(); }  // Null: it has none.
  // REQUIRES: is_ready(), and first is completed().
  void note_direct(int64_t first, int64_t rows);
  // What was answered from this position on is computed anew by make_ready(), for the next stage's
  // inputs.
  void compute_again_from(int64_t position);
  void give_up(const StepFailure& failure) { lose(failure); }  // REQUIRES: it has a device.

  // From now on another device, where one is free, holds the stage loaded; and when the stage's own
  // is wanted back soon, it takes over between two tokens.
  void stand_by();

  // Gives the devices back at the session's end. What of its leases is to be stored.
  std::vector<EndedLease> release();

  size_t index() const { return index_; }
  int64_t completed() const { return completed_; }  // Positions whose output the session has.
  const std::optional<StageWho>& who() const { return who_; }  // Who ran it last.
  const DevicePlace* place() const { return device_ == nullptr ? nullptr : &device_->place(); }
  double seconds_per_token() const;  // Predicted; 0 while it has no device.

 private:
  bool is_head() const { return shared_.is_head(index_); }
  std::span<const FragmentCost> costs() const { return shared_.costs(index_); }
  StageTrace& trace() const { return shared_.stages[index_]; }
  const char* unfit_because() const;
  bool is_mistrusted() const;
  void notice_gone();
  enum class Choice { kAny, kFree };
  std::optional<Pool::Offer> choose(Choice choice, int64_t rows_max);
  int64_t replay_rows_max() const;
  rpc::Task<bool> open(Pool::Offer offer, int64_t rows_max);
  Result<void> note_open();
  rpc::Task<void> keep_standby();
  rpc::Task<void> open_standby(Choice choice);
  rpc::Task<void> catch_up();
  rpc::Task<void> follow();
  int64_t known_rows() const;
  Result<bool> standby_agrees(int64_t first, int64_t rows, int64_t draw_from,
                              const StepResult& result) const;
  bool standby_is_fit() const;
  void take_from_loan(StageDevice& device);
  Result<bool> promote_standby();
  void drop_standby();
  void end_standby(const StepFailure& failure);
  bool is_wanted_back(const DevicePlace& place) const;
  bool can_hand_over(int64_t first, int64_t rows) const;
  rpc::Task<StepResult> hand_over(int64_t first, int64_t rows, bool draw);
  void note_stood_by(const StageDevice& device);
  void note_answered(int64_t first, int64_t end);
  void lose(const StepFailure& failure);
  Result<void> keep_for_next(int64_t first, const StepResult& replayed);
  [[noreturn]] void fail(ErrorCode code, const std::string& text, const std::string& stored);

  SessionShared& shared_;
  Owner& owner_;
  const size_t index_;
  std::optional<DevicePlace> planned_;   // Until it was tried.
  int64_t completed_ = 0;                // Positions whose output the session has.
  std::unique_ptr<StageDevice> device_;  // Null when there is none.
  std::unique_ptr<StageDevice> standby_;
  bool standby_is_own_ = false;        // It catches up to take over: its memory is no loan.
  bool standby_runs_ = false;          // A step of it is on its way.
  bool standby_is_worthless_ = false;  // What it answered was not what the stage's device did.
  std::vector<EndedLease> unstored_;   // Lost while the store took nothing.
  std::optional<StageWho> who_;
  std::set<std::pair<HostId, std::string>> refused_by_;  // Devices that refused the stage's input.
  LossCause last_cause_;
  kj::Promise<void> standing_by_ = nullptr;  // Last: it uses the others.
};

}  // namespace shoal
