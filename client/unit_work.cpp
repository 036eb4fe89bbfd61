#include "client/unit_work.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal::client {
namespace {

// As shoal-run and sessions have it: tokens that the repetition penalty looks back on.
constexpr size_t kPenaltyWindow = 64;
// Logits that one step may bring to the worker's memory, for scores.
constexpr uint64_t kLogitBytesMax = 64u << 20;
constexpr uint64_t kVectorBytesMax = limits::kHiddenBytesMax;  // Of a unit's output.
constexpr std::string_view kCheckpointMark = "shoal-unit-checkpoint-1";

Error refuse(std::string why) { return {ErrorCode::kInvalid, std::move(why)}; }

Error refuse_item(size_t item, const std::string& why) {
  return refuse("item " + std::to_string(item) + ": " + why);
}

Result<void> between(const char* field, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return {};
  return refuse(std::string(field) + " is " + std::to_string(value) + ", not within " +
                std::to_string(least) + " to " + std::to_string(most));
}

std::vector<int32_t> values_of(capnp::List<int32_t>::Reader list) {
  std::vector<int32_t> values(list.size());
  for (uint32_t i = 0; i < list.size(); ++i) values[i] = list[i];
  return values;
}

// Not (low <= x <= high) is also true of a NaN.
bool within(float x, float low, float high) { return x >= low && x <= high; }

// As the sampler has it (compute/sampling/sampler.h), so that a unit is refused before it begins.
Result<void> check_sampling(size_t index, const UnitItem& item) {
  if (item.temperature != 0.0f && !within(item.temperature, 0.01f, 100.0f)) {
    return refuse_item(index, "its temperature is not 0 and not from 0.01 to 100");
  }
  if (!within(item.top_p, 0.0f, 1.0f) || !within(item.min_p, 0.0f, 1.0f)) {
    return refuse_item(index, "its topP or minP is not from 0 to 1");
  }
  if (!within(item.repetition_penalty, 0.01f, 100.0f)) {
    return refuse_item(index, "its repetitionPenalty is not from 0.01 to 100");
  }
  return {};
}

// Positions that the item takes.
size_t positions_of(UnitKind kind, const UnitItem& item) {
  switch (kind) {
    case UnitKind::kGenerate: return item.tokens.size() + item.tokens_max - 1;
    case UnitKind::kScore: return item.tokens.size() - 1;
    case UnitKind::kEmbed: return item.tokens.size();
  }
  SHOAL_UNREACHABLE();
}

Result<void> check_item(UnitKind kind, size_t index, const UnitItem& item, uint32_t context) {
  if (item.tokens.empty()) return refuse_item(index, "it has no tokens");
  for (const int32_t token : item.tokens) {
    if (token < 0) return refuse_item(index, "its token " + std::to_string(token) + " is none");
  }
  if (kind == UnitKind::kGenerate) {
    if (item.tokens_max == 0) return refuse_item(index, "no token is to be drawn");
    if (item.stop.size() > limits::kStopTokensMax) {
      return refuse_item(index, "it has " + std::to_string(item.stop.size()) + " stop tokens");
    }
    SHOAL_TRY(check_sampling(index, item));
  }
  if (kind == UnitKind::kScore && (item.score_from < 1 || item.score_from > item.tokens.size())) {
    return refuse_item(index, "scoreFrom is " + std::to_string(item.score_from) + ", of " +
                                  std::to_string(item.tokens.size()) + " tokens");
  }
  if (positions_of(kind, item) > context) {
    return refuse_item(index, "it takes " + std::to_string(positions_of(kind, item)) +
                                  " positions and spec.context has " + std::to_string(context));
  }
  return {};
}

UnitItem read_item(rpc::Item::Reader from) {
  UnitItem item;
  item.tokens = values_of(from.getTokens());
  item.tokens_max = from.getTokensMax();
  const auto sampling = from.getSampling();
  item.temperature = sampling.getTemperature();
  item.top_k = sampling.getTopK();
  item.top_p = sampling.getTopP();
  item.min_p = sampling.getMinP();
  item.repetition_penalty = sampling.getRepetitionPenalty();
  item.seed = sampling.getSeed();
  item.stop = values_of(from.getStop());
  item.score_from = from.getScoreFrom();
  return item;
}

void put_text(ByteWriter& to, const std::string& text) {
  to.u32(static_cast<uint32_t>(text.size()));
  to.text(text);
}

Result<std::string> text_from(ByteReader& from) {
  SHOAL_TRY_ASSIGN(size, from.u32());
  SHOAL_TRY_ASSIGN(text, from.text(size));
  return std::string(text);
}

}  // namespace

Result<UnitInput> read_unit(rpc::Unit::Reader unit) {
  UnitInput input;
  switch (unit.getKind().which()) {
    case rpc::Unit::Kind::GENERATE: input.kind = UnitKind::kGenerate; break;
    case rpc::Unit::Kind::SCORE: input.kind = UnitKind::kScore; break;
    case rpc::Unit::Kind::EMBED: input.kind = UnitKind::kEmbed; break;
    default:
      return Error{ErrorCode::kUnsupported, "this client knows no units of that kind: update it"};
  }
  // What its owner agrees to is the class, so the work must be what that says.
  const std::string_view named(unit.getJobClass().getKind().cStr());
  if (named != unit_kind_name(input.kind)) {
    return refuse("its kind is " + std::string(unit_kind_name(input.kind)) +
                  ", and jobClass.kind is '" + std::string(cut_utf8(named, limits::kNameBytesMax)) +
                  "'");
  }
  const auto spec = unit.getSpec();
  SHOAL_TRY(between("spec.shards", spec.getShards().size(), 1, limits::kFragmentsMax));
  SHOAL_TRY(between("spec.context", spec.getContext(), 1, limits::kContextMax));
  SHOAL_TRY(between("spec.sequences", spec.getSequences(), 1, limits::kSequencesMax));
  SHOAL_TRY(between("spec.rowsMax", spec.getRowsMax(), 1, limits::kRowsMax));
  input.context = spec.getContext();
  input.sequences = spec.getSequences();
  input.rows_max = spec.getRowsMax();
  for (const auto shard : spec.getShards()) {
    const Result<Digest> digest = Digest::from_bytes(rpc::bytes_of(shard.getDigest()));
    if (!digest.ok()) return refuse("shard.digest: " + digest.error().message);
    input.shards.push_back(digest.value());
  }
  const auto items = unit.getItems();
  SHOAL_TRY(between("items", items.size(), 1, limits::kItemsPerUnitMax));
  uint64_t tokens = 0, output = 0;
  for (const auto item : items) {
    tokens += item.getTokens().size();
    output += input.kind == UnitKind::kGenerate ? item.getTokensMax() : 0;
    // Before anything is copied.
    SHOAL_TRY(between("tokens of all items", tokens, 0, limits::kTokensPerUnitMax));
    SHOAL_TRY(between("tokensMax of all items", output, 0, limits::kTokensPerUnitMax));
    input.items.push_back(read_item(item));
    SHOAL_TRY(check_item(input.kind, input.items.size() - 1, input.items.back(), input.context));
  }
  return input;
}

Digest input_digest(const UnitInput& input) {
  ByteWriter to;
  to.text("shoal-unit-input-1");
  to.u8(static_cast<uint8_t>(input.kind));
  to.u32(static_cast<uint32_t>(input.shards.size()));
  for (const Digest& shard : input.shards) to.bytes(shard.bytes);
  to.u32(static_cast<uint32_t>(input.items.size()));
  const auto put = [&to](const std::vector<int32_t>& tokens) {
    to.u32(static_cast<uint32_t>(tokens.size()));
    for (const int32_t token : tokens) to.u32(static_cast<uint32_t>(token));
  };
  for (const UnitItem& item : input.items) {
    put(item.tokens);
    put(item.stop);
    to.u32(item.tokens_max);
    to.f32(item.temperature);
    to.u32(item.top_k);
    to.f32(item.top_p);
    to.f32(item.min_p);
    to.f32(item.repetition_penalty);
    to.u64(item.seed);
    to.u32(item.score_from);
  }
  return digest_of(to.view());
}

UnitWork::UnitWork(UnitInput input)
    : input_(std::move(input)), digest_(input_digest(input_)), outputs_(input_.items.size()) {}

double UnitWork::fraction() const {
  uint64_t all = 0, done = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const size_t rows = positions_of(input_.kind, input_.items[i]) + 1;
    all += rows;
    if (outputs_[i].done) {
      done += rows;
    } else if (!outputs_[i].tokens.empty()) {
      done += input_.items[i].tokens.size() + outputs_[i].tokens.size();
    }
  }
  return static_cast<double>(done) / static_cast<double>(all);
}

bool UnitWork::ends(size_t item) const {
  const std::vector<int32_t>& drawn = outputs_[item].tokens;
  const UnitItem& asked = input_.items[item];
  if (drawn.empty()) return false;
  return drawn.size() == asked.tokens_max ||
         std::ranges::find(asked.stop, drawn.back()) != asked.stop.end();
}

Result<void> UnitWork::go_on_from(std::vector<ItemOutput> outputs) {
  if (outputs.size() != input_.items.size()) return Error{ErrorCode::kCorrupt, "other items"};
  for (ItemOutput& output : outputs) {
    if (!output.done) output.numbers.clear();  // They are computed again.
  }
  outputs.swap(outputs_);
  bool fits = true;
  size_t done = 0;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const ItemOutput& output = outputs_[i];
    const UnitItem& item = input_.items[i];
    if (input_.kind == UnitKind::kGenerate) {
      fits &= output.numbers.empty() && output.tokens.size() <= item.tokens_max &&
              output.done == ends(i) &&
              std::ranges::none_of(output.tokens, [](int32_t token) { return token < 0; });
    } else {
      fits &= output.tokens.empty();
      if (input_.kind == UnitKind::kScore && output.done) {
        fits &= output.numbers.size() == item.tokens.size() - item.score_from;
      }
    }
    done += output.done ? 1 : 0;
  }
  if (!fits) {
    outputs_ = std::move(outputs);
    return Error{ErrorCode::kCorrupt, "outputs that do not fit the input"};
  }
  items_done_ = done;
  next_item_ = 0;
  slots_.clear();
  return {};
}

Result<void> UnitWork::begin(const StageFacts& stage) {
  if (!stage.begins_with_tokens || !stage.ends_with_logits) {
    return refuse("the shards are no whole model");
  }
  if (stage.vocabulary == 0 || stage.width == 0) return refuse("the model has no vocabulary");
  for (size_t i = 0; i < input_.items.size(); ++i) {
    for (const int32_t token : input_.items[i].tokens) {
      if (static_cast<uint32_t>(token) >= stage.vocabulary) {
        return refuse_item(i, "its token " + std::to_string(token) +
                                  " is beyond the vocabulary of " +
                                  std::to_string(stage.vocabulary));
      }
    }
    const ItemOutput& kept = outputs_[i];
    const bool embeds = input_.kind == UnitKind::kEmbed && kept.done;
    if (std::ranges::any_of(
            kept.tokens, [&](int32_t t) { return static_cast<uint32_t>(t) >= stage.vocabulary; }) ||
        (embeds && kept.numbers.size() != stage.width)) {
      return Error{ErrorCode::kCorrupt, "what was kept of the unit is not of this model"};
    }
  }
  if (input_.kind == UnitKind::kEmbed) {
    SHOAL_TRY(between("bytes of the output", uint64_t{stage.width} * 4 * input_.items.size(), 0,
                      kVectorBytesMax));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].done) continue;
    outputs_[i].numbers.clear();  // Its rows run again.
    const bool nothing_to_score = input_.kind == UnitKind::kScore &&
                                  input_.items[i].score_from == input_.items[i].tokens.size();
    if (!nothing_to_score) continue;
    outputs_[i].done = true;
    ++items_done_;
  }
  stage_ = stage;
  next_item_ = 0;
  slots_.assign(input_.sequences, Slot{});
  return {};
}

size_t UnitWork::rows_of(size_t item) const {
  const size_t tokens = input_.items[item].tokens.size();
  if (input_.kind == UnitKind::kScore) return tokens - 1;
  return tokens + outputs_[item].tokens.size();
}

int32_t UnitWork::token_at(size_t item, size_t position) const {
  const std::vector<int32_t>& tokens = input_.items[item].tokens;
  return position < tokens.size() ? tokens[position]
                                  : outputs_[item].tokens[position - tokens.size()];
}

void UnitWork::fill_slots() {
  for (Slot& slot : slots_) {
    while (!slot.busy && next_item_ < outputs_.size()) {
      const size_t item = next_item_++;
      if (outputs_[item].done) continue;
      slot = {.busy = true, .item = item};
      if (input_.kind == UnitKind::kEmbed) slot.sums.assign(stage_.width, 0.0);
    }
  }
}

void UnitWork::add_rows(uint32_t sequence, size_t count, UnitStep& step) const {
  const Slot& slot = slots_[sequence];
  const UnitItem& item = input_.items[slot.item];
  for (size_t i = 0; i < count; ++i) {
    const size_t position = slot.fed + i;
    const auto row = static_cast<uint32_t>(step.rows.size());
    step.rows.push_back({sequence, static_cast<uint32_t>(position), token_at(slot.item, position)});
    if (input_.kind == UnitKind::kScore && position + 1 >= item.score_from) {
      step.scores.push_back({row, item.tokens[position + 1], slot.item});
    }
  }
  if (input_.kind == UnitKind::kGenerate && slot.fed + count == rows_of(slot.item)) {
    step.draws.push_back({static_cast<uint32_t>(step.rows.size()) - 1, slot.item});
  }
}

UnitStep UnitWork::next_step() {
  SHOAL_CHECK(!slots_.empty() && !done());
  fill_slots();
  uint64_t rows_max = input_.rows_max;
  if (input_.kind == UnitKind::kScore) {
    rows_max = std::min<uint64_t>(rows_max, kLogitBytesMax / (uint64_t{stage_.vocabulary} * 4));
  } else if (input_.kind == UnitKind::kEmbed) {
    rows_max = std::min<uint64_t>(rows_max, limits::kHiddenBytesMax / (uint64_t{stage_.width} * 4));
  }
  size_t left = std::max<uint64_t>(rows_max, 1);

  UnitStep step;
  step.features = input_.kind == UnitKind::kEmbed;
  // Those that want a single row first: a long prompt beside them must not hold them up.
  for (const bool single : {true, false}) {
    for (uint32_t sequence = 0; sequence < slots_.size() && left > 0; ++sequence) {
      const Slot& slot = slots_[sequence];
      if (!slot.busy) continue;
      const size_t wanted = rows_of(slot.item) - slot.fed;
      if ((wanted == 1) != single) continue;
      const size_t count = std::min(wanted, left);
      add_rows(sequence, count, step);
      left -= count;
    }
  }
  return step;
}

void UnitWork::write_step(const UnitStep& step, rpc::StepInput::Builder to) const {
  const auto rows = static_cast<uint32_t>(step.rows.size());
  auto sequences = to.initSequences(rows);
  auto positions = to.initPositions(rows);
  auto tokens = to.initTokens(rows);
  for (uint32_t i = 0; i < rows; ++i) {
    sequences.set(i, step.rows[i].sequence);
    positions.set(i, step.rows[i].position);
    tokens.set(i, step.rows[i].token);
  }
  auto draws = to.initDraws(static_cast<uint32_t>(step.draws.size()));
  for (uint32_t i = 0; i < draws.size(); ++i) {
    const size_t index = step.draws[i].item;
    const UnitItem& item = input_.items[index];
    const size_t position = rows_of(index);
    draws[i].setRow(step.draws[i].row);
    draws[i].setPosition(position);
    auto sampling = draws[i].initSampling();
    sampling.setTemperature(item.temperature);
    sampling.setTopK(item.top_k);
    sampling.setTopP(item.top_p);
    sampling.setMinP(item.min_p);
    sampling.setRepetitionPenalty(item.repetition_penalty);
    sampling.setSeed(item.seed);
    if (item.repetition_penalty == 1.0f) continue;
    const size_t window = std::min(kPenaltyWindow, position);
    auto history = draws[i].initHistory(static_cast<uint32_t>(window));
    for (uint32_t k = 0; k < window; ++k) history.set(k, token_at(index, position - window + k));
  }
  auto scores = to.initScores(static_cast<uint32_t>(step.scores.size()));
  for (uint32_t i = 0; i < scores.size(); ++i) {
    scores[i].setRow(step.scores[i].row);
    scores[i].setToken(step.scores[i].token);
  }
  to.setWantsFeatures(step.features);
}

void UnitWork::finish(Slot& slot) {
  ItemOutput& output = outputs_[slot.item];
  if (input_.kind == UnitKind::kEmbed) {
    // The mean: sums of doubles in the order of positions, one division, rounded to f32 once.
    const auto count = static_cast<double>(input_.items[slot.item].tokens.size());
    for (const double sum : slot.sums) {
      output.numbers.push_back(static_cast<float>(sum / count) + 0.0f);  // And no negative zero.
    }
  }
  output.done = true;
  ++items_done_;
  slot = {};
}

Result<void> UnitWork::take(const UnitStep& step, rpc::StepOutput::Reader output) {
  const auto wrong = [](const char* what) {
    return Error{ErrorCode::kCorrupt, std::string("the worker answered ") + what};
  };
  std::vector<float> features;
  if (step.features) {
    const size_t bytes = step.rows.size() * stage_.width * sizeof(float);
    if (!output.isHidden() || output.getHidden().size() != bytes) {
      return wrong("another number of features");
    }
    features.resize(step.rows.size() * stage_.width);
    std::memcpy(features.data(), output.getHidden().begin(), bytes);
    if (!std::ranges::all_of(features, [](float x) { return std::isfinite(x); })) {
      return wrong("with features that are no numbers");
    }
  } else {
    if (!output.isTokens() || output.getTokens().size() != step.draws.size() ||
        output.getLogLikelihoods().size() != step.scores.size()) {
      return wrong("another number of tokens or scores");
    }
    for (const int32_t token : output.getTokens()) {
      if (token < 0 || static_cast<uint32_t>(token) >= stage_.vocabulary) {
        return wrong("with a token beyond the vocabulary");
      }
    }
    for (const float value : output.getLogLikelihoods()) {
      if (!std::isfinite(value) || value > 0) return wrong("with a score that is none");
    }
  }

  for (size_t row = 0; row < step.rows.size(); ++row) {
    Slot& slot = slots_[step.rows[row].sequence];
    ++slot.fed;
    for (uint32_t i = 0; step.features && i < stage_.width; ++i) {
      slot.sums[i] += static_cast<double>(features[row * stage_.width + i]);
    }
  }
  for (uint32_t i = 0; i < step.draws.size(); ++i) {
    outputs_[step.draws[i].item].tokens.push_back(output.getTokens()[i]);
  }
  for (uint32_t i = 0; i < step.scores.size(); ++i) {
    outputs_[step.scores[i].item].numbers.push_back(output.getLogLikelihoods()[i]);
  }
  for (Slot& slot : slots_) {
    if (!slot.busy) continue;
    const bool over =
        input_.kind == UnitKind::kGenerate ? ends(slot.item) : slot.fed == rows_of(slot.item);
    if (over) finish(slot);
  }
  return {};
}

void UnitWork::write_output(rpc::UnitOutput::Builder to) const {
  client::write_output(input_.kind, outputs_, to);
}

void write_output(UnitKind kind, const std::vector<ItemOutput>& outputs,
                  rpc::UnitOutput::Builder to) {
  auto items = to.initItems(static_cast<uint32_t>(outputs.size()));
  for (uint32_t i = 0; i < items.size(); ++i) {
    const ItemOutput& output = outputs[i];
    SHOAL_CHECK(output.done);
    if (kind == UnitKind::kGenerate) {
      auto tokens = items[i].initTokens(static_cast<uint32_t>(output.tokens.size()));
      for (uint32_t k = 0; k < tokens.size(); ++k) tokens.set(k, output.tokens[k]);
      continue;
    }
    const auto count = static_cast<uint32_t>(output.numbers.size());
    auto numbers =
        kind == UnitKind::kScore ? items[i].initLogLikelihoods(count) : items[i].initVector(count);
    for (uint32_t k = 0; k < count; ++k) numbers.set(k, output.numbers[k]);
  }
}

bool UnitCheckpoint::done() const {
  return std::ranges::all_of(outputs, [](const ItemOutput& output) { return output.done; });
}

ByteVector checkpoint_bytes(const UnitCheckpoint& checkpoint) {
  ByteWriter to;
  to.text(kCheckpointMark);
  put_text(to, checkpoint.coordinator);
  put_text(to, checkpoint.coordinator_name);
  put_text(to, checkpoint.device);
  to.u64(checkpoint.lease);
  to.u64(checkpoint.unit);
  put_text(to, checkpoint.job_class.kind);
  put_text(to, checkpoint.job_class.model);
  to.u8(static_cast<uint8_t>(privacy_of(checkpoint.job_class)));
  to.bytes(checkpoint.input.bytes);
  to.u8(static_cast<uint8_t>(checkpoint.kind));
  to.u64(static_cast<uint64_t>(checkpoint.since.count));
  to.u64(static_cast<uint64_t>(checkpoint.estimate.count));
  to.u64(checkpoint.steps);
  to.u64(checkpoint.rows);
  to.u32(static_cast<uint32_t>(checkpoint.outputs.size()));
  for (const ItemOutput& output : checkpoint.outputs) {
    to.u8(output.done ? 1 : 0);
    to.u32(static_cast<uint32_t>(output.tokens.size()));
    for (const int32_t token : output.tokens) to.u32(static_cast<uint32_t>(token));
    // What an item that is not done has of numbers is computed again.
    const std::span<const float> numbers =
        output.done ? std::span<const float>(output.numbers) : std::span<const float>();
    to.u32(static_cast<uint32_t>(numbers.size()));
    for (const float number : numbers) to.f32(number);
  }
  return to.take();
}

Result<UnitCheckpoint> read_checkpoint(ByteSpan bytes) {
  const auto wrong = [] { return Error{ErrorCode::kCorrupt, "no checkpoint of this version"}; };
  ByteReader from(bytes);
  SHOAL_TRY_ASSIGN(mark, from.text(kCheckpointMark.size()));
  if (mark != kCheckpointMark) return wrong();
  UnitCheckpoint checkpoint;
  for (std::string* const text :
       {&checkpoint.coordinator, &checkpoint.coordinator_name, &checkpoint.device}) {
    SHOAL_TRY_ASSIGN(read, text_from(from));
    *text = std::move(read);
  }
  SHOAL_TRY_ASSIGN(lease, from.u64());
  SHOAL_TRY_ASSIGN(unit, from.u64());
  SHOAL_TRY_ASSIGN(kind_of_job, text_from(from));
  SHOAL_TRY_ASSIGN(model, text_from(from));
  SHOAL_TRY_ASSIGN(privacy, from.u8());
  if (privacy > static_cast<uint8_t>(rpc::Privacy::GROUP)) return wrong();
  SHOAL_TRY_ASSIGN(digest, from.bytes(sizeof(Digest::bytes)));
  SHOAL_TRY_ASSIGN(input, Digest::from_bytes(digest));
  SHOAL_TRY_ASSIGN(kind, from.u8());
  if (kind > static_cast<uint8_t>(UnitKind::kEmbed)) return wrong();
  SHOAL_TRY_ASSIGN(since, from.u64());
  SHOAL_TRY_ASSIGN(estimate, from.u64());
  SHOAL_TRY_ASSIGN(steps, from.u64());
  SHOAL_TRY_ASSIGN(rows, from.u64());
  SHOAL_TRY_ASSIGN(count, from.u32());
  if (count == 0 || count > limits::kItemsPerUnitMax) return wrong();
  checkpoint.lease = lease;
  checkpoint.unit = unit;
  checkpoint.job_class = {kind_of_job, model,
                          privacy == static_cast<uint8_t>(rpc::Privacy::ANCHORED),
                          privacy == static_cast<uint8_t>(rpc::Privacy::GROUP)};
  checkpoint.input = input;
  checkpoint.kind = static_cast<UnitKind>(kind);
  checkpoint.since = Millis{static_cast<int64_t>(since)};
  checkpoint.estimate = Millis{static_cast<int64_t>(estimate)};
  checkpoint.steps = steps;
  checkpoint.rows = rows;
  for (uint32_t i = 0; i < count; ++i) {
    ItemOutput output;
    SHOAL_TRY_ASSIGN(done, from.u8());
    output.done = done != 0;
    SHOAL_TRY_ASSIGN(tokens, from.u32());
    if (tokens > from.left() / 4) return wrong();
    for (uint32_t k = 0; k < tokens; ++k) {
      SHOAL_TRY_ASSIGN(token, from.u32());
      output.tokens.push_back(static_cast<int32_t>(token));
    }
    SHOAL_TRY_ASSIGN(numbers, from.u32());
    if (numbers > from.left() / 4) return wrong();
    for (uint32_t k = 0; k < numbers; ++k) {
      SHOAL_TRY_ASSIGN(number, from.f32());
      output.numbers.push_back(number);
    }
    checkpoint.outputs.push_back(std::move(output));
  }
  if (!from.at_end()) return wrong();
  return checkpoint;
}

}  // namespace shoal::client
