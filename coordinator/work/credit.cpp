#include "coordinator/work/credit.h"

#include <algorithm>

#include "base/check.h"

namespace shoal {
namespace {

constexpr int64_t kFlopsPerCredit = 1'000'000'000'000;
constexpr Flops kLeaseFlopsMax{int64_t{1} << 62};
static_assert(kFlopsPerCredit <= INT64_MAX / kPartsPerCredit);

}  // namespace

CreditParts credit_parts(Flops flops) {
  SHOAL_CHECK(flops.count >= 0);
  const int64_t whole = flops.count / kFlopsPerCredit, rest = flops.count % kFlopsPerCredit;
  return {whole * kPartsPerCredit + rest * kPartsPerCredit / kFlopsPerCredit};
}

double credit_of(CreditParts parts) {
  return static_cast<double>(parts.count) / static_cast<double>(kPartsPerCredit);
}

Flops work_flops(std::span<const FragmentCost> fragments, int64_t rows) {
  SHOAL_CHECK(rows >= 0);
  Flops row;
  for (const FragmentCost& fragment : fragments) {
    row.count += std::min(fragment.flops_per_row.count, kLeaseFlopsMax.count - row.count);
  }
  if (rows == 0 || row.count <= kLeaseFlopsMax.count / rows) return {row.count * rows};
  return kLeaseFlopsMax;
}

Judgement judge(const LeaseEnd& end) {
  if (end.host_banned) return {Verdict::kRejected, "credit.host_banned"};
  if (end.wrong_answer) return {Verdict::kRejected, "credit.wrong_answer"};
  if (end.host_distrusted) return {Verdict::kRejected, "credit.host_distrusted"};
  if (end.forgotten) return {Verdict::kRejected, "credit.coordinator_restarted"};
  return {end.session_over ? Verdict::kConfirmed : Verdict::kPending, ""};
}

}  // namespace shoal
