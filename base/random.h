#pragma once
// The only source of chance. Everything that draws takes a Random, so that a seed replays a run;
// keys and nonces come from the system instead, and never from a seed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal {

// xoshiro256**, seeded by splitmix64: the same numbers on every machine. Not for secrets. One
// thread.
class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t next_u64();
  uint64_t below(uint64_t n);  // 0 ... n-1, each as likely. REQUIRES: n > 0.
  double uniform();            // [0, 1), a multiple of 2^-53.
  void fill(std::span<std::byte> bytes);

 private:
  std::array<uint64_t, 4> state_;
};

// A seed nobody knows beforehand. Print it, so that the run can be replayed.
uint64_t seed_from_system();

// Unpredictable bytes, fit for keys and tokens.
void fill_secret(std::span<std::byte> bytes);

}  // namespace shoal
