#include "coordinator/settings.h"

#include <algorithm>
#include <charconv>

#include "base/host.h"
#include "base/text.h"
#include "schema/limits.h"

namespace shoal {
namespace {

constexpr size_t kCreditUnitBytesMax = 16;

}  // namespace

std::span<const SettingSpec> coordinator_setting_table() {
  static const SettingSpec kTable[] = {
      {"name", std::string("Shoal"), "What volunteers see as this coordinator's name."},
      {"operator", std::string(),
       "Who runs this coordinator and what for, in a few sentences: volunteers read it before they "
       "join."},
      {"listen.host", std::string("0.0.0.0"), "The address to listen on for hosts."},
      {"listen.port", int64_t{7410}, "The port to listen on; 0 takes any free one.", 0, 65535},
      {"listen.public_host", std::string(),
       "The name or address that attach URLs carry, if hosts reach this machine by another one "
       "than\n"
       "it listens on."},
      {"credit.unit", std::string(),
       "What credit is paid in, such as EUR or points, in 16 bytes at most: volunteers and\n"
       "administrators then see what it is worth beside it. Empty: credit is worth nothing but\n"
       "itself."},
      {"credit.rate", 0.0, "How many of these units one credit (10^12 FLOP) is worth.", 0, 1e12},
      {"hosts.ping_interval_ms", int64_t{2000},
       "How often a host says that it is alive. Silent for three times as long, it is dropped.",
       100, 600'000},
      {"session.rows_max", int64_t{64}, "Tokens of a prompt that go through a stage in one step.",
       1, 1024},
      {"session.step_timeout_ms", int64_t{2000},
       "No step of a stage is given up sooner; then the stage moves to another device.", 100,
       600'000},
      {"session.step_timeout_factor", 8.0,
       "A step may take so many times what the same stage took before.", 1, 1000},
      {"session.first_step_timeout_ms", int64_t{10'000},
       "No step of a stage that has not been measured yet is given up sooner.", 100, 600'000},
      {"session.open_silence_ms", int64_t{30'000},
       "A device that opens a stage, and for so long neither fetches a shard nor answers, is given "
       "up.",
       100, 3'600'000},
      {"session.repair_wait_ms", int64_t{20'000},
       "How long a session waits for a device to appear when none can take a lost stage.", 0,
       3'600'000},
      {"session.device_rest_ms", int64_t{2000},
       "How long a device that failed a session is left alone before the same session tries it "
       "again.",
       0, 600'000},
      {"session.device_failures_max", int64_t{5},
       "After so many failures a session does not try a device again.", 1, 1000},
      {"session.kept_memory_bytes_max", int64_t{64} << 20,
       "A session keeps what went into its stages, to replay it when a device is lost: so much in\n"
       "memory, the rest in files.",
       0, 1e15},
      {"session.standbys_max", int64_t{0},
       "Stages of sessions that another device holds loaded, where one is free, so that it can "
       "take\n"
       "over within a moment. 0: none is.",
       0, 100'000},
      {"session.audits_max", int64_t{0},
       "Stages of sessions that are run again by another host at a time, to find who answers\n"
       "wrongly. How often is as for units. 0: none ever is.",
       0, 1000},
      {"session.direct", true,
       "Hosts of a session whose owners allow it pass what is between their stages on to each "
       "other\n"
       "directly, where they can; they learn each other's addresses. Not while streams are "
       "followed\n"
       "by standbys, nor where audits_max is set and a host of the session is not trusted."},
      {"session.live_max", int64_t{64}, "Sessions at a time.", 1, 100'000},
      {"jobs.unit_ms", int64_t{600'000},
       "A unit is cut so that its device needs about so long, unless its job says otherwise.", 100,
       86'400'000},
      {"jobs.unit_ms_max", int64_t{1'200'000},
       "No device is given a unit, cut for another one, that takes it longer.", 100, 604'800'000},
      {"jobs.lease_slack_ms", int64_t{300'000},
       "A lease lasts three times what its unit is expected to take, and so much longer.", 100,
       86'400'000},
      {"jobs.gone_grace_ms", int64_t{600'000},
       "A device that went away has so long to come back before its units are handed out again.",
       100, 86'400'000},
      {"jobs.gather_ms", int64_t{120'000},
       "After a start no result is checked before hosts had so long to come back.", 0, 3'600'000},
      {"jobs.ask_again_ms_min", int64_t{10'000},
       "How soon a device without work asks again, at least.", 10, 3'600'000},
      {"jobs.ask_again_ms_max", int64_t{600'000}, "And at most.", 10, 86'400'000},
      {"jobs.claim_ms", int64_t{1'800'000},
       "A device that shall check a result and asks for no work so long loses that to another one.",
       100, 86'400'000},
      {"jobs.pending_ms_max", int64_t{86'400'000},
       "A host whose oldest result waits so long for a check is checked.", 100, 2'592'000'000},
      {"jobs.quarantine_ms", int64_t{86'400'000},
       "How long a host whose result was wrong gets no units; twice as long at each further one.",
       100, 2'592'000'000},
      {"jobs.audit_floor", 0.02,
       "At least this part of a proven host's results is computed by another host too.", 0, 1},
      {"jobs.newcomer_units", int64_t{10},
       "All results of a host are checked until so many in a row were right.", 0, 100'000},
      {"jobs.poison_hosts", int64_t{3},
       "A unit that fails on the hosts of so many owners is put aside.", 1, 100},
      {"jobs.sequences_max", int64_t{16}, "Items that a device works on side by side.", 1, 1024},
      {"stop.drain_ms", int64_t{10'000},
       "How long a coordinator that is told to stop lets sessions finish.", 0, 3'600'000},
  };
  return kTable;
}

CoordinatorSettings coordinator_settings(const Settings& settings) {
  CoordinatorSettings out;
  out.name = settings.text("name");
  out.operator_text = settings.text("operator");
  out.listen_host = settings.text("listen.host");
  out.listen_port = static_cast<uint16_t>(settings.integer("listen.port"));
  out.public_host = settings.text("listen.public_host");
  out.credit_rate = settings.real("credit.rate");
  out.credit_unit = printable(cut_utf8(settings.text("credit.unit"), kCreditUnitBytesMax));
  out.ping_interval = Millis{settings.integer("hosts.ping_interval_ms")};
  out.drain = Millis{settings.integer("stop.drain_ms")};
  SessionOptions& session = out.session;
  session.rows_max = settings.integer("session.rows_max");
  session.step.least = Millis{settings.integer("session.step_timeout_ms")};
  session.step.factor = settings.real("session.step_timeout_factor");
  session.step.first = Millis{settings.integer("session.first_step_timeout_ms")};
  session.open_silence = Millis{settings.integer("session.open_silence_ms")};
  session.repair_wait = Millis{settings.integer("session.repair_wait_ms")};
  session.device_rest = Millis{settings.integer("session.device_rest_ms")};
  session.device_failures_max = settings.integer("session.device_failures_max");
  session.kept_memory_max = settings.integer("session.kept_memory_bytes_max");
  session.standbys_max = settings.integer("session.standbys_max");
  session.audits_max = settings.integer("session.audits_max");
  session.live_max = settings.integer("session.live_max");
  session.direct = settings.flag("session.direct");
  BrokerRules& rules = out.jobs.rules;
  rules.unit_target = Millis{settings.integer("jobs.unit_ms")};
  rules.unit_max = Millis{settings.integer("jobs.unit_ms_max")};
  rules.lease_slack = Millis{settings.integer("jobs.lease_slack_ms")};
  rules.gone_grace = Millis{settings.integer("jobs.gone_grace_ms")};
  rules.gather = Millis{settings.integer("jobs.gather_ms")};
  rules.ask_again_min = Millis{settings.integer("jobs.ask_again_ms_min")};
  rules.ask_again_max =
      std::max(rules.ask_again_min, Millis{settings.integer("jobs.ask_again_ms_max")});
  rules.claim_max = Millis{settings.integer("jobs.claim_ms")};
  rules.pending_max = Millis{settings.integer("jobs.pending_ms_max")};
  rules.quarantine = Millis{settings.integer("jobs.quarantine_ms")};
  rules.quarantine_max = std::max(rules.quarantine, rules.quarantine_max);
  rules.audit_floor = settings.real("jobs.audit_floor");
  rules.newcomer_units = static_cast<int>(settings.integer("jobs.newcomer_units"));
  rules.poison_hosts = static_cast<int>(settings.integer("jobs.poison_hosts"));
  rules.unit_items_max = limits::kItemsPerUnitMax;
  out.jobs.sequences_max = settings.integer("jobs.sequences_max");
  return out;
}

Result<CoordinatorSettings> load_coordinator_settings(const std::filesystem::path& folder) {
  SHOAL_TRY_ASSIGN(settings,
                   Settings::load(coordinator_setting_table(), folder / "coordinator.toml"));
  return coordinator_settings(settings);
}

Result<void> set_listen(CoordinatorSettings& settings, std::string_view text) {
  const Error wrong{ErrorCode::kInvalid,
                    "--listen " + std::string(text) + " is not HOST:PORT, such as 0.0.0.0:7410"};
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  uint16_t number = 0;
  const auto read = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || port.empty() || read.ec != std::errc() ||
      read.ptr != port.data() + port.size()) {
    return wrong;
  }
  settings.listen_host = host;
  settings.listen_port = number;
  return {};
}

std::string attach_host(const CoordinatorSettings& settings) {
  if (!settings.public_host.empty()) return settings.public_host;
  const std::string& host = settings.listen_host;
  return host == "0.0.0.0" || host == "::" || host == "*" ? host_name() : host;
}

}  // namespace shoal
