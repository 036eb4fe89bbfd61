#pragma once
// Settings as data: a table says each key's type, default, limits and meaning; a TOML file says
// what differs. What is wrong in the file is refused with file, line and key.

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace shoal {

using SettingValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

struct SettingSpec {
  std::string_view key;   // "cache.bytes_max": a table's name, a dot, the name in it; or no dot.
  SettingValue fallback;  // The default; its type is the setting's type.
  std::string_view help;  // One or more lines for the documented file and the settings page.
  double min = -std::numeric_limits<double>::infinity();  // Of numbers.
  double max = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices = {};  // Of texts; empty: any text.
};

class Settings {
 public:
  // Every setting at its default. `table` outlives the settings; its keys are all different.
  explicit Settings(std::span<const SettingSpec> table);

  static Result<Settings> load(std::span<const SettingSpec> table,
                               const std::filesystem::path& path);
  // `name` stands for the file in messages.
  static Result<Settings> parse(std::span<const SettingSpec> table, std::string_view text,
                                std::string_view name);

  // REQUIRES: the table has the key, with this type.
  bool flag(std::string_view key) const;
  int64_t integer(std::string_view key) const;
  double real(std::string_view key) const;
  const std::string& text(std::string_view key) const;
  const std::vector<std::string>& list(std::string_view key) const;

  const SettingValue& value(std::string_view key) const;  // REQUIRES: the table has the key.
  Result<void> set(std::string_view key, SettingValue value);
  // From a command line: "true", "12", "0.5", "text", "a,b".
  Result<void> set_from_text(std::string_view key, std::string_view text);

  // A TOML file with every key: its help above it, what differs from the default as a line, the
  // rest as a comment. parse() reads it back.
  std::string document() const;

  std::span<const SettingSpec> table() const { return table_; }

 private:
  std::span<const SettingSpec> table_;
  std::map<std::string, SettingValue, std::less<>> values_;  // Those that are not at their default.
};

}  // namespace shoal
