#include "base/result.h"

namespace shoal {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid: return "invalid";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kExists: return "exists";
    case ErrorCode::kDenied: return "denied";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kTimeout: return "timeout";
    case ErrorCode::kNoSpace: return "no_space";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kNonFinite: return "non_finite";
    case ErrorCode::kIo: return "io";
  }
  SHOAL_UNREACHABLE();
}

}  // namespace shoal
