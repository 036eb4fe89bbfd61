#include "compute/run/local_pipeline.h"

#include <algorithm>

namespace shoal::compute {

Result<LocalPipeline> LocalPipeline::open(Device& device, std::span<const Fragment> fragments,
                                          const PipelineOptions& options) {
  LocalPipeline result;
  std::vector<size_t> begins = {0};
  for (const size_t cut : options.cuts) {
    if (cut <= begins.back() || cut >= fragments.size()) {
      return Error{ErrorCode::kInvalid, "cut " + std::to_string(cut) +
                                            ": cuts are ascending numbers of fragments from 1 to " +
                                            std::to_string(fragments.size() - 1)};
    }
    begins.push_back(cut);
  }
  const StageOptions stage_options{
      .context = options.context, .sequences = 1, .rows_max = options.chunk};
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : fragments.size();
    SHOAL_TRY_ASSIGN(
        stage, Stage::open(device, fragments.subspan(begins[i], end - begins[i]), stage_options));
    result.stages_.push_back(std::move(stage));
  }
  if (!result.stages_.front()->shape().begins_with_tokens ||
      !result.stages_.back()->shape().ends_with_logits) {
    return Error{ErrorCode::kCorrupt, "model: does not begin with tokens and end with logits"};
  }
  result.first_fragment_ = std::move(begins);
  if (options.digest) result.digests_.resize(fragments.size() - 1);
  result.chunk_ = options.chunk;
  result.vocabulary_ = result.stages_.back()->shape().vocabulary;
  return result;
}

Result<std::vector<float>> LocalPipeline::run(std::span<const int32_t> tokens, int64_t position,
                                              Logits logits) {
  std::vector<float> result;
  for (size_t at = 0; at < tokens.size();) {
    const size_t count = std::min(tokens.size() - at, static_cast<size_t>(chunk_));
    const bool last = at + count == tokens.size();
    const Logits wanted = logits == Logits::kLast && !last ? Logits::kNone : logits;
    SHOAL_TRY_ASSIGN(rows,
                     step(tokens.subspan(at, count), position + static_cast<int64_t>(at), wanted));
    if (wanted == Logits::kAll && !last && result.empty()) {
      result.reserve(tokens.size() * static_cast<size_t>(vocabulary_));
    }
    if (result.empty() && last) {
      result = std::move(rows);  // As each decoded token comes: no copy of a vocabulary.
    } else {
      result.insert(result.end(), rows.begin(), rows.end());
    }
    at += count;
  }
  return result;
}

Result<std::vector<float>> LocalPipeline::step(std::span<const int32_t> tokens, int64_t position,
                                               Logits logits) {
  std::vector<RowInfo> rows;
  std::vector<uint32_t> output_rows;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    rows.push_back({0, static_cast<uint32_t>(position) + i});
    const bool last = i + 1 == tokens.size();
    if (logits == Logits::kAll || (logits == Logits::kLast && last)) output_rows.push_back(i);
  }
  std::vector<float> hidden;
  for (size_t s = 0; s < stages_.size(); ++s) {
    const Stage::FragmentTap tap = [&](size_t fragment, std::span<const float> output) {
      digests_[first_fragment_[s] + fragment].update(std::as_bytes(output));
    };
    const StepInput input{.rows = rows,
                          .tokens = s == 0 ? tokens : std::span<const int32_t>(),
                          .hidden = hidden,
                          .output_rows = s + 1 == stages_.size()
                                             ? std::span<const uint32_t>(output_rows)
                                             : std::span<const uint32_t>()};
    SHOAL_TRY_ASSIGN(output, stages_[s]->step(input, digests_.empty() ? nullptr : &tap));
    hidden = std::move(output);
  }
  return hidden;
}

Digest LocalPipeline::digest() {
  SHOAL_CHECK(!digests_.empty());
  DigestBuilder all;
  for (DigestBuilder& builder : digests_) all.update(builder.finish().bytes);
  return all.finish();
}

}  // namespace shoal::compute
