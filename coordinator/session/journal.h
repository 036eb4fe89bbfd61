#pragma once
// Writes down what happened: an event in the store and a line in the log. Never a prompt, a token
// or a key.

#include <deque>
#include <map>
#include <string>

#include "base/clock.h"
#include "coordinator/store/session_table.h"

namespace shoal {

constexpr int64_t kHostEventsMax = 200;  // Of one host within an hour.

class Journal {
 public:
  Journal(SessionTable& table, const Clock& clock)
      : table_(table), clock_(clock) {}  // Both outlive it.

  // A store that cannot be written does not stop the work: the log says so.
  void note(const char* kind, const std::string& text, HostId host = {}, SessionId session = {});
  void note_of_job(const char* kind, const std::string& text, JobId job);
  // What a host brings about by itself, and could bring about for ever. Of more than
  // kHostEventsMax within an hour, the rest is only counted, and one event says how many there
  // were.
  void note_of_host(const char* kind, const std::string& text, HostId host, SessionId session = {});
  // Says now what was left out so far.
  void tell_left_out();

 private:
  struct Hour {
    Millis began;  // Monotonic.
    int64_t noted = 0, left_out = 0;
  };
  void end_hours(Millis began_before);
  void write(const char* kind, const std::string& text, HostId host, SessionId session,
             JobId job = {});

  SessionTable& table_;
  const Clock& clock_;
  std::map<HostId, Hour> hours_;  // Of hosts that were noted within the last hour.
  std::deque<HostId> order_;      // The same hosts, those first whose hour began first.
};

}  // namespace shoal
