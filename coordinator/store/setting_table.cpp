#include "coordinator/store/setting_table.h"

namespace shoal {

Result<std::optional<std::string>> SettingTable::get(const std::string& key) {
  Query query = store_.query("SELECT value FROM setting WHERE key = ?");
  SHOAL_TRY_ASSIGN(some, query.bind(key).row());
  if (!some) return std::optional<std::string>();
  return std::optional<std::string>(query.text(0));
}

Result<void> SettingTable::set(const std::string& key, const std::string& value) {
  Query query = store_.query(
      "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = "
      "excluded.value");
  return query.bind(key).bind(value).run();
}

}  // namespace shoal
