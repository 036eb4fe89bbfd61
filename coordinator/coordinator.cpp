#include "coordinator/coordinator.h"

#include "base/log.h"
#include "coordinator/rpc/admin_server.h"
#include "coordinator/rpc/coordinator_server.h"
#include "coordinator/rpc/model_upload.h"
#include "coordinator/rpc/parts.h"

namespace shoal {
namespace {

constexpr kj::Duration kDrainTick = 20 * kj::MILLISECONDS;
constexpr kj::Duration kDaysTick = 60 * kj::SECONDS;

// Files that an upload left behind when the process ended before the model was stored.
Result<void> remove_strays(Parts& parts) {
  SHOAL_TRY_ASSIGN(digests, parts.shards.list());
  for (const Digest& digest : digests) {
    SHOAL_TRY_ASSIGN(known, parts.models.has_shard(digest));
    if (known) continue;
    log_warning("coordinator", "stray_shard_removed", {{"digest", digest.hex()}});
    SHOAL_TRY(parts.shards.remove(digest));
  }
  return {};
}

JobNeeds job_needs(Parts& parts) {
  const CoordinatorSettings& settings = parts.folder.settings;
  return {*parts.folder.store,
          parts.timer,
          parts.clock,
          parts.random,
          parts.pool,
          parts.hosts,
          parts.sessions,
          parts.ledger,
          parts.journal,
          parts.needs.stopping,
          settings.jobs,
          settings.session.rows_max,
          parts.folder.path / "jobs",
          [&parts](const std::string& name) { return use_model(parts, name); }};
}

}  // namespace

Coordinator::Coordinator(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)), days_(keep_days().eagerlyEvaluate(nullptr)) {}

Coordinator::~Coordinator() noexcept(false) {
  parts_->auditor.stop();
  parts_->jobs = nullptr;  // It stores what is decided.
  parts_->journal.tell_left_out();
  parts_->journal.note("coordinator_stopped", "in order");
}

Result<std::unique_ptr<Coordinator>> Coordinator::open(DataFolder folder, kj::Timer& timer,
                                                       const Clock& clock, Random& random) {
  SHOAL_TRY_ASSIGN(shards, ShardStore::open(folder.path / "shards", std::move(folder.master)));
  auto parts = std::make_unique<Parts>(std::move(folder), std::move(shards), timer, clock, random);
  SHOAL_TRY(remove_strays(*parts));
  SHOAL_TRY(parts->ledger.settle_former_run());
  SHOAL_TRY_ASSIGN(unfinished,
                   parts->sessions.fail_unfinished(clock.now_wall(), "coordinator restarted"));
  parts->journal.note("coordinator_started",
                      unfinished == 0
                          ? "in order"
                          : std::to_string(unfinished) + " sessions of a former run failed");
  SHOAL_TRY_ASSIGN(jobs, JobService::open(job_needs(*parts)));
  parts->jobs = std::move(jobs);
  parts->auditor.begin(*parts->jobs);
  return std::make_unique<Coordinator>(std::move(parts));
}

capnp::Capability::Client Coordinator::host_door(rpc::Peer peer) {
  return make_coordinator_server(*parts_, kj::mv(peer));
}
capnp::Capability::Client Coordinator::admin_door() { return make_admin_server(*parts_); }

void Coordinator::set_port(uint16_t port) { parts_->port = port; }
std::string Coordinator::attach_url(const std::string& invite) const {
  return attach_url_of(*parts_, invite);
}
const CoordinatorSettings& Coordinator::settings() const { return parts_->folder.settings; }
const rpc::Certificate& Coordinator::certificate() const { return parts_->folder.certificate; }

// Gives each day that is over its root: soon after its end, whatever clocks and disks do.
kj::Promise<void> Coordinator::keep_days() {
  const Result<bool> more = parts_->days.go_on();
  if (!more.ok()) log_error("coordinator", "ledger_day_not_made", {{"why", more.error()}});
  const kj::Duration wait = more.ok() && more.value() ? 1 * kj::MILLISECONDS : kDaysTick;
  return parts_->timer.afterDelay(wait).then([this] { return keep_days(); });
}

kj::Promise<void> Coordinator::drain() {
  parts_->needs.stopping = true;
  return wait_for_end(parts_->timer.now() + parts_->folder.settings.drain.count * kj::MILLISECONDS);
}

kj::Promise<void> Coordinator::wait_for_end(kj::TimePoint until) {
  if (parts_->live.empty() || parts_->timer.now() >= until) return kj::READY_NOW;
  return parts_->timer.afterDelay(kDrainTick).then([this, until] { return wait_for_end(until); });
}

}  // namespace shoal
