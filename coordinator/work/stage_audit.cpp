#include "coordinator/work/stage_audit.h"

#include <optional>
#include <utility>

#include "base/check.h"

namespace shoal {

std::vector<size_t> best_auditors(const AuditorRequest& request,
                                  std::span<const AuditorCandidate> candidates) {
  const Bytes needed = stage_memory(request.fragments, request.context, request.rows_max);
  std::vector<size_t> best;
  std::optional<std::pair<bool, bool>> best_rank;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const AuditorCandidate& candidate = candidates[i];
    const PlanDevice& device = candidate.device;
    if (candidate.busy || candidate.barred || candidate.same_owner) continue;
    if (!device.exact || device.denied || device.memory_free < needed) continue;
    if (request.trusted_only && !device.trusted) continue;
    const std::pair rank(candidate.same_address, candidate.in_session);
    if (best_rank && *best_rank < rank) continue;
    if (best_rank != rank) best.clear();
    best_rank = rank;
    best.push_back(i);
  }
  return best;
}

Settlement settle(const Digest& accused, const Digest& auditor, const Digest& judge,
                  bool judge_trusted) {
  SHOAL_CHECK(accused != auditor);
  if (judge == accused) return Settlement::kAuditor;
  if (judge == auditor) return Settlement::kAccused;
  return judge_trusted ? Settlement::kBoth : Settlement::kOpen;
}

}  // namespace shoal
