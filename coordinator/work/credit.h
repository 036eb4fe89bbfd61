#pragma once
// Decides what the work under a lease is worth, and whether it counts. Pure.

#include <cstdint>
#include <span>

#include "base/units.h"
#include "coordinator/work/manifest.h"

namespace shoal {

// Credit in parts of 2^-20, so that sums are exact: as whole numbers, and as the doubles that
// receipts carry, in any order.
using CreditParts = Quantity<struct CreditTag>;
constexpr int64_t kPartsPerCredit = int64_t{1} << 20;

// 1 credit = 10^12 FLOP, rounded down.
CreditParts credit_parts(Flops flops);
double credit_of(CreditParts parts);

// What `rows` rows through these fragments cost, by the model's graph and never by what a host
// claims. Bounded, whatever the manifest says.
Flops work_flops(std::span<const FragmentCost> fragments, int64_t rows);

enum class Verdict { kPending, kConfirmed, kRejected };

// How a lease ended.
struct LeaseEnd {
  bool host_banned = false;      // An administrator banned its host, or the host's account.
  bool wrong_answer = false;     // The stage answered what cannot be right.
  bool host_distrusted = false;  // Another stage of its host did, in the same session.
  bool session_over = false;
  bool forgotten = false;  // The coordinator died with the count of rows that were answered.
};

struct Judgement {
  Verdict verdict = Verdict::kPending;
  const char* reason = "";  // A code of schema/message.h when rejected.
};

// Rows that were answered count, whoever ended the stage or the session and why: a volunteer's
// machine did the work. What cannot be right counts nothing, and neither does what its host did
// beside it, nor what is not confirmed yet of a host that is banned.
Judgement judge(const LeaseEnd& end);

}  // namespace shoal
