#include <algorithm>

#include "client/records/records_state.h"

namespace shoal::client {
namespace {

constexpr int64_t kDayMax = 3'000'000;  // Some 8,000 years: a peer's day may be any number.

Digest digest_in(const ByteVector& bytes) {
  const Result<Digest> digest = Digest::from_bytes(bytes);
  return digest.ok() ? digest.value() : Digest();  // No signature fits a damaged one.
}

// Columns day, receipts, root, previous_root, signature, whole.
Records::StoredDay day_in(const Query& query) {
  return {{query.integer(0), static_cast<uint64_t>(query.integer(1)), digest_in(query.blob(2)),
           digest_in(query.blob(3)), query.blob(4)},
          query.integer(5) != 0};
}

}  // namespace

Result<void> Records::State::load_days(Coordinator& coordinator) {
  coordinator.days = {};
  {
    Query query = database->query(
        "SELECT day, receipts, root, previous_root, signature, whole FROM ledger_day "
        "WHERE coordinator_id = ? ORDER BY day DESC LIMIT 1");
    query.bind(coordinator.id);
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return {};
    StoredDay last = day_in(query);
    coordinator.days.last = std::move(last.day);
    coordinator.days.whole = last.whole;
  }
  // The newest proof says how far they have come; where old receipts are folded, the folded ones.
  Query query = database->query(
      "SELECT coalesce(max(number), 0) FROM receipt_proof WHERE coordinator_id = ?");
  query.bind(coordinator.id);
  SHOAL_TRY_ASSIGN(some, query.row());
  SHOAL_CHECK(some);
  coordinator.days.proved =
      std::max(static_cast<uint64_t>(query.integer(0)), coordinator.folded.through);
  return {};
}

Records::DayWanted Records::day_wanted(const std::string& pin) const {
  const auto found = state_->coordinators.find(pin);
  if (found == state_->coordinators.end()) return {};
  const State::Days& days = found->second.days;
  if (!days.last) return {};
  return {days.whole ? days.last->day + 1 : days.last->day, days.proved};
}

Result<void> Records::accept_day(const std::string& pin, const LedgerDay& day,
                                 std::span<const ReceiptProof> proofs, bool more) {
  SHOAL_TRY_ASSIGN(database, state_->readable());
  const auto found = state_->coordinators.find(pin);
  if (found == state_->coordinators.end()) {
    return Error{ErrorCode::kNotFound, "the key of this coordinator's receipts is not known"};
  }
  const State::Coordinator known = found->second;
  State::Days days = known.days;
  const auto refuse = [&](const std::string& what) {
    const std::string sentence = day_text(day.day) + ": " + what;
    state_->day_problems[pin] = sentence;
    return Error{ErrorCode::kInvalid, sentence};
  };
  if (day.day <= 0 || day.day > kDayMax || day.count == 0 || day.count > uint64_t{INT64_MAX}) {
    return refuse("there is no such day");
  }
  if (!ledger_day_is_genuine(day, known.receipt_key)) return refuse("its signature is false");
  const bool again = days.last && days.last->day == day.day;
  if (again && !(*days.last == day)) return refuse("it was told otherwise before");
  if (!again && days.last) {
    if (!days.whole || day.day < days.last->day) return refuse("it is not the day that follows");
    if (day.previous_root != days.last->root) return refuse("it does not follow the day before it");
  }
  if (proofs.empty() && more) return refuse("its proofs do not come");

  Result<void> done = database->durable_transaction([&]() -> Result<void> {
    if (!again) {
      SHOAL_TRY(database
                    ->query("INSERT INTO ledger_day (coordinator_id, day, receipts, root, "
                            "previous_root, signature, whole) VALUES (?, ?, ?, ?, ?, ?, 0)")
                    .bind(known.id)
                    .bind(day.day)
                    .bind(static_cast<int64_t>(day.count))
                    .bind(ByteSpan(day.root.bytes))
                    .bind(ByteSpan(day.previous_root.bytes))
                    .bind(ByteSpan(day.signature))
                    .run());
    }
    for (const ReceiptProof& proof : proofs) {
      if (proof.number != days.proved + 1) return refuse("its proofs leave receipts out");
      days.proved = proof.number;
      // One that is folded cannot be looked at any more.
      if (proof.number <= known.folded.through) continue;
      SHOAL_TRY_ASSIGN(receipts, receipts_of(pin, proof.number - 1, 1));
      if (receipts.empty() || receipts[0].number != proof.number) {
        return Error{ErrorCode::kUnavailable,
                     "receipt " + std::to_string(proof.number) + " has not come yet"};
      }
      if (!receipt_is_in(day, receipts[0], proof)) {
        return refuse("receipt " + std::to_string(proof.number) + " is not in it");
      }
      SHOAL_TRY(database
                    ->query("INSERT INTO receipt_proof (coordinator_id, number, day, place, path) "
                            "VALUES (?, ?, ?, ?, ?)")
                    .bind(known.id)
                    .bind(static_cast<int64_t>(proof.number))
                    .bind(day.day)
                    .bind(static_cast<int64_t>(proof.place))
                    .bind(ByteSpan(path_bytes(proof.path)))
                    .run());
    }
    if (more) return {};
    return database->query("UPDATE ledger_day SET whole = 1 WHERE coordinator_id = ? AND day = ?")
        .bind(known.id)
        .bind(day.day)
        .run();
  });
  if (!done.ok()) {
    if (done.error().code != ErrorCode::kInvalid && done.error().code != ErrorCode::kUnavailable)
      state_->note_error(done.error());
    return done;
  }
  days.last = day;
  days.whole = !more;
  state_->coordinators.at(pin).days = std::move(days);
  state_->day_problems.erase(pin);
  return {};
}

std::string Records::day_problem(const std::string& pin) const {
  const auto found = state_->day_problems.find(pin);
  return found == state_->day_problems.end() ? "" : found->second;
}

Result<std::vector<Records::StoredDay>> Records::days_of(const std::string& pin) {
  SHOAL_TRY_ASSIGN(database, state_->readable());
  std::vector<StoredDay> days;
  const auto found = state_->coordinators.find(pin);
  if (found == state_->coordinators.end()) return days;
  Query query = database->query(
      "SELECT day, receipts, root, previous_root, signature, whole FROM ledger_day "
      "WHERE coordinator_id = ? ORDER BY day");
  query.bind(found->second.id);
  while (true) {
    SHOAL_TRY_ASSIGN(more, query.row());
    if (!more) return days;
    days.push_back(day_in(query));
  }
}

Result<std::optional<Records::StoredProof>> Records::proof_of(const std::string& pin,
                                                              uint64_t number) {
  SHOAL_TRY_ASSIGN(database, state_->readable());
  const auto found = state_->coordinators.find(pin);
  if (found == state_->coordinators.end()) return std::optional<StoredProof>();
  Query query = database->query(
      "SELECT day, place, path FROM receipt_proof WHERE coordinator_id = ? AND number = ?");
  query.bind(found->second.id).bind(static_cast<int64_t>(number));
  SHOAL_TRY_ASSIGN(some, query.row());
  if (!some) return std::optional<StoredProof>();
  // What is no path proves nothing.
  Result<std::vector<Digest>> path = path_of_bytes(query.blob(2));
  StoredProof proof;
  proof.day = query.integer(0);
  proof.proof.number = number;
  proof.proof.place = path.ok() ? static_cast<uint64_t>(query.integer(1)) : UINT64_MAX;
  if (path.ok()) proof.proof.path = std::move(path).value();
  return std::optional<StoredProof>(std::move(proof));
}

}  // namespace shoal::client
