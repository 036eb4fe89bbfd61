#include "coordinator/rpc/accounts.h"

#include <functional>
#include <map>
#include <optional>

#include "base/text.h"
#include "coordinator/jobs/job_service.h"
#include "coordinator/work/credit.h"
#include "schema/limits.h"
#include "schema/require.h"

namespace shoal {
namespace {

// Works for accounts and teams alike.
template <class Info>
void write_sums(Info out, const LedgerSums& sums) {
  out.setCreditConfirmed(credit_of(CreditParts{sums.confirmed}));
  out.setCreditPending(credit_of(CreditParts{sums.pending}));
  out.setCreditRejected(credit_of(CreditParts{sums.rejected}));
}

void set_membership(Parts& parts, HostId id,
                    const std::function<void(Membership& membership)>& change) {
  const std::optional<HostRow> host = rpc::require(parts.hosts.find(id));
  Membership membership;
  if (host) membership = {host->account, host->group};
  const Membership before = membership;
  change(membership);
  rpc::require(parts.hosts.set_membership(id, membership));
  if (membership != before) drop_hosts(parts, {&id, 1});
}

}  // namespace

std::string membership_name(capnp::Text::Reader text, const char* field, bool may_be_empty) {
  std::string name = rpc::text_of(text, limits::kNameBytesMax, field);
  const bool is_padded = !name.empty() && (name.front() == ' ' || name.back() == ' ');
  if ((name.empty() && !may_be_empty) || is_padded || !is_printable(name)) {
    rpc::throw_error({ErrorCode::kInvalid,
                      std::string(field) +
                          ": a name has at least one character, none that cannot be shown, and no "
                          "space at its ends"});
  }
  return name;
}

Membership membership_of(Parts& parts, capnp::Text::Reader account, capnp::Text::Reader group) {
  Membership membership;
  membership.group = membership_name(group, "group", /*may_be_empty=*/true);
  const std::string name = membership_name(account, "account", /*may_be_empty=*/true);
  if (!name.empty()) {
    const AccountRow row = rpc::require(parts.accounts.get(name));
    if (row.banned) {
      rpc::throw_error(
          {ErrorCode::kDenied, "the account " + name + " is banned: no host comes in " +
                                   "by an invite of it; shoalctl account unban ends " + "the ban"});
    }
    membership.account = row.id;
  }
  return membership;
}

uint32_t drop_hosts(Parts& parts, std::span<const HostId> hosts) {
  uint32_t dropped = 0;
  for (const HostId id : hosts) {
    if (const std::optional<HostRow> row = rpc::require(parts.hosts.find(id))) {
      parts.jobs->host_known(id, row->standing == Standing::kTrusted, is_banned(*row), {},
                             owner_of(*row));
    }
    const auto live = parts.pool.hosts().find(id);
    if (live == parts.pool.hosts().end()) continue;
    parts.pool.detach(id, live->second->login);
    parts.jobs->host_gone(id);
    ++dropped;
  }
  return dropped;
}

void create_account(Parts& parts, const std::string& name) {
  rpc::require(parts.accounts.create(name, parts.clock.now_wall()));
  parts.journal.note("account_created", name);
}

void list_accounts(Parts& parts, rpc::Admin::ListAccountsResults::Builder out) {
  const std::vector<AccountRow> rows = rpc::require(parts.accounts.list(limits::kListRowsMax));
  std::map<AccountId, uint32_t> connected;
  for (const auto& [id, host] : parts.pool.hosts()) connected[host->membership.account] += 1;
  auto accounts = out.initAccounts(static_cast<uint>(rows.size()));
  for (uint i = 0; i < accounts.size(); ++i) {
    const AccountRow& row = rows[i];
    accounts[i].setName(row.name);
    accounts[i].setBanned(row.banned);
    accounts[i].setTeam(row.team);
    accounts[i].setHosts(static_cast<uint32_t>(row.hosts));
    accounts[i].setHostsConnected(connected[row.id]);
    write_sums(accounts[i], row.sums);
    accounts[i].setCreatedAtMs(row.created_at.count);
  }
}

uint32_t set_account_banned(Parts& parts, const std::string& name, bool banned) {
  const AccountRow account = rpc::require(parts.accounts.get(name));
  // Of an account that was never banned nothing is dropped; what is banned twice is dropped twice.
  if (!banned && !account.banned) return 0;
  rpc::require(parts.accounts.set_banned(account.id, banned));
  parts.journal.note(banned ? "account_banned" : "account_unbanned", name);
  // After the end of a ban there is none to drop: the broker alone hears of it.
  return drop_hosts(parts, rpc::require(parts.accounts.hosts(account.id)));
}

void create_team(Parts& parts, const std::string& name) {
  rpc::require(parts.accounts.create_team(name, parts.clock.now_wall()));
  parts.journal.note("team_created", name);
}

void list_teams(Parts& parts, rpc::Admin::ListTeamsResults::Builder out) {
  const std::vector<TeamRow> rows = rpc::require(parts.accounts.teams(limits::kListRowsMax));
  struct Team {
    std::vector<std::string> members;
    LedgerSums sums;
  };
  std::map<std::string, Team> by_name;
  for (AccountRow& account : rpc::require(parts.accounts.list(limits::kListRowsMax))) {
    if (account.team.empty()) continue;
    Team& team = by_name[account.team];
    team.members.push_back(std::move(account.name));
    team.sums.confirmed += account.sums.confirmed;
    team.sums.pending += account.sums.pending;
    team.sums.rejected += account.sums.rejected;
  }
  auto teams = out.initTeams(static_cast<uint>(rows.size()));
  for (uint i = 0; i < teams.size(); ++i) {
    const Team& team = by_name[rows[i].name];
    teams[i].setName(rows[i].name);
    auto members = teams[i].initMembers(static_cast<uint>(team.members.size()));
    for (uint m = 0; m < members.size(); ++m) members.set(m, team.members[m]);
    write_sums(teams[i], team.sums);
    teams[i].setCreatedAtMs(rows[i].created_at.count);
  }
}

void join_team(Parts& parts, const std::string& account, const std::string& team) {
  rpc::require(parts.accounts.join_team(rpc::require(parts.accounts.get(account)).id, team));
  parts.journal.note("team_joined",
                     account + (team.empty() ? " left its team" : " joined " + team));
}

void set_host_account(Parts& parts, HostId host, const std::string& account) {
  const AccountId id = account.empty() ? AccountId{} : rpc::require(parts.accounts.get(account)).id;
  set_membership(parts, host, [&](Membership& membership) { membership.account = id; });
  parts.journal.note("host_account", account.empty() ? "none" : account, host);
}

void set_host_group(Parts& parts, HostId host, const std::string& group) {
  set_membership(parts, host, [&](Membership& membership) { membership.group = group; });
  parts.journal.note("host_group", group.empty() ? "none" : group, host);
}

}  // namespace shoal
