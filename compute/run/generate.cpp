#include "compute/run/generate.h"

#include <algorithm>
#include <cmath>

#include "compute/chat/chat_template.h"
#include "compute/run/local_pipeline.h"
#include "compute/run/stopwatch.h"
#include "compute/tokenizer/tokenizer.h"

namespace shoal::compute {
namespace {

Result<Tokenizer> tokenizer_of(const Model& model) {
  if (model.tokenizer.empty()) {
    return Error{ErrorCode::kNotFound,
                 model.name + ": the model has no tokenizer (tokenizer.json)"};
  }
  SHOAL_TRY_ASSIGN(tokenizer, Tokenizer::from_definition(model.tokenizer));
  if (tokenizer.vocabulary() > model.config.vocabulary) {
    return Error{ErrorCode::kCorrupt,
                 model.name + ": the tokenizer has " + std::to_string(tokenizer.vocabulary()) +
                     " tokens, but the model only " + std::to_string(model.config.vocabulary)};
  }
  return tokenizer;
}

bool ends_text(const Model& model, const Tokenizer& tokenizer, int32_t id) {
  const auto& eos = model.config.eos;
  return tokenizer.is_eos(id) || std::find(eos.begin(), eos.end(), id) != eos.end();
}

Result<void> check_chunk(int64_t chunk) {
  if (chunk < 1 || chunk > 4096) {
    return Error{ErrorCode::kInvalid,
                 "chunk: " + std::to_string(chunk) + " is not between 1 and 4096"};
  }
  return {};
}

// -log of the probability of `token`, in double.
double negative_log_likelihood(std::span<const float> logits, int32_t token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return std::log(sum) + largest - static_cast<double>(logits[static_cast<size_t>(token)]);
}

}  // namespace

Result<GenerateReport> generate(const Model& model, Device& device, const GenerateOptions& options,
                                const std::function<void(std::string_view)>& on_text) {
  SHOAL_TRY(options.sampling.check());
  SHOAL_TRY(check_chunk(options.chunk));
  SHOAL_TRY_ASSIGN(tokenizer, tokenizer_of(model));
  GenerateReport report;
  if (options.chat.empty()) {
    report.prompt_ids = tokenizer.encode(options.prompt, tokenizer.adds_bos());
  } else {
    SHOAL_TRY_ASSIGN(ids, encode_chat(tokenizer, options.chat, options.now_ms));
    report.prompt_ids = std::move(ids);
  }
  if (report.prompt_ids.empty() && !options.chat.empty())
    return Error{ErrorCode::kInvalid, "chat: the model's template makes no text of it"};
  if (report.prompt_ids.empty()) {
    return Error{ErrorCode::kInvalid, "prompt: is empty, and the model has no token to begin with"};
  }
  const auto prompt_tokens = static_cast<int64_t>(report.prompt_ids.size());
  if (prompt_tokens > model.config.context) {
    return Error{ErrorCode::kInvalid, "prompt: its " + std::to_string(prompt_tokens) +
                                          " tokens pass the model's context of " +
                                          std::to_string(model.config.context)};
  }
  // The last token drawn is never run, so one position fewer than tokens is needed.
  const int64_t context = std::min(model.config.context, prompt_tokens + options.tokens_max);
  SHOAL_TRY_ASSIGN(pipeline, LocalPipeline::open(device, model.fragments,
                                                 {.cuts = options.cuts,
                                                  .context = context,
                                                  .chunk = std::min(options.chunk, context),
                                                  .digest = options.digest}));

  const Stopwatch prefill;
  SHOAL_TRY_ASSIGN(prompt_logits, pipeline.run(report.prompt_ids, 0, LocalPipeline::Logits::kLast));
  report.prefill_tokens_per_second = static_cast<double>(prompt_tokens) / prefill.seconds();
  report.last_logits = prompt_logits;

  std::vector<float> logits = std::move(prompt_logits);
  std::vector<int32_t> history = report.prompt_ids;
  Detokenizer detokenizer(tokenizer, Detokenizer::Begin::kContinuation);
  const auto put = [&](std::string_view text) {
    report.text += text;
    if (on_text && !text.empty()) on_text(text);
  };
  report.stop = "length";
  const Stopwatch decode;
  int64_t decoded = 0;
  while (static_cast<int64_t>(report.ids.size()) < options.tokens_max) {
    SHOAL_TRY_ASSIGN(token, sample(logits, options.sampling, history, history.size()));
    report.ids.push_back(token);
    history.push_back(token);
    if (!options.ignore_eos && ends_text(model, tokenizer, token)) {
      report.stop = "eos";
      break;
    }
    put(detokenizer.push(token));
    if (static_cast<int64_t>(report.ids.size()) == options.tokens_max) break;
    if (static_cast<int64_t>(history.size()) > model.config.context) {
      report.stop = "context";
      break;
    }
    SHOAL_TRY_ASSIGN(
        next, pipeline.run(std::span(history).last(1), static_cast<int64_t>(history.size()) - 1,
                           LocalPipeline::Logits::kLast));
    logits = std::move(next);
    ++decoded;
  }
  if (decoded > 0)
    report.decode_tokens_per_second = static_cast<double>(decoded) / decode.seconds();
  put(detokenizer.finish());
  if (options.digest) report.digest = pipeline.digest();
  return report;
}

Result<PerplexityReport> perplexity(const Model& model, Device& device, std::string_view text,
                                    int64_t window, int64_t windows_max, int64_t chunk) {
  if (window < 2 || window > model.config.context) {
    return Error{ErrorCode::kInvalid, "window: " + std::to_string(window) +
                                          " is not between 2 and the model's context of " +
                                          std::to_string(model.config.context)};
  }
  SHOAL_TRY(check_chunk(chunk));
  SHOAL_TRY_ASSIGN(tokenizer, tokenizer_of(model));
  return perplexity_of_tokens(model, device, tokenizer.encode(text, /*add_bos=*/false), window,
                              windows_max, chunk);
}

Result<PerplexityReport> perplexity_of_tokens(const Model& model, Device& device,
                                              std::span<const int32_t> tokens, int64_t window,
                                              int64_t windows_max, int64_t chunk) {
  if (!model.config.bos.has_value()) {
    return Error{ErrorCode::kUnsupported,
                 model.name + ": the model names no token that begins a text"};
  }
  const int64_t scored = window - 1;
  int64_t windows = static_cast<int64_t>(tokens.size()) / scored;
  if (windows_max > 0) windows = std::min(windows, windows_max);
  if (windows == 0) {
    return Error{ErrorCode::kInvalid, "text: its " + std::to_string(tokens.size()) +
                                          " tokens do not fill a window of " +
                                          std::to_string(scored)};
  }
  SHOAL_TRY_ASSIGN(
      pipeline,
      LocalPipeline::open(device, model.fragments,
                          {.context = window, .chunk = std::min(chunk, window), .digest = false}));
  PerplexityReport report;
  double total = 0;
  const auto vocabulary = static_cast<size_t>(pipeline.vocabulary());
  for (int64_t w = 0; w < windows; ++w) {
    std::vector<int32_t> ids = {*model.config.bos};
    const auto text = tokens.subspan(static_cast<size_t>(w * scored), static_cast<size_t>(scored));
    ids.insert(ids.end(), text.begin(), text.end());
    double sum = 0;
    // A chunk at a time, so that the logits of a large vocabulary stay few. The last token predicts
    // nothing that is scored.
    for (int64_t at = 0; at < scored;) {
      const int64_t rows = std::min(chunk, scored - at);
      SHOAL_TRY_ASSIGN(logits, pipeline.run(std::span(ids).subspan(static_cast<size_t>(at),
                                                                   static_cast<size_t>(rows)),
                                            at, LocalPipeline::Logits::kAll));
      for (int64_t i = 0; i < rows; ++i) {
        const auto row =
            std::span<const float>(logits).subspan(static_cast<size_t>(i) * vocabulary, vocabulary);
        sum += negative_log_likelihood(row, ids[static_cast<size_t>(at + i + 1)]);
      }
      at += rows;
    }
    report.window_nll.push_back(sum);
    total += sum;
  }
  report.scored_tokens = windows * scored;
  report.perplexity = std::exp(total / static_cast<double>(report.scored_tokens));
  return report;
}

}  // namespace shoal::compute
