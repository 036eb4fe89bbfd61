#include "coordinator/session/stage_runner.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/session/auditor.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal {
namespace {

constexpr kj::Duration kWaitTick = 200 * kj::MILLISECONDS;  // While no device can take a stage.
constexpr int kRoomTriesMax = 10;
constexpr kj::Duration kStandbyTick = 500 * kj::MILLISECONDS;
constexpr kj::Duration kHandOverAhead =
    30 * kj::SECONDS;               // Before the owner wants the device back.
constexpr size_t kRefusalsMax = 2;  // When so many devices refuse an input, the input is to blame.

int64_t loans_in(const Pool& pool) {
  int64_t loans = 0;
  for (const auto& [id, host] : pool.hosts()) {
    for (const auto& [device, of_device] : host->loans) {
      loans += static_cast<int64_t>(of_device.size());
    }
  }
  return loans;
}

}  // namespace

StageRunner::StageRunner(SessionShared& shared, Owner& owner, size_t index, DevicePlace planned)
    : shared_(shared), owner_(owner), index_(index), planned_(std::move(planned)) {
  if (!is_head()) {
    trace().inputs.emplace(static_cast<size_t>(shared_.model->manifest.width) * sizeof(float),
                           static_cast<size_t>(shared_.needs.options.kept_memory_max),
                           shared_.needs.spill_folder);
  }
}

// The session stores its end, and gives the devices back, before it goes.
StageRunner::~StageRunner() noexcept(false) = default;

// Ends the session.
void StageRunner::fail(ErrorCode code, const std::string& text, const std::string& stored) {
  shared_.failure_to_store = stored;
  rpc::throw_error({code, text});
}

Result<void> StageRunner::keep(ByteSpan hidden_rows) { return trace().inputs->append(hidden_rows); }

bool StageRunner::is_ready() const {
  return device_ != nullptr && device_->is_open() && device_->filled() == completed_ &&
         unfit_because() == nullptr;
}

// Why the device may not go on, or null. Trust can be taken back in mid-session.
const char* StageRunner::unfit_because() const {
  const DevicePlace& place = device_->place();
  const Pool::Host* const host = shared_.needs.pool.find(place.host, place.login);
  if (host == nullptr) return "connection lost";
  if (is_mistrusted()) return "a check found wrong answers of its host";
  if (shared_.needs_trust(index_) && !host->trusted) return "its host is no longer trusted";
  if (shared_.needs.pool.denies(place.host, shared_.class_digest))
    return "its owner no longer allows this class of work";
  const PoolDevice* const device = shared_.needs.pool.find(place);
  if (device != nullptr && device->state == DeviceState::kPaused)
    return "its owner's rules forbid it now";
  return nullptr;
}

// A wrong unit keeps its host from new stages. It takes none that runs, unless others can look at
// what was answered so far.
bool StageRunner::is_mistrusted() const {
  return shared_.needs.options.audits_max > 0 &&
         shared_.needs.auditor.mistrusts(device_->place().host);
}

void StageRunner::notice_gone() {
  if (device_ == nullptr) return;
  if (const char* const cause = unfit_because()) {
    StepFailure failure{in_our_words(cause)};
    failure.distrust = shared_.distrusted.contains(device_->place().host);
    lose(failure);
  }
}

rpc::Task<void> StageRunner::make_ready() {
  SessionNeeds& needs = shared_.needs;
  std::optional<kj::TimePoint> waiting_since;
  while (true) {
    notice_gone();
    if (device_ == nullptr) {
      const Result<bool> promoted = promote_standby();
      if (!promoted.ok()) rpc::throw_error(promoted.error());
      if (promoted.value()) {
        waiting_since.reset();
        continue;
      }
      // What is to be replayed goes in large steps, where there is memory for them.
      int64_t rows_max = completed_ > 0 ? replay_rows_max() : shared_.rows_max;
      std::optional<Pool::Offer> offer = choose(Choice::kAny, rows_max);
      if (!offer && rows_max > shared_.rows_max) {
        rows_max = shared_.rows_max;
        offer = choose(Choice::kAny, rows_max);
      }
      if (!offer) {
        const kj::TimePoint now = needs.timer.now();
        if (!waiting_since) waiting_since = now;
        if (now - *waiting_since >= duration_of(needs.options.repair_wait)) {
          const std::string what = "no device could take " + range_of(trace()) + " within " +
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
      rpc::Task<bool> opening = open(kj::mv(*offer), rows_max);
      const bool opened = co_await kj::mv(opening);
      if (opened) waiting_since.reset();
      continue;
    }
    const int64_t first = device_->filled();
    if (first >= completed_) co_return;
    const int64_t rows = std::min(device_->rows_max(), completed_ - first);
    rpc::Task<StepResult> replay = device_->step(first, rows, /*draw_from=*/first + rows);
    const StepResult replayed = co_await kj::mv(replay);
    if (replayed.lost) {
      lose(replayed.failure);
    } else {
      const Result<void> kept = keep_for_next(first, replayed);
      if (!kept.ok()) rpc::throw_error(kept.error());
    }
  }
}

// What the next stage was given by its neighbour, and nobody has any more.
Result<void> StageRunner::keep_for_next(int64_t first, const StepResult& replayed) {
  if (shared_.is_tail(index_)) return {};
  KeptInputs& next = *shared_.stages[index_ + 1].inputs;
  const auto have = static_cast<int64_t>(next.rows());
  const auto row_bytes = shared_.model->manifest.width * static_cast<int64_t>(sizeof(float));
  const int64_t end = first + static_cast<int64_t>(replayed.hidden.size()) / row_bytes;
  if (have < first || have >= end) return {};
  return next.append(
      ByteSpan(replayed.hidden).subspan(static_cast<size_t>((have - first) * row_bytes)));
}

void StageRunner::note_direct(int64_t first, int64_t rows) {
  SHOAL_CHECK(first == completed_);
  device_->note_direct(first, rows);
  completed_ = first + rows;
  refused_by_.clear();
  note_answered(first, completed_);
}

void StageRunner::compute_again_from(int64_t position) {
  if (device_ != nullptr) device_->rewind(position);
}

rpc::Task<StepResult> StageRunner::step(int64_t first, int64_t rows, bool draw) {
  SHOAL_CHECK(first == completed_);
  if (can_hand_over(first, rows)) {
    rpc::Task<StepResult> handing = hand_over(first, rows, draw);
    StepResult handed = co_await kj::mv(handing);
    if (!handed.lost) co_return kj::mv(handed);
  }
  rpc::Task<StepResult> running =
      device_->step(first, rows, draw ? first + rows - 1 : first + rows);
  StepResult result = co_await kj::mv(running);
  if (result.lost) {
    lose(result.failure);
  } else {
    completed_ = first + rows;
    refused_by_.clear();
    note_answered(first, completed_);
  }
  co_return kj::mv(result);
}

void StageRunner::note_answered(int64_t first, int64_t end) {
  std::vector<AnsweredRange>& answered = trace().answered;
  if (!answered.empty() && answered.back().lease == device_->lease()) {
    answered.back().end = end;
    return;
  }
  const StageWho& who = device_->who();
  const Pool& pool = shared_.needs.pool;
  answered.push_back({who.host, who.host_name, who.device, device_->lease(), who.trusted, first,
                      end, pool.owner_of(who.host), pool.address_of(who.host)});
}

void StageRunner::rewind(int64_t position) {
  completed_ = std::min(completed_, position);
  if (device_ != nullptr) device_->rewind(position);
  if (standby_runs_) {
    drop_standby();  // Its step is of rows that are no more.
    stand_by();
  } else if (standby_ != nullptr) {
    standby_->rewind(position);
  }
  StageTrace& trace = this->trace();
  if (trace.inputs) {
    const Result<void> kept =
        trace.inputs->truncate(std::min(trace.inputs->rows(), static_cast<uint64_t>(position)));
    if (!kept.ok()) rpc::throw_error(kept.error());
  }
  std::erase_if(trace.answered, [&](const auto& range) { return range.first >= position; });
  if (!trace.answered.empty()) {
    trace.answered.back().end = std::min(trace.answered.back().end, position);
  }
}

bool StageRunner::give_up_liar(const std::string& cause) {
  if (device_ == nullptr || !shared_.distrusted.contains(device_->place().host)) return false;
  StepFailure failure{in_our_words(cause)};
  failure.distrust = true;
  lose(failure);
  return true;
}

std::optional<Pool::Offer> StageRunner::choose(Choice choice, int64_t rows_max) {
  SessionNeeds& needs = shared_.needs;
  const std::vector<Pool::Offer> offers = shared_.offers();
  if (planned_ && choice == Choice::kAny) {
    const auto found =
        std::ranges::find(offers, *std::exchange(planned_, std::nullopt), &Pool::Offer::place);
    if (found != offers.end() && !found->plan.denied &&
        !needs.auditor.mistrusts(found->place.host)) {
      return *found;
    }
  }
  const std::vector<Digest> shards = shared_.digests(index_);
  std::vector<ReplacementCandidate> candidates;
  std::vector<const Pool::Offer*> places;
  for (const Pool::Offer& offer : offers) {
    ReplacementCandidate candidate;
    candidate.device = offer.plan;
    candidate.in_session = owner_.in_use(offer.place, *this);
    // Who takes over for one that is wanted back is not left at once as well.
    if (device_ != nullptr && (offer.place == device_->place() || is_wanted_back(offer.place))) {
      continue;
    }
    if (choice == Choice::kFree && (offer.plan.sessions > 0 || needs.pool.is_lent(offer.place))) {
      continue;
    }
    places.push_back(&offer);
    const auto denied = shared_.denied_by.find(offer.place.host);
    candidate.distrusted =
        shared_.distrusted.contains(offer.place.host) ||
        needs.auditor.mistrusts(offer.place.host) ||
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
  request.rows_max = rows_max;
  request.trusted_only = shared_.needs_trust(index_);
  request.rows_to_replay = completed_;
  request.tokens_left = owner_.tokens_left();
  request.others_seconds_per_token = owner_.seconds_per_token(*this);
  const std::optional<size_t> chosen = choose_replacement(request, candidates);
  if (!chosen) return std::nullopt;
  return *places[*chosen];
}

// Of a device that has something to replay: as much as a step may have, whatever the prompt's
// length.
int64_t StageRunner::replay_rows_max() const {
  const auto row_bytes = shared_.model->manifest.width * static_cast<int64_t>(sizeof(float));
  const int64_t most = std::min<int64_t>({shared_.needs.options.rows_max, shared_.context,
                                          static_cast<int64_t>(limits::kHiddenBytesMax) / row_bytes,
                                          limits::kRowsMax});
  return std::max(most, shared_.rows_max);
}

rpc::Task<bool> StageRunner::open(Pool::Offer offer, int64_t rows_max) {
  SessionNeeds& needs = shared_.needs;
  Pool::Hold hold = needs.pool.hold(offer.place, stage_memory(costs(), shared_.context, rows_max),
                                    shared_.digests(index_));
  const bool gave_way = hold.ended_loan();
  device_ = std::make_unique<StageDevice>(shared_, index_, offer.place, rows_max, kj::mv(hold),
                                          StageDevice::Use::kStage);
  rpc::Task<std::optional<StepFailure>> opening = device_->open();
  std::optional<StepFailure> failure = co_await kj::mv(opening);
  // Who has just given way may not have freed the memory yet: that is no failure of the device.
  for (int tries = 0; gave_way && failure && failure->no_room && tries < kRoomTriesMax; ++tries) {
    const Result<void> stored = needs.ends.store(
        EndedLease{device_->work(), judge({}), false, 0, "", needs.clock.now_wall()});
    if (!stored.ok()) rpc::throw_error(stored.error());
    kj::Promise<void> tick = needs.timer.afterDelay(kWaitTick);
    co_await kj::mv(tick);
    const PoolDevice* const found = needs.pool.find(device_->place());
    if (found == nullptr || !found->worker_key) break;
    rpc::Task<std::optional<StepFailure>> again = device_->open();
    failure = co_await kj::mv(again);
  }
  who_ = device_->who();
  if (failure) {
    lose(*failure);
    co_return false;
  }
  const Result<void> stored = note_open();
  if (!stored.ok()) rpc::throw_error(stored.error());
  co_return true;
}

// The stage has another device.
Result<void> StageRunner::note_open() {
  SessionNeeds& needs = shared_.needs;
  who_ = device_->who();
  SHOAL_TRY_ASSIGN(row, needs.table.add_stage(shared_.id, device_->row()));
  device_->row_in_store = row;
  needs.journal.note("stage_opened",
                     range_of(trace()) + " on " + who_->host_name + " " + who_->device, who_->host,
                     shared_.id);
  needs.auditor.stage_opened(shared_, index_, *who_);
  return {};
}

// ---- The standby -------------------------------------------------------------------------------

void StageRunner::stand_by() {
  if (shared_.needs.options.standbys_max == 0 || standby_ != nullptr) return;
  standing_by_ = kj::evalLater([this]() -> kj::Promise<void> { return keep_standby(); })
                     .catch_([this](kj::Exception&& exception) {
                       log_warning("session", "no_standby",
                                   {{"session", shared_.id},
                                    {"why", std::string(exception.getDescription().cStr())}});
                     })
                     .eagerlyEvaluate(nullptr);
}

rpc::Task<void> StageRunner::keep_standby() {
  SessionNeeds& needs = shared_.needs;
  while (true) {
    const bool leaving = device_ != nullptr && is_wanted_back(device_->place());
    if (standby_ != nullptr &&
        (!standby_is_fit() || (leaving && is_wanted_back(standby_->place())))) {
      note_stood_by(*std::exchange(standby_, nullptr));
    }
    if (standby_ != nullptr && !standby_is_own_ && !leaving && needs.auditor.units_wait()) {
      note_stood_by(*std::exchange(standby_, nullptr));
    }
    if (standby_ == nullptr) {
      // A device is not kept from units, unless it is needed now.
      const bool may_open = leaving || (!needs.auditor.units_wait() &&
                                        loans_in(needs.pool) < needs.options.standbys_max);
      if (may_open) {
        rpc::Task<void> opening = open_standby(Choice::kFree);
        co_await kj::mv(opening);
        if (standby_ == nullptr && leaving) {
          rpc::Task<void> sharing = open_standby(Choice::kAny);
          co_await kj::mv(sharing);
        }
      }
    }
    if (leaving && standby_ != nullptr && !shared_.wrong) {
      rpc::Task<void> catching = catch_up();
      co_await kj::mv(catching);
    } else if (standby_ != nullptr && standby_->is_open() && !shared_.wrong) {
      rpc::Task<void> following = follow();
      co_await kj::mv(following);
    }
    kj::Promise<void> change =
        needs.pool.changed().exclusiveJoin(needs.timer.afterDelay(kStandbyTick));
    co_await kj::mv(change);
  }
}

rpc::Task<void> StageRunner::open_standby(Choice choice) {
  SessionNeeds& needs = shared_.needs;
  const std::optional<Pool::Offer> offer = choose(choice, replay_rows_max());
  if (!offer) co_return;
  Pool::Hold hold;
  if (choice == Choice::kFree) {
    hold = needs.pool.borrow(offer->place, shared_.digests(index_), [this] {
      drop_standby();
      stand_by();
    });
  } else {
    hold = needs.pool.hold(offer->place, stage_memory(costs(), shared_.context, replay_rows_max()),
                           shared_.digests(index_));
  }
  standby_is_own_ = choice == Choice::kAny;
  standby_ = std::make_unique<StageDevice>(shared_, index_, offer->place, replay_rows_max(),
                                           kj::mv(hold), StageDevice::Use::kStandby);
  rpc::Task<std::optional<StepFailure>> opening = standby_->open();
  const std::optional<StepFailure> failure = co_await kj::mv(opening);
  if (failure) {
    end_standby(*failure);
  } else {
    needs.journal.note(
        "standby_ready",
        range_of(trace()) + " on " + standby_->who().host_name + " " + standby_->who().device,
        standby_->who().host, shared_.id);
  }
}

// Replays beside the stream, until what is left goes into one step with the stream's next one.
rpc::Task<void> StageRunner::catch_up() {
  if (!standby_is_own_) {
    standby_is_own_ = true;
    take_from_loan(*standby_);
  }
  while (completed_ - standby_->filled() > standby_->rows_max() / 2) {
    const int64_t first = standby_->filled();
    const int64_t rows = std::min(standby_->rows_max(), completed_ - first);
    standby_runs_ = true;
    rpc::Task<StepResult> step = standby_->step(first, rows, first + rows);
    const StepResult result = co_await kj::mv(step);
    standby_runs_ = false;
    if (result.lost) {
      end_standby(result.failure);
      co_return;
    }
  }
}

// Rows whose answer is known, as the next stage was given it, or its token was drawn.
int64_t StageRunner::known_rows() const {
  if (shared_.is_tail(index_)) {
    return std::min(completed_, static_cast<int64_t>(shared_.tokens.size()) - 1);
  }
  const std::optional<KeptInputs>& next = shared_.stages[index_ + 1].inputs;
  return std::min(completed_, static_cast<int64_t>(next->rows()));
}

// In steps of all that one may have, so that of a stream of any length no more than one such step
// is left to be replayed when the stage's device is lost. What it answers is held against what the
// stage's device answered: nobody is paid for following wrongly.
rpc::Task<void> StageRunner::follow() {
  while (!shared_.wrong && known_rows() - standby_->filled() >= standby_->rows_max()) {
    const int64_t first = standby_->filled();
    const int64_t rows = standby_->rows_max();
    const int64_t draw_from = shared_.is_tail(index_)
                                  ? std::clamp(shared_.prompt_tokens - 1, first, first + rows)
                                  : first + rows;
    standby_runs_ = true;
    rpc::Task<StepResult> step = standby_->step(first, rows, draw_from);
    const StepResult result = co_await kj::mv(step);
    standby_runs_ = false;
    if (result.lost) {
      end_standby(result.failure);
      co_return;
    }
    const Result<bool> agrees = standby_agrees(first, rows, draw_from, result);
    if (!agrees.ok()) rpc::throw_error(agrees.error());
    if (agrees.value()) continue;
    // Who of the two is wrong is for a check to say.
    shared_.needs.journal.note("standby_differs",
                               range_of(trace()) + ": " + standby_->who().host_name +
                                   ", which stood by, gave other answers than the stage's device",
                               standby_->who().host, shared_.id);
    StepFailure failure{in_our_words("it gave other answers than the stage's device")};
    standby_is_worthless_ = true;
    end_standby(failure);
    shared_.needs.auditor.look_at(shared_, index_);
    co_return;
  }
}

Result<bool> StageRunner::standby_agrees(int64_t first, int64_t rows, int64_t draw_from,
                                         const StepResult& result) const {
  if (shared_.is_tail(index_)) {
    for (size_t i = 0; i < result.tokens.size(); ++i) {
      const size_t position = static_cast<size_t>(draw_from) + i + 1;
      if (result.tokens[i] != shared_.tokens[position]) return false;
    }
    return true;
  }
  SHOAL_TRY_ASSIGN(kept, shared_.stages[index_ + 1].inputs->read(static_cast<uint64_t>(first),
                                                                 static_cast<uint64_t>(rows)));
  return kept == result.hidden;
}

// Its owner wants the device back, or will within moments.
bool StageRunner::is_wanted_back(const DevicePlace& place) const {
  const PoolDevice* const device = shared_.needs.pool.find(place);
  if (device == nullptr) return false;
  if (device->state == DeviceState::kDraining) return true;
  return device->available_until &&
         *device->available_until - shared_.needs.timer.now() < kHandOverAhead;
}

bool StageRunner::can_hand_over(int64_t first, int64_t rows) const {
  return standby_ != nullptr && standby_is_own_ && !standby_runs_ && standby_->is_open() &&
         first - standby_->filled() + rows <= standby_->rows_max() &&
         is_wanted_back(device_->place());
}

// The standby does the step, with what it lacks before it; then it is the stage's device. The old
// one has done nothing wrong, and nobody waited.
rpc::Task<StepResult> StageRunner::hand_over(int64_t first, int64_t rows, bool draw) {
  SessionNeeds& needs = shared_.needs;
  standing_by_ = nullptr;
  const int64_t from = standby_->filled();
  const int64_t end = first + rows;
  rpc::Task<StepResult> step = standby_->step(from, end - from, draw ? end - 1 : end);
  StepResult result = co_await kj::mv(step);
  if (result.lost) {
    end_standby(result.failure);
    stand_by();
    co_return kj::mv(result);
  }
  const auto lacked = static_cast<ptrdiff_t>(result.hidden.size()) / (end - from) * (first - from);
  result.hidden.erase(result.hidden.begin(), result.hidden.begin() + lacked);
  const std::unique_ptr<StageDevice> old = std::exchange(device_, std::move(standby_));
  const EndedLease ended{old->work(),
                         judge({}),
                         old->rows() > 0,
                         old->row_in_store,
                         "its owner wants the device back",
                         needs.clock.now_wall()};
  const Result<void> stored = needs.ends.store(ended);
  if (!stored.ok()) unstored_.push_back(ended);
  needs.journal.note("stage_handed_over",
                     range_of(trace()) + " from " + old->who().host_name + " " + old->who().device +
                         " to " + device_->who().host_name + " " + device_->who().device,
                     old->who().host, shared_.id);
  const Result<void> noted = note_open();
  if (!noted.ok()) rpc::throw_error(noted.error());
  completed_ = end;
  refused_by_.clear();
  note_answered(first, end);
  stand_by();
  co_return kj::mv(result);
}

bool StageRunner::standby_is_fit() const {
  const DevicePlace& place = standby_->place();
  const Pool::Host* const host = shared_.needs.pool.find(place.host, place.login);
  const PoolDevice* const device = shared_.needs.pool.find(place);
  return standby_->is_open() && host != nullptr && device != nullptr &&
         device->state == DeviceState::kReady && device->worker_key == standby_->worker() &&
         !shared_.distrusted.contains(place.host) && !shared_.needs.auditor.mistrusts(place.host) &&
         !shared_.needs.pool.denies(place.host, shared_.class_digest) &&
         (!shared_.needs_trust(index_) || host->trusted);
}

void StageRunner::take_from_loan(StageDevice& device) {
  device.promote({});  // The loan is over before anybody is asked to give way.
  device.promote(shared_.needs.pool.hold(device.place(),
                                         stage_memory(costs(), shared_.context, device.rows_max()),
                                         shared_.digests(index_)));
}

// True when the standby is the stage's device now.
Result<bool> StageRunner::promote_standby() {
  standing_by_ = nullptr;
  standby_runs_ = false;
  if (standby_ == nullptr) return false;
  if (!standby_is_fit()) {
    drop_standby();
    return false;
  }
  device_ = std::move(standby_);
  if (!std::exchange(standby_is_own_, false)) take_from_loan(*device_);
  device_->rewind(completed_);
  SHOAL_TRY(note_open());
  return true;
}

// Somebody else takes the device, or it is not fit any more: nobody's failure.
void StageRunner::drop_standby() {
  standing_by_ = nullptr;
  standby_runs_ = false;
  if (standby_ != nullptr) note_stood_by(*std::exchange(standby_, nullptr));
}

void StageRunner::end_standby(const StepFailure& failure) {
  const std::unique_ptr<StageDevice> lost = std::move(standby_);
  const DevicePlace& place = lost->place();
  if (failure.denied) shared_.denied_by[place.host] = place.login;
  if (failure.distrust) shared_.distrusted.insert(place.host);
  DeviceLoss& loss = shared_.losses[{place.host, place.device}];
  loss.count += 1;
  loss.login = place.login;
  loss.worker_key = lost->worker();
  loss.at = shared_.needs.timer.now();
  note_stood_by(*lost);
}

// What it followed and replayed counts; it is stored with the session's end.
void StageRunner::note_stood_by(const StageDevice& device) {
  const bool distrusted = shared_.distrusted.contains(device.place().host);
  const bool has_worth = device.rows() > 0 && !std::exchange(standby_is_worthless_, false);
  unstored_.push_back({device.work(), judge({.host_distrusted = distrusted, .session_over = true}),
                       has_worth, 0, "", shared_.needs.clock.now_wall()});
}

double StageRunner::seconds_per_token() const {
  if (device_ == nullptr) return 0;
  return stage_seconds(costs(), speed_of(shared_.needs.pool, device_->place(), true), 1);
}

void StageRunner::lose(const StepFailure& failure) {
  SessionNeeds& needs = shared_.needs;
  const std::unique_ptr<StageDevice> lost = std::move(device_);
  const DevicePlace& place = lost->place();
  const std::pair device(place.host, place.device);
  // An owner may have the device back at any time, and may deny a class of work: that is nobody's
  // failure, and says nothing of the input.
  const bool in_order = !failure.distrust && (failure.denied || needs.pool.is_taken_back(place) ||
                                              needs.pool.denies(place.host, shared_.class_digest));
  if (failure.denied) shared_.denied_by[place.host] = place.login;
  if (!in_order) {
    DeviceLoss& loss = shared_.losses[device];
    loss.count += 1;
    loss.login = place.login;
    const PoolDevice* const pooled = needs.pool.find(place);
    loss.worker_key = pooled == nullptr ? std::nullopt : pooled->worker_key;
    loss.at = needs.timer.now();
  }
  if (failure.distrust) shared_.distrusted.insert(place.host);
  last_cause_ = failure.cause;

  // A stage that answered nothing is worth nothing; a wrong answer is told in any case.
  EndedLease ended{lost->work(),
                   judge({.wrong_answer = failure.distrust}),
                   lost->rows() > 0 || failure.distrust,
                   lost->row_in_store,
                   failure.cause.stored,
                   needs.clock.now_wall()};
  const Result<void> stored = needs.ends.store(ended);
  if (!stored.ok()) {
    unstored_.push_back(std::move(ended));
    rpc::throw_error(stored.error());
  }
  needs.journal.note_of_host(in_order          ? "stage_given_back"
                             : lost->is_open() ? "stage_lost"
                                               : "stage_not_opened",
                             range_of(trace()) + ": " + failure.cause.stored, place.host,
                             shared_.id);
  if (lost->is_open()) owner_.stage_lost(*this, failure.cause);
  if (failure.refused && !in_order) {
    refused_by_.insert(device);
    if (refused_by_.size() >= kRefusalsMax) {
      fail(ErrorCode::kInvalid, "several devices " + failure.cause.told,
           "several devices " + failure.cause.stored);
    }
  }
}

std::vector<EndedLease> StageRunner::release() {
  drop_standby();
  std::vector<EndedLease> ends = std::exchange(unstored_, {});
  if (device_ == nullptr) return ends;
  const std::unique_ptr<StageDevice> device = std::move(device_);
  const bool distrusted = shared_.distrusted.contains(device->place().host);
  ends.push_back({device->work(), judge({.host_distrusted = distrusted, .session_over = true}),
                  device->rows() > 0, 0, "", shared_.needs.clock.now_wall()});
  return ends;
}

}  // namespace shoal
