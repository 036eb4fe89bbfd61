#include "compute/worker/step_input.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string>

#include "schema/limits.h"

namespace shoal::worker {
namespace {

Error refuse(const std::string& why) { return {ErrorCode::kInvalid, why}; }

Result<void> between(const char* field, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return {};
  return refuse(std::string(field) + " is " + std::to_string(value) + ", not within " +
                std::to_string(least) + " to " + std::to_string(most));
}

std::vector<int32_t> values_of(capnp::List<int32_t>::Reader list) {
  std::vector<int32_t> values(list.size());
  for (unsigned i = 0; i < list.size(); ++i) values[i] = list[i];
  return values;
}

Result<DrawRequest> read_draw(rpc::Draw::Reader draw) {
  DrawRequest request;
  const rpc::Sampling::Reader sampling = draw.getSampling();
  request.sampling.temperature = sampling.getTemperature();
  request.sampling.top_k = sampling.getTopK();
  request.sampling.top_p = sampling.getTopP();
  request.sampling.min_p = sampling.getMinP();
  request.sampling.repetition_penalty = sampling.getRepetitionPenalty();
  request.sampling.seed = sampling.getSeed();
  const auto history = draw.getHistory();
  SHOAL_TRY(between("draw.history", history.size(), 0, limits::kHistoryMax));
  // The sender chose how far to look back by what it sent.
  request.sampling.repetition_window = history.size();
  request.history = values_of(history);
  request.position = draw.getPosition();
  SHOAL_TRY(request.sampling.check());
  return request;
}

// The rows that a list of draws or scores names, ascending.
template <class List>
Result<std::vector<uint32_t>> read_rows(const char* name, List list, size_t rows) {
  if (list.size() > rows) {
    return refuse(std::string("step.") + name + "s has more entries than the step has rows");
  }
  const std::string field = std::string(name) + ".row";
  std::vector<uint32_t> read;
  for (const auto entry : list) {
    SHOAL_TRY(between(field.c_str(), entry.getRow(), 0, rows - 1));
    if (!read.empty() && entry.getRow() <= read.back()) return refuse(field + ": rows must ascend");
    read.push_back(entry.getRow());
  }
  return read;
}

size_t place_of(uint32_t row, const std::vector<uint32_t>& rows) {
  return static_cast<size_t>(std::ranges::lower_bound(rows, row) - rows.begin());
}

// What the head is asked for.
Result<void> read_outputs(rpc::StepInput::Reader input, const compute::StageShape& shape,
                          StepRequest& request) {
  const size_t rows = request.rows.size();
  const auto draws = input.getDraws();
  const auto scores = input.getScores();
  if (!shape.ends_with_logits) {
    const char* const end = ": the stage does not end with the head";
    if (draws.size() > 0) return refuse(std::string("step.draws") + end);
    if (scores.size() > 0) return refuse(std::string("step.scores") + end);
    if (input.getWantsFeatures()) return refuse(std::string("step.wantsFeatures") + end);
    return {};
  }
  if (input.getWantsFeatures()) {
    if (draws.size() + scores.size() > 0) {
      return refuse("step.wantsFeatures: it comes instead of draws and scores");
    }
    SHOAL_TRY(between("step.wantsFeatures: bytes", rows * static_cast<uint64_t>(shape.width) * 4, 0,
                      limits::kHiddenBytesMax));
    request.wants_features = true;
    request.output_rows.resize(rows);
    std::iota(request.output_rows.begin(), request.output_rows.end(), 0u);
    return {};
  }

  SHOAL_TRY_ASSIGN(draw_rows, read_rows("draw", draws, rows));
  SHOAL_TRY_ASSIGN(score_rows, read_rows("score", scores, rows));
  std::ranges::set_union(draw_rows, score_rows, std::back_inserter(request.output_rows));
  for (const rpc::Draw::Reader draw : draws) {
    SHOAL_TRY_ASSIGN(read, read_draw(draw));
    read.output = place_of(draw.getRow(), request.output_rows);
    request.draws.push_back(std::move(read));
  }
  for (const rpc::Score::Reader score : scores) {
    if (score.getToken() < 0 || score.getToken() >= shape.vocabulary) {
      return refuse("score.token is " + std::to_string(score.getToken()) +
                    ", beyond the vocabulary of " + std::to_string(shape.vocabulary));
    }
    request.scores.push_back({place_of(score.getRow(), request.output_rows), score.getToken()});
  }
  return {};
}

}  // namespace

Result<compute::StageOptions> read_stage_options(rpc::StageSpec::Reader spec) {
  SHOAL_TRY(between("spec.shards", spec.getShards().size(), 1, limits::kFragmentsMax));
  SHOAL_TRY(between("spec.context", spec.getContext(), 1, limits::kContextMax));
  SHOAL_TRY(between("spec.sequences", spec.getSequences(), 1, limits::kSequencesMax));
  SHOAL_TRY(between("spec.rowsMax", spec.getRowsMax(), 1, limits::kRowsMax));
  return compute::StageOptions{spec.getContext(), spec.getSequences(), spec.getRowsMax()};
}

Result<StepRequest> read_step(rpc::StepInput::Reader input, const compute::StageShape& shape,
                              const compute::StageOptions& options) {
  StepRequest request;
  const auto sequences = input.getSequences();
  const auto positions = input.getPositions();
  const size_t rows = positions.size();
  SHOAL_TRY(between("step.positions", rows, 1, static_cast<uint64_t>(options.rows_max)));
  if (sequences.size() != rows) {
    return refuse("step.sequences has " + std::to_string(sequences.size()) +
                  " rows, step.positions " + std::to_string(rows));
  }
  request.rows.reserve(rows);
  for (unsigned row = 0; row < rows; ++row) {
    SHOAL_TRY(between("step.sequences[]", sequences[row], 0,
                      static_cast<uint64_t>(options.sequences) - 1));
    SHOAL_TRY(
        between("step.positions[]", positions[row], 0, static_cast<uint64_t>(options.context) - 1));
    request.rows.push_back({sequences[row], positions[row]});
  }

  if (shape.begins_with_tokens) {
    if (!input.isTokens())
      return refuse("step.tokens is missing: the stage begins with the embedding");
    const auto tokens = input.getTokens();
    if (tokens.size() != rows) {
      return refuse("step.tokens has " + std::to_string(tokens.size()) + " rows, step.positions " +
                    std::to_string(rows));
    }
    request.tokens = values_of(tokens);
  } else {
    if (!input.isHidden())
      return refuse("step.hidden is missing: the stage does not begin with the embedding");
    const auto hidden = input.getHidden();
    const size_t expected = rows * static_cast<size_t>(shape.width) * sizeof(float);
    if (hidden.size() != expected || expected > limits::kHiddenBytesMax) {
      return refuse("step.hidden has " + std::to_string(hidden.size()) + " bytes, not " +
                    std::to_string(expected));
    }
    request.hidden.resize(rows * static_cast<size_t>(shape.width));
    std::memcpy(request.hidden.data(), hidden.begin(), expected);  // Both are little-endian.
  }

  SHOAL_TRY(read_outputs(input, shape, request));
  return request;
}

}  // namespace shoal::worker
