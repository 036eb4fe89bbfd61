#pragma once
// Our own bugs stop the process, in every build. Not for bad input and not for the world's
// failures: those are base/result.h.

#include <cstdio>
#include <cstdlib>

namespace shoal {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace shoal

#define SHOAL_CHECK(condition)                                               \
  do {                                                                       \
    if (!(condition)) ::shoal::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#define SHOAL_UNREACHABLE() ::shoal::check_failed(__FILE__, __LINE__, "unreachable")
