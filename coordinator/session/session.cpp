#include "coordinator/session/session.h"

#include <kj/debug.h>

#include <algorithm>

#include "base/log.h"
#include "coordinator/session/session_plan.h"
#include "schema/limits.h"
#include "schema/transport.h"

namespace shoal {
namespace {

constexpr kj::Duration kPathsWait = 1 * kj::SECONDS;

double seconds_of(kj::Duration time) { return static_cast<double>(time / kj::MICROSECONDS) / 1e6; }
Millis millis_of(kj::Duration time) { return Millis{time / kj::MILLISECONDS}; }

// What the text begins with: one token or more.
Result<std::vector<int32_t>> prompt_tokens(const SessionRequest& request,
                                           const Tokenizer& tokenizer, const Clock& clock) {
  if (!request.chat.empty()) {
    SHOAL_TRY_ASSIGN(tokens,
                     encode_chat(tokenizer, chat_variables(request.chat), clock.now_wall().count));
    if (tokens.empty())
      return Error{ErrorCode::kInvalid, "chat: the model's template makes no text of it"};
    return tokens;
  }
  std::vector<int32_t> tokens = tokenizer.encode(request.prompt, tokenizer.adds_bos());
  if (tokens.empty()) {
    return Error{ErrorCode::kInvalid,
                 "the prompt is empty, and the model has no token to begin with"};
  }
  return tokens;
}

// All of them, or the first failure without waiting for the others: kj::joinPromises of this
// version waits for all even when one fails, and looks at none before.
kj::Promise<void> join_or_fail(std::vector<kj::Promise<void>> promises) {
  auto failure = kj::newPromiseAndFulfiller<void>();
  auto alarm = kj::heap(kj::mv(failure.fulfiller));
  auto& fulfiller = *alarm;
  auto all = kj::heapArrayBuilder<kj::Promise<void>>(promises.size());
  for (auto& promise : promises) {
    all.add(promise
                .catch_([&fulfiller](kj::Exception&& exception) {
                  fulfiller->reject(kj::cp(exception));
                  kj::throwRecoverableException(kj::mv(exception));
                })
                .eagerlyEvaluate(nullptr));
  }
  return kj::joinPromises(all.finish())
      .exclusiveJoin(kj::mv(failure.promise))
      .attach(kj::mv(alarm));
}

}  // namespace

Result<std::unique_ptr<Session>> Session::start(SessionNeeds& needs, std::set<Session*>& live,
                                                std::shared_ptr<const LiveModel> model,
                                                SessionRequest request, TokenReceiver& receiver) {
  auto owned = kj::refcounted<SessionShared>(needs, std::move(model), std::move(request));
  SessionShared& shared = *owned;
  SHOAL_TRY_ASSIGN(tokens, prompt_tokens(shared.request, shared.model->tokenizer, needs.clock));
  shared.tokens = std::move(tokens);
  const auto prompt = static_cast<int64_t>(shared.tokens.size());
  SHOAL_TRY_ASSIGN(sizes,
                   session_sizes(*shared.model, needs.options, prompt, shared.request.tokens_max));
  shared.context = sizes.context;
  shared.rows_max = sizes.rows_max;

  SessionRow row;
  shared.job_class = class_of(*shared.model, shared.request);
  shared.class_digest = digest_of_class(shared.job_class);
  row.model = shared.model->name;
  row.privacy = privacy_name(shared.job_class);
  row.group = shared.request.group;
  row.state = "planning";
  row.prompt_tokens = prompt;
  shared.prompt_tokens = prompt;
  row.started_at = needs.clock.now_wall();
  SHOAL_TRY_ASSIGN(id, needs.table.start(row));
  row.id = id;
  shared.id = id;
  return std::make_unique<Session>(needs, live, kj::mv(owned), std::move(row), receiver);
}

Session::Session(SessionNeeds& needs, std::set<Session*>& live, kj::Own<SessionShared> shared,
                 SessionRow row, TokenReceiver& receiver)
    : needs_(needs),
      live_(live),
      shared_(kj::mv(shared)),
      row_(std::move(row)),
      receiver_(receiver),
      detokenizer_(std::in_place, shared_->model->tokenizer, Detokenizer::Begin::kContinuation),
      pass_began_(needs.timer.now()) {
  live_.insert(this);
  needs_.auditor.session_began(*shared_);
  summary_.id = row_.id;
  summary_.prompt_ids = shared_->tokens;
  needs_.journal.note(
      "session_started",
      "model " + row_.model + ", " + row_.privacy + (row_.group.empty() ? "" : " " + row_.group),
      {}, row_.id);
}

Session::~Session() noexcept(false) {
  live_.erase(this);
  if (finished_) return;
  if (needs_.stopping) {
    finish("failed", "coordinator stopped");
  } else {
    finish("cancelled", "the requester went away");
  }
}

std::vector<StageWho> Session::stages() const {
  std::vector<StageWho> stages;
  for (const auto& stage : stages_) {
    if (stage->who()) stages.push_back(*stage->who());
  }
  return stages;
}

bool Session::in_use(const DevicePlace& place, const StageRunner& besides) const {
  return std::ranges::any_of(stages_, [&](const auto& stage) {
    return stage.get() != &besides && stage->place() != nullptr && *stage->place() == place;
  });
}

void Session::stage_lost(const StageRunner& stage, const LossCause& cause) {
  FailoverNote note;
  note.stage = static_cast<int64_t>(stage.index());
  note.at_token = static_cast<int64_t>(summary_.ids.size());
  note.cause = cause.told;
  pending_.push_back({std::move(note), last_token_at_.value_or(pass_began_)});
  row_.failovers += 1;
  set_state("repairing", cause.stored);
}

// To be drawn still, at most.
int64_t Session::tokens_left() const {
  const int64_t positions = shared_->context - static_cast<int64_t>(shared_->tokens.size()) + 1;
  return std::max<int64_t>(std::min(shared_->request.tokens_max - tokens(), positions), 0);
}

double Session::seconds_per_token(const StageRunner& besides) const {
  double seconds = 0;
  for (const auto& stage : stages_) {
    if (stage.get() != &besides) seconds += stage->seconds_per_token();
  }
  return seconds;
}

void Session::set_state(const char* state, const std::string& reason) {
  row_.state = state;
  row_.reason = reason;
  row_.tokens = static_cast<int64_t>(summary_.ids.size());
  row_.relayed_bytes = shared_->relayed_bytes;
  const Result<void> stored = needs_.table.update(row_);
  if (!stored.ok())
    log_error("session", "state_not_stored", {{"session", row_.id}, {"why", stored.error()}});
}

void Session::finish(const char* state, const std::string& reason) {
  finished_ = true;
  row_.state = state;
  row_.reason = reason;
  row_.tokens = tokens();
  row_.relayed_bytes = shared_->relayed_bytes;
  row_.ended_at = needs_.clock.now_wall();
  SessionEnd end;
  end.row = row_;
  end.distrusted = shared_->distrusted;
  end.event = std::string(state) + (reason.empty() ? "" : ": " + reason) + ", " +
              std::to_string(summary_.ids.size()) + " tokens, " + std::to_string(row_.failovers) +
              " failovers";
  end.checked_later = needs_.auditor.session_over(*shared_);
  end.figures = summary_.figures;
  direct_ = nullptr;
  for (const auto& stage : stages_) {
    for (EndedLease& lease : stage->release()) {
      if (lease.judgement.verdict == Verdict::kConfirmed) {
        const bool distrusted = shared_->distrusted.contains(lease.work.host);
        const bool waits = end.checked_later.contains(lease.work.lease);
        lease.judgement = judge({.host_distrusted = distrusted, .session_over = !waits});
      }
      end.leases.push_back(std::move(lease));
    }
  }
  needs_.ends.store(std::move(end));
}

rpc::Task<SessionSummary> Session::run() {
  std::optional<Error> failed;
  try {
    plan();
    rpc::Task<void> generating = generate();
    co_await kj::mv(generating);
  } catch (const kj::Exception& exception) {
    failed = rpc::error_of(exception);
  }
  if (failed) {
    if (receiver_gone_) {
      finish("cancelled", "the requester went away");
    } else {
      finish("failed", shared_->failure_to_store.value_or(failed->message));
    }
    rpc::throw_error(*failed);
  }
  summary_.relayed_bytes = shared_->relayed_bytes;
  summary_.stages = stages();
  finish("done", summary_.finish_reason);
  co_return kj::mv(summary_);
}

void Session::plan() {
  const Result<SessionPlan> made =
      plan_now(needs_, *shared_->model, shared_->request, {shared_->context, shared_->rows_max},
               row_.prompt_tokens);
  if (!made.ok()) rpc::throw_error(made.error());
  const std::vector<Pool::Offer>& offers = made.value().offers;
  const Plan& plan = made.value().plan;
  summary_.figures = predict_session(made.value().request, made.value().devices, plan);
  const Result<void> stored = needs_.table.set_figures(row_.id, summary_.figures);
  if (!stored.ok()) rpc::throw_error(stored.error());
  for (const PlanStage& stage : plan.stages) {
    StageTrace trace;
    trace.first_fragment = stage.first_fragment;
    trace.last_fragment = stage.last_fragment;
    shared_->stages.push_back(std::move(trace));
  }
  for (const PlanStage& stage : plan.stages) {
    stages_.push_back(
        std::make_unique<StageRunner>(*shared_, *this, stages_.size(), offers[stage.device].place));
  }
  direct_ = std::make_unique<DirectPaths>(*shared_, stages_);
}

// Several stages may be lost at once: they are opened and refilled side by side.
rpc::Task<void> Session::make_all_ready() {
  while (!shared_->wrong) {
    std::vector<kj::Promise<void>> repairs;
    for (const auto& stage : stages_) {
      if (!stage->is_ready()) repairs.push_back(stage->make_ready());
    }
    if (repairs.empty()) co_return;
    kj::Promise<void> all = join_or_fail(kj::mv(repairs));
    co_await kj::mv(all);
  }
}

// What the stages' parts of one pass share.
struct Session::Pass {
  int64_t end = 0;  // To this position.
  // A stage that has no rows to go on with waits for one of these; null when it does not.
  std::vector<kj::Own<kj::PromiseFulfiller<void>>> rows_came;
  int32_t token = -1;  // Drawn after the last row.
};

rpc::Task<void> Session::repair(StageRunner& stage) {
  ++repairs_;
  kj::Promise<void> making = stage.make_ready();
  co_await kj::mv(making);
  if (--repairs_ > 0) co_return;
  set_state("running");
  receiver_.stages(stages());
  for (const auto& other : stages_) other->stand_by();
}

// One stage's part: block after block, each as soon as the stage before has given it. So several
// stages work on a prompt at once, and one that is lost is replaced while the others go on.
rpc::Task<void> Session::run_stage(size_t index, Pass& pass) {
  StageRunner& stage = *stages_[index];
  const bool tail = index + 1 == stages_.size();
  const auto give_next = [&pass, index, tail] {
    if (!tail && pass.rows_came[index + 1]) pass.rows_came[index + 1]->fulfill();
  };
  while (!shared_->wrong && stage.completed() < pass.end) {
    if (!stage.is_ready()) {
      rpc::Task<void> repairing = repair(stage);
      co_await kj::mv(repairing);
      continue;
    }
    const int64_t first = stage.completed();
    const int64_t given =
        index == 0 ? pass.end : static_cast<int64_t>(shared_->stages[index].inputs->rows());
    const int64_t rows = std::min(summary_.figures.block_rows, given - first);
    if (rows == 0) {
      auto came = kj::newPromiseAndFulfiller<void>();
      pass.rows_came[index] = kj::mv(came.fulfiller);
      kj::Promise<void> change = came.promise.exclusiveJoin(needs_.pool.gone(*stage.place()));
      co_await kj::mv(change);
      pass.rows_came[index] = nullptr;
      continue;
    }
    const bool draw = tail && first + rows == pass.end;
    const kj::TimePoint asked = needs_.timer.now();
    rpc::Task<StepResult> step = stage.step(first, rows, draw);
    const StepResult result = co_await kj::mv(step);
    if (result.lost) continue;
    note_step(summary_.figures.measured.stages[index], rows, summary_.figures.block_rows,
              seconds_of(needs_.timer.now() - asked));
    if (tail) {
      pass_began_ = needs_.timer.now();
      if (draw) pass.token = result.tokens.front();
    } else {
      const Result<void> kept = stages_[index + 1]->keep(result.hidden);
      if (!kept.ok()) rpc::throw_error(kept.error());
      give_next();
    }
  }
  give_next();  // Who waits for rows that do not come any more is not to wait.
}

// Stages that pass their rows on to each other, until a path fails: then each goes on by itself.
rpc::Task<void> Session::run_joined(size_t from, size_t to, Pass& pass) {
  const bool tail = to + 1 == stages_.size();
  const auto done = [this, &pass, to, tail](const DirectPaths::Block& block, StepResult result) {
    if (tail) {
      pass_began_ = needs_.timer.now();
      if (block.draw) pass.token = result.tokens.front();
      return;
    }
    const Result<void> kept = stages_[to + 1]->keep(result.hidden);
    if (!kept.ok()) rpc::throw_error(kept.error());
    if (pass.rows_came[to + 1]) pass.rows_came[to + 1]->fulfill();
  };
  bool joined = true;
  while (joined && !shared_->wrong && stages_[to]->completed() < pass.end) {
    if (from > 0 &&
        static_cast<int64_t>(shared_->stages[from].inputs->rows()) == stages_[from]->completed()) {
      auto came = kj::newPromiseAndFulfiller<void>();
      pass.rows_came[from] = kj::mv(came.fulfiller);
      co_await kj::mv(came.promise);
      pass.rows_came[from] = nullptr;
      continue;
    }
    rpc::Task<bool> running = direct_->run(from, to, pass.end, summary_.figures.block_rows, done);
    joined = co_await kj::mv(running);
  }
  if (joined) {
    if (!tail && pass.rows_came[to + 1]) pass.rows_came[to + 1]->fulfill();
    co_return;
  }
  std::vector<kj::Promise<void>> parts;
  for (size_t i = from; i <= to; ++i) parts.push_back(run_stage(i, pass));
  kj::Promise<void> all = join_or_fail(kj::mv(parts));
  co_await kj::mv(all);
}

// A prompt's rows are the most, so a moment is spent on paths for them. One that takes longer is
// used once it is there.
rpc::Task<void> Session::open_paths() {
  direct_->open();
  kj::Promise<void> moment = needs_.timer.afterDelay(kPathsWait);
  kj::Promise<void> opened = direct_->opened().exclusiveJoin(kj::mv(moment));
  co_await kj::mv(opened);
}

// All tokens through all stages, and the one that is drawn after them. What it did is worth nothing
// once a check has found something wrong.
rpc::Task<int32_t> Session::pass() {
  pass_began_ = needs_.timer.now();
  Pass pass;
  pass.end = static_cast<int64_t>(shared_->tokens.size());
  pass.rows_came.resize(stages_.size());
  direct_->open();
  // What goes through the coordinator from now on, and did not before, it must have.
  for (size_t i = 1; i < stages_.size(); ++i) {
    if (direct_->run_end(i - 1) >= i) continue;
    rpc::Task<void> bringing = direct_->bring(i, stages_[i - 1]->completed());
    co_await kj::mv(bringing);
  }
  std::vector<kj::Promise<void>> parts;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const size_t from = i;
    i = direct_->run_end(from);
    parts.push_back(i == from ? run_stage(i, pass) : run_joined(from, i, pass));
  }
  kj::Promise<void> all = join_or_fail(kj::mv(parts));
  co_await kj::mv(all);
  // Who computed rows again for others was replaced on the way, perhaps.
  if (row_.state == "repairing" && repairs_ == 0) {
    set_state("running");
    receiver_.stages(stages());
  }
  co_return int32_t{pass.token};
}

rpc::Task<void> Session::generate() {
  set_state("loading");
  {
    rpc::Task<void> opening = make_all_ready();
    co_await kj::mv(opening);
  }
  set_state("running");
  receiver_.stages(stages());
  for (const auto& stage : stages_) stage->stand_by();
  {
    rpc::Task<void> opening = open_paths();
    co_await kj::mv(opening);
  }

  const kj::TimePoint started = needs_.timer.now();
  std::optional<kj::TimePoint> first_token;
  const int64_t context = std::min<int64_t>(shared_->model->manifest.context, limits::kContextMax);
  while (true) {
    if (shared_->wrong) undo_wrong();
    const auto length = static_cast<int64_t>(shared_->tokens.size());
    rpc::Task<int32_t> passing = pass();
    const int32_t token = co_await kj::mv(passing);
    if (shared_->wrong) continue;
    if (!first_token) first_token = needs_.timer.now();
    rpc::Task<void> emitting = emit(token);
    co_await kj::mv(emitting);
    if (shared_->wrong) continue;
    if (!shared_->request.ignore_eos && shared_->model->ends_text(token)) {
      summary_.finish_reason = "stop";
      break;
    }
    if (tokens() >= shared_->request.tokens_max || length + 1 > context) {
      summary_.finish_reason = "length";
      break;
    }
  }
  summary_.prefill = millis_of(*first_token - started);
  SessionTimes& measured = summary_.figures.measured;
  measured.prefill_seconds = seconds_of(*first_token - started);
  const double decode = seconds_of(needs_.timer.now() - *first_token);
  const auto decoded = static_cast<double>(summary_.ids.size() - 1);
  summary_.tokens_per_second = decode > 0 ? decoded / decode : 0;
  measured.tokens_per_second = summary_.tokens_per_second;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const DevicePlace* const place = stages_[i]->place();
    const Pool::Host* const host =
        place == nullptr ? nullptr : needs_.pool.find(place->host, place->login);
    if (host != nullptr) measured.stages[i].hop_seconds = host->hop_seconds;
  }
  summary_.text += detokenizer_->finish();
}

// A check found that a stage answered wrongly: what hangs on that is forgotten, and drawn again by
// others. A token that was sent cannot be called back, but who was sent it is told.
void Session::undo_wrong() {
  const WrongAnswer wrong = *std::exchange(shared_->wrong, std::nullopt);
  // The token after a row is drawn from it.
  const int64_t good = std::max(shared_->prompt_tokens, wrong.first + 1);
  const int64_t taken_back =
      std::max<int64_t>(static_cast<int64_t>(shared_->tokens.size()) - good, 0);
  if (taken_back > 0) {
    shared_->tokens.resize(static_cast<size_t>(good));
    summary_.ids.resize(static_cast<size_t>(good - shared_->prompt_tokens));
    detokenizer_.emplace(shared_->model->tokenizer, Detokenizer::Begin::kContinuation);
    summary_.text.clear();
    for (const int32_t token : summary_.ids) summary_.text += detokenizer_->push(token);
  }
  shared_->rewinds.push_back(wrong.first);
  std::string cause = "a check found wrong answers of its host";
  if (taken_back > 0) {
    const std::string count = std::to_string(taken_back);
    cause += taken_back == 1
                 ? "; the last token that was sent is wrong and is drawn again"
                 : "; the last " + count + " tokens that were sent are wrong and are drawn again";
    needs_.journal.note("tokens_taken_back",
                        count + " tokens that were sent already, from token " +
                            std::to_string(tokens()) + " on, were wrong",
                        {}, row_.id);
  }
  for (size_t i = 0; i < stages_.size(); ++i) {
    stages_[i]->rewind(wrong.first);
    const bool told = i != wrong.stage || taken_back == 0;
    if (i == wrong.stage && stages_[i]->give_up_liar(cause)) continue;
    if (!told) stage_lost(*stages_[i], in_our_words(cause));
  }
}

rpc::Task<void> Session::emit(int32_t token) {
  shared_->tokens.push_back(token);
  summary_.ids.push_back(token);
  report_failovers();
  last_token_at_ = needs_.timer.now();
  std::string text;
  const bool ends = !shared_->request.ignore_eos && shared_->model->ends_text(token);
  if (!ends) text = detokenizer_->push(token);
  summary_.text += text;
  try {
    kj::Promise<void> sent = receiver_.token(token, text);
    co_await kj::mv(sent);
  } catch (const kj::Exception& exception) {
    receiver_gone_ = true;
    throw;
  }
}

// A token ends the gap of every stage that was lost since the one before.
void Session::report_failovers() {
  const kj::TimePoint now = needs_.timer.now();
  for (PendingFailover& pending : pending_) {
    pending.note.gap = millis_of(now - pending.since);
    pending.note.replacement =
        stages_[static_cast<size_t>(pending.note.stage)]->who().value_or(StageWho());
    row_.gap_max = std::max(row_.gap_max, pending.note.gap);
    needs_.journal.note("failover",
                        "stage " + std::to_string(pending.note.stage) + " went on after " +
                            std::to_string(pending.note.gap.count) + " ms",
                        pending.note.replacement.host, row_.id);
    receiver_.failover(pending.note);
    summary_.failovers.push_back(std::move(pending.note));
  }
  pending_.clear();
}

}  // namespace shoal
