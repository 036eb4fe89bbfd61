#include "coordinator/session/stage_runner.h"

#include <kj/debug.h>

#include <algorithm>

#include "base/text.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal {
namespace {

constexpr kj::Duration kWaitTick = 200 * kj::MILLISECONDS;  // While no device can take a stage.
constexpr double kSecondsMin = 1e-6;  // A step that took no time was measured all the same.
constexpr size_t kRefusalsMax = 2;  // When so many devices refuse an input, the input is to blame.
constexpr size_t kPenaltyWindow = 64;           // Tokens that the repetition penalty looks back on.
constexpr uint32_t kExponentBits = 0x7f800000;  // All set: an infinity or no number.

kj::Duration duration_of(Millis time) { return time.count * kj::MILLISECONDS; }

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

LossCause in_our_words(std::string text) { return {text, text}; }

}  // namespace

StageRunner::StageRunner(SessionShared& shared, Owner& owner, size_t index, int64_t first_fragment,
                         int64_t last_fragment, DevicePlace planned)
    : shared_(shared),
      owner_(owner),
      index_(index),
      first_fragment_(first_fragment),
      last_fragment_(last_fragment),
      planned_(std::move(planned)) {
  if (!is_head()) {
    kept_.emplace(static_cast<size_t>(shared_.model->manifest.width) * sizeof(float),
                  static_cast<size_t>(shared_.needs.options.kept_memory_max),
                  shared_.needs.spill_folder);
  }
}

// The session stores its end, and gives the devices back, before it goes.
StageRunner::~StageRunner() noexcept(false) = default;

bool StageRunner::is_tail() const {
  return last_fragment_ + 1 == static_cast<int64_t>(shared_.model->shards.size());
}

std::span<const FragmentCost> StageRunner::costs() const {
  return std::span(shared_.model->costs)
      .subspan(static_cast<size_t>(first_fragment_),
               static_cast<size_t>(last_fragment_ - first_fragment_ + 1));
}

LossCause StageRunner::cause_of(const kj::Exception& exception) const {
  if (exception.getType() == kj::Exception::Type::DISCONNECTED) {
    // What is seen of an owner who takes a device back is a call that fails.
    const bool taken_back = device_ != nullptr && shared_.needs.pool.is_taken_back(device_->place);
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

// Ends the session.
void StageRunner::fail(ErrorCode code, const std::string& text, const std::string& stored) {
  shared_.failure_to_store = stored;
  rpc::throw_error({code, text});
}

Result<void> StageRunner::keep(ByteSpan hidden_rows) { return kept_->append(hidden_rows); }

bool StageRunner::is_ready() const {
  return device_ != nullptr && device_->stage != nullptr && device_->filled == completed_ &&
         unfit_because() == nullptr;
}

// Why the device may not go on, or null. Trust can be taken back in mid-session.
const char* StageRunner::unfit_because() const {
  const Pool::Host* const host = shared_.needs.pool.find(device_->place.host, device_->place.login);
  if (host == nullptr) return "connection lost";
  if (needs_trust() && !host->trusted) return "its host is no longer trusted";
  if (shared_.needs.pool.denies(device_->place.host, shared_.class_digest))
    return "its owner no longer allows this class of work";
  const PoolDevice* const device = shared_.needs.pool.find(device_->place);
  if (device != nullptr && device->state == DeviceState::kPaused)
    return "its owner's rules forbid it now";
  return nullptr;
}

bool StageRunner::needs_trust() const {
  return shared_.request.anchored && (is_head() || is_tail());
}

void StageRunner::notice_gone() {
  if (device_ == nullptr) return;
  if (const char* const cause = unfit_because()) {
    lose(in_our_words(cause), /*refused=*/false, /*distrust=*/false);
  }
}

rpc::Task<void> StageRunner::make_ready() {
  SessionNeeds& needs = shared_.needs;
  std::optional<kj::TimePoint> waiting_since;
  while (true) {
    notice_gone();
    if (device_ == nullptr) {
      std::optional<Pool::Offer> offer = choose();
      if (!offer) {
        const kj::TimePoint now = needs.timer.now();
        if (!waiting_since) waiting_since = now;
        if (now - *waiting_since >= duration_of(needs.options.repair_wait)) {
          const std::string what = "no device could take fragments " +
                                   std::to_string(first_fragment_) + "-" +
                                   std::to_string(last_fragment_) + " within " +
                                   std::to_string(needs.options.repair_wait.count) + " ms";
          const auto with = [&](const std::string& cause) {
            return what + (cause.empty() ? "" : " (the last one: " + cause + ")");
          };
          fail(ErrorCode::kUnavailable, with(last_cause_.told), with(last_cause_.stored));
        }
        kj::Promise<void> change =
            needs.pool.changed().exclusiveJoin(needs.timer.afterDelay(kWaitTick));
        co_await kj::mv(change);
        continue;
      }
      rpc::Task<bool> opening = open(kj::mv(*offer));
      const bool opened = co_await kj::mv(opening);
      if (opened) waiting_since.reset();
      continue;
    }
    if (device_->filled >= completed_) co_return;
    const int64_t rows = std::min(shared_.rows_max, completed_ - device_->filled);
    rpc::Task<StepResult> replay = run_step(device_->filled, rows, /*draw=*/false);
    co_await kj::mv(replay);
  }
}

rpc::Task<StepResult> StageRunner::step(int64_t first, int64_t rows, bool draw) {
  SHOAL_CHECK(first == completed_);
  rpc::Task<StepResult> running = run_step(first, rows, draw);
  StepResult result = co_await kj::mv(running);
  if (!result.lost) {
    completed_ = first + rows;
    refused_by_.clear();
  }
  co_return kj::mv(result);
}

std::optional<Pool::Offer> StageRunner::choose() {
  SessionNeeds& needs = shared_.needs;
  std::vector<Pool::Offer> offers =
      needs.pool.offers(needs.timer.now(), shared_.job_class, shared_.request.group);
  if (planned_) {
    const auto found =
        std::ranges::find(offers, *std::exchange(planned_, std::nullopt), &Pool::Offer::place);
    if (found != offers.end() && !found->plan.denied) return *found;
  }
  std::vector<Digest> shards;
  for (int64_t i = first_fragment_; i <= last_fragment_; ++i) {
    shards.push_back(shared_.model->shards[static_cast<size_t>(i)].digest);
  }
  std::vector<ReplacementCandidate> candidates;
  for (const Pool::Offer& offer : offers) {
    ReplacementCandidate candidate;
    candidate.device = offer.plan;
    candidate.in_session = owner_.in_use(offer.place, *this);
    const auto denied = shared_.denied_by.find(offer.place.host);
    candidate.distrusted =
        shared_.distrusted.contains(offer.place.host) ||
        (denied != shared_.denied_by.end() && denied->second == offer.place.login);
    candidate.has_shards = needs.pool.was_given(offer.place, shards);
    const auto loss = shared_.losses.find({offer.place.host, offer.place.device});
    if (loss != shared_.losses.end()) {
      candidate.just_lost = true;
      const bool as_it_was = loss->second.login == offer.place.login &&
                             loss->second.worker_key == needs.pool.find(offer.place)->worker_key;
      const bool resting =
          needs.timer.now() - loss->second.at < duration_of(needs.options.device_rest);
      if (loss->second.count >= needs.options.device_failures_max || (as_it_was && resting)) {
        candidate.distrusted = true;
      }
    }
    candidates.push_back(candidate);
  }
  ReplacementRequest request;
  request.fragments = costs();
  request.context = shared_.context;
  request.rows_max = shared_.rows_max;
  request.trusted_only = needs_trust();
  request.rows_to_replay = completed_;
  request.tokens_left = owner_.tokens_left();
  request.others_seconds_per_token = owner_.seconds_per_token(*this);
  const std::optional<size_t> chosen = choose_replacement(request, candidates);
  if (!chosen) return std::nullopt;
  return offers[*chosen];
}

void StageRunner::fill_lease(rpc::StageLease::Builder lease, const BoxPublicKey& worker) {
  const SessionOptions& options = shared_.needs.options;
  lease.setLeaseId(static_cast<uint64_t>(device_->lease.value));
  lease.setSessionId(static_cast<uint64_t>(shared_.id.value));
  lease.setDeviceId(device_->place.device);
  lease.setModel(shared_.model->name);
  write_job_class(shared_.job_class, lease.initJobClass());
  lease.setFirstFragment(static_cast<uint32_t>(first_fragment_));
  lease.setSilenceMaxMs(
      static_cast<uint32_t>(lease_silence(options.repair_wait, options.open_silence).count));
  auto spec = lease.initSpec();
  spec.setContext(static_cast<uint32_t>(shared_.context));
  spec.setSequences(1);
  spec.setRowsMax(static_cast<uint32_t>(shared_.rows_max));
  auto shards = spec.initShards(static_cast<uint>(last_fragment_ - first_fragment_ + 1));
  for (uint i = 0; i < shards.size(); ++i) {
    const ShardRow& row = shared_.model->shards[static_cast<size_t>(first_fragment_) + i];
    const Result<ByteVector> key = shared_.needs.shards.seal_key_for(worker, row);
    if (!key.ok()) rpc::throw_error(key.error());
    shards[i].setDigest(rpc::kj_bytes(row.digest.bytes));
    shards[i].setSealedBytes(static_cast<uint64_t>(row.sealed_bytes));
    shards[i].setSealedKey(rpc::kj_bytes(key.value()));
  }
}

rpc::Task<bool> StageRunner::open(Pool::Offer offer) {
  SessionNeeds& needs = shared_.needs;
  Pool::Host* const host = needs.pool.find(offer.place.host, offer.place.login);
  const PoolDevice* const found = needs.pool.find(offer.place);
  SHOAL_CHECK(host != nullptr && found != nullptr && found->worker_key.has_value());
  const BoxPublicKey worker = *found->worker_key;

  std::vector<Digest> digests;
  for (int64_t i = first_fragment_; i <= last_fragment_; ++i) {
    digests.push_back(shared_.model->shards[static_cast<size_t>(i)].digest);
  }
  who_ = StageWho{host->id,        host->name,       host->trusted,   found->row.name_on_host,
                  found->row.name, found->row.plane, first_fragment_, last_fragment_};
  SessionStageRow row;
  row.stage = static_cast<int64_t>(index_);
  row.host = host->id;
  row.device = found->row.name_on_host;
  row.device_name = found->row.name;
  row.plane = found->row.plane;
  row.first_fragment = first_fragment_;
  row.last_fragment = last_fragment_;
  row.opened_at = needs.clock.now_wall();

  device_ = std::make_unique<Device>();
  device_->place = offer.place;
  // The lease is on the disk before a key leaves.
  const Result<LeaseId> lease = needs.table.grant_lease(shared_.id, row, row.opened_at);
  if (!lease.ok()) rpc::throw_error(lease.error());
  device_->lease = lease.value();
  device_->hold = needs.pool.hold(
      offer.place, stage_memory(costs(), shared_.context, shared_.rows_max), std::move(digests));
  auto request = host->client.openStageRequest();
  fill_lease(request.initLease(), worker);
  const uint64_t reads = host->reads;

  std::optional<LossCause> cause;
  bool refused = false, denied = false;
  try {
    auto opening = request.send();
    rpc::Stage::Client stage = opening.getStage();
    kj::Promise<capnp::Response<rpc::Stage::ShapeResults>> asked = stage.shapeRequest().send();
    kj::Promise<void> alarm =
        gone_alarm(needs.pool, offer.place).exclusiveJoin(silence(offer.place, reads));
    kj::Promise<capnp::Response<rpc::Stage::ShapeResults>> guarded =
        unless(kj::mv(asked), kj::mv(alarm));
    auto shape = co_await kj::mv(guarded);
    const ModelManifest& manifest = shared_.model->manifest;
    if (shape.getBeginsWithTokens() == is_head() && shape.getEndsWithLogits() == is_tail() &&
        shape.getWidth() == manifest.width &&
        (!is_tail() || shape.getVocabulary() == manifest.vocabulary)) {
      device_->stage = kj::mv(stage);
    } else {
      cause = in_our_words("opened a stage of another shape");
    }
  } catch (const kj::Exception& exception) {
    cause = cause_of(exception);
    refused = exception.getType() == kj::Exception::Type::FAILED;
    denied = refused && rpc::error_of(exception).code == ErrorCode::kDenied;
  }
  if (cause) {
    lose(*cause, refused, /*distrust=*/false, denied);
    co_return false;
  }
  const Result<int64_t> stored = needs.table.add_stage(shared_.id, row);
  if (!stored.ok()) rpc::throw_error(stored.error());
  device_->row_in_store = stored.value();
  needs.journal.note("stage_opened",
                     "fragments " + std::to_string(first_fragment_) + "-" +
                         std::to_string(last_fragment_) + " on " + who_->host_name + " " +
                         who_->device,
                     who_->host, shared_.id);
  co_return true;
}

// Rings when an opening device has neither read a shard nor answered for too long.
kj::Promise<void> StageRunner::silence(DevicePlace place, uint64_t reads_before) {
  SessionNeeds& needs = shared_.needs;
  return needs.timer.afterDelay(duration_of(needs.options.open_silence))
      .then([this, place = kj::mv(place), reads_before]() mutable -> kj::Promise<void> {
        const Pool::Host* const host = shared_.needs.pool.find(place.host, place.login);
        if (host != nullptr && host->reads != reads_before)
          return silence(kj::mv(place), host->reads);
        return KJ_EXCEPTION(OVERLOADED, "the stage did not open in time");
      });
}

void StageRunner::fill_step(rpc::StepInput::Builder input, int64_t first, int64_t rows, bool draw) {
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
  } else {
    const Result<ByteVector> hidden =
        kept_->read(static_cast<uint64_t>(first), static_cast<uint64_t>(rows));
    if (!hidden.ok()) rpc::throw_error(hidden.error());
    input.setHidden(rpc::kj_bytes(hidden.value()));
    shared_.relayed_bytes += static_cast<int64_t>(hidden.value().size());
  }
  if (!draw) return;
  const SamplingChoice& choice = shared_.request.sampling;
  auto wanted = input.initDraws(1)[0];
  wanted.setRow(static_cast<uint32_t>(rows - 1));
  auto sampling = wanted.initSampling();
  sampling.setTemperature(choice.temperature);
  sampling.setTopK(choice.top_k);
  sampling.setTopP(choice.top_p);
  sampling.setMinP(choice.min_p);
  sampling.setRepetitionPenalty(choice.repetition_penalty);
  sampling.setSeed(choice.seed);
  // The token for the position after the last row, with the tokens before it.
  const auto position = static_cast<size_t>(first + rows);
  SHOAL_CHECK(position == shared_.tokens.size());
  wanted.setPosition(position);
  if (choice.repetition_penalty == 1.0f) return;
  const size_t window = std::min(kPenaltyWindow, position);
  auto history = wanted.initHistory(static_cast<uint>(window));
  for (uint i = 0; i < history.size(); ++i) history.set(i, shared_.tokens[position - window + i]);
}

Result<StepResult> StageRunner::read_output(rpc::StepOutput::Reader output, int64_t rows,
                                            bool draw) const {
  const ModelManifest& manifest = shared_.model->manifest;
  StepResult result;
  if (is_tail()) {
    if (!output.isTokens() || output.getTokens().size() != (draw ? 1 : 0)) {
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

rpc::Task<StepResult> StageRunner::run_step(int64_t first, int64_t rows, bool draw) {
  SessionNeeds& needs = shared_.needs;
  rpc::Stage::Client stage = KJ_ASSERT_NONNULL(device_->stage);
  auto request = stage.stepRequest();
  fill_step(request.initInput(), first, rows, draw);

  const PlanDevice speed = speed_of(device_->place);
  const Millis limit = step_timeout(needs.options.step, device_->row_seconds,
                                    stage_seconds(costs(), speed, rows), rows);
  const kj::TimePoint started = needs.timer.now();
  LossCause cause;
  bool refused = false, distrust = false;
  StepResult answer;
  answer.lost = true;
  try {
    kj::Promise<capnp::Response<rpc::Stage::StepResults>> sent = request.send();
    kj::Promise<void> alarm =
        gone_alarm(needs.pool, device_->place).exclusiveJoin(timeout_alarm(needs.timer, limit));
    kj::Promise<capnp::Response<rpc::Stage::StepResults>> guarded =
        unless(kj::mv(sent), kj::mv(alarm));
    auto response = co_await kj::mv(guarded);
    Result<StepResult> read = read_output(response.getOutput(), rows, draw);
    if (read.ok()) {
      answer = std::move(read).value();
    } else {
      cause = in_our_words(read.error().message);
      distrust = true;
    }
  } catch (const kj::Exception& exception) {
    cause = cause_of(exception);
    refused = exception.getType() == kj::Exception::Type::FAILED;
  }
  if (answer.lost) {
    lose(cause, refused, distrust);
    co_return kj::mv(answer);
  }
  const double seconds = std::max(
      static_cast<double>((needs.timer.now() - started) / kj::MICROSECONDS) / 1e6, kSecondsMin);
  device_->row_seconds = std::max(device_->row_seconds, seconds / static_cast<double>(rows));
  device_->filled = first + rows;
  device_->rows += rows;
  co_return kj::mv(answer);
}

PlanDevice StageRunner::speed_of(const DevicePlace& place) const {
  PlanDevice speed;
  if (const PoolDevice* const pooled = shared_.needs.pool.find(place)) {
    speed.weight_bytes_per_second = pooled->row.weight_bytes_per_second;
    speed.flops_per_second = pooled->row.flops_per_second;
    speed.sessions = std::max(shared_.needs.pool.taken(place).stages - 1, 0);
  }
  return speed;
}

double StageRunner::seconds_per_token() const {
  return device_ == nullptr ? 0 : stage_seconds(costs(), speed_of(device_->place), 1);
}

LeaseWork StageRunner::work_of(const Device& device) const {
  return {device.lease,
          shared_.id,
          device.place.host,
          device.place.device,
          shared_.job_class,
          first_fragment_,
          last_fragment_,
          device.rows,
          work_flops(costs(), device.rows),
          {},
          shared_.request.group};
}

void StageRunner::lose(const LossCause& cause, bool refused, bool distrust, bool denied) {
  SessionNeeds& needs = shared_.needs;
  const std::unique_ptr<Device> lost = std::move(device_);
  const std::pair device(lost->place.host, lost->place.device);
  // An owner may have the device back at any time, and may deny a class of work: that is nobody's
  // failure, and says nothing of the input.
  const bool in_order = !distrust && (denied || needs.pool.is_taken_back(lost->place) ||
                                      needs.pool.denies(lost->place.host, shared_.class_digest));
  if (denied) shared_.denied_by[lost->place.host] = lost->place.login;
  if (!in_order) {
    DeviceLoss& loss = shared_.losses[device];
    loss.count += 1;
    loss.login = lost->place.login;
    const PoolDevice* const pooled = needs.pool.find(lost->place);
    loss.worker_key = pooled == nullptr ? std::nullopt : pooled->worker_key;
    loss.at = needs.timer.now();
  }
  if (distrust) shared_.distrusted.insert(lost->place.host);
  last_cause_ = cause;

  const bool was_open = lost->stage != nullptr;
  // A stage that answered nothing is worth nothing; a wrong answer is told in any case.
  EndedLease ended{work_of(*lost),
                   judge({.wrong_answer = distrust}),
                   lost->rows > 0 || distrust,
                   lost->row_in_store,
                   cause.stored,
                   needs.clock.now_wall()};
  const Result<void> stored = needs.ends.store(ended);
  if (!stored.ok()) {
    unstored_.push_back(std::move(ended));
    rpc::throw_error(stored.error());
  }
  const std::string text = "fragments " + std::to_string(first_fragment_) + "-" +
                           std::to_string(last_fragment_) + ": " + cause.stored;
  needs.journal.note_of_host(in_order   ? "stage_given_back"
                             : was_open ? "stage_lost"
                                        : "stage_not_opened",
                             text, lost->place.host, shared_.id);
  if (was_open) owner_.stage_lost(*this, cause);
  if (refused && !in_order) {
    refused_by_.insert(device);
    if (refused_by_.size() >= kRefusalsMax) {
      fail(ErrorCode::kInvalid, "several devices " + cause.told, "several devices " + cause.stored);
    }
  }
}

std::vector<EndedLease> StageRunner::release() {
  std::vector<EndedLease> ends = std::exchange(unstored_, {});
  if (device_ == nullptr) return ends;
  const std::unique_ptr<Device> device = std::move(device_);
  const bool distrusted = shared_.distrusted.contains(device->place.host);
  ends.push_back({work_of(*device), judge({.host_distrusted = distrusted, .session_over = true}),
                  device->rows > 0, 0, "", shared_.needs.clock.now_wall()});
  return ends;
}

}  // namespace shoal
