#include "coordinator/session/session_ends.h"

#include "base/log.h"

namespace shoal {
namespace {

constexpr kj::Duration kRetry = 2 * kj::SECONDS;

}  // namespace

SessionEnds::~SessionEnds() {
  trying_ = nullptr;
  for (const SessionEnd& end : waiting_) {
    const Result<void> stored = try_to_store(end);
    if (!stored.ok())
      log_error("session", "end_lost", {{"session", end.row.id}, {"why", stored.error()}});
  }
}

Result<void> SessionEnds::store(const EndedLease& lease) {
  return table_.transaction([&]() -> Result<void> {
    if (lease.stage_row != 0) {
      SHOAL_TRY(table_.lose_stage(lease.stage_row, lease.at, lease.cause));
    }
    if (lease.has_worth) SHOAL_TRY(ledger_.lease_ended(lease.work, lease.judgement));
    return table_.end_lease(lease.work.lease, lease.at);
  });
}

void SessionEnds::store(SessionEnd end) {
  const Result<void> stored = try_to_store(end);
  if (stored.ok()) return;
  log_error("session", "end_not_stored", {{"session", end.row.id}, {"why", stored.error()}});
  waiting_.push_back(std::move(end));
  if (waiting_.size() == 1) trying_ = keep_trying().eagerlyEvaluate(nullptr);
}

Result<void> SessionEnds::try_to_store(const SessionEnd& end) {
  SHOAL_TRY(table_.transaction([&]() -> Result<void> {
    for (const EndedLease& lease : end.leases) SHOAL_TRY(store(lease));
    SHOAL_TRY(ledger_.settle(end.row.id, end.distrusted, end.checked_later));
    if (end.figures.block_rows > 0) SHOAL_TRY(table_.set_figures(end.row.id, end.figures));
    return table_.update(end.row);
  }));
  journal_.note("session_ended", end.event, {}, end.row.id);
  return {};
}

kj::Promise<void> SessionEnds::keep_trying() {
  return timer_.afterDelay(kRetry).then([this]() -> kj::Promise<void> {
    while (!waiting_.empty() && try_to_store(waiting_.front()).ok()) waiting_.pop_front();
    if (waiting_.empty()) return kj::READY_NOW;
    return keep_trying();
  });
}

}  // namespace shoal
