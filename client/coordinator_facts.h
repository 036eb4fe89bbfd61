#pragma once
// What a coordinator says of itself and of this host, as bounded values, and their wire form.

#include <string>
#include <vector>

#include "base/units.h"
#include "schema/coordinator.capnp.h"
#include "schema/message.h"
#include "schema/receipt.h"

namespace shoal::client {

struct CoordinatorCard {
  struct Offer {
    JobClass job_class;
    std::string purpose;
    uint64_t sealed_bytes = 0;
    double credit_per_row = 0;

    friend bool operator==(const Offer&, const Offer&) = default;
  };
  std::string name, description;  // The second: who runs it and what for.
  std::vector<Offer> offers;

  friend bool operator==(const CoordinatorCard&, const CoordinatorCard&) = default;
};

struct HostStanding {
  struct Device {
    std::string id, state;
    Message why;
    Millis since{0};
  };
  uint64_t newest_receipt = 0;
  double confirmed = 0, pending = 0, rejected = 0;
  std::vector<Device> devices;
  double credit_rate = 0;            // What a credit is worth, in units of `credit_unit`.
  std::string credit_unit;           // Empty: nothing but itself.
  std::string account, team, group;  // What this host belongs to; each may be empty.
  int64_t newest_day = 0;            // With a root over its receipts; 0: none.
};

// Both cut what is too long and make it printable; numbers that are none become 0. Of a card whose
// texts are over 256 KiB together, the offers from there on are left out.
CoordinatorCard read_card(rpc::CoordinatorCard::Reader from);
HostStanding read_standing(rpc::HostStanding::Reader from);

void write_card(const CoordinatorCard& card, rpc::CoordinatorCard::Builder to);
void write_standing(const HostStanding& standing, rpc::HostStanding::Builder to);

}  // namespace shoal::client
