#pragma once
// Holds one sentence of a plan's explanation of itself.

#include <string>

namespace shoal {

struct PlanReason {
  const char* code;   // Stable, for scripts.
  std::string text;   // A sentence for a person, without its period.
  double factor = 0;  // How many times as fast, where the sentence is about speed; else 0.
};

}  // namespace shoal
