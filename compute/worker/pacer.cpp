#include "compute/worker/pacer.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace shoal::worker {
namespace {

// Over any time as long as this, no more than the duty is worked.
constexpr int64_t kWindowMicros = 200'000;
constexpr int64_t kRestMicros = 5'000;

}  // namespace

void PaceBudget::set_duty(uint32_t percent) {
  SHOAL_CHECK(percent >= 1 && percent <= 100);
  // What was owed at another duty is forgiven: an owner who allows more need not wait for it.
  if (percent != duty_) owed_ = 0;
  duty_ = percent;
}

// Work of w at a duty of d percent calls for w * (100 - d) / d of rest.
void PaceBudget::worked(int64_t micros) {
  owed_ += std::max<int64_t>(micros, 0) * (100 - int64_t{duty_});
}

void PaceBudget::rested(int64_t micros) {
  // A rest that was a little too long counts for the next one.
  const int64_t saved_max = kRestMicros / 5 * duty_;
  owed_ = std::max(owed_ - std::max<int64_t>(micros, 0) * duty_, -saved_max);
}

int64_t PaceBudget::owed_micros() const { return owed_ / duty_; }

int64_t PaceBudget::due() const {
  const int64_t rest = std::min(kRestMicros, kWindowMicros * (100 - int64_t{duty_}) / 100);
  const int64_t owed = owed_micros();
  return owed > 0 && owed >= rest ? owed : 0;
}

void Pacer::set(uint32_t duty_percent, uint32_t rows_max) {
  {
    const std::lock_guard lock(mutex_);
    budget_.set_duty(duty_percent);
    rows_max_ = rows_max;
  }
  changed_.notify_all();
}

Pacer::StepNumber Pacer::expect_step() {
  const std::lock_guard lock(mutex_);
  expected_.insert(++last_);
  return last_;
}

void Pacer::drop_step(StepNumber step) {
  {
    const std::lock_guard lock(mutex_);
    expected_.erase(step);
  }
  changed_.notify_all();
}

int64_t Pacer::rows_max() const {
  const std::lock_guard lock(mutex_);
  return rows_max_;
}

bool Pacer::fine() const {
  const std::lock_guard lock(mutex_);
  return budget_.duty() < 100;
}

Result<void> Pacer::begin(std::vector<StepNumber> steps) {
  steps_ = std::move(steps);
  micros_ = 0;
  const int64_t now = now_micros_();
  {
    const std::lock_guard lock(mutex_);
    budget_.rested(now - since_);
  }
  since_ = now;
  return rest();
}

void Pacer::end() {
  const int64_t now = now_micros_();
  const std::lock_guard lock(mutex_);
  budget_.worked(now - since_);
  micros_ += static_cast<uint64_t>(now - since_);
  since_ = now;
}

Result<void> Pacer::rest() {
  end();
  std::unique_lock lock(mutex_);
  while (true) {
    if (std::ranges::none_of(steps_,
                             [this](StepNumber step) { return expected_.contains(step); })) {
      return Error{ErrorCode::kTimeout, "nobody waits for this step any more"};
    }
    const int64_t due = budget_.due();
    if (due == 0) return {};
    // Until it is over, or the pace has changed, or the step is dropped.
    changed_.wait_for(lock, std::chrono::microseconds(due));
    const int64_t now = now_micros_();
    budget_.rested(now - since_);
    since_ = now;
  }
}

}  // namespace shoal::worker
