// status: what the client does now, why, and what would change it.

#include "base/host.h"
#include "base/text.h"
#include "client/commands/commands.h"
#include "client/commands/wire_json.h"
#include "client/commands/words.h"

namespace shoal::client {
namespace {

// The snapshot as it is, with the parts of each device on one level.
Json status_json(rpc::Snapshot::Reader snapshot) {
  Json json = json_of(capnp::toDynamic(snapshot));
  for (Json& device : json["devices"]) {
    Json flat = device["report"]["info"];
    Json report = device["report"];
    report.erase("info");
    device.erase("report");
    flat.update(report);
    flat.update(device);
    device = std::move(flat);
  }
  return json;
}

std::string with_unit(double value, const char* unit) {
  const std::string text = rounded(value, 0);
  return text == "-" ? text : text + unit;
}

std::string mode_text(rpc::Snapshot::ResourceState::Reader state) {
  std::string text = word_of(state.getMode());
  if (state.getModeEndsMs() != 0) text += " until " + time_text(state.getModeEndsMs());
  return text;
}

std::string connection_text(rpc::Snapshot::Connection::Reader connection) {
  std::string text = std::string(connection.getUrl().cStr()) + "  " + connection.getState().cStr();
  if (connection.getReason().size() > 0) text += ": " + std::string(connection.getReason().cStr());
  if (connection.getRetryInMs() > 0)
    text += ", next try in " + text_of(Millis{connection.getRetryInMs()});
  const auto standing = connection.getStanding();
  if (standing.getCreditConfirmed() > 0 || standing.getCreditPending() > 0) {
    text += "  (credit: " + rounded(standing.getCreditConfirmed(), kCreditDigits) + " confirmed, " +
            rounded(standing.getCreditPending(), kCreditDigits) + " pending";
    if (standing.getCreditUnit().size() > 0) {
      text += ", earned: " +
              rounded(standing.getCreditConfirmed() * standing.getCreditRate(), kMoneyDigits) +
              " " + standing.getCreditUnit().cStr();
    }
    text += ")";
  }
  for (const auto& [word, name] :
       {std::pair{"account", standing.getAccount()}, std::pair{"team", standing.getTeam()},
        std::pair{"group", standing.getGroup()}}) {
    if (name.size() > 0) text += "  " + (word + (" " + std::string(name.cStr())));
  }
  return printable(text) + "\n";
}

std::string today_text(rpc::Totals::Reader today) {
  return "today: " + rounded(today.getCreditConfirmed(), kCreditDigits) + " credit confirmed, " +
         rounded(today.getCreditPending(), kCreditDigits) + " pending; " +
         std::to_string(today.getRows()) + " rows; worked " +
         text_of(Millis{static_cast<int64_t>(today.getWorkedMs())}) + " of " +
         text_of(Millis{static_cast<int64_t>(today.getAllowedMs())}) + " allowed; " +
         rounded(today.getKilowattHours(), 2) + " kWh; " +
         text_of(Bytes{static_cast<int64_t>(today.getBytesDown())}) + " down, " +
         text_of(Bytes{static_cast<int64_t>(today.getBytesUp())}) + " up\n";
}

// What goes on although something is amiss, and what would mend that.
std::string notice_text(rpc::Message::Reader notice) {
  Message remedy = read_message(notice);
  std::string text = "note: " + english(remedy) + "\n";
  remedy.code += ".remedy";
  if (find_message(remedy.code) != nullptr) text += "  " + remedy_text(remedy) + "\n";
  return text;
}

// As people call it, and not by its id.
std::string device_name(rpc::Snapshot::Reader snapshot, capnp::Text::Reader id) {
  for (const auto device : snapshot.getDevices()) {
    const auto info = device.getReport().getInfo();
    if (info.getId() == id && info.getSelector().size() > 0) return info.getSelector().cStr();
  }
  return id.cStr();
}

// Stages of sessions that are open, and units of jobs that are held.
Table work_table(rpc::Snapshot::Reader snapshot) {
  Table table({{"work", "WORK"},
               {"device", "DEVICE"},
               {"kind", "KIND"},
               {"model", "MODEL"},
               {"state", "STATE"},
               {"items", "ITEMS DONE"},
               {"rows", "ROWS"},
               {"since_ms", "SINCE"},
               {"until_ms", "UNTIL"},
               {"coordinator", "COORDINATOR"}});
  for (const auto work : snapshot.getWork()) {
    const auto unit = work.getUnit();
    const bool is_unit = unit.getId() != 0;
    table.add(
        {is_unit ? "unit " + std::to_string(unit.getId())
                 : "stage " + std::to_string(work.getFirstFragment()) + "-" +
                       std::to_string(work.getLastFragment()),
         device_name(snapshot, work.getDeviceId()), work.getJobClass().getKind().cStr(),
         work.getJobClass().getModel().cStr(), work.getState().cStr(),
         is_unit ? std::to_string(unit.getItemsDone()) + " of " + std::to_string(unit.getItems())
                 : std::string(),
         std::to_string(work.getRows()), Cell{time_text(work.getSinceMs()), work.getSinceMs()},
         Cell{unit.getUntilMs() == 0 ? "" : time_text(unit.getUntilMs()), unit.getUntilMs()},
         work.getCoordinator().cStr()});
  }
  return table;
}

std::string status_text(rpc::Snapshot::Reader snapshot) {
  std::string out = "shoal-client " + printable(snapshot.getVersion().cStr()) + " on " +
                    printable(snapshot.getHostName().cStr()) + " (pid " +
                    std::to_string(snapshot.getPid()) + ")\n";
  const auto overall = snapshot.getOverall();
  const std::string why = sentence(overall.getWhy());
  if (!why.empty()) out += std::string(word_of(overall.getActivity())) + ": " + why + "\n";
  if (const std::string remedy = remedy_text(read_message(overall.getRemedy())); !remedy.empty())
    out += "  " + remedy + "\n";
  if (overall.getRule().size() > 0)
    out += "  By the rule " + printable(overall.getRule().cStr()) + ".\n";
  if (overall.getChangesAtMs() != 0)
    out += "  This changes at " + time_text(overall.getChangesAtMs()) + ".\n";
  if (snapshot.getLeaveByMs() != 0) out += "leave by: " + time_text(snapshot.getLeaveByMs()) + "\n";

  for (const auto notice : snapshot.getNotices()) out += notice_text(notice);

  Table resources({{"resource", "RESOURCE"}, {"mode", "MODE"}, {"state", "RULES"}, {"why", "WHY"}});
  for (const auto state : snapshot.getResources()) {
    const auto verdict = state.getVerdict();
    resources.add({word_of(state.getResource()), mode_text(state),
                   permission_of(verdict.getActivity()), sentence(verdict.getWhy())});
  }
  if (!resources.empty()) out += "\n" + resources.text();

  Table devices({{"device", "DEVICE"},
                 {"lent", "LENT"},
                 {"state", "STATE"},
                 {"stages", "STAGES"},
                 {"steps", "STEPS"},
                 {"rows", "ROWS"},
                 {"restarts", "RESTARTS"},
                 {"temperature", "TEMP"},
                 {"watts", "POWER"},
                 {"pace", "PACE"},
                 {"why", "WHY"}});
  for (const auto device : snapshot.getDevices()) {
    const auto report = device.getReport();
    std::string reason = report.getReason().cStr();
    if (reason.empty()) reason = sentence(device.getVerdict().getWhy());
    devices.add({report.getInfo().getSelector().cStr(), device.getLent() ? "yes" : "no",
                 word_of(report.getState()), std::to_string(device.getStages()),
                 std::to_string(device.getSteps()), std::to_string(device.getRows()),
                 std::to_string(device.getRestarts()), with_unit(device.getTemperatureC(), " °C"),
                 with_unit(device.getWatts(), device.getWattsMeasured() ? " W" : " W (estimate)"),
                 with_unit(device.getPaceDuty() * 100, " %"), reason});
  }
  out += "\n" + devices.text() + "\n";
  if (const Table work = work_table(snapshot); !work.empty()) out += work.text() + "\n";

  if (snapshot.getConnections().size() == 0) out += "Not attached: shoal-client attach URL\n";
  for (const auto connection : snapshot.getConnections()) out += connection_text(connection);
  out += today_text(snapshot.getToday());
  if (const auto yield = snapshot.getYield(); yield.getCount() > 0) {
    out += "yield: stopped within " + std::to_string(yield.getStopMsP50()) +
           " ms (99 %: " + std::to_string(yield.getStopMsP99()) + "), memory free within " +
           std::to_string(yield.getFreeMsP50()) +
           " ms (99 %: " + std::to_string(yield.getFreeMsP99()) + "), " +
           std::to_string(yield.getLate()) + " of " + std::to_string(yield.getCount()) + " late\n";
  }
  out += "cache: " + text_of(Bytes{static_cast<int64_t>(snapshot.getCacheBytes())}) + " of " +
         text_of(Bytes{static_cast<int64_t>(snapshot.getCacheBytesMax())}) + "\n";
  return out;
}

Result<void> show_work(const CommandOptions& options) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const auto answer = session.ask(session.agent.snapshotRequest());
    const Table table = work_table(answer.getSnapshot());
    if (options.json) {
      Json all = json_of(capnp::toDynamic(answer.getSnapshot()));
      print_json(Json{{"work", all["work"]}});
    } else {
      print_text(table.empty() ? "No work is open or held now." : table.text());
    }
    return {};
  });
}

Result<void> show_status(const CommandOptions& options, bool watch) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    uint64_t revision = 0;
    do {
      auto request = session.agent.snapshotRequest();
      request.setAfterRevision(revision);
      // The first answer comes at once; the next when something changes.
      const auto answer =
          revision == 0 ? session.ask(kj::mv(request)) : session.ask_patiently(kj::mv(request));
      const rpc::Snapshot::Reader snapshot = answer.getSnapshot();
      revision = snapshot.getRevision();
      if (options.json) {
        print_json(status_json(snapshot));
      } else {
        const bool clears = watch && stdout_is_terminal();
        print_text((clears ? "\x1b[H\x1b[2J" : "") + status_text(snapshot) +
                   (watch && !clears ? "\n" : ""));
      }
    } while (watch && !nobody_listens());
    return {};
  });
}

}  // namespace

void add_status_command(Commands& commands) {
  bool& watch = commands.keep<bool>();
  commands
      .add("status", "Show what the client does, why, and what would change it",
           [&watch](const CommandOptions& options) { return show_status(options, watch); })
      .add_flag("--watch", watch, "Show it again whenever something changes, until interrupted");
  commands.add("work", "Stages of sessions that are open, and units of jobs that are held",
               show_work);
}

}  // namespace shoal::client
