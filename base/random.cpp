#include "base/random.h"

#include <bit>

#include "base/check.h"
#include "base/sodium_start.h"

namespace shoal {
namespace {

uint64_t splitmix64(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = splitmix64(seed);
}

uint64_t Random::next_u64() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::below(uint64_t n) {
  SHOAL_CHECK(n > 0);
  // The first 2^64 mod n values would make the small answers likelier: draw again.
  const uint64_t refused = (0 - n) % n;
  uint64_t draw = next_u64();
  while (draw < refused) draw = next_u64();
  return draw % n;
}

double Random::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

void Random::fill(std::span<std::byte> bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 8 == 0) word = next_u64();
    bytes[i] = static_cast<std::byte>(word >> (i % 8 * 8));
  }
}

uint64_t seed_from_system() {
  start_sodium();
  uint64_t seed = 0;
  randombytes_buf(&seed, sizeof seed);
  return seed;
}

void fill_secret(std::span<std::byte> bytes) {
  start_sodium();
  randombytes_buf(bytes.data(), bytes.size());
}

}  // namespace shoal
