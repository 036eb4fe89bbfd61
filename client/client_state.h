#pragma once
// Holds what the client must remember over restarts: where it is attached, and what its devices
// proved.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "client/device_facts.h"

namespace shoal::client {

struct Attachment {
  std::string url;   // With the pin, without an invite: that is used up.
  std::string name;  // As the coordinator calls itself.
  uint64_t host_id = 0;
};

class ClientState {
 public:
  // An absent file is an empty state.
  static Result<ClientState> load(const std::filesystem::path& path);

  const std::vector<Attachment>& attachments() const { return attachments_; }
  // Adds it, or replaces the one with the same address and pin. Durable when it returns.
  Result<void> attach(Attachment attachment);
  // Those at `url` (given with or without pin), or all when it is empty; how many.
  Result<int> detach(const std::string& url);

  // What the device proved, if that was with this driver and this version of Shoal; null otherwise.
  const Measurement* measurement(const DeviceFacts& device) const;
  Result<void> remember(const DeviceFacts& device, const Measurement& measurement);

 private:
  explicit ClientState(std::filesystem::path path) : file_(std::move(path)) {}
  Result<void> save() const;

  StateFile file_;
  std::vector<Attachment> attachments_;
  std::map<std::string, Measurement> measurements_;  // By device, driver and version.
};

// The URL up to its path: what tells one coordinator from another to a person.
std::string url_without_query(const std::string& url);

}  // namespace shoal::client
