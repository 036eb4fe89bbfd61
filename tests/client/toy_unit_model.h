#pragma once
// A model for tests of units: what it says is a plain function of the tokens so far, so that a test
// knows what must come out, and a cache that was filled wrongly shows. Special tokens make trouble.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "schema/common.capnp.h"
#include "schema/transport.h"

namespace shoal::client::toy {

constexpr uint32_t kWidth = 4, kVocabulary = 100;

// In a prompt, and only in a stage whose context is odd: so that the same unit can be handed out
// again without the trouble.
constexpr int32_t kCrashes = 90;           // The worker ends.
constexpr int32_t kHangs = 91;             // The step is never answered.
constexpr int32_t kIsSlow = 92;            // The step says that it took an hour.
constexpr int32_t kNonFinite = 93;         // The step fails.
constexpr int32_t kLies = 94;              // The step answers a token beyond the vocabulary.
constexpr uint32_t kContextTooLarge = 77;  // Opening such a stage fails.

inline uint64_t hash_of(std::span<const int32_t> tokens, uint64_t more) {
  uint64_t hash = 1469598103934665603u ^ more;
  for (const int32_t token : tokens) {
    hash = (hash ^ static_cast<uint64_t>(token)) * 1099511628211u;
    hash ^= hash >> 29;
  }
  return hash;
}

// Draws no special token.
inline int32_t draw(std::span<const int32_t> tokens, uint64_t seed, uint64_t position) {
  return static_cast<int32_t>(hash_of(tokens, seed * 31 + position) % 80);
}
inline float score(std::span<const int32_t> tokens, int32_t token) {
  return -static_cast<float>(hash_of(tokens, static_cast<uint64_t>(token)) % 1024) / 64.0f;
}
inline float feature(std::span<const int32_t> tokens, uint32_t index) {
  return static_cast<float>(hash_of(tokens, index) % 2048) / 32.0f - 30.0f;
}

// A stage of it: holds what a worker holds of each sequence, and refuses what a worker refuses.
class Stage {
 public:
  enum class Trouble { kNone, kCrash, kHang };

  Stage(uint32_t context, uint32_t sequences, uint32_t rows_max)
      : context_(context), rows_max_(rows_max), tokens_(sequences) {}

  Result<Trouble> step(rpc::StepInput::Reader input, rpc::StepOutput::Builder output) {
    const auto refuse = [](const char* what) { return Error{ErrorCode::kInvalid, what}; };
    const auto rows = input.getTokens().size();
    if (rows == 0 || rows > rows_max_) return refuse("rows");
    std::vector<std::vector<int32_t>> seen;  // Of each row: its tokens so far.
    uint64_t micros = 1'000;
    Trouble trouble = Trouble::kNone;
    for (uint32_t i = 0; i < rows; ++i) {
      const uint32_t sequence = input.getSequences()[i], position = input.getPositions()[i];
      const int32_t token = input.getTokens()[i];
      if (sequence >= tokens_.size() || position >= context_) return refuse("place");
      std::vector<int32_t>& tokens = tokens_[sequence];
      if (position > tokens.size()) return refuse("a gap in the cache");
      tokens.resize(position);
      tokens.push_back(token);
      seen.push_back(tokens);
      if (context_ % 2 == 0) continue;
      if (token == kCrashes) trouble = Trouble::kCrash;
      if (token == kHangs) trouble = Trouble::kHang;
      if (token == kNonFinite) return Error{ErrorCode::kNonFinite, "the op add"};
      if (token == kIsSlow) micros = 3'600'000'000;
    }
    if (trouble != Trouble::kNone) return trouble;
    output.setComputeMicros(micros);
    if (input.getWantsFeatures()) {
      std::vector<float> features;
      for (const auto& tokens : seen) {
        for (uint32_t k = 0; k < kWidth; ++k) features.push_back(feature(tokens, k));
      }
      output.setHidden(rpc::kj_bytes(std::as_bytes(std::span(features))));
      return trouble;
    }
    const auto draws = input.getDraws();
    auto drawn = output.initTokens(draws.size());
    for (uint32_t i = 0; i < draws.size(); ++i) {
      const auto& tokens = seen[draws[i].getRow()];
      if (draws[i].getPosition() != tokens.size()) return refuse("the position of a draw");
      drawn.set(i, draw(tokens, draws[i].getSampling().getSeed(), draws[i].getPosition()));
      if (context_ % 2 == 1 && tokens.back() == kLies) drawn.set(i, kVocabulary);
    }
    const auto scores = input.getScores();
    auto scored = output.initLogLikelihoods(scores.size());
    for (uint32_t i = 0; i < scores.size(); ++i) {
      scored.set(i, score(seen[scores[i].getRow()], scores[i].getToken()));
    }
    return trouble;
  }

 private:
  uint32_t context_, rows_max_;
  std::vector<std::vector<int32_t>> tokens_;
};

}  // namespace shoal::client::toy
