#pragma once
// Decides when the device rests, so that it is busy for a given part of the time, and lets the
// compute thread wait for that.

#include <condition_variable>
#include <mutex>
#include <set>
#include <vector>

#include "compute/compute.h"

namespace shoal::worker {

// Counts microseconds of work and says how much rest they call for. Pure.
class PaceBudget {
 public:
  // 1 to 100: the part of the time that may be busy.
  void set_duty(uint32_t percent);
  uint32_t duty() const { return duty_; }

  void worked(int64_t micros);
  // Waiting for work is rest, too, but cannot be saved up.
  void rested(int64_t micros);
  // How long to rest before the next work; 0: go on. Small rests are put together, yet so that no
  // 200 ms are busier than the duty by more than a rest's worth, where the work can be cut so fine.
  int64_t due() const;

 private:
  int64_t owed_micros() const;

  uint32_t duty_ = 100;
  int64_t owed_ = 0;  // Rest in microseconds, times the duty: a whole number for each of them.
};

class Pacer final : public compute::Pace {
 public:
  using StepNumber = uint64_t;
  using MicrosNow = int64_t (*)();  // A clock that never goes back.

  explicit Pacer(MicrosNow now_micros) : now_micros_(now_micros) {}

  // Of the loop's thread.
  void set(uint32_t duty_percent, uint32_t rows_max);
  StepNumber expect_step();
  void drop_step(StepNumber step);  // Nobody waits for it any more, or it is done.

  // Of the compute thread, around each step, or around several that run as one: a rest ends when
  // nobody waits for any of them. begin() waits for the rest that is due.
  Result<void> begin(StepNumber step) { return begin(std::vector{step}); }
  Result<void> begin(std::vector<StepNumber> steps);
  void end();
  uint64_t micros() const { return micros_; }  // The step's, without its rests.

  int64_t rows_max() const override;
  bool fine() const override;
  Result<void> rest() override;

 private:
  const MicrosNow now_micros_;

  // Both threads come here: the loop's to change the pace and to end a rest.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t rows_max_ = 0;  // GUARDED_BY(mutex_), as are
  PaceBudget budget_;
  std::set<StepNumber> expected_;  // Steps that somebody waits for.
  StepNumber last_ = 0;

  // Of the compute thread alone.
  std::vector<StepNumber> steps_;
  int64_t since_ = 0;  // When the work or rest that lasts began, in microseconds.
  uint64_t micros_ = 0;
};

}  // namespace shoal::worker
