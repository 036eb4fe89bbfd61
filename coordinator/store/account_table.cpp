#include "coordinator/store/account_table.h"

#include <map>

namespace shoal {
namespace {

#define SHOAL_ACCOUNT_COLUMNS                                                                      \
  "account.id, account.name, banned, coalesce(team.name, ''), account.created_at_ms FROM account " \
  "LEFT JOIN team ON team.id = team_id"

AccountRow account_of(const Query& query) {
  AccountRow account;
  account.id = AccountId{query.integer(0)};
  account.name = query.text(1);
  account.banned = query.integer(2) != 0;
  account.team = query.text(3);
  account.created_at = Millis{query.integer(4)};
  return account;
}

Result<std::optional<AccountRow>> one_account(Query query) {
  SHOAL_TRY_ASSIGN(some, query.row());
  if (!some) return std::optional<AccountRow>();
  return std::optional<AccountRow>(account_of(query));
}

}  // namespace

Result<AccountId> AccountTable::create(const std::string& name, Millis now) {
  SHOAL_TRY_ASSIGN(taken, find(name));
  if (taken) return Error{ErrorCode::kExists, "there is an account " + name + " already"};
  Query query = store_.query("INSERT INTO account (name, created_at_ms) VALUES (?, ?)");
  SHOAL_TRY(query.bind(name).bind(now.count).run());
  return AccountId{store_.last_id()};
}

Result<std::optional<AccountRow>> AccountTable::find(const std::string& name) {
  Query query = store_.query("SELECT " SHOAL_ACCOUNT_COLUMNS " WHERE account.name = ?");
  query.bind(name);
  return one_account(std::move(query));
}

Result<std::optional<AccountRow>> AccountTable::find(AccountId id) {
  Query query = store_.query("SELECT " SHOAL_ACCOUNT_COLUMNS " WHERE account.id = ?");
  query.bind(id.value);
  return one_account(std::move(query));
}

Result<AccountRow> AccountTable::get(const std::string& name) {
  SHOAL_TRY_ASSIGN(found, find(name));
  if (!found) {
    return Error{ErrorCode::kNotFound, "there is no account " + name +
                                           "; shoalctl account list shows those that there are"};
  }
  return std::move(*found);
}

Result<std::vector<AccountRow>> AccountTable::list(int64_t count_max) {
  std::vector<AccountRow> accounts;
  {
    Query query = store_.query("SELECT " SHOAL_ACCOUNT_COLUMNS " ORDER BY account.name LIMIT ?");
    query.bind(count_max);
    while (true) {
      SHOAL_TRY_ASSIGN(some, query.row());
      if (!some) break;
      accounts.push_back(account_of(query));
    }
  }
  std::map<AccountId, AccountRow*> by_id;
  for (AccountRow& account : accounts) by_id[account.id] = &account;
  // A host's newest receipt has its sums.
  Query query = store_.query(
      "SELECT account_id, count(*), coalesce(sum(confirmed_parts_sum), 0), "
      "coalesce(sum(pending_parts_sum), 0), coalesce(sum(rejected_parts_sum), 0) FROM host "
      "LEFT JOIN receipt ON receipt.host_id = host.id AND number = "
      "(SELECT max(number) FROM receipt WHERE host_id = host.id) "
      "WHERE account_id IS NOT NULL GROUP BY account_id");
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return accounts;
    const auto found = by_id.find(AccountId{query.integer(0)});
    if (found == by_id.end()) continue;
    found->second->hosts = query.integer(1);
    found->second->sums = {query.integer(2), query.integer(3), query.integer(4)};
  }
}

Result<void> AccountTable::set_banned(AccountId id, bool banned) {
  Query query = store_.query("UPDATE account SET banned = ? WHERE id = ?");
  return query.bind(int64_t{banned}).bind(id.value).run();
}

Result<std::vector<HostId>> AccountTable::hosts(AccountId id) {
  std::vector<HostId> hosts;
  Query query = store_.query("SELECT id FROM host WHERE account_id = ? ORDER BY id");
  query.bind(id.value);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return hosts;
    hosts.push_back(HostId{query.integer(0)});
  }
}

Result<void> AccountTable::create_team(const std::string& name, Millis now) {
  {
    Query query = store_.query("SELECT 1 FROM team WHERE name = ?");
    SHOAL_TRY_ASSIGN(taken, query.bind(name).row());
    if (taken) return Error{ErrorCode::kExists, "there is a team " + name + " already"};
  }
  Query query = store_.query("INSERT INTO team (name, created_at_ms) VALUES (?, ?)");
  return query.bind(name).bind(now.count).run();
}

Result<std::vector<TeamRow>> AccountTable::teams(int64_t count_max) {
  std::vector<TeamRow> teams;
  Query query = store_.query("SELECT name, created_at_ms FROM team ORDER BY name LIMIT ?");
  query.bind(count_max);
  while (true) {
    SHOAL_TRY_ASSIGN(some, query.row());
    if (!some) return teams;
    teams.push_back({query.text(0), Millis{query.integer(1)}});
  }
}

Result<void> AccountTable::join_team(AccountId id, const std::string& team) {
  if (team.empty()) {
    Query query = store_.query("UPDATE account SET team_id = NULL WHERE id = ?");
    return query.bind(id.value).run();
  }
  Query query = store_.query(
      "UPDATE account SET team_id = team.id FROM team WHERE team.name = ? AND account.id = ?");
  SHOAL_TRY(query.bind(team).bind(id.value).run());
  if (store_.changes() > 0) return {};
  return Error{ErrorCode::kNotFound,
               "there is no team " + team + "; shoalctl team list shows those that there are"};
}

}  // namespace shoal
