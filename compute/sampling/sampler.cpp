#include "compute/sampling/sampler.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "shaders/exact_math.h"

namespace shoal {
namespace {

constexpr int kWeightBits = 40;
// So many weights, each up to 2^40, add up without overflow.
constexpr size_t kLogitsMax = size_t{1} << 23;

__extension__ typedef unsigned __int128 Wide;

struct Candidate {
  float logit;
  int32_t id;
};

bool goes_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// e^x for x <= 0 as an integer, 2^40 standing for 1.
uint64_t weight_of(float x) {
  return static_cast<uint64_t>(exact::exact_exp(x) *
                               static_cast<float>(uint64_t{1} << kWeightBits));
}

// Not (low <= x <= high) is also true of a NaN.
bool within(float x, float low, float high) { return x >= low && x <= high; }

Result<void> penalize(std::vector<Candidate>& candidates, const SamplingOptions& options,
                      std::span<const int32_t> history) {
  const size_t window = std::min<size_t>(options.repetition_window, history.size());
  if (options.repetition_penalty == 1.0f || window == 0) return {};
  std::vector<int32_t> seen(history.end() - static_cast<std::ptrdiff_t>(window), history.end());
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  if (seen.front() < 0 || static_cast<size_t>(seen.back()) >= candidates.size()) {
    return Error{ErrorCode::kInvalid, "history: holds a token beyond the vocabulary"};
  }
  const float reciprocal = exact::exact_reciprocal(options.repetition_penalty);
  for (const int32_t id : seen) {
    float& logit = candidates[static_cast<size_t>(id)].logit;
    const float factor = logit > 0.0f ? reciprocal : options.repetition_penalty;
    // A product too large stays the largest number of its sign.
    logit = std::clamp(logit * factor, std::numeric_limits<float>::lowest(),
                       std::numeric_limits<float>::max());
  }
  return {};
}

// How many of the ordered candidates together reach top_p, at least one.
size_t count_of_top_p(const std::vector<Candidate>& candidates, float top_p) {
  constexpr int kShareBits = 24;  // A float below 1 in units of 2^-24 loses nothing that matters.
  const Wide share = static_cast<uint64_t>(top_p * static_cast<float>(1u << kShareBits));
  std::vector<uint64_t> weights;
  weights.reserve(candidates.size());
  uint64_t total = 0;
  for (const Candidate& candidate : candidates) {
    weights.push_back(weight_of(candidate.logit - candidates.front().logit));
    total += weights.back();
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if ((Wide{sum} << kShareBits) >= share * total) return i + 1;
  }
  return candidates.size();
}

uint64_t mix(uint64_t x) {  // The output function of splitmix64.
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

Result<void> SamplingOptions::check() const {
  const auto refuse = [](const char* option) { return Error{ErrorCode::kInvalid, option}; };
  if (temperature != 0.0f && !within(temperature, 0.01f, 100.0f)) {
    return refuse("temperature: must be 0 or from 0.01 to 100");
  }
  if (!within(top_p, 0.0f, 1.0f)) return refuse("top_p: must be from 0 to 1");
  if (!within(min_p, 0.0f, 1.0f)) return refuse("min_p: must be from 0 to 1");
  if (!within(repetition_penalty, 0.01f, 100.0f)) {
    return refuse("repetition_penalty: must be from 0.01 to 100");
  }
  return {};
}

uint64_t random_bits_at(uint64_t seed, uint64_t position) {
  // Two rounds, so that neither neighbouring seeds nor neighbouring positions are alike.
  return mix(mix(seed + 0x9E3779B97F4A7C15u) + position * 0x9E3779B97F4A7C15u + 1);
}

Result<int32_t> sample(std::span<const float> logits, const SamplingOptions& options,
                       std::span<const int32_t> history, uint64_t position) {
  SHOAL_TRY(options.check());
  if (logits.empty() || logits.size() > kLogitsMax) {
    return Error{ErrorCode::kInvalid, "logits: are " + std::to_string(logits.size())};
  }
  std::vector<Candidate> candidates;
  candidates.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!exact::exact_is_finite(logits[i])) {
      return Error{ErrorCode::kNonFinite, "logits: number " + std::to_string(i) + " is not finite"};
    }
    candidates.push_back({logits[i], static_cast<int32_t>(i)});
  }
  SHOAL_TRY(penalize(candidates, options, history));
  if (options.temperature == 0.0f) {
    return std::min_element(candidates.begin(), candidates.end(), goes_before)->id;
  }

  // TODO(perf): without top_k this sorts the whole vocabulary, some 10 ms for 150,000 tokens.
  const size_t keep =
      options.top_k == 0 ? candidates.size() : std::min<size_t>(options.top_k, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(keep),
                    candidates.end(), goes_before);
  candidates.resize(keep);
  if (options.top_p < 1.0f) candidates.resize(count_of_top_p(candidates, options.top_p));
  const float best = candidates.front().logit;
  if (options.min_p > 0.0f) {
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return exact::exact_exp(candidate.logit - best) < options.min_p;
    });
  }

  const float inverse_temperature = exact::exact_reciprocal(options.temperature);
  std::vector<uint64_t> weights;
  weights.reserve(candidates.size());
  uint64_t total = 0;
  for (const Candidate& candidate : candidates) {
    weights.push_back(weight_of((candidate.logit - best) * inverse_temperature));
    total += weights.back();
  }
  const Wide scaled = Wide{random_bits_at(options.seed, position)} * total;
  uint64_t left = static_cast<uint64_t>(scaled >> 64);  // Below `total`.
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (left < weights[i]) return candidates[i].id;
    left -= weights[i];
  }
  SHOAL_UNREACHABLE();
}

}  // namespace shoal
