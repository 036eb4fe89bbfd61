#pragma once
// Decides what the tray shows: one of five states and one sentence, of all that the client knows.
// Pure.

#include <optional>
#include <string>
#include <vector>

#include "client/rules/activity_policy.h"

namespace shoal::client {

struct OverallInput {
  struct Device {
    std::string name;
    Verdict verdict;     // As shown for it.
    bool works = false;  // It has a stage now.
  };
  struct Link {
    enum class State { kConnecting, kConnected, kWaiting, kRefused };
    std::string name;  // The coordinator's, or its address.
    State state = State::kConnecting;
    std::string reason;
    Millis retry_in{0};
    Message no_work;  // Why it gives none, if it said so.
  };
  std::vector<Device> lent;
  std::vector<Link> links;
  bool looking = false;      // The devices are not listed yet.
  std::string list_problem;  // Why not; empty: nothing is wrong.
  Verdict network;
  std::optional<Message> disk_problem;
  std::optional<Message> consents_lost;  // So what the owner did not judge since is denied.
};

// The first that applies: attention, paused, offline, waiting, working.
Verdict overall(const OverallInput& input);

}  // namespace shoal::client
