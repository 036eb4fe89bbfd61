#pragma once
// Continues a prompt with a model on one device, and scores a text with it. One process, one
// sequence.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "compute/compute.h"
#include "compute/models/model.h"
#include "compute/sampling/sampler.h"

namespace shoal::compute {

struct GenerateOptions {
  std::string prompt;
  int64_t tokens_max = 128;
  SamplingOptions sampling;
  int64_t chunk = 64;  // Prompt rows in one step.
  std::vector<size_t> cuts;
  bool ignore_eos = false;  // Goes on after a token that ends a text.
  bool digest = true;
  std::string chat;  // Instead of the prompt: the variables of the model's chat template, as JSON.
  std::optional<int64_t> now_ms;  // For templates that write the date.
};

struct GenerateReport {
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> ids;        // Generated; an end token that stopped it is the last.
  std::string text;                // Of `ids`.
  std::string stop;                // "eos", "length", or "context".
  Digest digest;                   // Of all fragments' outputs; see LocalPipeline.
  std::vector<float> last_logits;  // Of the prompt's last position.
  double prefill_tokens_per_second = 0;
  double decode_tokens_per_second = 0;  // 0 when nothing was decoded after the first token.
};

// `on_text` gets the text as it comes, whole characters at a time.
Result<GenerateReport> generate(const Model& model, Device& device, const GenerateOptions& options,
                                const std::function<void(std::string_view)>& on_text);

struct PerplexityReport {
  double perplexity = 0;
  int64_t scored_tokens = 0;
  std::vector<double> window_nll;  // Nats, one sum for each window.
};

// The text as tokens without special ones, cut into windows of bos and `window` - 1 tokens, each
// scored on its own; bos is not scored, and what does not fill a last window is left out.
// `windows_max` 0: all.
Result<PerplexityReport> perplexity(const Model& model, Device& device, std::string_view text,
                                    int64_t window, int64_t windows_max, int64_t chunk);

// The same for tokens. REQUIRES: window is at least 2.
Result<PerplexityReport> perplexity_of_tokens(const Model& model, Device& device,
                                              std::span<const int32_t> tokens, int64_t window,
                                              int64_t windows_max, int64_t chunk);

}  // namespace shoal::compute
