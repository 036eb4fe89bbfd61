#include "coordinator/work/broker.h"

namespace shoal {

std::string_view no_work_code(NoWork why) {
  switch (why) {
    case NoWork::kNone: return "";
    case NoWork::kUnknownDevice: return "batch.unknown_device";
    case NoWork::kBanned: return "batch.banned";
    case NoWork::kQuarantined: return "batch.quarantined";
    case NoWork::kNotExact: return "batch.not_exact";
    case NoWork::kEnough: return "batch.enough";
    case NoWork::kNoJobs: return "batch.no_jobs";
    case NoWork::kAllOut: return "batch.all_out";
    case NoWork::kDenied: return "batch.denied";
    case NoWork::kTrustedOnly: return "batch.trusted_only";
    case NoWork::kTooLarge: return "batch.too_large";
    case NoWork::kTooLong: return "batch.too_long";
  }
  SHOAL_UNREACHABLE();
}

std::string_view reject_code(RejectReason reason) {
  switch (reason) {
    case RejectReason::kNone: return "";
    case RejectReason::kWrong: return "batch.wrong_result";
    case RejectReason::kUnproven: return "batch.unproven";
  }
  SHOAL_UNREACHABLE();
}

SubmitAnswer answer_from_rows(const LeaseRow* lease, bool unit_done) {
  if (lease == nullptr) return SubmitAnswer::kUnknown;
  if (lease->state != ResultState::kNone) return SubmitAnswer::kDuplicate;
  return unit_done ? SubmitAnswer::kExtra : SubmitAnswer::kNotNeeded;
}

}  // namespace shoal
