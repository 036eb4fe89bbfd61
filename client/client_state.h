#pragma once
// Holds what the client must remember over restarts: where it is attached, what its devices proved,
// and what its owner chose that is no setting: modes, the leave-by time, pairings.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/device_facts.h"
#include "client/rules/activity_policy.h"

namespace shoal::client {

struct Attachment {
  std::string url;   // With the pin, without an invite: that is used up.
  std::string name;  // As the coordinator calls itself.
  uint64_t host_id = 0;
};

// A user interface on another machine that may come again.
struct Pairing {
  uint64_t id = 0;
  std::string name;
  std::string token_digest;  // Hex; the token itself is the other side's alone.
  Millis paired_at{0}, last_used{0};
};

// A device that this machine had, so that it is waited for when its driver is late or lost it.
struct KnownDevice {
  DeviceFacts facts;
  Millis seen_at{0};  // Wall time; written once a day at most.
};

struct ClientMemory {
  std::vector<Attachment> attachments;
  std::map<std::string, Measurement> measurements;  // By device, driver and version.
  std::optional<ModeChoice> modes[kResourceCount];  // Lasting. None: the owner never chose.
  std::optional<ModeChoice>
      passing[kResourceCount];  // A pause, or a mode for a time: it goes first.
  std::optional<Millis> leave_by;
  // Wall time of the last step from a coordinator, by the pin of its certificate; some minutes
  // late.
  std::map<std::string, Millis> last_work;
  std::vector<Pairing> pairings;
  std::map<std::string, KnownDevice> devices;  // By their ids.
};

class ClientState {
 public:
  // An absent file is an empty state.
  static Result<ClientState> load(const std::filesystem::path& path);

  const ClientMemory& memory() const { return memory_; }
  // Durable when it returns; when it fails, nothing has changed.
  Result<void> change(const std::function<void(ClientMemory&)>& edit);

  const std::vector<Attachment>& attachments() const { return memory_.attachments; }
  // Adds it, or replaces the one with the same address and pin. Durable when it returns.
  Result<void> attach(Attachment attachment);
  // Those at `url` (given with or without pin), or all when it is empty; how many.
  Result<int> detach(const std::string& url);

  // What the device proved, if that was with this driver and this version of Shoal; null otherwise.
  const Measurement* measurement(const DeviceFacts& device) const;
  Result<void> remember(const DeviceFacts& device, const Measurement& measurement);

 private:
  explicit ClientState(std::filesystem::path path) : file_(std::move(path)) {}

  StateFile file_;
  ClientMemory memory_;
};

// The URL up to its path: what tells one coordinator from another to a person.
std::string url_without_query(const std::string& url);

}  // namespace shoal::client
