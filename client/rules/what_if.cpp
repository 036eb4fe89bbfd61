#include "client/rules/what_if.h"

#include <algorithm>
#include <optional>

namespace shoal::client {
namespace {

constexpr Millis kMinute{60'000};
// Longer spans are cut: they come from a file.
constexpr Millis kSpanMax{int64_t{32} * 86'400'000};

// One set of rules, followed from minute to minute.
class Replay {
 public:
  explicit Replay(const Settings& settings)
      : settings_(settings), texts_(RuleTexts::of(settings)) {}

  // Forgets what paused last, as after a gap.
  void restart() { forbidden_by_.clear(); }

  // In the minute from `at`, in which `readings` are those of the span with its idle time grown.
  bool allows(const WatchedSpan& span, const Readings& readings, Millis at, const LocalTime& local,
              Resource resource) {
    const Minute minute{span, readings, at, local};
    if (resource != Resource::kGpu || !readings.gpus || readings.gpus->empty()) {
      return judge(minute, resource, nullptr, static_cast<size_t>(resource));
    }
    // Each GPU has its own past.
    bool any = false;
    for (size_t i = 0; i < readings.gpus->size(); ++i) {
      any |= judge(minute, resource, &(*readings.gpus)[i], kResourceCount + i);
    }
    return any;
  }

 private:
  struct Minute {
    const WatchedSpan& span;
    const Readings& readings;
    Millis at;
    const LocalTime& local;
  };

  bool judge(const Minute& minute, Resource resource, const GpuReading* gpu, size_t slot) {
    if (forbidden_by_.size() <= slot) forbidden_by_.resize(slot + 1);
    PolicyInput input{.settings = settings_, .readings = minute.readings};
    input.spent = minute.span.spent;
    input.now = minute.at;
    input.local = minute.local;
    input.own_gpu_load = minute.span.own_gpu_load;
    input.texts = &texts_;
    input.forbidden_by[static_cast<int>(resource)] = forbidden_by_[slot];
    const Verdict verdict = decide(input, resource, gpu);
    forbidden_by_[slot] = verdict.allowed() ? "" : verdict.rule;
    return verdict.allowed();
  }

  const Settings& settings_;
  const RuleTexts texts_;
  std::vector<std::string> forbidden_by_;
};

}  // namespace

WhatIfTimes what_if(std::span<const WatchedSpan> spans, const Settings& settings,
                    const Settings& changed) {
  WhatIfTimes times;
  Replay as_is(settings);
  Replay as_changed(changed);
  std::optional<Millis> last_end;
  for (const WatchedSpan& span : spans) {
    if (span.end <= span.start) continue;
    const Millis end = std::min(span.end, span.start + kSpanMax);
    if (last_end && (span.start < *last_end - kMinute || span.start > *last_end + kMinute)) {
      as_is.restart();
      as_changed.restart();
    }
    last_end = end;
    Readings readings = span.readings;
    for (Millis at = span.start; at < end; at += kMinute) {
      if (span.readings.idle) readings.idle = *span.readings.idle + (at - span.start);
      const Millis lasts = std::min(kMinute, end - at);
      const LocalTime local = local_time(at);
      for (int i = 0; i < kResourceCount; ++i) {
        const auto resource = static_cast<Resource>(i);
        WhatIfTime& time = times.resources[i];
        time.known += lasts;
        if (as_is.allows(span, readings, at, local, resource)) time.allowed += lasts;
        if (as_changed.allows(span, readings, at, local, resource)) time.would_be += lasts;
      }
    }
  }
  return times;
}

}  // namespace shoal::client
