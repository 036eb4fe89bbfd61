#include "client/agent_wire.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal::client {
namespace {

constexpr uint32_t kChangesMax = 1'000, kListMax = 1'000;
constexpr size_t kTextMax = 4'096;

std::string cut(const std::string& text, size_t bytes_max) {
  return std::string(cut_utf8(text, bytes_max));
}

void write_texts(const std::vector<std::string>& texts, capnp::List<capnp::Text>::Builder to) {
  for (uint32_t i = 0; i < to.size(); ++i) to.set(i, texts[i]);
}

}  // namespace

float known(const std::optional<double>& value) {
  return value ? static_cast<float>(*value) : std::numeric_limits<float>::quiet_NaN();
}

rpc::Resource wire_resource(Resource resource) { return static_cast<rpc::Resource>(resource); }
rpc::Mode wire_mode(Mode mode) { return static_cast<rpc::Mode>(mode); }
static_assert(static_cast<int>(rpc::Resource::NETWORK) == static_cast<int>(Resource::kNetwork));
static_assert(static_cast<int>(rpc::Mode::PAUSED) == static_cast<int>(Mode::kPaused));
static_assert(static_cast<int>(rpc::Mode::ALWAYS) == static_cast<int>(Mode::kAlways));
static_assert(static_cast<int>(rpc::Activity::OFFLINE) == static_cast<int>(Activity::kOffline));

Resource read_resource(rpc::Resource resource) {
  const auto index = static_cast<int>(resource);
  if (index < 0 || index >= kResourceCount) {
    rpc::throw_error({ErrorCode::kUnsupported, "this client does not know that resource"});
  }
  return static_cast<Resource>(index);
}

Mode read_mode(rpc::Mode mode) {
  const auto index = static_cast<int>(mode);
  if (index < 0 || index > static_cast<int>(Mode::kPaused)) {
    rpc::throw_error({ErrorCode::kUnsupported, "this client does not know that mode"});
  }
  return static_cast<Mode>(index);
}

void write_verdict(const Verdict& verdict, Millis since, rpc::Verdict::Builder to) {
  to.setActivity(static_cast<rpc::Activity>(verdict.activity));
  write_message(verdict.why, to.initWhy());
  write_message(verdict.remedy, to.initRemedy());
  to.setRule(verdict.rule);
  to.setSinceMs(since.count);
  to.setChangesAtMs(verdict.changes_at.value_or(Millis{0}).count);
}

void write_totals(const Sums& sums, rpc::Totals::Builder to) {
  to.setCreditConfirmed(sums.credit_confirmed());
  to.setCreditPending(sums.credit_pending());
  to.setCreditRejected(sums.credit_rejected());
  to.setRows(static_cast<uint64_t>(sums.rows));
  to.setWorkedMs(static_cast<uint64_t>(sums.worked_ms));
  to.setAllowedMs(static_cast<uint64_t>(sums.allowed_ms));
  to.setKilowattHours(sums.kilowatt_hours());
  to.setCost(sums.cost());
  to.setBytesDown(static_cast<uint64_t>(sums.bytes_down));
  to.setBytesUp(static_cast<uint64_t>(sums.bytes_up));
}

void write_sensor(const SensorStatus& sensor, Millis now, rpc::Sensor::Builder to) {
  to.setName(sensor.name);
  to.setBackend(cut(sensor.backend, limits::kNameBytesMax));
  write_message(sensor.value, to.initValue());
  to.setKnown(sensor.known);
  to.setProblem(cut(sensor.problem, limits::kReasonBytesMax));
  to.setAgeMs(sensor.at.count == 0
                  ? 0
                  : static_cast<uint64_t>(std::max<int64_t>((now - sensor.at).count, 0)));
  auto backends = to.initBackends(static_cast<uint32_t>(sensor.backends.size()));
  for (uint32_t i = 0; i < backends.size(); ++i) {
    const SensorStatus::Backend& backend = sensor.backends[i];
    backends[i].setName(cut(backend.name, limits::kNameBytesMax));
    backends[i].setUsable(backend.usable);
    backends[i].setProblem(cut(backend.problem, limits::kReasonBytesMax));
    write_message(backend.value, backends[i].initValue());
  }
}

void write_setting_value(const SettingValue& value, rpc::SettingValue::Builder to) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    to.setFlag(*flag);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    to.setInteger(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    to.setReal(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    to.setText(*text);
  } else {
    const auto& list = std::get<std::vector<std::string>>(value);
    write_texts(list, to.initList(static_cast<uint32_t>(list.size())));
  }
}

SettingValue read_setting_value(rpc::SettingValue::Reader from) {
  switch (from.which()) {
    case rpc::SettingValue::FLAG: return from.getFlag();
    case rpc::SettingValue::INTEGER: return from.getInteger();
    case rpc::SettingValue::REAL: return from.getReal();
    case rpc::SettingValue::TEXT: return rpc::text_of(from.getText(), kTextMax, "value.text");
    case rpc::SettingValue::LIST: {
      rpc::require_at_most(from.getList().size(), kListMax, "value.list");
      std::vector<std::string> list;
      for (const capnp::Text::Reader text : from.getList()) {
        list.push_back(rpc::text_of(text, kTextMax, "value.list"));
      }
      return list;
    }
  }
  rpc::throw_error({ErrorCode::kUnsupported, "a setting has no value of that kind"});
}

void write_setting(const SettingSpec& spec, const SettingValue& value, rpc::Setting::Builder to) {
  to.setKey(std::string(spec.key));
  to.setHelp(std::string(spec.help));
  write_setting_value(value, to.initValue());
  write_setting_value(spec.fallback, to.initFallback());
  to.setMinimum(spec.min);
  to.setMaximum(spec.max);
  auto choices = to.initChoices(static_cast<uint32_t>(spec.choices.size()));
  for (uint32_t i = 0; i < choices.size(); ++i) choices.set(i, std::string(spec.choices[i]));
  to.setNeedsRestart(LiveSettings::needs_restart(spec.key));
}

void write_span(const TraceSpan& span, rpc::TraceSpan::Builder to) {
  to.setResource(wire_resource(span.resource));
  write_verdict(span.verdict, span.start, to.initVerdict());
  to.setEndMs(span.end.value_or(Millis{0}).count);
}

void write_row(const StatisticsRow& row, rpc::StatisticsRow::Builder to) {
  to.setStartMs(row.start.count);
  to.setDeviceId(row.device);
  write_totals(row.sums, to.initTotals());
  to.setTemperatureMax(known(row.sums.temperature_max));
  to.setWattsMean(known(row.sums.watts_mean()));
}

void write_work(const PastWork& work, rpc::PastWork::Builder to) {
  to.setLeaseId(work.lease);
  to.setSessionId(work.session);
  to.setUnitId(work.unit);
  to.setCoordinator(work.coordinator);
  to.setDeviceId(work.device);
  write_job_class(work.job_class, to.initJobClass());
  to.setFirstFragment(work.first_fragment);
  to.setLastFragment(work.last_fragment);
  to.setStartedMs(work.started.count);
  to.setEndedMs(work.ended.count);
  to.setSteps(work.steps);
  to.setRows(work.rows);
  write_message(work.why, to.initEnded());
}

void write_stored_receipt(const StoredReceipt& receipt, rpc::StoredReceipt::Builder to) {
  to.setRow(receipt.row);
  to.setCoordinator(receipt.coordinator);
  write_receipt(receipt.receipt, to.initReceipt());
  to.setGenuine(receipt.genuine);
}

void write_receipt_report(const ReceiptReport& report, rpc::ReceiptReport::Builder to) {
  to.setCoordinator(report.coordinator);
  to.setCount(report.count);
  to.setGenuine(report.genuine);
  to.setMissing(report.missing);
  to.setCreditConfirmed(report.credit_confirmed);
  to.setCreditStated(report.credit_stated);
  to.setAgrees(report.agrees);
  to.setDays(static_cast<uint32_t>(std::min<uint64_t>(report.days, UINT32_MAX)));
  to.setInDays(report.in_days);
  to.setNewestDay(report.newest_day);
  write_message(report.why, to.initWhy());
}

void write_log_line(const LogLine& line, rpc::LogLine::Builder to) {
  static constexpr const char* kLevels[] = {"debug", "info", "warning", "error", "off"};
  to.setId(line.id);
  to.setAtMs(line.at.count);
  to.setLevel(kLevels[static_cast<size_t>(line.level)]);
  to.setModule(line.module);
  to.setEvent(line.event);
  to.setFields(line.fields);
}

std::vector<SettingChange> read_changes(capnp::List<rpc::SettingChange>::Reader from) {
  rpc::require_at_most(from.size(), kChangesMax, "changes");
  std::vector<SettingChange> changes;
  for (const auto in : from) {
    changes.push_back({rpc::text_of(in.getKey(), limits::kNameBytesMax, "key"),
                       read_setting_value(in.getValue())});
  }
  return changes;
}

}  // namespace shoal::client
