#include "coordinator/session/journal.h"

#include "base/log.h"

namespace shoal {
namespace {

constexpr Millis kHour{3'600'000};

}  // namespace

void Journal::note(const char* kind, const std::string& text, HostId host, SessionId session) {
  end_hours(clock_.now_monotonic() - kHour);
  write(kind, text, host, session);
}

void Journal::note_of_job(const char* kind, const std::string& text, JobId job) {
  write(kind, text, {}, {}, job);
}

void Journal::note_of_host(const char* kind, const std::string& text, HostId host,
                           SessionId session) {
  const Millis now = clock_.now_monotonic();
  end_hours(now - kHour);
  const auto [found, fresh] = hours_.try_emplace(host, Hour{now});
  if (fresh) order_.push_back(host);
  Hour& hour = found->second;
  if (hour.noted >= kHostEventsMax) {
    hour.left_out += 1;
    return;
  }
  hour.noted += 1;
  write(kind, text, host, session);
}

void Journal::tell_left_out() { end_hours(clock_.now_monotonic()); }

void Journal::end_hours(Millis began_before) {
  while (!order_.empty() && hours_.at(order_.front()).began <= began_before) {
    const HostId host = order_.front();
    const Hour hour = hours_.at(host);
    order_.pop_front();
    hours_.erase(host);
    if (hour.left_out == 0) continue;
    write("events_left_out",
          "after " + std::to_string(hour.noted) + " events of this host within an hour, " +
              std::to_string(hour.left_out) + " more were only counted",
          host, {});
  }
}

void Journal::write(const char* kind, const std::string& text, HostId host, SessionId session,
                    JobId job) {
  log_info("coordinator", kind,
           {{"host", host}, {"session", session}, {"job", job}, {"text", text}});
  const Result<void> added =
      table_.add_event({0, clock_.now_wall(), kind, host, session, text, job});
  if (!added.ok()) log_error("coordinator", "event_not_stored", {{"why", added.error()}});
}

}  // namespace shoal
