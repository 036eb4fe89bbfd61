#pragma once
// Checks a coordinator's receipts without it: every signature against the key it gave when this
// host joined, that none is missing, that each lease has one verdict, and that the credit adds up
// to what the coordinator says.

#include <map>

#include "client/records/records.h"

namespace shoal::client {

// What the coordinator says of this host (HostStanding of schema/coordinator.capnp).
struct StatedCredit {
  uint64_t newest_receipt = 0;
  double confirmed = 0;
};

struct ReceiptReport {
  std::string pin, coordinator;  // Its name.
  uint64_t count = 0;            // Stored, the folded ones included.
  uint64_t genuine = 0;
  uint64_t missing = 0;         // Numbers that the coordinator named and that are not here.
  double credit_confirmed = 0;  // The sum of genuine receipts.
  double credit_stated = 0;
  uint64_t days = 0;       // Daily roots whose signatures and order are right.
  uint64_t in_days = 0;    // Receipts that were proved to be among those of their days.
  int64_t newest_day = 0;  // Of these days; 0: there is none.
  bool agrees = false;
  Message why;
};

// A check in pieces, as thousands of signatures take seconds: call step() until it is true, with
// other work in between.
class ReceiptCheck {
 public:
  // `records` outlives the check. `stated`: by pin; a coordinator without an entry, as it has not
  // been reached since the start, is checked for itself alone.
  ReceiptCheck(Records& records, std::map<std::string, StatedCredit> stated);
  ~ReceiptCheck();
  ReceiptCheck(const ReceiptCheck&) = delete;
  ReceiptCheck& operator=(const ReceiptCheck&) = delete;

  // Checks some receipts (about 5 ms of work). True when all are done.
  Result<bool> step();
  // REQUIRES: step() was true.
  const std::vector<ReceiptReport>& reports() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shoal::client
