#pragma once
// Writes down what happened: an event in the store and a line in the log. Never a prompt, a token
// or a key.

#include <string>

#include "base/clock.h"
#include "coordinator/store/session_table.h"

namespace shoal {

class Journal {
 public:
  Journal(SessionTable& table, const Clock& clock)
      : table_(table), clock_(clock) {}  // Both outlive it.

  // A store that cannot be written does not stop the work: the log says so.
  void note(const char* kind, const std::string& text, HostId host = {}, SessionId session = {});

 private:
  SessionTable& table_;
  const Clock& clock_;
};

}  // namespace shoal
