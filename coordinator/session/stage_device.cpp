#include "coordinator/session/stage_device.h"

#include <kj/debug.h>

#include <algorithm>

#include "base/text.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal {
namespace {

constexpr double kSecondsMin = 1e-6;  // A step that took no time was measured all the same.
constexpr Millis kSilenceOfLoans{12 * 3'600'000};
constexpr size_t kPenaltyWindow = 64;           // Tokens that the repetition penalty looks back on.
constexpr uint32_t kExponentBits = 0x7f800000;  // All set: an infinity or no number.

// `promise`, unless `alarm` fails first. The alarm never succeeds.
template <class T>
kj::Promise<T> unless(kj::Promise<T> promise, kj::Promise<void> alarm) {
  return promise.exclusiveJoin(alarm.then(
      []() -> kj::Promise<T> { return KJ_EXCEPTION(FAILED, "an alarm that only rings"); }));
}

// Rings when the host leaves.
kj::Promise<void> gone_alarm(Pool& pool, const DevicePlace& place) {
  return pool.gone(place).then(
      []() -> kj::Promise<void> { return KJ_EXCEPTION(DISCONNECTED, "its host has gone"); });
}

kj::Promise<void> timeout_alarm(kj::Timer& timer, Millis limit) {
  return timer.afterDelay(duration_of(limit)).then([limit]() -> kj::Promise<void> {
    return KJ_EXCEPTION(OVERLOADED, "no answer within the time allowed", limit.count);
  });
}

// A peer's refusal in our own words.
const char* words_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid: return "the input makes no sense to it";
    case ErrorCode::kCorrupt: return "what it was given is damaged";
    case ErrorCode::kNotFound: return "something is missing there";
    case ErrorCode::kExists: return "something is in the way there";
    case ErrorCode::kDenied: return "it is not allowed to";
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout: return "not now";
    case ErrorCode::kNoSpace: return "it has no room";
    case ErrorCode::kUnsupported: return "it cannot do that";
    case ErrorCode::kNonFinite: return "a result would not be finite";
    case ErrorCode::kIo: return "it failed";
  }
  return "it failed";
}

}  // namespace

LossCause in_our_words(std::string text) { return {text, text}; }

std::string range_of(const StageTrace& trace) {
  return "fragments " + std::to_string(trace.first_fragment) + "-" +
         std::to_string(trace.last_fragment);
}

std::vector<Digest> SessionShared::digests(size_t stage) const {
  std::vector<Digest> digests;
  for (int64_t i = stages[stage].first_fragment; i <= stages[stage].last_fragment; ++i) {
    digests.push_back(model->shards[static_cast<size_t>(i)].digest);
  }
  return digests;
}

std::vector<Pool::Offer> SessionShared::offers() const {
  return needs.pool.offers(needs.timer.now(), job_class, request.group);
}

PlanDevice speed_of(Pool& pool, const DevicePlace& place, bool works_on_it) {
  PlanDevice speed;
  if (pool.find(place) != nullptr) {
    const StepFactors factors = pool.factors(place);
    speed.weight_bytes_per_second = factors.weight_bytes_per_second;
    speed.flops_per_second = factors.flops_per_second;
    speed.fixed_seconds = factors.fixed_seconds;
    speed.sessions = std::max(pool.taken(place).stages - (works_on_it ? 1 : 0), 0);
  }
  return speed;
}

StageDevice::StageDevice(SessionShared& shared, size_t stage, DevicePlace place, int64_t rows_max,
                         Pool::Hold hold, Use use)
    : shared_(shared),
      stage_index_(stage),
      place_(std::move(place)),
      rows_max_(rows_max),
      use_(use),
      hold_(std::move(hold)) {}

SessionStageRow StageDevice::row() const {
  SessionStageRow row;
  row.stage = static_cast<int64_t>(stage_index_);
  row.host = who_.host;
  row.device = who_.device;
  row.device_name = who_.device_name;
  row.plane = who_.plane;
  row.first_fragment = who_.first_fragment;
  row.last_fragment = who_.last_fragment;
  row.opened_at = opened_at_;
  return row;
}

LeaseWork StageDevice::work() const {
  const StageTrace& trace = shared_.stages[stage_index_];
  return {lease_,
          shared_.id,
          place_.host,
          place_.device,
          shared_.job_class,
          trace.first_fragment,
          trace.last_fragment,
          rows_,
          work_flops(shared_.costs(stage_index_), rows_),
          {},
          shared_.request.group};
}

LossCause StageDevice::cause_of(const kj::Exception& exception) const {
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) {
    // What is seen of an owner who takes a device back is a call that fails.
    const bool taken_back = shared_.needs.pool.is_taken_back(place_);
    return in_our_words(taken_back ? "its owner took the device back" : "connection lost");
  }
  const Error error = rpc::error_of(exception);
  const bool overloaded = exception.getType() == kj::Exception::Type::OVERLOADED;
  // Of those that are short of something, only a full disk or memory has a message of its own.
  if (overloaded && error.code != ErrorCode::kNoSpace) return in_our_words("no answer in time");
  const std::string text(cut_utf8(error.message, limits::kReasonBytesMax / 2));
  const bool sees_tokens = is_head() || is_tail();
  return {std::string("refused: ") + (sees_tokens ? words_for(error.code) : text),
          "refused: " + text};
}

void StageDevice::fill_lease(rpc::StageLease::Builder lease) const {
  const SessionOptions& options = shared_.needs.options;
  lease.setLeaseId(static_cast<uint64_t>(lease_.value));
  lease.setSessionId(static_cast<uint64_t>(shared_.id.value));
  lease.setDeviceId(place_.device);
  lease.setModel(shared_.model->name);
  write_job_class(shared_.job_class, lease.initJobClass());
  lease.setFirstFragment(static_cast<uint32_t>(who_.first_fragment));
  // Who stands by, or follows a stream, may have nothing to do for long.
  const Millis silence = use_ == Use::kStage
                             ? lease_silence(options.repair_wait, options.open_silence)
                             : kSilenceOfLoans;
  lease.setSilenceMaxMs(static_cast<uint32_t>(silence.count));
  auto spec = lease.initSpec();
  spec.setContext(static_cast<uint32_t>(shared_.context));
  spec.setSequences(1);
  spec.setRowsMax(static_cast<uint32_t>(rows_max_));
  auto shards = spec.initShards(static_cast<uint>(who_.last_fragment - who_.first_fragment + 1));
  for (uint i = 0; i < shards.size(); ++i) {
    const ShardRow& row = shared_.model->shards[static_cast<size_t>(who_.first_fragment) + i];
    const Result<ByteVector> key = shared_.needs.shards.seal_key_for(*worker_, row);
    if (!key.ok()) rpc::throw_error(key.error());
    shards[i].setDigest(rpc::kj_bytes(row.digest.bytes));
    shards[i].setSealedBytes(static_cast<uint64_t>(row.sealed_bytes));
    shards[i].setSealedKey(rpc::kj_bytes(key.value()));
  }
}

rpc::Task<std::optional<StepFailure>> StageDevice::open() {
  SessionNeeds& needs = shared_.needs;
  Pool::Host* const host = needs.pool.find(place_.host, place_.login);
  const PoolDevice* const found = needs.pool.find(place_);
  SHOAL_CHECK(host != nullptr && found != nullptr && found->worker_key.has_value());
  const StageTrace& trace = shared_.stages[stage_index_];
  worker_ = found->worker_key;
  who_ = StageWho{host->id,        host->name,       host->trusted,        found->row.name_on_host,
                  found->row.name, found->row.plane, trace.first_fragment, trace.last_fragment};
  opened_at_ = needs.clock.now_wall();
  // The lease is on the disk before a key leaves.
  const Result<LeaseId> lease = needs.table.grant_lease(shared_.id, row(), opened_at_);
  if (!lease.ok()) rpc::throw_error(lease.error());
  lease_ = lease.value();
  auto request = host->client.openStageRequest();
  fill_lease(request.initLease());
  const uint64_t reads = host->reads;

  std::optional<StepFailure> failure;
  try {
    auto opening = request.send();
    rpc::Stage::Client stage = opening.getStage();
    kj::Promise<capnp::Response<rpc::Stage::ShapeResults>> asked = stage.shapeRequest().send();
    kj::Promise<void> alarm = gone_alarm(needs.pool, place_).exclusiveJoin(silence(reads));
    kj::Promise<capnp::Response<rpc::Stage::ShapeResults>> guarded =
        unless(kj::mv(asked), kj::mv(alarm));
    auto shape = co_await kj::mv(guarded);
    const ModelManifest& manifest = shared_.model->manifest;
    if (shape.getBeginsWithTokens() == is_head() && shape.getEndsWithLogits() == is_tail() &&
        shape.getWidth() == manifest.width &&
        (!is_tail() || shape.getVocabulary() == manifest.vocabulary)) {
      stage_ = kj::mv(stage);
    } else {
      failure = StepFailure{in_our_words("opened a stage of another shape")};
    }
  } catch (const kj::Exception& exception) {
    failure = StepFailure{cause_of(exception)};
    failure->refused = exception.getType() == kj::Exception::Type::FAILED;
    const ErrorCode code = rpc::error_of(exception).code;
    failure->denied = failure->refused && code == ErrorCode::kDenied;
    failure->no_room = code == ErrorCode::kNoSpace;
  }
  co_return kj::mv(failure);
}

// Rings when an opening device has neither read a shard nor answered for too long.
kj::Promise<void> StageDevice::silence(uint64_t reads_before) {
  return shared_.needs.timer.afterDelay(duration_of(shared_.needs.options.open_silence))
      .then([this, reads_before]() -> kj::Promise<void> {
        const Pool::Host* const host = shared_.needs.pool.find(place_.host, place_.login);
        if (host != nullptr && host->reads != reads_before) return silence(host->reads);
        return KJ_EXCEPTION(OVERLOADED, "the stage did not open in time");
      });
}

void StageDevice::fill_step(rpc::StepInput::Builder input, int64_t first, int64_t rows,
                            int64_t draw_from, bool has_hidden) {
  auto sequences = input.initSequences(static_cast<uint>(rows));
  auto positions = input.initPositions(static_cast<uint>(rows));
  for (uint i = 0; i < positions.size(); ++i) {
    sequences.set(i, 0);
    positions.set(i, static_cast<uint32_t>(first) + i);
  }
  if (is_head()) {
    auto tokens = input.initTokens(static_cast<uint>(rows));
    for (uint i = 0; i < tokens.size(); ++i) {
      tokens.set(i, shared_.tokens[static_cast<size_t>(first) + i]);
    }
  } else if (!has_hidden) {
    input.initHidden(0);
  } else {
    const Result<ByteVector> hidden = shared_.stages[stage_index_].inputs->read(
        static_cast<uint64_t>(first), static_cast<uint64_t>(rows));
    if (!hidden.ok()) rpc::throw_error(hidden.error());
    input.setHidden(rpc::kj_bytes(hidden.value()));
    if (use_ != Use::kCheck) {
      shared_.relayed_bytes += static_cast<int64_t>(hidden.value().size());
    }
  }
  if (draw_from >= first + rows) return;
  SHOAL_CHECK(is_tail() && draw_from >= first);
  auto draws = input.initDraws(static_cast<uint>(first + rows - draw_from));
  for (uint i = 0; i < draws.size(); ++i) {
    const int64_t row = draw_from + static_cast<int64_t>(i);
    // The token for the position after the row, with the tokens before it.
    fill_draw(draws[i], row - first, static_cast<size_t>(row) + 1);
  }
}

void StageDevice::fill_draw(rpc::Draw::Builder draw, int64_t row_in_step, size_t position) const {
  const SamplingChoice& choice = shared_.request.sampling;
  draw.setRow(static_cast<uint32_t>(row_in_step));
  auto sampling = draw.initSampling();
  sampling.setTemperature(choice.temperature);
  sampling.setTopK(choice.top_k);
  sampling.setTopP(choice.top_p);
  sampling.setMinP(choice.min_p);
  sampling.setRepetitionPenalty(choice.repetition_penalty);
  sampling.setSeed(choice.seed);
  SHOAL_CHECK(position <= shared_.tokens.size());
  draw.setPosition(position);
  if (choice.repetition_penalty == 1.0f) return;
  const size_t window = std::min(kPenaltyWindow, position);
  auto history = draw.initHistory(static_cast<uint>(window));
  for (uint i = 0; i < history.size(); ++i) history.set(i, shared_.tokens[position - window + i]);
}

Result<StepResult> StageDevice::read_output(rpc::StepOutput::Reader output, int64_t rows,
                                            int64_t draws) const {
  const ModelManifest& manifest = shared_.model->manifest;
  StepResult result;
  if (is_tail()) {
    if (!output.isTokens() || output.getTokens().size() != static_cast<size_t>(draws)) {
      return Error{ErrorCode::kCorrupt, "answered another number of tokens than were drawn"};
    }
    for (const int32_t token : output.getTokens()) {
      if (token < 0 || token >= manifest.vocabulary) {
        return Error{ErrorCode::kCorrupt, "answered a token beyond the vocabulary"};
      }
      result.tokens.push_back(token);
    }
    return result;
  }
  const size_t bytes = static_cast<size_t>(rows * manifest.width) * sizeof(float);
  if (!output.isHidden() || output.getHidden().size() != bytes) {
    return Error{ErrorCode::kCorrupt, "answered a hidden state of the wrong size"};
  }
  result.hidden = to_vector(rpc::bytes_of(output.getHidden()));
  for (size_t at = 0; at < bytes; at += sizeof(float)) {
    if ((load_le<uint32_t>(result.hidden.data() + at) & kExponentBits) == kExponentBits) {
      return Error{ErrorCode::kCorrupt, "answered a hidden state that is not finite"};
    }
  }
  return result;
}

void StageDevice::note_time(double seconds, int64_t rows) {
  seconds = std::max(seconds, kSecondsMin);
  row_seconds_ = std::max(row_seconds_, seconds / static_cast<double>(rows));
  if (use_ != Use::kStage) return;
  StepSample sample{.seconds = seconds};
  for (const FragmentCost& cost : shared_.costs(stage_index_)) {
    sample.weight_bytes += static_cast<double>(cost.weights.count);
    sample.flops += static_cast<double>(cost.flops_per_row.count) * static_cast<double>(rows);
  }
  shared_.needs.pool.note_step(place_, sample);
}

rpc::Task<StepResult> StageDevice::step(int64_t first, int64_t rows, int64_t draw_from) {
  SessionNeeds& needs = shared_.needs;
  SHOAL_CHECK(first <= filled_);
  rpc::Stage::Client stage = KJ_ASSERT_NONNULL(stage_);
  auto request = stage.stepRequest();
  fill_step(request.initInput(), first, rows, draw_from);

  const PlanDevice speed = speed_of(needs.pool, place_, use_ == Use::kStage);
  const Millis limit = step_timeout(needs.options.step, row_seconds_,
                                    stage_seconds(shared_.costs(stage_index_), speed, rows), rows);
  const kj::TimePoint started = needs.timer.now();
  StepResult answer;
  answer.lost = true;
  try {
    kj::Promise<capnp::Response<rpc::Stage::StepResults>> sent = request.send();
    kj::Promise<void> alarm =
        gone_alarm(needs.pool, place_).exclusiveJoin(timeout_alarm(needs.timer, limit));
    kj::Promise<capnp::Response<rpc::Stage::StepResults>> guarded =
        unless(kj::mv(sent), kj::mv(alarm));
    auto response = co_await kj::mv(guarded);
    const int64_t draws = std::clamp<int64_t>(first + rows - draw_from, 0, rows);
    Result<StepResult> read = read_output(response.getOutput(), rows, draws);
    if (read.ok()) {
      answer = std::move(read).value();
    } else {
      answer.failure = {in_our_words(read.error().message)};
      answer.failure.distrust = true;
    }
  } catch (const kj::Exception& exception) {
    answer.failure = {cause_of(exception)};
    answer.failure.refused = exception.getType() == kj::Exception::Type::FAILED;
  }
  if (answer.lost) co_return kj::mv(answer);
  note_time(static_cast<double>((needs.timer.now() - started) / kj::MICROSECONDS) / 1e6, rows);
  filled_ = first + rows;
  rows_ += rows;
  co_return kj::mv(answer);
}

}  // namespace shoal
