#pragma once
// Accounts, who answer for hosts, and the teams that they are in. Rows in and out; decides nothing.

#include <optional>
#include <string>
#include <vector>

#include "coordinator/store/ledger_table.h"
#include "coordinator/store/store.h"

namespace shoal {

using AccountId = Id<struct AccountTag>;

struct AccountRow {
  AccountId id;
  std::string name;
  bool banned = false;
  std::string team;  // Empty: in none.
  Millis created_at;

  // Of the hosts that are its own now. Only in lists.
  int64_t hosts = 0;
  LedgerSums sums;
};

struct TeamRow {
  std::string name;
  Millis created_at;
};

class AccountTable {
 public:
  explicit AccountTable(Store& store) : store_(store) {}  // The store outlives the table.

  Result<AccountId> create(const std::string& name, Millis now);  // kExists when it is taken.
  Result<std::optional<AccountRow>> find(const std::string& name);
  Result<std::optional<AccountRow>> find(AccountId id);
  // The same; kNotFound with what to do.
  Result<AccountRow> get(const std::string& name);
  Result<std::vector<AccountRow>> list(int64_t count_max);  // By name.
  Result<void> set_banned(AccountId id, bool banned);
  Result<std::vector<HostId>> hosts(AccountId id);

  Result<void> create_team(const std::string& name, Millis now);  // kExists when it is taken.
  Result<std::vector<TeamRow>> teams(int64_t count_max);          // By name.
  // It leaves the team that it was in. An empty name: only that. kNotFound for an unknown team.
  Result<void> join_team(AccountId id, const std::string& team);

 private:
  Store& store_;
};

}  // namespace shoal
