#pragma once
// The one way to return an operating error: a value or an Error, which the compiler will not let
// you drop. Our own bugs are base/check.h.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace shoal {

enum class ErrorCode {
  kInvalid,      // What was asked for makes no sense: a bad argument, option or URL.
  kCorrupt,      // Bytes from a file or a wire break their format's rules.
  kNotFound,     // The thing named does not exist.
  kExists,       // The thing to be made is there already.
  kDenied,       // The peer or the operating system refuses: identity, permission, pin, lease.
  kUnavailable,  // Not now: a peer is gone, a device is lost. Trying again later can help.
  kTimeout,      // No answer within the time allowed.
  kNoSpace,      // Disk, memory or a stated limit is full.
  kUnsupported,  // This build, device or version cannot do it.
  kNonFinite,    // An op would have made a NaN or an infinity (docs/EXACT.md).
  kIo,           // Any other failure of the operating system.
};

// "invalid", "corrupt", ...: stable, for logs and JSON.
std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;  // One sentence for a person that names the cause; no final period.
};

// Puts `context` and ": " before the message.
inline Error with_context(Error error, std::string_view context) {
  error.message.insert(0, ": ").insert(0, context);
  return error;
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }

  // REQUIRES: ok().
  T& value() & {
    SHOAL_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    SHOAL_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    SHOAL_CHECK(ok());
    return std::get<0>(std::move(state_));
  }

  // REQUIRES: !ok().
  const Error& error() const {
    SHOAL_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  const Error& error() const {
    SHOAL_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace shoal

// Returns the error of `expression`, a Result<void>, out of the current function.
#define SHOAL_TRY(expression)                                                           \
  do {                                                                                  \
    if (auto shoal_tried = (expression); !shoal_tried.ok()) return shoal_tried.error(); \
  } while (false)

// Declares `name` with the value of `expression`, a Result<T>, or returns its error.
#define SHOAL_TRY_ASSIGN(name, expression)               \
  auto name##_result = (expression);                     \
  if (!name##_result.ok()) return name##_result.error(); \
  auto name = std::move(name##_result).value()
