#pragma once
// Starts libsodium before its first use. An inner door: only base's own .cpp files open it.

#include <sodium.h>

#include "base/check.h"

namespace shoal {

inline void start_sodium() {
  static const bool started = sodium_init() >= 0;  // Fails only without any system randomness.
  SHOAL_CHECK(started);
}

}  // namespace shoal
