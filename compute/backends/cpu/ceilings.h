#pragma once
// What this machine's processors reach at best: reading memory, and multiplying and adding. What a
// bench holds its figures against; measured in the same run, as other programs take their part.

#include <string>

namespace shoal::compute {

struct Ceilings {
  // 0: not measured, as there is no memory or no such instructions.
  double read_bytes_per_second = 0;  // Memory beyond all caches, read once.
  double int8_per_second = 0;        // Products of bytes, summed in 32 bits; one counts as two.
  double f32_per_second = 0;         // Fused multiply-adds; one counts as two.
  std::string instructions;          // "avx512vnni": those that the products were made with.
};

// `threads` 0: one for each core. Takes about a second, and half a
// gigabyte.
Ceilings measure_ceilings(int threads);

}  // namespace shoal::compute
