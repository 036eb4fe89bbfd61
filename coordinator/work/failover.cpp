#include "coordinator/work/failover.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"

namespace shoal {
namespace {

constexpr Millis kStepTimeoutMax{600'000};
constexpr Millis kSilenceMin{60'000};
constexpr Millis kSilenceMax{3'600'000};
static_assert(kSilenceMin < kSilenceMax);

}  // namespace

std::optional<size_t> choose_replacement(const ReplacementRequest& request,
                                         std::span<const ReplacementCandidate> candidates) {
  const Bytes needed = stage_memory(request.fragments, request.context, request.rows_max);
  std::optional<size_t> best;
  std::tuple<bool, bool, bool, double> best_rank;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const ReplacementCandidate& candidate = candidates[i];
    if (candidate.distrusted || candidate.device.memory_free < needed) continue;
    if (request.exact && !candidate.device.exact) continue;
    if (request.trusted_only && !candidate.device.trusted) continue;
    if (candidate.device.denied) continue;
    const double own = stage_seconds(request.fragments, candidate.device, 1);
    const double replay =
        request.rows_to_replay > 0
            ? stage_seconds(request.fragments, candidate.device, request.rows_to_replay)
            : 0;
    const double needed = replay + static_cast<double>(request.tokens_left) *
                                       (own + request.others_seconds_per_token);
    if (candidate.device.seconds_available < needed * kTimeReserve) continue;
    const std::tuple rank(candidate.in_session, candidate.just_lost, !candidate.has_shards, own);
    if (!best || rank < best_rank) {
      best = i;
      best_rank = rank;
    }
  }
  return best;
}

Millis step_timeout(const StepTimes& times, double row_seconds, double predicted_seconds,
                    int64_t rows) {
  SHOAL_CHECK(rows > 0 && times.least.count > 0);
  const double expected = std::max(row_seconds * static_cast<double>(rows), predicted_seconds);
  const Millis floor = row_seconds > 0 ? times.least : std::max(times.least, times.first);
  const double wanted = std::min(std::ceil(expected * times.factor * 1000.0),
                                 static_cast<double>(kStepTimeoutMax.count));
  return std::max(floor, Millis{static_cast<int64_t>(wanted)});
}

Millis lease_silence(Millis repair_wait, Millis open_silence) {
  return std::clamp(Millis{2 * (repair_wait.count + open_silence.count)}, kSilenceMin, kSilenceMax);
}

}  // namespace shoal
