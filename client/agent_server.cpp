#include "client/agent_server.h"

#include <capnp/message.h>

#include <algorithm>

#include "client/agent_wire.h"
#include "client/bundle.h"
#include "client/device_wire.h"
#include "client/records/levels.h"
#include "client/rules/what_if.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr uint32_t kRowsMax = 5'000;           // Of any answer.
constexpr Millis kWhatIfPiece{3 * 3'600'000};  // What is replayed at a stroke.
// What a guest may not change: which programs run here, where files go, who may come in.
constexpr std::string_view kOwnersSettings[] = {"worker.program",        "sensors.program",
                                                "remote.listen",         "network.direct",
                                                "network.direct_listen", "cache.folder"};

std::string id_of(capnp::Text::Reader text) {
  return rpc::text_of(text, limits::kNameBytesMax, "deviceId");
}

Millis within(int64_t wall_ms) {
  // Nobody asks for times beyond these, and sums of them fit.
  constexpr int64_t kMost = int64_t{1} << 52;
  return Millis{std::clamp<int64_t>(wall_ms, 0, kMost)};
}

// One entry of the list for each value; `write` translates.
template <class List, class Values, class Write>
void write_all(List list, const Values& values, Write write) {
  for (uint32_t i = 0; i < list.size(); ++i) write(values[i], list[i]);
}

template <class Values>
uint32_t size_of(const Values& values) {
  return static_cast<uint32_t>(values.size());
}

rpc::Task<std::vector<ReceiptReport>> check_receipts(Agent& agent) {
  std::map<std::string, StatedCredit> stated;
  for (const auto& [pin, standing] : agent.standings()) {
    stated[pin] = {standing.newest_receipt, standing.confirmed};
  }
  ReceiptCheck check(agent.parts().records, std::move(stated));
  while (!rpc::require(check.step())) {
    co_await agent.parts().loop.timer.afterDelay(0 * kj::NANOSECONDS);
  }
  co_return check.reports();
}

// In pieces, with other work in between.
rpc::Task<WhatIfTimes> replay(Agent& agent, Settings changed, Millis length) {
  const AgentParts& parts = agent.parts();
  WhatIf question(parts.settings.now(), std::move(changed));
  const Millis now = parts.clock.now_wall();
  for (Millis from = now - length; from < now; from += kWhatIfPiece) {
    const std::vector<WatchedSpan> watched =
        rpc::require(parts.records.conditions(from, std::min(from + kWhatIfPiece, now)));
    question.add(watched);
    co_await parts.loop.timer.afterDelay(0 * kj::NANOSECONDS);
  }
  co_return question.times();
}

}  // namespace

void AgentServer::require_owner() const {
  if (asker_ == Asker::kOwner) return;
  rpc::throw_error({ErrorCode::kDenied, "that can be done on the computer itself only"});
}

kj::Promise<void> AgentServer::snapshot(SnapshotContext context) {
  context.allowCancellation();
  return agent_.changed_after(context.getParams().getAfterRevision())
      .then([this, context]() mutable {
        agent_.write_snapshot(context.getResults().initSnapshot());
      });
}

kj::Promise<void> AgentServer::benchmark(BenchmarkContext context) {
  context.allowCancellation();
  return agent_.measure(id_of(context.getParams().getDeviceId()))
      .promise()
      .then([context](Measurement measured) mutable {
        write_benchmark(measured.benchmark, context.getResults().initReport());
        write_self_test(measured.self_test, context.getResults().initSelfTest());
      });
}

kj::Promise<void> AgentServer::stop(StopContext) {
  require_owner();
  agent_.request_stop();
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::attach(AttachContext context) {
  context.allowCancellation();
  const auto params = context.getParams();
  rpc::require_at_most(params.getDenied().size(), limits::kJobClassesMax, "denied");
  std::vector<JobClass> denied;
  for (const auto one : params.getDenied()) denied.push_back(read_job_class(one));
  kj::Promise<uint32_t> attaching =
      agent_.attach(rpc::text_of(params.getUrl(), limits::kUrlBytesMax, "url"), std::move(denied));
  return attaching.then([this, context](uint32_t index) mutable {
    capnp::MallocMessageBuilder message;
    auto snapshot = message.initRoot<rpc::Snapshot>();
    agent_.write_snapshot(snapshot);
    context.getResults().setConnection(snapshot.asReader().getConnections()[index]);
  });
}

kj::Promise<void> AgentServer::detach(DetachContext context) {
  context.allowCancellation();
  return agent_.detach(rpc::text_of(context.getParams().getUrl(), limits::kUrlBytesMax, "url"))
      .promise()
      .then([context](int count) mutable {
        context.getResults().setCount(static_cast<uint32_t>(count));
      });
}

kj::Promise<void> AgentServer::previewAttach(PreviewAttachContext context) {
  context.allowCancellation();
  return agent_.preview(rpc::text_of(context.getParams().getUrl(), limits::kUrlBytesMax, "url"))
      .promise()
      .then([context](CoordinatorCard card) mutable {
        write_card(card, context.getResults().initCard());
      });
}

kj::Promise<void> AgentServer::setMode(SetModeContext context) {
  const auto params = context.getParams();
  const auto for_ms = static_cast<int64_t>(
      std::min<uint64_t>(params.getForMs(), uint64_t{std::numeric_limits<int64_t>::max()}));
  rpc::require(agent_.set_mode(read_resource(params.getResource()), read_mode(params.getMode()),
                               Millis{for_ms}));
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::resume(ResumeContext context) {
  rpc::require(agent_.resume(read_resource(context.getParams().getResource())));
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::setLeaveBy(SetLeaveByContext context) {
  const Millis at = within(context.getParams().getAtMs());
  rpc::require(agent_.set_leave_by(at.count == 0 ? std::nullopt : std::optional<Millis>(at)));
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::settings(SettingsContext context) {
  const Settings& settings = agent_.parts().settings.now();
  auto list = context.getResults().initSettings(size_of(settings.table()));
  for (uint32_t i = 0; i < list.size(); ++i) {
    const SettingSpec& spec = settings.table()[i];
    write_setting(spec, settings.value(spec.key), list[i]);
  }
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::changeSettings(ChangeSettingsContext context) {
  const std::vector<SettingChange> changes = read_changes(context.getParams().getChanges());
  for (const SettingChange& change : changes) {
    if (std::ranges::find(kOwnersSettings, change.key) != std::end(kOwnersSettings)) {
      require_owner();
    }
  }
  rpc::require(agent_.change_settings(changes));
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::trace(TraceContext context) {
  const auto params = context.getParams();
  const auto spans = rpc::require(
      agent_.parts().records.trace(within(params.getFromMs()), within(params.getToMs()), kRowsMax));
  write_all(context.getResults().initSpans(size_of(spans)), spans, write_span);
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::whatIf(WhatIfContext context) {
  context.allowCancellation();
  const auto params = context.getParams();
  const uint32_t days = params.getDays();
  if (days < 1 || days > kConditionDays) {
    rpc::throw_error({ErrorCode::kInvalid,
                      "what the rules look at is kept for " + std::to_string(kConditionDays) +
                          " days: ask for 1 to " + std::to_string(kConditionDays) + " days"});
  }
  Settings changed = rpc::require(agent_.parts().settings.with(read_changes(params.getChanges())));
  return replay(agent_, std::move(changed), Millis{kDay.count * days})
      .promise()
      .then([context](WhatIfTimes times) mutable {
        auto list = context.getResults().initResources(kResourceCount);
        for (uint32_t i = 0; i < list.size(); ++i) {
          list[i].setResource(wire_resource(static_cast<Resource>(i)));
          list[i].setKnownMs(static_cast<uint64_t>(times.resources[i].known.count));
          list[i].setAllowedMs(static_cast<uint64_t>(times.resources[i].allowed.count));
          list[i].setWouldBeMs(static_cast<uint64_t>(times.resources[i].would_be.count));
        }
      });
}

kj::Promise<void> AgentServer::statistics(StatisticsContext context) {
  const auto params = context.getParams();
  const auto rows = rpc::require(agent_.parts().records.statistics(
      within(params.getFromMs()), within(params.getToMs()), within(params.getStepMs())));
  write_all(context.getResults().initRows(size_of(rows)), rows, write_row);
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::history(HistoryContext context) {
  const auto work = rpc::require(
      agent_.parts().records.history(std::min(context.getParams().getCountMax(), kRowsMax)));
  write_all(context.getResults().initWork(size_of(work)), work, write_work);
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::receipts(ReceiptsContext context) {
  const auto params = context.getParams();
  const auto receipts = rpc::require(agent_.parts().records.receipts(
      params.getAfterRow(), std::min(params.getCountMax(), kRowsMax)));
  write_all(context.getResults().initReceipts(size_of(receipts)), receipts, write_stored_receipt);
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::verifyReceipts(VerifyReceiptsContext context) {
  context.allowCancellation();
  return check_receipts(agent_).promise().then(
      [context](std::vector<ReceiptReport> reports) mutable {
        write_all(context.getResults().initReport(size_of(reports)), reports, write_receipt_report);
      });
}

kj::Promise<void> AgentServer::setConsent(SetConsentContext context) {
  const auto params = context.getParams();
  rpc::require(agent_.set_consent(rpc::text_of(params.getUrl(), limits::kUrlBytesMax, "url"),
                                  read_job_class(params.getJobClass()), params.getAllowed()));
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::setDeviceLent(SetDeviceLentContext context) {
  const auto params = context.getParams();
  rpc::require(agent_.set_device_lent(id_of(params.getDeviceId()), params.getLent()));
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::log(LogContext context) {
  const auto params = context.getParams();
  const auto lines =
      agent_.parts().log.after(params.getAfterId(), std::min(params.getCountMax(), kRowsMax));
  write_all(context.getResults().initLines(size_of(lines)), lines, write_log_line);
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::bundle(BundleContext context) {
  context.allowCancellation();
  return make_bundle(agent_).promise().then(
      [context](std::string text) mutable { context.getResults().setText(text); });
}

kj::Promise<void> AgentServer::testSensor(TestSensorContext context) {
  context.allowCancellation();
  return agent_.parts()
      .sensors.test(rpc::text_of(context.getParams().getName(), limits::kNameBytesMax, "name"))
      .then([this, context](SensorStatus sensor) mutable {
        write_sensor(sensor, agent_.parts().clock.now_monotonic(),
                     context.getResults().initSensor());
      });
}

kj::Promise<void> AgentServer::pair(PairContext context) {
  require_owner();
  const Pairer::Invitation invitation = rpc::require(pairer_.invite());
  context.getResults().setUrl(invitation.url);
  context.getResults().setExpiresMs(invitation.expires.count);
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::pairings(PairingsContext context) {
  require_owner();
  const std::vector<Pairing>& pairings = agent_.parts().state.memory().pairings;
  auto list = context.getResults().initPairings(size_of(pairings));
  for (uint32_t i = 0; i < list.size(); ++i) {
    list[i].setId(pairings[i].id);
    list[i].setName(pairings[i].name);
    list[i].setPairedMs(pairings[i].paired_at.count);
    list[i].setLastUsedMs(pairings[i].last_used.count);
  }
  return kj::READY_NOW;
}

kj::Promise<void> AgentServer::unpair(UnpairContext context) {
  require_owner();
  rpc::require(pairer_.unpair(context.getParams().getId()));
  return kj::READY_NOW;
}

}  // namespace shoal::client
