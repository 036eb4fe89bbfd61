#pragma once
// Another program's figures, to print ours as a ratio to them: any command whose last line of
// output is a JSON object with prefill_tokens_per_second and decode_tokens_per_second, at its top
// or within "model", as `shoal-run --json bench` prints it.

#include <string>

#include "base/result.h"

namespace shoal::compute {

struct RivalRates {
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;
};

// Runs the command by the shell, its errors on ours. Any failure names what was wrong.
Result<RivalRates> run_rival(const std::string& command);

// What a rival's output says. Pure.
Result<RivalRates> read_rival(const std::string& output);

}  // namespace shoal::compute
