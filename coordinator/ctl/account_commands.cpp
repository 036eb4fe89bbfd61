// shoalctl: account, team, and what a host belongs to.

#include <cstdio>

#include "base/text.h"
#include "coordinator/ctl/commands.h"

namespace shoal::ctl {
namespace {

std::string worth_cell(double credit, const Worth& worth) {
  return worth.unit.empty() ? "" : show_worth(credit, worth);
}

}  // namespace

Worth ask_worth(Link& link) {
  const auto response = link.admin.statusRequest().send().wait(link.io.waitScope);
  return {response.getStatus().getCreditRate(), response.getStatus().getCreditUnit().cStr()};
}

Result<void> account_create(const Context& context, const std::string& name) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.createAccountRequest();
    request.setName(name);
    request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json({{"account", name}});
    } else {
      std::printf("Made the account %s: shoalctl invite --account makes URLs for its hosts.\n",
                  printable(name).c_str());
    }
    return {};
  });
}

Result<void> account_list(const Context& context) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const Worth worth = ask_worth(link);
    const auto response = link.admin.listAccountsRequest().send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto account : response.getAccounts()) {
      all.push_back({{"account", account.getName().cStr()},
                     {"banned", account.getBanned()},
                     {"team", account.getTeam().cStr()},
                     {"hosts", account.getHosts()},
                     {"hosts_connected", account.getHostsConnected()},
                     {"credit_confirmed", account.getCreditConfirmed()},
                     {"credit_pending", account.getCreditPending()},
                     {"credit_rejected", account.getCreditRejected()},
                     {"created_at_ms", account.getCreatedAtMs()}});
      rows.push_back(
          {account.getName().cStr(), account.getBanned() ? "banned" : "active",
           text_or_dash(account.getTeam()), std::to_string(account.getHosts()),
           std::to_string(account.getHostsConnected()), show_credit(account.getCreditConfirmed()),
           show_credit(account.getCreditPending()), show_credit(account.getCreditRejected())});
      if (!worth.unit.empty()) {
        all.back()["worth"] = account.getCreditConfirmed() * worth.rate;
        rows.back().push_back(worth_cell(account.getCreditConfirmed(), worth));
      }
    }
    if (context.json) {
      print_json({{"accounts", std::move(all)}, {"unit", worth.unit}});
    } else if (rows.empty()) {
      std::printf("No accounts yet: shoalctl account create makes one.\n");
    } else {
      std::vector<std::string> titles = {"ACCOUNT",   "STANDING",  "TEAM",    "HOSTS",
                                         "CONNECTED", "CONFIRMED", "PENDING", "REJECTED"};
      if (!worth.unit.empty()) titles.push_back("WORTH");
      print_table(titles, rows);
    }
    return {};
  });
}

Result<void> account_ban(const Context& context, const std::string& name, bool banned) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.setAccountBannedRequest();
    request.setName(name);
    request.setBanned(banned);
    const auto response = request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json(
          {{"account", name}, {"banned", banned}, {"hosts_dropped", response.getHostsDropped()}});
    } else if (banned) {
      std::printf("The account %s is banned; %u of its hosts were connected and are dropped.\n",
                  printable(name).c_str(), response.getHostsDropped());
    } else {
      std::printf("The account %s is not banned: its hosts are let in.\n", printable(name).c_str());
    }
    return {};
  });
}

Result<void> team_create(const Context& context, const std::string& name) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.createTeamRequest();
    request.setName(name);
    request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json({{"team", name}});
    } else {
      std::printf("Made the team %s: shoalctl team join ACCOUNT %s adds members.\n",
                  printable(name).c_str(), printable(name).c_str());
    }
    return {};
  });
}

Result<void> team_list(const Context& context) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    const Worth worth = ask_worth(link);
    const auto response = link.admin.listTeamsRequest().send().wait(link.io.waitScope);
    Json all = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const auto team : response.getTeams()) {
      Json members = Json::array();
      std::string names;
      for (const auto member : team.getMembers()) {
        members.push_back(member.cStr());
        names += (names.empty() ? "" : ", ") + std::string(member.cStr());
      }
      all.push_back({{"team", team.getName().cStr()},
                     {"members", std::move(members)},
                     {"credit_confirmed", team.getCreditConfirmed()},
                     {"credit_pending", team.getCreditPending()},
                     {"credit_rejected", team.getCreditRejected()},
                     {"created_at_ms", team.getCreatedAtMs()}});
      rows.push_back({team.getName().cStr(), show_credit(team.getCreditConfirmed()),
                      show_credit(team.getCreditPending()), show_credit(team.getCreditRejected())});
      if (!worth.unit.empty()) {
        all.back()["worth"] = team.getCreditConfirmed() * worth.rate;
        rows.back().push_back(worth_cell(team.getCreditConfirmed(), worth));
      }
      rows.back().push_back(names);
    }
    if (context.json) {
      print_json({{"teams", std::move(all)}, {"unit", worth.unit}});
    } else if (rows.empty()) {
      std::printf("No teams yet: shoalctl team create makes one.\n");
    } else {
      std::vector<std::string> titles = {"TEAM", "CONFIRMED", "PENDING", "REJECTED"};
      if (!worth.unit.empty()) titles.push_back("WORTH");
      titles.push_back("MEMBERS");
      print_table(titles, rows);
    }
    return {};
  });
}

Result<void> team_join(const Context& context, const std::string& account,
                       const std::string& team) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.joinTeamRequest();
    request.setAccount(account);
    request.setTeam(team);
    request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json({{"account", account}, {"team", team}});
    } else if (team.empty()) {
      std::printf("The account %s is in no team now.\n", printable(account).c_str());
    } else {
      std::printf("The account %s is in the team %s now.\n", printable(account).c_str(),
                  printable(team).c_str());
    }
    return {};
  });
}

Result<void> host_account(const Context& context, uint64_t id, const std::string& account) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.setHostAccountRequest();
    request.setHostId(id);
    request.setAccount(account);
    request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json({{"id", id}, {"account", account}});
    } else {
      std::printf("Host %llu belongs to %s now.\n", static_cast<unsigned long long>(id),
                  account.empty() ? "no account" : ("the account " + printable(account)).c_str());
    }
    return {};
  });
}

Result<void> host_group(const Context& context, uint64_t id, const std::string& group) {
  return with_coordinator(context, [&](Link& link) -> Result<void> {
    auto request = link.admin.setHostGroupRequest();
    request.setHostId(id);
    request.setGroup(group);
    request.send().wait(link.io.waitScope);
    if (context.json) {
      print_json({{"id", id}, {"group", group}});
    } else {
      std::printf("Host %llu belongs to %s now.\n", static_cast<unsigned long long>(id),
                  group.empty() ? "no group" : ("the group " + printable(group)).c_str());
    }
    return {};
  });
}

}  // namespace shoal::ctl
