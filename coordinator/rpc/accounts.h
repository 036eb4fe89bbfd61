#pragma once
// What administrators do with accounts, teams and groups, and what that does to hosts that are
// connected.

#include <span>

#include "coordinator/rpc/parts.h"
#include "coordinator/work/broker.h"
#include "schema/admin.capnp.h"

namespace shoal {

// A name of an account, a team or a group, checked; may be empty where `may_be_empty`. Throws.
std::string membership_name(capnp::Text::Reader text, const char* field, bool may_be_empty = false);

// An account by its name, and a group; both may be empty. Throws for an account that is unknown or
// banned.
Membership membership_of(Parts& parts, capnp::Text::Reader account, capnp::Text::Reader group);

inline OwnerId owner_of(const HostRow& host) { return OwnerId{host.account.value}; }
inline bool is_banned(const HostRow& host) {
  return host.standing == Standing::kBanned || host.account_banned;
}

// Ends what these hosts do here, at once: their stages are lost, and what of their work is not
// confirmed counts nothing. Tells the broker what they are now. Returns how many were connected.
// REQUIRES: the ban, or what else is the reason, is in the store.
uint32_t drop_hosts(Parts& parts, std::span<const HostId> hosts);

void create_account(Parts& parts, const std::string& name);
void list_accounts(Parts& parts, rpc::Admin::ListAccountsResults::Builder out);
uint32_t set_account_banned(Parts& parts, const std::string& name, bool banned);
void create_team(Parts& parts, const std::string& name);
void list_teams(Parts& parts, rpc::Admin::ListTeamsResults::Builder out);
void join_team(Parts& parts, const std::string& account, const std::string& team);
// Drops the host when it was connected: it comes back as what it is now.
void set_host_account(Parts& parts, HostId host, const std::string& account);
void set_host_group(Parts& parts, HostId host, const std::string& group);

}  // namespace shoal
