#include "client/rules/what_if.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace shoal::client {
namespace {

constexpr Millis kSecond{1'000};
constexpr Millis kGapMax{60'000};  // Between spans of one watch.
// Longer spans are cut: they come from a file.
constexpr Millis kSpanMax{int64_t{32} * 86'400'000};

// One set of rules, followed from span to span.
class Replay {
 public:
  explicit Replay(const Settings& settings)
      : settings_(settings), texts_(RuleTexts::of(settings)) {}

  // Forgets what paused last, as after a gap.
  void restart() { forbidden_by_.clear(); }

  // How long the resource could have worked from the span's beginning to `end`. Within a span the
  // clock alone moves, so a verdict holds until the time that it says itself.
  Millis allowed(const WatchedSpan& span, Millis end, Resource resource) {
    Millis sum{0};
    Readings readings = span.readings;
    Millis at = span.start;
    while (at < end) {
      if (span.readings.idle) readings.idle = *span.readings.idle + (at - span.start);
      const Judged judged = judge(span, readings, at, resource);
      const Millis until =
          judged.until ? std::min(std::max(*judged.until, at + kSecond), end) : end;
      if (judged.allowed) sum += until - at;
      at = until;
    }
    return sum;
  }

 private:
  struct Judged {
    bool allowed = false;
    std::optional<Millis> until;  // None: to the span's end.
  };

  Judged judge(const WatchedSpan& span, const Readings& readings, Millis at, Resource resource) {
    PolicyInput input{.settings = settings_, .readings = readings};
    input.spent = span.spent;
    input.now = at;
    input.local = local_time(at);
    input.own_gpu_load = span.own_gpu_load;
    input.texts = &texts_;
    if (resource != Resource::kGpu || !readings.gpus || readings.gpus->empty()) {
      return judge(input, resource, nullptr, static_cast<size_t>(resource));
    }
    // Each GPU has its own past.
    Judged any;
    for (size_t i = 0; i < readings.gpus->size(); ++i) {
      const Judged one = judge(input, resource, &(*readings.gpus)[i], kResourceCount + i);
      any.allowed |= one.allowed;
      if (one.until && (!any.until || *one.until < *any.until)) any.until = one.until;
    }
    return any;
  }

  Judged judge(PolicyInput& input, Resource resource, const GpuReading* gpu, size_t slot) {
    if (forbidden_by_.size() <= slot) forbidden_by_.resize(slot + 1);
    input.forbidden_by = forbidden_by_[slot];
    const Verdict verdict = decide(input, resource, gpu);
    forbidden_by_[slot] = verdict.allowed() ? "" : verdict.rule;
    return {verdict.allowed(), verdict.changes_at};
  }

  const Settings& settings_;
  const RuleTexts texts_;
  std::vector<std::string> forbidden_by_;
};

}  // namespace

struct WhatIf::State {
  State(Settings as_they_are, Settings as_changed_to)
      : settings(std::move(as_they_are)), changed(std::move(as_changed_to)) {}

  const Settings settings, changed;
  Replay as_is{settings}, as_changed{changed};
  std::optional<Millis> last_end;
  WhatIfTimes times;

  void add(const WatchedSpan& span) {
    if (span.end <= span.start) return;
    const Millis end = std::min(span.end, span.start + kSpanMax);
    if (last_end && (span.start < *last_end - kGapMax || span.start > *last_end + kGapMax)) {
      as_is.restart();
      as_changed.restart();
    }
    last_end = end;
    for (int i = 0; i < kResourceCount; ++i) {
      WhatIfTime& time = times.resources[i];
      time.known += end - span.start;
      time.allowed += as_is.allowed(span, end, static_cast<Resource>(i));
      time.would_be += as_changed.allowed(span, end, static_cast<Resource>(i));
    }
  }
};

WhatIf::WhatIf(Settings settings, Settings changed)
    : state_(std::make_unique<State>(std::move(settings), std::move(changed))) {}
WhatIf::~WhatIf() = default;
void WhatIf::add(std::span<const WatchedSpan> spans) {
  for (const WatchedSpan& span : spans) state_->add(span);
}
const WhatIfTimes& WhatIf::times() const { return state_->times; }

WhatIfTimes what_if(std::span<const WatchedSpan> spans, const Settings& settings,
                    const Settings& changed) {
  WhatIf question(settings, changed);
  question.add(spans);
  return question.times();
}

}  // namespace shoal::client
