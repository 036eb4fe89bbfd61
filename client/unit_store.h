#pragma once
// Holds units that were begun, on disk: so that a client that is ended in any way goes on with
// them. Two generations of each. A file that cannot be read counts as none.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/unit_work.h"

namespace shoal::client {

class UnitStore {
 public:
  // An empty folder keeps nothing: every save fails.
  explicit UnitStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<void> save(const UnitCheckpoint& checkpoint) const;
  void remove(const std::string& pin, uint64_t lease) const;
  // Those of one device. What is damaged, or nobody came back to for two weeks, is removed.
  std::vector<UnitCheckpoint> load(const std::string& device) const;

 private:
  std::filesystem::path path(const std::string& pin, uint64_t lease) const;

  std::filesystem::path folder_;
};

}  // namespace shoal::client
