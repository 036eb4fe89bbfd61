#include "coordinator/session/auditor.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/session/stage_device.h"
#include "coordinator/work/audit.h"
#include "coordinator/work/stage_audit.h"
#include "schema/transport.h"

namespace shoal {
namespace {

constexpr kj::Duration kRetry = 2 * kj::SECONDS;
constexpr kj::Duration kTick = 200 * kj::MILLISECONDS;
// A stream is followed in steps of many rows, or of what came in so long.
constexpr kj::Duration kFollow = 2 * kj::SECONDS;
constexpr kj::Duration kWaitMax = 10 * kj::MINUTES;  // For a device, once the session is over.
constexpr kj::Duration kCheckMax = 1 * kj::HOURS;    // For all of a check, likewise.
constexpr size_t kAuditsMax = 256;
constexpr size_t kEndedMax = 32;  // Of these, so many of sessions that are over.

bool is_trusted_now(const SessionShared& shared, const DevicePlace& place) {
  const Pool::Host* const host = shared.needs.pool.find(place.host, place.login);
  return host != nullptr && host->trusted;
}

const AnsweredRange* range_at(const StageTrace& trace, int64_t row) {
  for (const AnsweredRange& range : trace.answered) {
    if (range.first <= row && row < range.end) return &range;
  }
  return nullptr;
}

// What is told of an answer that has been given, when a row was wrong. Empty: nothing hangs on it.
std::string given_wrong(const SessionShared& shared, int64_t row) {
  const auto tokens = static_cast<int64_t>(shared.tokens.size());
  const int64_t good = std::max(shared.prompt_tokens, row + 1);
  if (tokens <= good) return "";
  return "; the last " + std::to_string(tokens - good) +
         " tokens of the session's answer, which has been given, are wrong";
}

}  // namespace

struct Auditor::Difference {
  int64_t row = 0;
  AnsweredRange accused;
  Digest was, is;  // Of the row, as it was answered, and as it was now.
};

// What one step of a check gave, beside what is kept of the same rows.
class Auditor::Rows {
 public:
  Rows(const SessionShared& shared, bool tail, int64_t first, int64_t end, const StepResult& result,
       ByteVector kept)
      : shared_(shared),
        tail_(tail),
        first_(tail ? std::max(shared.prompt_tokens - 1, first) : first),
        end_(end),
        result_(result),
        kept_(std::move(kept)) {}

  // Of the tail, those from which a token is drawn.
  int64_t first() const { return first_; }
  int64_t end() const { return end_; }
  Digest was(int64_t row) const {
    return tail_ ? token(shared_.tokens[static_cast<size_t>(row) + 1]) : hidden(kept_, row);
  }
  Digest is(int64_t row) const {
    return tail_ ? token(result_.tokens[static_cast<size_t>(row - first_)])
                 : hidden(result_.hidden, row);
  }

 private:
  static Digest token(int32_t token) {
    ByteWriter writer;
    writer.u32(static_cast<uint32_t>(token));
    return digest_of(writer.view());
  }
  Digest hidden(ByteSpan rows, int64_t row) const {
    const size_t bytes = static_cast<size_t>(shared_.model->manifest.width) * sizeof(float);
    return digest_of(rows.subspan(static_cast<size_t>(row - first_) * bytes, bytes));
  }

  const SessionShared& shared_;
  const bool tail_;
  const int64_t first_, end_;
  const StepResult& result_;
  const ByteVector kept_;
};

struct Auditor::Audit {
  kj::Own<SessionShared> shared;
  size_t stage = 0;
  std::unique_ptr<StageDevice> device;  // Null: none now.
  size_t rewinds = 0;                   // Of the session's, so many are known to the device.
  std::set<std::pair<HostId, std::string>> unfit;  // Devices that failed at it.
  kj::TimePoint last_step, waits_since;
  std::optional<kj::TimePoint> ends_by;  // Once the session is over.

  // The first device differed, and another one is to say who is right.
  struct Dispute {
    Difference difference;
    StageWho auditor;
    int64_t owner = 0;  // The auditor's, as it was then, and its network.
    uint64_t address_block = 0;
    EndedLease lease;  // The auditor's, to be judged.
  };
  std::optional<Dispute> dispute;
  bool compared_all = false;
  bool done = false;
  kj::Promise<void> running = nullptr;

  Audit(SessionShared& of, size_t stage, kj::TimePoint now)
      : shared(kj::addRef(of)), stage(stage), last_step(now), waits_since(now) {}
  const StageTrace& trace() const { return shared->stages[stage]; }
  // Of those who are checked, and of who is in dispute with them.
  std::set<int64_t> owners() const {
    std::set<int64_t> owners;
    for (const AnsweredRange& range : trace().answered) owners.insert(range.owner);
    if (dispute) owners.insert(dispute->owner);
    return owners;
  }
};

Auditor::Auditor(kj::Timer& timer, Random& chance, SessionEnds& ends, Ledger& ledger,
                 const BrokerRules& rules)
    : timer_(timer), chance_(chance), ends_(ends), ledger_(ledger), rules_(rules) {}

Auditor::~Auditor() noexcept(false) { stop(); }

void Auditor::stop() {
  if (records_ == nullptr) return;
  for (const auto& audit : audits_) {
    audit->running = nullptr;
    close(*audit, judge({.session_over = true}));
    drop_dispute(*audit);
  }
  audits_.clear();
  records_ = nullptr;
  sweeping_ = nullptr;
  if (!store_owed()) log_error("auditor", "checks_not_stored", {});
}

bool Auditor::mistrusts(HostId host) const {
  return records_ != nullptr && records_->record_of(host).quarantined > Millis{0};
}

// ---- When there is something to check ----------------------------------------------------------

// Drawn when a stage begins, so nobody can know of it by what he is asked.
void Auditor::stage_opened(SessionShared& shared, size_t stage, const StageWho& who) {
  if (records_ == nullptr || shared.needs.options.audits_max == 0 || who.trusted) return;
  if (chance_.uniform() >= audit_rate(rules_, records_->record_of(who.host).valid_in_row)) return;
  begin_audit(shared, stage);
}

void Auditor::look_at(SessionShared& shared, size_t stage) {
  if (records_ == nullptr || shared.needs.options.audits_max == 0) return;
  begin_audit(shared, stage);
}

void Auditor::begin_audit(SessionShared& shared, size_t stage) {
  const bool known = std::ranges::any_of(audits_, [&](const auto& audit) {
    return audit->shared.get() == &shared && audit->stage == stage && !audit->done;
  });
  if (known || audits_.size() >= kAuditsMax) return;
  audits_.push_back(std::make_unique<Audit>(shared, stage, timer_.now()));
  start(*audits_.back());
}

std::set<LeaseId> Auditor::session_over(SessionShared& shared) {
  live_.erase(&shared);
  shared.over = true;
  // Nobody takes anything back any more.
  if (const auto wrong = std::exchange(shared.wrong, std::nullopt)) {
    const std::string given = given_wrong(shared, wrong->first);
    if (!given.empty()) {
      shared.needs.journal.note("answer_wrong", range_of(shared.stages[wrong->stage]) + given, {},
                                shared.id);
    }
  }
  std::set<HostId> checked;
  std::set<SessionShared*> ended;
  for (const auto& audit : audits_) {
    if (audit->done) continue;
    if (audit->shared->over) ended.insert(audit->shared.get());
    if (audit->shared.get() != &shared) continue;
    audit->waits_since = timer_.now();
    audit->ends_by = timer_.now() + kCheckMax;
    // There is nothing to check, or nobody who could ever do it.
    if (audit->trace().answered.empty() || (audit->device == nullptr && !somebody_could(*audit))) {
      audit->running = nullptr;
      finish(*audit);
      continue;
    }
    for (const AnsweredRange& range : audit->trace().answered) {
      if (!range.trusted) checked.insert(range.host);
    }
  }
  for (const StageTrace& trace : shared.stages) {
    for (const AnsweredRange& range : trace.answered) {
      if (checked.contains(range.host)) shared.checked_later[range.lease] = range.host;
    }
  }
  std::set<LeaseId> leases;
  for (const auto& [lease, host] : shared.checked_later) leases.insert(lease);
  // What is kept for checks has a bound: those that have waited for longest are given up.
  if (ended.size() > kEndedMax) {
    const auto oldest = std::ranges::find_if(
        audits_, [](const auto& audit) { return !audit->done && audit->shared->over; });
    SessionShared& old = *(*oldest)->shared;
    for (const auto& audit : audits_) {
      if (audit->shared.get() != &old || audit->done) continue;
      audit->running = nullptr;
      finish(*audit);
    }
  }
  return leases;
}

// ---- One check ---------------------------------------------------------------------------------

void Auditor::start(Audit& audit) {
  audit.running = kj::evalLater([this, &audit]() -> kj::Promise<void> { return run(audit); })
                      .catch_([this, &audit](kj::Exception&& exception) {
                        log_error("auditor", "check_failed",
                                  {{"session", audit.shared->id},
                                   {"why", std::string(exception.getDescription().cStr())}});
                        finish(audit);
                      })
                      .eagerlyEvaluate(nullptr);
}

bool Auditor::may_work(const Audit& audit) const {
  const SessionShared& shared = *audit.shared;
  if (shared.wrong) return false;  // Rows are about to be taken back.
  // Following a stream keeps a device for long: not while units could have it.
  return shared.over || !units_wait();
}

rpc::Task<void> Auditor::run(Audit& audit) {
  SessionShared& shared = *audit.shared;
  while (true) {
    if (!may_work(audit)) {
      if (audit.device != nullptr && !shared.wrong) close(audit, judge({.session_over = true}));
      kj::Promise<void> tick = timer_.afterDelay(kTick);
      co_await kj::mv(tick);
      continue;
    }
    note_rewinds(audit);
    // An owner who wants his device back, or denies the work, gets it: that is nobody's failure.
    if (audit.device != nullptr && !is_fit(audit)) close(audit, judge({.session_over = true}));
    if (audit.ends_by && timer_.now() > *audit.ends_by) {
      shared.needs.journal.note("check_given_up", range_of(audit.trace()) + ": it took too long",
                                {}, shared.id);
      break;
    }
    if (audit.device == nullptr) {
      rpc::Task<bool> opening = open(audit);
      const bool opened = co_await kj::mv(opening);
      if (opened) continue;
      if (shared.over && timer_.now() - audit.waits_since > kWaitMax) {
        shared.needs.journal.note(
            "check_given_up", range_of(audit.trace()) + ": no device could do it", {}, shared.id);
        break;
      }
      kj::Promise<void> tick = timer_.afterDelay(kTick);
      co_await kj::mv(tick);
      continue;
    }
    StageDevice& device = *audit.device;
    const int64_t ready = rows_to_compare(audit);
    const int64_t first = device.filled();
    const int64_t rows = std::min(device.rows_max(), ready - first);
    const bool is_late = timer_.now() - audit.last_step >= kFollow;
    if (rows <= 0 && shared.over) {
      audit.compared_all = true;
      break;
    }
    if (rows <= 0 || (rows < device.rows_max() && !is_late && !shared.over)) {
      kj::Promise<void> tick = timer_.afterDelay(kTick);
      co_await kj::mv(tick);
      continue;
    }
    const int64_t draw_from = shared.is_tail(audit.stage)
                                  ? std::clamp(shared.prompt_tokens - 1, first, first + rows)
                                  : first + rows;
    rpc::Task<StepResult> step = device.step(first, rows, draw_from);
    const StepResult result = co_await kj::mv(step);
    audit.last_step = timer_.now();
    if (result.lost) {
      if (is_fit(audit)) audit.unfit.insert({device.place().host, device.place().device});
      close(audit, judge({.wrong_answer = result.failure.distrust, .session_over = true}));
      continue;
    }
    if (audit.rewinds != shared.rewinds.size() || shared.wrong) {
      device.rewind(first);  // What stays of these rows is compared then.
      continue;
    }
    const Rows answers = rows_of(audit, first, rows, result);
    const std::optional<Difference> difference = compare(audit, answers);
    // The rows after it are still to be compared.
    if (difference) device.rewind(difference->row + 1);
    if (audit.dispute) {
      if (difference || device.filled() > audit.dispute->difference.row) {
        judged(audit, difference, answers);
      }
      if (audit.done) co_return;
    } else if (difference) {
      differs(audit, *difference);
    }
  }
  finish(audit);
}

// What was taken back is compared anew, and nobody is judged by it.
void Auditor::note_rewinds(Audit& audit) {
  const SessionShared& shared = *audit.shared;
  for (; audit.rewinds < shared.rewinds.size(); ++audit.rewinds) {
    const int64_t position = shared.rewinds[audit.rewinds];
    if (audit.device != nullptr) audit.device->rewind(position);
    if (audit.dispute && audit.dispute->difference.row >= position) drop_dispute(audit);
  }
}

// Whether a device was opened.
rpc::Task<bool> Auditor::open(Audit& audit) {
  SessionShared& shared = *audit.shared;
  const auto working = std::ranges::count_if(
      audits_, [](const auto& other) { return other->device != nullptr && !other->done; });
  if (working >= shared.needs.options.audits_max) co_return false;
  if (audit.trace().answered.empty()) co_return false;
  std::optional<Pool::Offer> offer = choose(audit);
  if (!offer && audit.dispute) {
    // A dispute goes first: another check of a trusted device begins anew later.
    for (const auto& other : audits_) {
      if (other->device == nullptr || other->dispute || other->done) continue;
      if (!is_trusted_now(shared, other->device->place())) continue;
      give_way(*other);
      offer = choose(audit);
      if (offer) break;
    }
  }
  if (!offer) co_return false;
  Pool::Hold hold = shared.needs.pool.borrow(offer->place, shared.digests(audit.stage),
                                             [this, &audit] { give_way(audit); });
  audit.device = std::make_unique<StageDevice>(shared, audit.stage, offer->place, shared.rows_max,
                                               kj::mv(hold), StageDevice::Use::kCheck);
  rpc::Task<std::optional<StepFailure>> opening = audit.device->open();
  const std::optional<StepFailure> failure = co_await kj::mv(opening);
  if (failure) {
    if (is_fit(audit)) audit.unfit.insert({offer->place.host, offer->place.device});
    close(audit, judge({.session_over = true}));
    co_return false;
  }
  co_return true;
}

// A trusted device in a dispute, as long as there is one at all.
std::optional<Pool::Offer> Auditor::choose(const Audit& audit) {
  const SessionShared& shared = *audit.shared;
  const Pool& pool = shared.needs.pool;
  const std::set<int64_t> owners = audit.owners();
  std::set<uint64_t> addresses;
  for (const AnsweredRange& range : audit.trace().answered) addresses.insert(range.address_block);
  if (audit.dispute) addresses.insert(audit.dispute->address_block);
  std::set<HostId> in_session;
  for (const StageTrace& trace : shared.stages) {
    if (!trace.answered.empty()) in_session.insert(trace.answered.back().host);
  }
  const std::vector<Pool::Offer> offers = shared.offers();
  std::vector<AuditorCandidate> candidates;
  for (const Pool::Offer& offer : offers) {
    const HostId host = offer.place.host;
    AuditorCandidate candidate;
    candidate.device = offer.plan;
    candidate.barred = mistrusts(host) || shared.distrusted.contains(host) ||
                       audit.unfit.contains({host, offer.place.device});
    candidate.same_owner = owners.contains(pool.owner_of(host));
    candidate.same_address = addresses.contains(pool.address_of(host));
    candidate.in_session = in_session.contains(host);
    candidates.push_back(candidate);
  }
  AuditorRequest request;
  request.fragments = shared.costs(audit.stage);
  request.context = shared.context;
  request.rows_max = shared.rows_max;
  // A trusted one that could do it, now or later, is waited for.
  request.trusted_only = audit.dispute.has_value();
  const bool trusted_could = !best_auditors(request, candidates).empty();
  request.trusted_only = shared.needs_trust(audit.stage) || (audit.dispute && trusted_could);
  for (size_t i = 0; i < offers.size(); ++i) {
    candidates[i].busy = offers[i].plan.sessions > 0 || pool.is_lent(offers[i].place);
  }
  const std::vector<size_t> best = best_auditors(request, candidates);
  if (best.empty()) return std::nullopt;
  // The lot falls on an owner first: many devices make nobody a likelier checker.
  std::map<int64_t, std::vector<size_t>> by_owner;
  for (const size_t i : best) by_owner[pool.owner_of(offers[i].place.host)].push_back(i);
  const auto drawn =
      std::next(by_owner.begin(), static_cast<ptrdiff_t>(chance_.below(by_owner.size())));
  return offers[drawn->second[chance_.below(drawn->second.size())]];
}

// Now or later, whatever the device is doing now.
bool Auditor::somebody_could(const Audit& audit) const {
  const SessionShared& shared = *audit.shared;
  const Pool& pool = shared.needs.pool;
  const std::set<int64_t> owners = audit.owners();
  const Bytes needed = stage_memory(shared.costs(audit.stage), shared.context, shared.rows_max);
  for (const auto& [id, host] : pool.hosts()) {
    if (owners.contains(pool.owner_of(id)) || mistrusts(id) || shared.distrusted.contains(id) ||
        pool.denies(id, shared.class_digest) ||
        (shared.needs_trust(audit.stage) && !host->trusted) ||
        (!shared.request.group.empty() && host->membership.group != shared.request.group)) {
      continue;
    }
    for (const PoolDevice& device : host->devices) {
      if (audit.unfit.contains({id, device.row.name_on_host})) continue;
      if (device.row.exact && !(usable_memory(device.row.memory) < needed)) return true;
    }
  }
  return false;
}

// Whether the device may go on with the check.
bool Auditor::is_fit(const Audit& audit) const {
  const SessionShared& shared = *audit.shared;
  const DevicePlace& place = audit.device->place();
  const PoolDevice* const device = shared.needs.pool.find(place);
  return device != nullptr && device->state == DeviceState::kReady &&
         !shared.needs.pool.denies(place.host, shared.class_digest);
}

// Rows whose answer is known: those that the next stage was given, or whose token was drawn.
int64_t Auditor::rows_to_compare(const Audit& audit) const {
  const SessionShared& shared = *audit.shared;
  const StageTrace& trace = audit.trace();
  // A session that could not keep its inputs has fewer of them than answers.
  const auto inputs = shared.is_head(audit.stage) ? static_cast<int64_t>(shared.tokens.size())
                                                  : static_cast<int64_t>(trace.inputs->rows());
  const int64_t answered = trace.answered.empty() ? 0 : std::min(trace.answered.back().end, inputs);
  if (shared.is_tail(audit.stage)) {
    return std::min(answered, static_cast<int64_t>(shared.tokens.size()) - 1);
  }
  return std::min(answered, static_cast<int64_t>(shared.stages[audit.stage + 1].inputs->rows()));
}

Auditor::Rows Auditor::rows_of(const Audit& audit, int64_t first, int64_t rows,
                               const StepResult& result) const {
  const SessionShared& shared = *audit.shared;
  const bool tail = shared.is_tail(audit.stage);
  ByteVector kept;
  if (!tail) {
    Result<ByteVector> read = shared.stages[audit.stage + 1].inputs->read(
        static_cast<uint64_t>(first), static_cast<uint64_t>(rows));
    if (!read.ok()) rpc::throw_error(read.error());
    kept = std::move(read).value();
  }
  return {shared, tail, first, first + rows, result, std::move(kept)};
}

std::optional<Auditor::Difference> Auditor::compare(const Audit& audit, const Rows& rows) const {
  for (int64_t row = rows.first(); row < rows.end(); ++row) {
    const Digest was = rows.was(row), is = rows.is(row);
    if (was == is) continue;
    const AnsweredRange* const range = range_at(audit.trace(), row);
    // What was found wrong already is not found again.
    if (range == nullptr || audit.shared->convicted.contains(range->lease)) continue;
    return Difference{row, *range, was, is};
  }
  return std::nullopt;
}

// ---- Who lied ----------------------------------------------------------------------------------

void Auditor::differs(Audit& audit, const Difference& difference) {
  const StageWho who = audit.device->who();
  audit.shared->needs.journal.note("check_differs",
                                   range_of(audit.trace()) + ": " + difference.accused.host_name +
                                       " and " + who.host_name + " differ at position " +
                                       std::to_string(difference.row),
                                   {}, audit.shared->id);
  if (is_trusted_now(*audit.shared, audit.device->place())) {
    return convict(audit, difference.accused, difference.row, who.host_name);
  }
  EndedLease lease{audit.device->work(),
                   judge({.session_over = true}),
                   true,
                   0,
                   "",
                   audit.shared->needs.clock.now_wall()};
  const Pool& pool = audit.shared->needs.pool;
  audit.dispute = Audit::Dispute{difference, who, pool.owner_of(who.host),
                                 pool.address_of(who.host), std::move(lease)};
  audit.device = nullptr;
}

// A third one has come to the row at which two differ, or differs sooner.
void Auditor::judged(Audit& audit, const std::optional<Difference>& difference, const Rows& rows) {
  const Audit::Dispute dispute = *audit.dispute;
  AnsweredRange accused = dispute.difference.accused;
  int64_t row = dispute.difference.row;
  const bool trusted = is_trusted_now(*audit.shared, audit.device->place());
  const std::string judge_name = audit.device->who().host_name;
  const bool sooner = difference && difference->row < row;
  // What the two differed in may be there no more, or found wrong by another check.
  const bool stale = !sooner && (row < rows.first() || rows.was(row) != dispute.difference.was);
  if (stale || audit.shared->convicted.contains(accused.lease)) return drop_dispute(audit);
  Settlement settlement = Settlement::kOpen;
  if (sooner) {
    // Both others gave the same there.
    if (trusted) settlement = Settlement::kBoth;
    accused = difference->accused;
    row = difference->row;
  } else {
    settlement = settle(dispute.difference.was, dispute.difference.is, rows.is(row), trusted);
  }
  // The word of one who is trusted is not outvoted.
  if (accused.trusted && !trusted && settlement == Settlement::kAccused) {
    settlement = Settlement::kOpen;
  }
  switch (settlement) {
    case Settlement::kAccused:
      drop_dispute(audit);
      return convict(audit, accused, row, dispute.auditor.host_name + " and " + judge_name);
    case Settlement::kAuditor: return convict_auditor(audit, judge_name);
    case Settlement::kBoth:
      convict_auditor(audit, judge_name);
      return convict(audit, accused, row, judge_name);
    case Settlement::kOpen: break;
  }
  audit.shared->needs.journal.note(
      "check_undecided",
      range_of(audit.trace()) + (accused.trusted ? ": others differ from a trusted host"
                                                 : ": three hosts differ, and none of them is "
                                                   "trusted"),
      {}, audit.shared->id);
  drop_dispute(audit);
  finish(audit);
}

void Auditor::convict(Audit& audit, const AnsweredRange& accused, int64_t row,
                      const std::string& judges) {
  SessionShared& shared = *audit.shared;
  shared.distrusted.insert(accused.host);
  shared.convicted.insert(accused.lease);
  reject_work(shared, accused.host);
  std::string text = range_of(audit.trace()) + ": " + accused.host_name + " " + accused.device +
                     " answered wrongly from position " + std::to_string(row) + " on, as " +
                     judges + " found";
  if (shared.over) text += given_wrong(shared, row);
  shared.needs.journal.note("liar_found", text, accused.host, shared.id);
  records_->stage_checked(accused.host, false);
  if (!shared.over && (!shared.wrong || row < shared.wrong->first)) {
    shared.wrong = WrongAnswer{row, audit.stage};
  }
  // All that it has answered and that is still there is looked at.
  const std::vector<SessionShared*> live(live_.begin(), live_.end());
  for (SessionShared* const other : live) {
    for (size_t stage = 0; stage < other->stages.size(); ++stage) {
      const bool took_part = std::ranges::any_of(
          other->stages[stage].answered,
          [&](const AnsweredRange& range) { return range.host == accused.host; });
      if (took_part) begin_audit(*other, stage);
    }
  }
}

void Auditor::convict_auditor(Audit& audit, const std::string& judges) {
  const Audit::Dispute dispute = *std::exchange(audit.dispute, std::nullopt);
  EndedLease lease = dispute.lease;
  lease.judgement = judge({.wrong_answer = true});
  pay(std::move(lease));
  audit.shared->distrusted.insert(dispute.auditor.host);
  reject_work(*audit.shared, dispute.auditor.host);
  audit.shared->needs.journal.note("liar_found",
                                   range_of(audit.trace()) + ": " + dispute.auditor.host_name +
                                       ", which was to check it, answered wrongly at position " +
                                       std::to_string(dispute.difference.row) + ", as " + judges +
                                       " found",
                                   dispute.auditor.host, audit.shared->id);
  records_->stage_checked(dispute.auditor.host, false);
}

// What of it has ended and is pending is rejected now: whoever stops meanwhile confirms nothing of
// it. What still runs is judged as it ends.
void Auditor::reject_work(SessionShared& shared, HostId host) {
  for (const StageTrace& trace : shared.stages) {
    for (const AnsweredRange& range : trace.answered) {
      if (range.host != host) continue;
      shared.checked_later.erase(range.lease);
      verdicts_.push_back({range.lease, judge({.wrong_answer = true})});
    }
  }
  sweep();
}

// ---- Its end -----------------------------------------------------------------------------------

// Somebody else takes the device, at this moment: all that uses it goes. The check begins anew.
void Auditor::give_way(Audit& audit) {
  audit.running = nullptr;
  close(audit, judge({.session_over = true}));
  audit.waits_since = timer_.now();
  start(audit);
}

void Auditor::close(Audit& audit, const Judgement& judgement) {
  if (audit.device == nullptr) return;
  const std::unique_ptr<StageDevice> device = std::move(audit.device);
  pay({device->work(), judgement, device->rows() > 0 || judgement.verdict == Verdict::kRejected, 0,
       "", audit.shared->needs.clock.now_wall()});
}

void Auditor::drop_dispute(Audit& audit) {
  if (audit.dispute) pay(std::exchange(audit.dispute, std::nullopt)->lease);
}

void Auditor::finish(Audit& audit) {
  SessionShared& shared = *audit.shared;
  audit.done = true;
  if (audit.compared_all && !audit.dispute && records_ != nullptr) {
    std::set<HostId> right;
    for (const AnsweredRange& range : audit.trace().answered) {
      if (!range.trusted) right.insert(range.host);
    }
    if (audit.device != nullptr && !audit.device->who().trusted) {
      right.insert(audit.device->who().host);
    }
    for (const HostId host : right) {
      if (!shared.distrusted.contains(host)) records_->stage_checked(host, true);
    }
  }
  close(audit, judge({.session_over = true}));
  drop_dispute(audit);
  const bool last = std::ranges::none_of(
      audits_, [&](const auto& other) { return other->shared.get() == &shared && !other->done; });
  if (last && shared.over) {
    for (const auto& [lease, host] : shared.checked_later) {
      verdicts_.push_back(
          {lease, judge({.wrong_answer = shared.distrusted.contains(host), .session_over = true})});
    }
    shared.checked_later.clear();
  }
  sweep();
}

void Auditor::pay(EndedLease lease) {
  owed_.push_back(std::move(lease));
  sweep();
}

// Not at once: what is over may still be running, and a store in the middle of something.
void Auditor::sweep() {
  if (!std::exchange(sweep_waits_, true)) {
    sweeping_ = keep_sweeping(0 * kj::SECONDS).eagerlyEvaluate(nullptr);
  }
}

kj::Promise<void> Auditor::keep_sweeping(kj::Duration after) {
  return timer_.afterDelay(after).then([this]() -> kj::Promise<void> {
    std::erase_if(audits_, [](const auto& audit) { return audit->done; });
    if (!store_owed()) return keep_sweeping(kRetry);
    sweep_waits_ = false;
    return kj::READY_NOW;
  });
}

// False when the store does not take it now.
bool Auditor::store_owed() {
  while (!owed_.empty()) {
    const Result<void> stored = ends_.store(owed_.front());
    if (!stored.ok()) return false;
    owed_.erase(owed_.begin());
  }
  while (!verdicts_.empty()) {
    const auto& [lease, judgement] = verdicts_.front();
    if (!ledger_.judge_lease(lease, judgement).ok()) return false;
    verdicts_.erase(verdicts_.begin());
  }
  return true;
}

}  // namespace shoal
