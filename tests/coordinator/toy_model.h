#pragma once
// A model of integers, for tests of sessions: each stage's output depends on all positions before,
// so a replacement that was not given the same inputs again gives other tokens.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/secrets.h"

namespace shoal::test {

constexpr int kToyFragments = 6;  // Embedding, four blocks, head.
constexpr int kToyWidth = 4;
constexpr int kToyVocabulary = 259;  // <unk>, <s>, </s>, and the bytes.
constexpr int kToyContext = 200;
constexpr int32_t kToyEos = 2;
constexpr const char* kToyChatTemplate =
    "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
constexpr uint64_t kToyEosSeed = 777;     // With this seed, the text ends
constexpr uint64_t kToyEosPosition = 30;  // at this position.

struct ToyModel {
  std::string manifest;
  std::vector<ByteVector> shards;  // Sealed.
  std::vector<SecretBytes> keys;
};
// `shard_bytes` of plain content in each shard.
ToyModel make_toy_model(const std::string& name, size_t shard_bytes = 100,
                        int64_t flops_per_row = 1000);

// Fragments first..last with their caches.
class ToyStage {
 public:
  ToyStage(int first, int last) : first_(first), last_(last) {}

  bool is_head() const { return first_ == 0; }
  bool is_tail() const { return last_ == kToyFragments - 1; }

  // One row; `row` is a hidden row, or holds the token alone. Empty when earlier positions are
  // missing.
  std::vector<float> step(uint32_t position, std::vector<float> row);
  static int32_t draw(const std::vector<float>& row, uint64_t seed, uint64_t position);

 private:
  int first_, last_;
  std::map<int, std::map<uint32_t, std::vector<float>>> caches_;  // By block and position.
};

// What an undisturbed run gives, computed in one place.
std::vector<int32_t> toy_tokens(std::vector<int32_t> prompt, int64_t count, uint64_t seed,
                                bool ignore_eos = false);

}  // namespace shoal::test
