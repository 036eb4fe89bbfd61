// shoalctl: init, invite, status, host, session and event.

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "coordinator/ctl/commands.h"
#include "coordinator/data_folder.h"
#include "schema/transport.h"

namespace shoal::ctl {
namespace {

constexpr int64_t kHourMs = 3'600'000;

const char* word_of(rpc::HostInfo::Standing standing) {
  switch (standing) {
    case rpc::HostInfo::Standing::VOLUNTEER: return "volunteer";
    case rpc::HostInfo::Standing::TRUSTED: return "trusted";
    case rpc::HostInfo::Standing::BANNED: return "banned";
  }
  return "unknown";
}

std::string number_or_dash(uint64_t id) { return id == 0 ? "-" : std::to_string(id); }

}  // namespace

Result<void> init(const Context& context, int64_t hours, uint32_t uses) {
  const char* const passphrase = std::getenv("SHOAL_PASSPHRASE");
  SHOAL_TRY_ASSIGN(folder, make_data_folder(context.data, passphrase == nullptr ? "" : passphrase));
  const SystemClock clock;
  SHOAL_TRY_ASSIGN(invite, make_invite(*folder.store, clock, Millis{hours * kHourMs}, uses));
  rpc::AttachUrl url;
  url.host = attach_host(folder.settings);
  url.port = folder.settings.listen_port;
  url.pin = folder.pin;
  url.invite = invite;
  const std::string text = rpc::format_attach_url(url);
  const std::string data = context.data.string();
  if (context.json) {
    print_json({{"data", data}, {"pin", folder.pin}, {"invite", invite}, {"url", text}});
    return {};
  }
  const bool with_passphrase = passphrase != nullptr && *passphrase != '\0';
  std::printf(
      "Made a coordinator in %s.\n\n"
      "1. Start it:              shoal-coordinator --data %s\n"
      "2. Attach machines:       shoal-client attach '%s'\n"
      "                          (good for %u machines within %lld hours; shoalctl invite makes "
      "more)\n"
      "3. Publish a model:       shoalctl --data %s model publish PATH\n"
      "4. Let it speak:          shoalctl --data %s generate --model NAME --prompt 'Once upon a "
      "time'\n\n"
      "Settings are in %s/coordinator.toml.\n"
      "Keep %s safe: without it the published models cannot be opened.\n",
      data.c_str(), data.c_str(), text.c_str(), uses, static_cast<long long>(hours), data.c_str(),
      data.c_str(), data.c_str(),
      with_passphrase ? "your passphrase" : (data + "/master.key").c_str());
  return {};
}

Result<void> invite(const Context& context, const InviteOptions& options) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.createInviteRequest();
    request.setLifetimeMs(static_cast<uint64_t>(options.hours * kHourMs));
    request.setUsesMax(options.uses);
    request.setAccount(options.account);
    request.setGroup(options.group);
    const auto response = request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json({{"url", response.getUrl().cStr()}});
    } else {
      std::printf("%s\n", response.getUrl().cStr());
    }
    return {};
  });
}

Result<void> status(const Context& context) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const auto response = link.admin.statusRequest().send().wait(link.io.waitScope);
    const auto s = response.getStatus();
    if (context.json) {
      print_json({{"name", s.getName().cStr()},
                  {"version", s.getVersion().cStr()},
                  {"uptime_ms", s.getUptimeMs()},
                  {"address", s.getAddress().cStr()},
                  {"pin", s.getPin().cStr()},
                  {"hosts_known", s.getHostsKnown()},
                  {"hosts_connected", s.getHostsConnected()},
                  {"devices_ready", s.getDevicesReady()},
                  {"models", s.getModels()},
                  {"sessions_live", s.getSessionsLive()},
                  {"tokens_generated", s.getTokensGenerated()},
                  {"relayed_bytes", s.getRelayedBytes()},
                  {"credit_rate", s.getCreditRate()},
                  {"credit_unit", s.getCreditUnit().cStr()}});
      return {};
    }
    std::printf("%s (Shoal %s), up %llu s, on %s\n", s.getName().cStr(), s.getVersion().cStr(),
                static_cast<unsigned long long>(s.getUptimeMs() / 1000), s.getAddress().cStr());
    std::printf("hosts     %u connected of %u known, %u devices ready\n", s.getHostsConnected(),
                s.getHostsKnown(), s.getDevicesReady());
    std::printf("models    %u\n", s.getModels());
    std::printf("sessions  %u live, %llu tokens ever, %s relayed since start\n",
                s.getSessionsLive(), static_cast<unsigned long long>(s.getTokensGenerated()),
                show_bytes(s.getRelayedBytes()).c_str());
    return {};
  });
}

Result<void> host_list(const Context& context) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const auto accounts = link.admin.listAccountsRequest().send().wait(link.io.waitScope);
    std::set<std::string> banned;
    for (const auto account : accounts.getAccounts()) {
      if (account.getBanned()) banned.insert(account.getName().cStr());
    }
    const auto response = link.admin.listHostsRequest().send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto host : response.getHosts()) {
      const bool account_banned = banned.contains(host.getAccount().cStr());
      const std::vector<std::string> who = {
          std::to_string(host.getId()),
          host.getName().cStr(),
          text_or_dash(host.getAccount()),
          text_or_dash(host.getGroup()),
          account_banned ? "account banned" : word_of(host.getStanding()),
          host.getConnected() ? "yes" : "last " + show_time(host.getLastSeenMs()),
          show_credit(host.getCreditConfirmed())};
      Json devices = Json::array();
      for (const auto device : host.getDevices()) {
        const auto info = device.getInfo();
        devices.push_back({{"id", info.getId().cStr()},
                           {"selector", info.getSelector().cStr()},
                           {"plane", info.getPlane().cStr()},
                           {"name", info.getName().cStr()},
                           {"driver", info.getDriver().cStr()},
                           {"memory_bytes", info.getMemoryBytes()},
                           {"software", info.getSoftware()},
                           {"exact", device.getExact()},
                           {"decode_rows_per_second", device.getDecodeRowsPerSecond()},
                           {"state", device.getState().cStr()},
                           {"reason", device.getReason().cStr()}});
        std::vector<std::string> row = who;
        for (const std::string& cell :
             {std::string(info.getSelector().cStr()), std::string(device.getState().cStr()),
              std::string(device.getExact() ? "yes" : "no"), show_bytes(info.getMemoryBytes()),
              std::string(info.getName().cStr()), std::string(device.getReason().cStr())}) {
          row.push_back(cell);
        }
        rows.push_back(std::move(row));
      }
      if (devices.empty()) rows.push_back(who);
      all.push_back({{"id", host.getId()},
                     {"name", host.getName().cStr()},
                     {"system", host.getSystem().cStr()},
                     {"version", host.getVersion().cStr()},
                     {"account", host.getAccount().cStr()},
                     {"account_banned", account_banned},
                     {"group", host.getGroup().cStr()},
                     {"standing", word_of(host.getStanding())},
                     {"connected", host.getConnected()},
                     {"last_seen_ms", host.getLastSeenMs()},
                     {"receipts", host.getNewestReceipt()},
                     {"credit_confirmed", host.getCreditConfirmed()},
                     {"credit_pending", host.getCreditPending()},
                     {"credit_rejected", host.getCreditRejected()},
                     {"devices", std::move(devices)}});
    }
    if (context.json) {
      print_json({{"hosts", std::move(all)}});
    } else if (rows.empty()) {
      std::printf("No hosts yet: shoalctl invite makes the URL by which they attach.\n");
    } else {
      print_table({"ID", "HOST", "ACCOUNT", "GROUP", "STANDING", "CONNECTED", "CREDIT", "DEVICE",
                   "STATE", "EXACT", "MEMORY", "NAME", "REASON"},
                  rows);
    }
    return {};
  });
}

Result<void> host_standing(const Context& context, uint64_t id, rpc::HostInfo::Standing standing) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.setHostStandingRequest();
    request.setHostId(id);
    request.setStanding(standing);
    request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json({{"id", id}, {"standing", word_of(standing)}});
    } else {
      std::printf("Host %llu is now %s.\n", static_cast<unsigned long long>(id), word_of(standing));
    }
    return {};
  });
}

Result<void> event_list(const Context& context, uint64_t after, uint32_t count) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.listEventsRequest();
    request.setAfterId(after);
    request.setCountMax(count);
    const auto response = request.send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto event : response.getEvents()) {
      rows.push_back({std::to_string(event.getId()), show_time(event.getAtMs()),
                      event.getKind().cStr(), number_or_dash(event.getHostId()),
                      number_or_dash(event.getSessionId()), event.getText().cStr()});
      all.push_back({{"id", event.getId()},
                     {"at_ms", event.getAtMs()},
                     {"kind", event.getKind().cStr()},
                     {"host_id", event.getHostId()},
                     {"session_id", event.getSessionId()},
                     {"text", event.getText().cStr()}});
    }
    if (context.json) {
      print_json({{"events", std::move(all)}});
    } else {
      print_table({"ID", "AT", "KIND", "HOST", "SESSION", "TEXT"}, rows);
    }
    return {};
  });
}

}  // namespace shoal::ctl
