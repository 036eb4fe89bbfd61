#include "client/unit_runner.h"

#include <capnp/message.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr kj::Duration kAnswerMax = 20 * kj::SECONDS;
constexpr kj::Duration kSubmitMax = 120 * kj::SECONDS;
constexpr kj::Duration kGoodbyeMax = 500 * kj::MILLISECONDS;
constexpr kj::Duration kRetryWork = 1 * kj::SECONDS;
constexpr kj::Duration kKeepLoaded = 60 * kj::SECONDS;  // A stage that no unit uses.
constexpr Millis kRetryFirst{200}, kRetryMost{60'000};
constexpr Millis kAskAgainMin{100}, kAskAgainMax{3'600'000};
constexpr Millis kRenewEachMin{200};
constexpr Millis kLookMost{60'000};
constexpr Millis kTimeMax{7 * int64_t{86'400'000}};  // That a coordinator can speak of.
constexpr uint32_t kUnitsPerAnswer = 8;
constexpr int kCrashesMax = 2, kKeysMax = 3, kSubmitsMax = 5;
// A unit that takes so many times what the coordinator thought, and more than this, is given back.
constexpr int kSlownessMax = 8;
constexpr Millis kSlowMin{3'600'000};

Millis millis_of(uint64_t ms) {
  return Millis{static_cast<int64_t>(std::min<uint64_t>(ms, kTimeMax.count))};
}

Millis wait_after(int failures) {
  return std::min(Millis{kRetryFirst.count << std::min(failures, 16)}, kRetryMost);
}

Bytes bytes_in(capnp::MessageSize size) {
  return {static_cast<int64_t>(size.wordCount * sizeof(capnp::word))};
}

}  // namespace

// A leased unit, from the lease to its end.
struct UnitRunner::Held {
  std::string pin;
  uint64_t lease = 0, unit = 0;
  JobClass job_class;
  Millis heard{0},
      until{0};        // Monotonic: when the lease was last spoken of, and until when it holds.
  uint64_t login = 0;  // On which that was; 0: it is to be asked about.
  Millis estimate{0};

  // What it takes to compute it; not there after a restart, until it is handed out again.
  std::unique_ptr<capnp::MallocMessageBuilder> spec;  // A StageSpec.
  std::vector<ShardFetcher::Wanted> shards;
  ByteVector key;  // Of the worker for which the shards' keys were sealed.
  std::optional<UnitWork> work;
  std::optional<UnitCheckpoint> kept;  // What an earlier run had of it, until its input is here.

  bool begun = false, finished = false, unsaved = false;
  Millis saved_at{0};  // Monotonic.
  uint64_t ran_micros = 0;
  int crashes = 0, keys_refused = 0, submits = 0;
  struct Return {
    rpc::UnitDesk::GiveBack reason;
    Message why;
    std::string text;
  };
  std::optional<Return> returning;
  kj::Own<WorkList::Entry> entry;

  bool to_compute() const { return !finished && !returning; }
  const std::vector<ItemOutput>& outputs() const { return work ? work->outputs() : kept->outputs; }
  UnitKind kind() const { return work ? work->input().kind : kept->kind; }
  uint32_t items_done() const {
    if (work) return work->items_done();
    return static_cast<uint32_t>(
        std::ranges::count_if(kept->outputs, [](const ItemOutput& o) { return o.done; }));
  }
  double fraction() const {
    if (work) return work->fraction();
    return static_cast<double>(items_done()) / static_cast<double>(kept->outputs.size());
  }
};

// A stage that is open on the worker, for all units of the same model and size.
struct UnitRunner::Loaded {
  std::vector<Digest> shards;
  uint32_t context = 0, sequences = 0, rows_max = 0;
  ByteVector key;
  StageFacts facts;
  std::vector<ModelCache::Hold> holds;
  kj::Maybe<rpc::Stage::Client> stage;  // Never null once it is loaded.
  kj::TimePoint used_at;                // When a unit last ended on it.

  bool fits(const UnitInput& input) const {
    return shards == input.shards && context == input.context && sequences == input.sequences &&
           rows_max == input.rows_max;
  }
};

// What is asked of one coordinator, on one connection.
struct UnitRunner::Desk {
  explicit Desk(Line& line)
      : login(line.login), client(line.session.unitsRequest().send().getDesk()) {}

  uint64_t login;
  rpc::UnitDesk::Client client;
  bool handed = false;  // This desk has answered to lease(), and hands nothing out twice.
  bool absent = false;  // The coordinator knows no units.
  Millis ask_at{0}, retry_at{0};
  int failures = 0;  // Of calls, one after another.
  int useless = 0;   // Units that came to nothing here, one after another.
  bool renews = false;
  kj::Promise<void> renewing = nullptr;  // While it renews.
};

UnitRunner::UnitRunner(kj::Timer& timer, const Clock& clock, ModelCache& cache,
                       ShardFetcher& fetcher, HostServer::Needs& host, Needs& needs,
                       UnitStore store, std::string device)
    : timer_(timer),
      clock_(clock),
      cache_(cache),
      loader_(cache, fetcher),
      host_(host),
      needs_(needs),
      store_(std::move(store)),
      device_(std::move(device)) {
  for (UnitCheckpoint& kept : store_.load(device_)) {
    if (!needs_.attached(kept.coordinator)) {
      store_.remove(kept.coordinator, kept.lease);
      continue;
    }
    auto held = std::make_unique<Held>();
    held->pin = kept.coordinator;
    held->lease = kept.lease;
    held->unit = kept.unit;
    held->job_class = kept.job_class;
    held->estimate = kept.estimate;
    held->begun = true;
    held->finished = kept.done();
    held->kept = std::move(kept);
    log_info("units", "goes_on", {{"unit", held->unit}, {"items", held->items_done()}});
    hold(std::move(held));
  }
  talking_ = keep_in_touch().promise().eagerlyEvaluate([](kj::Exception&& exception) {
    log_error("units", "gave_up", {{"cause", exception.getDescription().cStr()}});
  });
  renewing_ = keep_renewing().promise().eagerlyEvaluate([](kj::Exception&& exception) {
    log_error("units", "gave_up", {{"cause", exception.getDescription().cStr()}});
  });
}

UnitRunner::~UnitRunner() noexcept(false) {
  stop_talking();
  renewing_ = nullptr;
  for (const auto& [pin, desk] : desks_) desk->renewing = nullptr;
  stop_working();
  // What is still here goes on in a later run.
  for (const auto& held : held_) held->entry->leave_no_trace();
}

void UnitRunner::hold(std::unique_ptr<Held> held) {
  StageWork work;
  work.lease = held->lease;
  work.unit = held->unit;
  work.coordinator = held->pin;
  work.coordinator_name = host_.coordinator_name(held->pin);
  work.device = device_;
  work.job_class = held->job_class;
  work.state = StageWork::State::kAhead;
  work.since = clock_.now_wall();
  work.estimate = held->estimate;
  work.until = held->until;
  if (held->kept) {
    work.since = held->kept->since;
    work.steps = held->kept->steps;
    work.rows = held->kept->rows;
    work.items = static_cast<uint32_t>(held->kept->outputs.size());
    work.items_done = held->items_done();
  }
  held->entry = kj::heap<WorkList::Entry>(host_.work_list(), std::move(work));
  held_.push_back(std::move(held));
  host_.work_changed();
}

// --- What others say ---

void UnitRunner::allow(Allowance allowance) {
  if (allowance == allowance_ || ending_) return;
  allowance_ = allowance;
  if (allowance == Allowance::kYes) {
    ask_what_holds();  // After the pause.
    begin_working();
  } else {
    Held* const interrupted = current_;
    stop_working();
    // A worker that died on a unit may be known of here before the call that it did not answer.
    if (allowance == Allowance::kSoon && interrupted != nullptr &&
        needs_.worker_key(device_).empty()) {
      note_crash(*interrupted, "its worker ended");
    }
    if (allowance == Allowance::kNo) {
      for (const auto& held : held_) {
        if (held->begun || !held->to_compute()) continue;
        give_back(*held, rpc::UnitDesk::GiveBack::OWNER, {"unit.not_begun", {}});
      }
    }
  }
  look();
}

void UnitRunner::look() {
  talk_again_ = true;
  talk_wanted_.give();
  renew_wanted_.give();
  work_wanted_.give();
}

void UnitRunner::stop_talking() {
  talking_ = nullptr;
  talks_with_.clear();
}

void UnitRunner::consent_changed() {
  for (const auto& held : held_) {
    if (!held->to_compute() || host_.consents(held->pin, held->job_class).ok()) continue;
    give_back(*held, rpc::UnitDesk::GiveBack::DENIED, {"work.class_denied", {}});
  }
  look();
}

void UnitRunner::woke() {
  ask_what_holds();
  look();
}

void UnitRunner::ask_what_holds() {
  ++asked_anew_;
  for (const auto& held : held_) held->login = 0;
}

void UnitRunner::save() {
  for (const auto& held : held_) {
    if (held->unsaved) save(*held);
  }
}

void UnitRunner::save(Held& held) {
  held.saved_at = clock_.now_monotonic();
  UnitCheckpoint checkpoint{.coordinator = held.pin,
                            .coordinator_name = held.entry->work().coordinator_name,
                            .device = device_,
                            .lease = held.lease,
                            .unit = held.unit,
                            .job_class = held.job_class,
                            .input = held.work ? held.work->digest() : held.kept->input,
                            .kind = held.kind(),
                            .since = held.entry->work().since,
                            .estimate = held.estimate,
                            .steps = held.entry->work().steps,
                            .rows = held.entry->work().rows,
                            .outputs = held.outputs()};
  const Result<void> saved = store_.save(checkpoint);
  const bool had_problem = !problem_.empty();
  if (saved.ok()) {
    held.unsaved = false;
    problem_ = {};
  } else {
    log_warning("units", "not_stored", {{"unit", held.unit}, {"cause", saved.error()}});
    problem_ = {"unit.not_stored",
                {std::string(cut_utf8(saved.error().message, limits::kReasonBytesMax))}};
  }
  if (had_problem == problem_.empty()) host_.work_changed();
}

void UnitRunner::show(Held& held, StageWork::State state) {
  held.entry->work().state = state;
  host_.work_changed();
}

rpc::Task<void> UnitRunner::shut_down() {
  ending_ = true;
  allowance_ = Allowance::kNo;
  stop_talking();
  renewing_ = nullptr;
  for (const auto& [pin, desk] : desks_) desk->renewing = nullptr;
  stop_working();
  save();
  std::vector<kj::Promise<void>> told;
  for (auto it = held_.begin(); it != held_.end();) {
    Held& held = **it;
    if (held.begun) {
      ++it;
      continue;
    }
    if (const auto desk = desks_.find(held.pin); desk != desks_.end() && !desk->second->absent) {
      auto request = desk->second->client.giveBackRequest();
      request.setLeaseId(held.lease);
      request.setReason(rpc::UnitDesk::GiveBack::OWNER);
      told.push_back(request.send().ignoreResult().catch_([](kj::Exception&&) {}));
    }
    held.entry->leave_no_trace();
    it = held_.erase(it);
  }
  if (told.empty()) co_return;
  auto all = kj::heapArrayBuilder<kj::Promise<void>>(told.size());
  for (kj::Promise<void>& one : told) all.add(kj::mv(one));
  kj::Promise<void> joined = kj::joinPromises(all.finish());
  kj::Promise<void> soon = joined.exclusiveJoin(timer_.afterDelay(kGoodbyeMax));
  co_await kj::mv(soon);
}

rpc::Task<void> UnitRunner::forget(std::string pin) {
  stop_talking();
  if (current_ != nullptr && current_->pin == pin) stop_working();
  std::vector<kj::Promise<void>> told;
  for (auto it = held_.begin(); it != held_.end();) {
    Held& held = **it;
    if (held.pin != pin) {
      ++it;
      continue;
    }
    if (const auto desk = desks_.find(pin); desk != desks_.end() && !desk->second->absent) {
      auto request = desk->second->client.giveBackRequest();
      request.setLeaseId(held.lease);
      request.setReason(rpc::UnitDesk::GiveBack::OWNER);
      told.push_back(request.send().ignoreResult().catch_([](kj::Exception&&) {}));
    }
    held.entry->ended({"unit.left", {}});
    store_.remove(held.pin, held.lease);
    it = held_.erase(it);
  }
  desks_.erase(pin);
  talking_ = keep_in_touch().promise().eagerlyEvaluate([](kj::Exception&& exception) {
    log_error("units", "gave_up", {{"cause", exception.getDescription().cStr()}});
  });
  begin_working();
  if (told.empty()) co_return;
  auto all = kj::heapArrayBuilder<kj::Promise<void>>(told.size());
  for (kj::Promise<void>& one : told) all.add(kj::mv(one));
  kj::Promise<void> joined = kj::joinPromises(all.finish());
  kj::Promise<void> soon = joined.exclusiveJoin(timer_.afterDelay(kGoodbyeMax));
  co_await kj::mv(soon);
}

// --- Computing ---

void UnitRunner::begin_working() {
  if (allowance_ != Allowance::kYes || ending_ || current_ != nullptr) return;
  working_ = keep_working().promise().eagerlyEvaluate([](kj::Exception&& exception) {
    log_error("units", "gave_up", {{"cause", exception.getDescription().cStr()}});
  });
}

void UnitRunner::stop_working() {
  working_ = nullptr;
  loaded_ = nullptr;
  if (current_ == nullptr) return;
  show(*std::exchange(current_, nullptr), StageWork::State::kAhead);
}

UnitRunner::Held* UnitRunner::next_to_run() {
  const ByteVector key = needs_.worker_key(device_);
  // One that was lost is still shown for a moment.
  if (key.empty() || key == lost_key_) return nullptr;
  for (const auto& held : held_) {
    if (!held->to_compute() || !held->work || held->key != key) continue;
    if (held->login == 0 && has_line(held->pin)) continue;  // It will soon be known.
    return held.get();
  }
  return nullptr;
}

rpc::Task<void> UnitRunner::keep_working() {
  co_await kj::evalLater([] {});
  while (true) {
    Held* const held = next_to_run();
    if (held == nullptr) {
      kj::Promise<void> wanted = work_wanted_.wait();
      if (loaded_ != nullptr) {
        const kj::Duration unused = timer_.now() - loaded_->used_at;
        if (unused >= kKeepLoaded) {
          loaded_ = nullptr;
        } else {
          wanted = wanted.exclusiveJoin(timer_.afterDelay(kKeepLoaded - unused));
        }
      }
      co_await kj::mv(wanted);
      continue;
    }
    current_ = held;
    std::optional<Error> error;
    try {
      kj::Promise<void> computed = compute(*held);
      co_await kj::mv(computed);
    } catch (const kj::Exception& exception) {
      error = rpc::error_of(exception);
    }
    current_ = nullptr;
    if (!error) continue;
    failed(*held, *error);
    if (held->to_compute()) co_await timer_.afterDelay(kRetryWork);
  }
}

rpc::Task<void> UnitRunner::compute(Held& held) {
  if (loaded_ == nullptr || loaded_->key != held.key || !loaded_->fits(held.work->input())) {
    kj::Promise<void> loading = load(held);
    co_await kj::mv(loading);
  }
  Result<void> begun = held.work->begin(loaded_->facts);
  if (!begun.ok() && begun.error().code == ErrorCode::kCorrupt) {
    log_warning("units", "begins_anew", {{"unit", held.unit}, {"cause", begun.error()}});
    held.work.emplace(UnitInput(held.work->input()));
    begun = held.work->begin(loaded_->facts);
  }
  rpc::require(begun);
  uint64_t bytes = 0;
  for (const ShardFetcher::Wanted& shard : held.shards) bytes += shard.size;
  held.entry->work().bytes = bytes;
  show(held, StageWork::State::kWorking);
  while (!held.work->done()) {
    kj::Promise<void> stepping = step(held);
    co_await kj::mv(stepping);
  }
  loaded_->used_at = timer_.now();
  finish(held);
}

rpc::Task<void> UnitRunner::load(Held& held) {
  loaded_ = nullptr;
  show(held, StageWork::State::kFetching);
  rpc::Worker::Client worker = rpc::require(host_.worker_of(device_));
  const UnitInput& input = held.work->input();
  auto loaded = std::make_unique<Loaded>(Loaded{.used_at = timer_.now()});
  loaded->shards = input.shards;
  loaded->context = input.context;
  loaded->sequences = input.sequences;
  loaded->rows_max = input.rows_max;
  loaded->key = held.key;
  for (const ShardFetcher::Wanted& shard : held.shards) {
    loaded->holds.emplace_back(cache_, shard.digest);
  }
  kj::Promise<rpc::Stage::Client> opening = loader_.open(
      session_of(held.pin), kj::mv(worker), held.spec->getRoot<rpc::StageSpec>().asReader(),
      held.shards, [this, &held] { show(held, StageWork::State::kLoading); });
  rpc::Stage::Client stage = co_await kj::mv(opening);
  const auto shape = co_await stage.shapeRequest().send();
  loaded->facts = {shape.getBeginsWithTokens(), shape.getEndsWithLogits(), shape.getWidth(),
                   shape.getVocabulary()};
  loaded->stage = kj::mv(stage);
  loaded_ = std::move(loaded);
  log_info("units", "opened", {{"unit", held.unit}, {"device", device_}});
}

rpc::Task<void> UnitRunner::step(Held& held) {
  const UnitStep step = held.work->next_step();
  auto request = KJ_ASSERT_NONNULL(loaded_->stage).stepRequest();
  held.work->write_step(step, request.initInput());
  host_.step_began(device_);
  auto over = kj::defer([this] { host_.step_ended(device_); });
  kj::Promise<capnp::Response<rpc::Stage::StepResults>> asked = request.send();
  const auto answer = co_await kj::mv(asked);
  { const auto ended = kj::mv(over); }
  rpc::require(held.work->take(step, answer.getOutput()));

  const StepCost cost{step.rows.size(), answer.getOutput().getComputeMicros(), {}, {}};
  StageWork& work = held.entry->work();
  ++work.steps;
  work.rows += cost.rows;
  work.items_done = held.work->items_done();
  held.begun = held.unsaved = true;
  held.ran_micros += cost.device_micros;
  host_.step_ran(work, cost);
  if (!held.work->done() && clock_.now_monotonic() - held.saved_at >= needs_.checkpoint_each()) {
    save(held);
  }
}

void UnitRunner::finish(Held& held) {
  held.begun = held.finished = true;
  held.entry->work().items_done = held.work->items_done();
  log_info("units", "finished", {{"unit", held.unit}, {"device", device_}});
  // If it cannot be stored it is handed in all the same: a later run would compute the same bits.
  save(held);
  show(held, StageWork::State::kAhead);
  look();
}

void UnitRunner::failed(Held& held, const Error& error) {
  using GiveBack = rpc::UnitDesk::GiveBack;
  const StageWork::State at = held.entry->work().state;
  const bool fetched = at != StageWork::State::kFetching;
  const bool stepped = at == StageWork::State::kWorking;
  log_warning("units", "not_computed", {{"unit", held.unit}, {"cause", error}});
  loaded_ = nullptr;
  show(held, StageWork::State::kAhead);
  const std::string text(cut_utf8(error.message, limits::kReasonBytesMax));
  bool device_failed = false;
  switch (error.code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
      // Before the shards are here it is the coordinator that is away, and it may come back.
      if (!fetched) return;
      lost_key_ = held.key;
      return note_crash(held, text);
    case ErrorCode::kDenied:
      // The keys were sealed for a worker that was: they are asked for anew.
      if (fetched && !stepped && ++held.keys_refused < kKeysMax) {
        held.key.clear();
        return look();
      }
      device_failed = fetched;
      break;
    case ErrorCode::kIo: device_failed = true; break;
    case ErrorCode::kCorrupt: device_failed = stepped; break;
    default: break;
  }
  give_back(held, device_failed ? GiveBack::FAILED : GiveBack::REFUSED,
            {device_failed ? "unit.failed" : "unit.refused", {text}}, text);
}

void UnitRunner::note_crash(Held& held, const std::string& text) {
  if (++held.crashes < kCrashesMax) return;
  give_back(held, rpc::UnitDesk::GiveBack::FAILED, {"unit.failed", {text}}, text);
}

void UnitRunner::give_back(Held& held, rpc::UnitDesk::GiveBack reason, const Message& why,
                           const std::string& text) {
  if (held.returning) return;
  held.returning = Held::Return{reason, why, text};
  log_info("units", "gives_back",
           {{"unit", held.unit}, {"reason", static_cast<int>(reason)}, {"why", english(why)}});
  using GiveBack = rpc::UnitDesk::GiveBack;
  const auto desk = desks_.find(held.pin);
  if (desk != desks_.end() && reason != GiveBack::OWNER) {
    // The next one may be no better.
    Desk& at = *desk->second;
    at.ask_at = std::max(at.ask_at, clock_.now_monotonic() + wait_after(at.useless++));
  }
  if (&held == current_) {
    stop_working();
    begin_working();
  }
  look();
}

void UnitRunner::drop(Held& held, Message why) {
  if (&held == current_) {
    stop_working();
    begin_working();
  }
  log_info("units", "ended", {{"unit", held.unit}, {"why", english(why)}});
  if (why.empty()) {
    held.entry->leave_no_trace();
  } else {
    held.entry->ended(std::move(why));
  }
  store_.remove(held.pin, held.lease);
  std::erase_if(held_, [&held](const auto& one) { return one.get() == &held; });
  host_.work_changed();
  look();
}

// --- Speaking with coordinators ---

bool UnitRunner::has_line(const std::string& pin) {
  return std::ranges::any_of(needs_.lines(), [&pin](const Line& line) { return line.pin == pin; });
}

StageLoader::SessionNow UnitRunner::session_of(const std::string& pin) {
  return [this, pin]() -> kj::Maybe<rpc::HostSession::Client> {
    for (Line& line : needs_.lines()) {
      if (line.pin == pin) return kj::mv(line.session);
    }
    return nullptr;
  };
}

UnitRunner::Held* UnitRunner::find(const std::string& pin, uint64_t lease) const {
  for (const auto& held : held_) {
    if (held->lease == lease && held->pin == pin) return held.get();
  }
  return nullptr;
}

UnitRunner::Desk& UnitRunner::desk_of(Line& line) {
  std::unique_ptr<Desk>& desk = desks_[line.pin];
  if (desk == nullptr || desk->login != line.login) desk = std::make_unique<Desk>(line);
  return *desk;
}

// Its input is not here, or its keys are for a worker that is no more.
bool UnitRunner::lacks_input(const Held& held) {
  return held.to_compute() && (!held.work || held.key != needs_.worker_key(device_));
}

Millis UnitRunner::remaining(const Held& held) const {
  if (!held.to_compute()) return Millis{0};
  const double left = (1.0 - held.fraction()) * static_cast<double>(held.estimate.count);
  return Millis{static_cast<int64_t>(left)};
}

bool UnitRunner::wants_more() {
  if (allowance_ != Allowance::kYes || ending_ || held_.size() >= limits::kUnitsAheadMax) {
    return false;
  }
  Millis sum{0};
  bool any = false;
  for (const auto& held : held_) {
    sum += remaining(*held);
    any |= held->to_compute();
  }
  Millis wanted = needs_.work_ahead();
  if (const std::optional<Millis> available = needs_.available(device_)) {
    wanted = std::min(wanted, *available);
  }
  return !any || sum < wanted;
}

Millis UnitRunner::renew_at(const Held& held) const {
  return held.heard + std::max(Millis{(held.until - held.heard).count / 3}, kRenewEachMin);
}

std::optional<Millis> UnitRunner::renewal_due(const Line& line) const {
  if (allowance_ == Allowance::kNo) return {};
  std::optional<Millis> due;
  for (const auto& held : held_) {
    if (held->pin != line.pin || !held->to_compute()) continue;
    const Millis at = held->login != line.login ? Millis{0} : renew_at(*held);
    due = std::min(due.value_or(at), at);
  }
  return due;
}

bool UnitRunner::has_to_ask(Line& line) {
  if (allowance_ != Allowance::kYes || !needs_.may_use_network()) return false;
  if (needs_.worker_key(device_).empty()) return false;
  const bool lacks = std::ranges::any_of(held_, [&](const auto& held) {
    return held->pin == line.pin && held->login == line.login && lacks_input(*held);
  });
  return lacks || (clock_.now_monotonic() >= desk_of(line).ask_at && wants_more());
}

// What time alone makes of the units.
void UnitRunner::look_at_times() {
  using GiveBack = rpc::UnitDesk::GiveBack;
  const Millis now = clock_.now_monotonic();
  const std::optional<Millis> available = needs_.available(device_);
  Millis sum{0};
  for (const auto& held : held_) {
    if (!held->to_compute()) continue;
    sum += remaining(*held);
    const Millis length = held->until - held->heard;
    // A paused unit is given back before its lease ends, so that it is nobody's loss.
    if (allowance_ == Allowance::kNo && length.count > 0 &&
        now >= held->heard + Millis{length.count / 10 * 9}) {
      give_back(*held, GiveBack::OWNER, {"unit.paused_too_long", {}});
    } else if (!held->begun && available && sum > *available) {
      give_back(*held, GiveBack::OWNER, {"unit.not_begun", {}});
    } else if (held->begun && held->fraction() > 0) {
      const double all = static_cast<double>(held->ran_micros) / 1'000 / held->fraction();
      const Millis bound = std::max(Millis{held->estimate.count * kSlownessMax}, kSlowMin);
      if (held->fraction() < 0.5 && all > static_cast<double>(bound.count)) {
        give_back(*held, GiveBack::TOO_SLOW, {"unit.too_slow", {}});
      }
    }
  }
}

Millis UnitRunner::next_look() {
  const Millis now = clock_.now_monotonic();
  Millis at = now + kLookMost;
  const bool wants = wants_more();
  for (Line& line : needs_.lines()) {
    const Desk& desk = desk_of(line);
    if (desk.absent) continue;
    if (desk.retry_at > now) {
      at = std::min(at, desk.retry_at);
      continue;
    }
    if (wants && desk.ask_at > now) at = std::min(at, desk.ask_at);
  }
  for (const auto& held : held_) {
    if (allowance_ != Allowance::kNo || !held->to_compute() || held->until == held->heard) continue;
    // Renewals wake for themselves: see keep_renewing().
    at = std::min(at, held->heard + Millis{(held->until - held->heard).count / 10 * 9});
  }
  return std::max(at - now, Millis{20});
}

rpc::Task<void> UnitRunner::keep_in_touch() {
  co_await kj::evalLater([] {});
  while (true) {
    talk_again_ = false;
    look_at_times();
    if (allowance_ != Allowance::kYes) save();
    std::vector<std::string> pins;
    for (const Line& line : needs_.lines()) pins.push_back(line.pin);
    if (!pins.empty()) {
      const auto first = static_cast<std::ptrdiff_t>(asked_first_ % pins.size());
      std::rotate(pins.begin(), pins.begin() + first, pins.end());
    }
    for (const std::string& pin : pins) {
      // As it is now: while another was spoken with, this one may have gone or come anew.
      std::vector<Line> lines = needs_.lines();
      const auto found = std::ranges::find(lines, pin, &Line::pin);
      if (found == lines.end()) continue;
      Line& line = *found;
      Desk& desk = desk_of(line);
      const Millis now = clock_.now_monotonic();
      if (desk.absent || now < desk.retry_at) continue;
      // First it says what still holds, and then this is called anew.
      const std::optional<Millis> renewal = renewal_due(line);
      if (desk.renews || (renewal && *renewal <= now)) continue;
      talks_with_ = line.pin;
      try {
        kj::Promise<void> talked = talk(line);
        co_await kj::mv(talked);
        desk.failures = 0;
      } catch (const kj::Exception& exception) {
        call_failed(line, exception);
      }
      talks_with_.clear();
    }
    renew_wanted_.give();
    if (talk_again_) continue;
    kj::Promise<void> next = talk_wanted_.wait();
    next = next.exclusiveJoin(timer_.afterDelay(next_look().count * kj::MILLISECONDS));
    co_await kj::mv(next);
  }
}

void UnitRunner::call_failed(const Line& line, const kj::Exception& exception) {
  // A desk that is another by now has nothing to do with it.
  const auto known = desks_.find(line.pin);
  if (known == desks_.end() || known->second->login != line.login) return;
  Desk& desk = *known->second;
  desk.absent = exception.getType() == kj::Exception::Type::UNIMPLEMENTED;
  desk.retry_at = clock_.now_monotonic() + wait_after(desk.failures++);
  if (desk.absent) return;
  log_warning("units", "call_failed", {{"cause", rpc::error_of(exception)}});
}

// Each desk renews beside all else: what one coordinator is slow in costs no lease, of its own or
// of another's.
rpc::Task<void> UnitRunner::keep_renewing() {
  co_await kj::evalLater([] {});
  while (true) {
    kj::Promise<void> next = renew_wanted_.wait();
    const Millis wait = renew_what_is_due();
    next = next.exclusiveJoin(timer_.afterDelay(wait.count * kj::MILLISECONDS));
    co_await kj::mv(next);
  }
}

Millis UnitRunner::renew_what_is_due() {
  const Millis now = clock_.now_monotonic();
  Millis at = now + kLookMost;
  for (Line& line : needs_.lines()) {
    // What is asked on an earlier connection fails first, as its desk must outlive that.
    const auto known = desks_.find(line.pin);
    if (line.pin == talks_with_ && known != desks_.end() && known->second->login != line.login) {
      continue;
    }
    Desk& desk = desk_of(line);
    const std::optional<Millis> due = renewal_due(line);
    if (desk.absent || desk.renews || !due) continue;
    const Millis when = std::max(*due, desk.retry_at);
    if (when > now) {
      at = std::min(at, when);
      continue;
    }
    desk.renews = true;
    desk.renewing = renew_now(line).promise().eagerlyEvaluate([](kj::Exception&& exception) {
      log_error("units", "gave_up", {{"cause", exception.getDescription().cStr()}});
    });
  }
  return std::max(at - now, Millis{20});
}

// Belongs to the desk, so its end ends this.
rpc::Task<void> UnitRunner::renew_now(Line line) {
  // Not inside of the one who keeps the promise.
  co_await kj::evalLater([] {});
  Desk& desk = desk_of(line);
  try {
    kj::Promise<void> renewed = renew(line, desk);
    co_await kj::mv(renewed);
  } catch (const kj::Exception& exception) {
    call_failed(line, exception);
  }
  desk.renews = false;
  look();
}

rpc::Task<void> UnitRunner::talk(Line line) {
  Desk& desk = desk_of(line);
  std::vector<uint64_t> leases;
  for (const auto& held : held_) {
    if (held->pin == line.pin && !held->to_compute()) leases.push_back(held->lease);
  }
  for (const uint64_t lease : leases) {
    Held* const held = find(line.pin, lease);
    if (held == nullptr) continue;
    if (held->returning) {
      kj::Promise<void> told = tell_given_back(desk, *held);
      co_await kj::mv(told);
    } else if (needs_.may_use_network()) {
      kj::Promise<void> submitted = submit(desk, *held);
      co_await kj::mv(submitted);
    }
  }
  while (has_to_ask(line)) {
    kj::Promise<void> asked = lease(line, desk);
    co_await kj::mv(asked);
  }
}

rpc::Task<void> UnitRunner::renew(Line line, Desk& desk) {
  std::vector<const Held*> mine;
  for (const auto& held : held_) {
    if (held->pin == line.pin && held->to_compute()) mine.push_back(held.get());
  }
  auto request = desk.client.renewRequest();
  auto progress = request.initProgress(static_cast<uint32_t>(mine.size()));
  std::vector<uint64_t> leases;
  for (uint32_t i = 0; i < progress.size(); ++i) {
    progress[i].setLeaseId(mine[i]->lease);
    progress[i].setItemsDone(mine[i]->items_done());
    progress[i].setRunning(mine[i] == current_);
    leases.push_back(mine[i]->lease);
  }
  const uint64_t asked_anew = asked_anew_;
  kj::Promise<capnp::Response<rpc::UnitDesk::RenewResults>> asked = request.send();
  const auto answer = co_await timer_.timeoutAfter(kAnswerMax, kj::mv(asked));
  const auto until = answer.getUntilMs();
  if (until.size() != leases.size()) {
    rpc::throw_error({ErrorCode::kCorrupt, "the coordinator answered about " +
                                               std::to_string(until.size()) + " of " +
                                               std::to_string(leases.size()) + " leases"});
  }
  const Millis now = clock_.now_monotonic();
  const auto over = [&](uint64_t lease) {
    Held* const held = find(line.pin, lease);
    if (held != nullptr && held->to_compute()) drop(*held, {"unit.over", {}});
  };
  for (uint32_t i = 0; i < until.size(); ++i) {
    if (until[i] == 0) {
      over(leases[i]);
    } else if (Held* const held = find(line.pin, leases[i])) {
      held->heard = now;
      held->until = held->entry->work().until = now + millis_of(until[i]);
      // An answer from before a sleep says nothing of what holds after it.
      held->login = asked_anew == asked_anew_ ? line.login : 0;
    }
  }
  for (const uint64_t lease : answer.getEnded()) over(lease);
}

rpc::Task<void> UnitRunner::tell_given_back(Desk& desk, Held& held) {
  auto request = desk.client.giveBackRequest();
  request.setLeaseId(held.lease);
  request.setReason(held.returning->reason);
  request.setText(held.returning->text);
  kj::Promise<void> told = request.send().ignoreResult();
  co_await timer_.timeoutAfter(kAnswerMax, kj::mv(told));
  Message why = held.returning->why;
  // What was never begun is no part of the history.
  if (why.code == "unit.not_begun") why = {};
  drop(held, std::move(why));
}

rpc::Task<void> UnitRunner::submit(Desk& desk, Held& held) {
  auto request = desk.client.submitRequest();
  request.setLeaseId(held.lease);
  write_output(held.kind(), held.outputs(), request.initOutput());
  const Bytes size = bytes_in(request.asReader().totalSize());
  kj::Promise<void> may_send = host_.may_send(size);
  co_await kj::mv(may_send);
  kj::Maybe<Message> ended;
  try {
    kj::Promise<capnp::Response<rpc::UnitDesk::SubmitResults>> asked = request.send();
    const auto answer = co_await timer_.timeoutAfter(kSubmitMax, kj::mv(asked));
    needs_.bytes_moved({}, size);
    switch (answer.getOutcome()) {
      case rpc::UnitDesk::Outcome::ACCEPTED:
      case rpc::UnitDesk::Outcome::REPEATED:
        desk.useless = 0;
        ended = Message{"unit.accepted", {}};
        break;
      case rpc::UnitDesk::Outcome::NOT_NEEDED: ended = Message{"unit.not_needed", {}}; break;
      default: {
        Message why = read_message(answer.getWhy());
        ended = why.empty() ? Message{"unit.rejected", {}} : std::move(why);
      }
    }
  } catch (const kj::Exception& exception) {
    const Error error = rpc::error_of(exception);
    const bool later = error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
                       error.code == ErrorCode::kNoSpace;
    if (later || ++held.submits < kSubmitsMax) throw;
    log_error("units", "not_taken", {{"unit", held.unit}, {"cause", error}});
    ended = Message{"unit.rejected", {}};
  }
  drop(held, kj::mv(KJ_ASSERT_NONNULL(ended)));
}

rpc::Task<void> UnitRunner::lease(Line line, Desk& desk) {
  const auto lacking = [this, &line] {
    std::vector<Held*> all;
    for (const auto& held : held_) {
      if (held->pin == line.pin && held->login == line.login && lacks_input(*held)) {
        all.push_back(held.get());
      }
    }
    return all;
  };
  const bool lacks = !lacking().empty();
  // A fresh desk hands out again what this device has, with keys for the worker of now.
  if (lacks && desk.handed) desk.client = line.session.unitsRequest().send().getDesk();
  kj::Promise<void> reported = needs_.devices_reported(line.pin);
  co_await timer_.timeoutAfter(kAnswerMax, kj::mv(reported));
  const ByteVector key = needs_.worker_key(device_);
  if (key.empty()) co_return;

  Millis wanted = needs_.work_ahead();
  if (const std::optional<Millis> available = needs_.available(device_)) {
    wanted = std::min(wanted, *available);
  }
  auto request = desk.client.leaseRequest();
  request.setDeviceId(device_);
  request.setSeconds(static_cast<uint32_t>(
      std::clamp<int64_t>((wanted.count + 999) / 1000, 1, kTimeMax.count / 1000)));
  request.setCountMax(std::min<uint32_t>(static_cast<uint32_t>(held_.size()) + kUnitsPerAnswer,
                                         limits::kUnitsAheadMax));
  desk.handed = true;
  kj::Promise<capnp::Response<rpc::UnitDesk::LeaseResults>> asked = request.send();
  const auto answer = co_await timer_.timeoutAfter(kSubmitMax, kj::mv(asked));
  needs_.bytes_moved(bytes_in(answer.totalSize()), {});

  const auto units = answer.getUnits();
  rpc::require_at_most(units.size(), limits::kUnitsAheadMax, "lease.units");
  const Millis now = clock_.now_monotonic();
  const size_t before = held_.size();
  for (const rpc::Unit::Reader unit : units) take_unit(line, unit, key);
  if (held_.size() == before) {
    const Millis again =
        std::clamp(Millis{int64_t{answer.getAskAgainMs()}}, kAskAgainMin, kAskAgainMax);
    desk.ask_at = std::max(desk.ask_at, now + again);
    log_info("units", "none",
             {{"device", device_}, {"why", english(read_message(answer.getWhy()))}});
  } else {
    ++asked_first_;  // Others are asked first next time.
  }
  if (lacks && key == needs_.worker_key(device_)) {
    for (Held* const held : lacking()) {
      give_back(*held, rpc::UnitDesk::GiveBack::OWNER, {"unit.not_handed_again", {}});
    }
  }
  work_wanted_.give();
}

void UnitRunner::take_unit(const Line& line, rpc::Unit::Reader unit, const ByteVector& key) {
  if (unit.getLeaseId() == 0 || unit.getId() == 0) return;
  const Millis now = clock_.now_monotonic();
  Held* held = find(line.pin, unit.getLeaseId());
  if (held == nullptr) {
    if (held_.size() >= limits::kUnitsAheadMax) return;
    auto made = std::make_unique<Held>();
    made->pin = line.pin;
    made->lease = unit.getLeaseId();
    made->unit = unit.getId();
    made->job_class = read_job_class(unit.getJobClass());
    made->estimate = millis_of(unit.getEstimateMs());
    made->saved_at = now;
    held = made.get();
    hold(std::move(made));
  } else if (!lacks_input(*held)) {
    return;
  }
  held->heard = now;
  held->until = held->entry->work().until = now + millis_of(unit.getUntilMs());
  held->login = line.login;
  if (!host_.consents(line.pin, held->job_class).ok()) {
    return give_back(*held, rpc::UnitDesk::GiveBack::DENIED, {"work.class_denied", {}});
  }
  if (const Result<void> taken = take_input(*held, unit, key); !taken.ok()) {
    const std::string text(cut_utf8(taken.error().message, limits::kReasonBytesMax));
    give_back(*held, rpc::UnitDesk::GiveBack::REFUSED, {"unit.refused", {text}}, text);
  }
}

Result<void> UnitRunner::take_input(Held& held, rpc::Unit::Reader unit, const ByteVector& key) {
  // One that is handed out again, too: its owner's consent was to what it was.
  if (read_job_class(unit.getJobClass()) != held.job_class) {
    return Error{ErrorCode::kInvalid, "its job class is another now"};
  }
  SHOAL_TRY_ASSIGN(input, read_unit(unit));
  SHOAL_TRY_ASSIGN(shards, read_shards(unit.getSpec().getShards(), held.pin));
  UnitWork work(std::move(input));
  const std::vector<ItemOutput>* const had = held.work   ? &held.work->outputs()
                                             : held.kept ? &held.kept->outputs
                                                         : nullptr;
  if (had != nullptr) {
    const Digest& before = held.work ? held.work->digest() : held.kept->input;
    const Result<void> goes_on = before == work.digest()
                                     ? work.go_on_from(*had)
                                     : Error{ErrorCode::kCorrupt, "it has another input now"};
    if (!goes_on.ok()) {
      log_warning("units", "begins_anew", {{"unit", held.unit}, {"cause", goes_on.error()}});
    }
  }
  held.work.emplace(std::move(work));
  held.kept.reset();
  held.shards = std::move(shards);
  held.key = key;
  held.spec = std::make_unique<capnp::MallocMessageBuilder>();
  held.spec->setRoot(unit.getSpec());
  held.entry->work().items = static_cast<uint32_t>(held.work->outputs().size());
  held.entry->work().items_done = held.work->items_done();
  held.finished = held.work->done();
  return {};
}

}  // namespace shoal::client
