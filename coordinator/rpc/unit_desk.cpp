#include "coordinator/rpc/unit_desk.h"

#include <algorithm>

#include "base/text.h"
#include "coordinator/jobs/job_service.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal {
namespace {

constexpr uint32_t kSecondsMax = 7 * 86'400;

uint64_t millis(Millis time) { return static_cast<uint64_t>(std::max<int64_t>(time.count, 0)); }

class UnitDeskServer final : public rpc::UnitDesk::Server {
 public:
  UnitDeskServer(Parts& parts, HostId host, uint64_t login, SealedKeys& keys,
                 kj::Function<void()> check)
      : parts_(parts), host_(host), login_(login), keys_(keys), check_(kj::mv(check)) {}

  kj::Promise<void> lease(LeaseContext context) override {
    check_();
    const auto params = context.getParams();
    const std::string device =
        rpc::text_of(params.getDeviceId(), limits::kNameBytesMax, "device id");
    const uint32_t count = std::min(params.getCountMax(), limits::kUnitsAheadMax);
    const Millis wanted{int64_t{std::min(params.getSeconds(), kSecondsMax)} * 1000};
    const DevicePlace place{host_, login_, device};
    return parts_.jobs->lease(place, wanted, count, !handed_.contains(device))
        .then([this, place, context](LeaseReply&& reply) mutable {
          auto results = context.getResults();
          const PoolDevice* const known = parts_.pool.find(place);
          const bool has_worker = known != nullptr && known->worker_key.has_value();
          if (has_worker) handed_.insert(place.device);  // A call that failed told nothing.
          // A device that is no longer there gives back what it was about to get, as its leases
          // end.
          auto units = results.initUnits(has_worker ? static_cast<uint>(reply.units.size()) : 0);
          for (uint i = 0; i < units.size(); ++i) write_unit(reply.units[i], *known, units[i]);
          write_message(reply.why, results.initWhy());
          results.setAskAgainMs(
              static_cast<uint32_t>(std::min<uint64_t>(millis(reply.ask_again_in), UINT32_MAX)));
        });
  }

  kj::Promise<void> renew(RenewContext context) override {
    check_();
    const auto progress = context.getParams().getProgress();
    rpc::require_at_most(progress.size(), limits::kUnitsAheadMax * limits::kDevicesPerHostMax,
                         "progress");
    std::vector<LeaseId> leases;
    for (const auto each : progress) {
      leases.push_back(LeaseId{static_cast<int64_t>(each.getLeaseId())});
    }
    return parts_.jobs->renew({host_, login_, ""}, leases)
        .then([leases, context](RenewReply&& reply) mutable {
          auto results = context.getResults();
          const auto over = std::ranges::count(reply.until_in, Millis{0});
          auto ended = results.initEnded(static_cast<uint>(over));
          auto until = results.initUntilMs(static_cast<uint>(reply.until_in.size()));
          uint next = 0;
          for (uint i = 0; i < until.size(); ++i) {
            until.set(i, millis(reply.until_in[i]));
            if (reply.until_in[i].count == 0)
              ended.set(next++, static_cast<uint64_t>(leases[i].value));
          }
        });
  }

  kj::Promise<void> giveBack(GiveBackContext context) override {
    check_();
    const auto params = context.getParams();
    const std::string text = rpc::text_of(params.getText(), limits::kReasonBytesMax, "text");
    const LeaseId lease{static_cast<int64_t>(params.getLeaseId())};
    const rpc::UnitDesk::GiveBack reason = params.getReason();
    const bool is_failure =
        reason == rpc::UnitDesk::GiveBack::FAILED || reason == rpc::UnitDesk::GiveBack::REFUSED;
    if (is_failure) {
      parts_.journal.note_of_host("unit_failed",
                                  "lease " + std::to_string(lease.value) + ": " +
                                      (text.empty() ? "no reason given" : printable(text)),
                                  host_);
    }
    return parts_.jobs->give_back(host_, lease, is_failure);
  }

  kj::Promise<void> submit(SubmitContext context) override {
    check_();
    const auto params = context.getParams();
    const LeaseId lease{static_cast<int64_t>(params.getLeaseId())};
    rpc::require_at_most(params.getOutput().getItems().size(), limits::kItemsPerUnitMax, "items");
    kj::Promise<SubmitReply> submitted = parts_.jobs->submit(host_, lease, params.getOutput());
    context.releaseParams();
    return submitted.then([context](SubmitReply&& reply) mutable {
      auto results = context.getResults();
      results.setOutcome(reply.outcome);
      write_message(reply.why, results.initWhy());
    });
  }

 private:
  void write_unit(const LentUnit& lent, const PoolDevice& device, rpc::Unit::Builder out) {
    const LiveTask& task = *lent.task;
    out.setId(static_cast<uint64_t>(lent.grant.unit.value));
    out.setLeaseId(static_cast<uint64_t>(lent.grant.lease.value));
    out.setJobId(static_cast<uint64_t>(task.job.value));
    out.setUntilMs(millis(lent.until_in));
    out.setEstimateMs(millis(lent.grant.expected));
    write_job_class(task.job_class, out.initJobClass());
    auto spec = out.initSpec();
    const std::vector<ByteVector>& keys = keys_.of(*task.model, *device.worker_key);
    auto shards = spec.initShards(static_cast<uint>(keys.size()));
    for (uint i = 0; i < shards.size(); ++i) {
      const ShardRow& shard = task.model->shards[i];
      shards[i].setDigest(rpc::kj_bytes(shard.digest.bytes));
      shards[i].setSealedBytes(static_cast<uint64_t>(shard.sealed_bytes));
      shards[i].setSealedKey(rpc::kj_bytes(keys[i]));
    }
    spec.setContext(static_cast<uint32_t>(task.context));
    spec.setSequences(static_cast<uint32_t>(lent.sequences));
    spec.setRowsMax(static_cast<uint32_t>(lent.rows_max));
    out.setFlops(static_cast<double>(task.flops_per_item.count) *
                 static_cast<double>(lent.grant.items));
    switch (task.spec.kind) {
      case TaskKind::kGenerate: out.getKind().setGenerate(); break;
      case TaskKind::kScore: out.getKind().setScore(); break;
      case TaskKind::kEmbed: out.getKind().setEmbed(); break;
    }
    auto items = out.initItems(static_cast<uint>(lent.items.size()));
    for (uint i = 0; i < items.size(); ++i) write_item(lent.items[i], task, items[i]);
  }

  static void write_item(const WorkItem& item, const LiveTask& task, rpc::Item::Builder out) {
    auto tokens = out.initTokens(static_cast<uint>(item.tokens.size()));
    for (uint i = 0; i < tokens.size(); ++i) tokens.set(i, item.tokens[i]);
    out.setScoreFrom(item.score_from);
    if (task.spec.kind != TaskKind::kGenerate) return;
    out.setTokensMax(item.tokens_max);
    auto sampling = out.initSampling();
    sampling.setTemperature(item.sampling.temperature);
    sampling.setTopK(item.sampling.top_k);
    sampling.setTopP(item.sampling.top_p);
    sampling.setMinP(item.sampling.min_p);
    sampling.setRepetitionPenalty(item.sampling.repetition_penalty);
    sampling.setSeed(item.sampling.seed);
    auto stop = out.initStop(static_cast<uint>(task.stop.size()));
    for (uint i = 0; i < stop.size(); ++i) stop.set(i, task.stop[i]);
  }

  Parts& parts_;
  const HostId host_;
  const uint64_t login_;
  SealedKeys& keys_;
  kj::Function<void()> check_;
  std::set<std::string> handed_;  // Devices of the host that asked this desk before.
};

}  // namespace

const std::vector<ByteVector>& SealedKeys::of(const LiveModel& model, const BoxPublicKey& worker) {
  const std::pair key(worker.bytes, model.id);
  const auto known = keys_.find(key);
  if (known != keys_.end()) return known->second;
  std::vector<ByteVector> sealed;
  for (const ShardRow& shard : model.shards) {
    sealed.push_back(rpc::require(shards_.seal_key_for(worker, shard)));
  }
  if (keys_.size() >= kKeptMax) keys_.clear();
  return keys_[key] = std::move(sealed);
}

rpc::UnitDesk::Client make_unit_desk(Parts& parts, HostId host, uint64_t login, SealedKeys& keys,
                                     kj::Function<void()> check) {
  return kj::heap<UnitDeskServer>(parts, host, login, keys, kj::mv(check));
}

}  // namespace shoal
