#pragma once
// Small facts about the coordinator itself, by key: what a settings file must not be able to
// change.

#include <optional>
#include <string>

#include "coordinator/store/store.h"

namespace shoal {

class SettingTable {
 public:
  explicit SettingTable(Store& store) : store_(store) {}  // The store outlives the table.

  Result<std::optional<std::string>> get(const std::string& key);
  Result<void> set(const std::string& key, const std::string& value);

 private:
  Store& store_;
};

}  // namespace shoal
