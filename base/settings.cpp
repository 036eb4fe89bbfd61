#include "base/settings.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/files.h"

namespace shoal {
namespace {

constexpr Bytes kSettingsBytesMax{1 << 20};
constexpr std::string_view kTypeNames[] = {"true or false", "a whole number", "a number", "a text",
                                           "a list of texts"};

const SettingSpec* find_spec(std::span<const SettingSpec> table, std::string_view key) {
  const auto found = std::ranges::find(table, key, &SettingSpec::key);
  return found == table.end() ? nullptr : &*found;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

Error unknown_key(std::span<const SettingSpec> table, std::string_view key) {
  std::string message = "unknown setting '" + std::string(key.substr(0, 100)) + "'";
  const SettingSpec* nearest = nullptr;
  size_t least = key.size() > 100 ? 0 : key.size() / 3 + 2;
  for (const SettingSpec& spec : table) {
    const size_t distance = key.size() > 100 ? 100 : edit_distance(key, spec.key);
    if (distance < least) {
      least = distance;
      nearest = &spec;
    }
  }
  if (nearest != nullptr) message += "; did you mean '" + std::string(nearest->key) + "'?";
  return {ErrorCode::kInvalid, message};
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

std::string limits_text(const SettingSpec& spec) {
  const bool low = std::isfinite(spec.min);
  const bool high = std::isfinite(spec.max);
  if (low && high) return "from " + number_text(spec.min) + " to " + number_text(spec.max);
  if (low) return "at least " + number_text(spec.min);
  if (high) return "at most " + number_text(spec.max);
  return "";
}

std::string choices_text(const SettingSpec& spec) {
  std::string text;
  for (const std::string_view choice : spec.choices) {
    if (!text.empty()) text += ", ";
    text += choice;
  }
  return text;
}

Result<SettingValue> check(const SettingSpec& spec, SettingValue value) {
  const auto wrong = [&spec](const std::string& why) {
    return Error{ErrorCode::kInvalid, std::string(spec.key) + " must be " + why};
  };
  // People write 1 for 1.0.
  if (std::holds_alternative<double>(spec.fallback) && std::holds_alternative<int64_t>(value)) {
    value = static_cast<double>(std::get<int64_t>(value));
  }
  if (value.index() != spec.fallback.index()) {
    return wrong(std::string(kTypeNames[spec.fallback.index()]));
  }
  double number = 0;
  if (const auto* integer = std::get_if<int64_t>(&value)) number = static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  const bool is_number =
      std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value);
  if (is_number && !std::isfinite(number)) return wrong("a finite number");
  if (is_number && (number < spec.min || number > spec.max)) return wrong(limits_text(spec));
  if (const auto* text = std::get_if<std::string>(&value);
      text != nullptr && !spec.choices.empty()) {
    if (std::ranges::find(spec.choices, *text) == spec.choices.end()) {
      return wrong("one of " + choices_text(spec) + ", not '" + *text + "'");
    }
  }
  return value;
}

// Nothing when the node is of a kind that no setting has.
std::optional<SettingValue> value_of(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return SettingValue(flag->get());
  if (const auto* integer = node.as_integer()) return SettingValue(integer->get());
  if (const auto* real = node.as_floating_point()) return SettingValue(real->get());
  if (const auto* text = node.as_string()) return SettingValue(text->get());
  if (const auto* array = node.as_array()) {
    std::vector<std::string> list;
    for (const toml::node& item : *array) {
      const auto* text = item.as_string();
      if (text == nullptr) return std::nullopt;
      list.push_back(text->get());
    }
    return SettingValue(std::move(list));
  }
  return std::nullopt;
}

// One level of tables at most: settings have one dot.
Result<void> take_table(const toml::table& table, const std::string& prefix, std::string_view name,
                        Settings& settings) {
  for (const auto& [toml_key, node] : table) {
    const std::string key = prefix + std::string(toml_key.str());
    const std::string place = std::string(name) + ":" + std::to_string(node.source().begin.line);
    if (const auto* inner = node.as_table()) {
      const bool known =
          prefix.empty() && std::ranges::any_of(settings.table(), [&](const auto& spec) {
            return spec.key.starts_with(key + ".");
          });
      if (known) {
        SHOAL_TRY(take_table(*inner, key + ".", name, settings));
        continue;
      }
    }
    const SettingSpec* const spec = find_spec(settings.table(), key);
    if (spec == nullptr) return with_context(unknown_key(settings.table(), key), place);
    std::optional<SettingValue> value = value_of(node);
    if (!value) {
      return Error{ErrorCode::kInvalid, place + ": " + key + " must be " +
                                            std::string(kTypeNames[spec->fallback.index()])};
    }
    if (auto set = settings.set(key, std::move(*value)); !set.ok()) {
      return with_context(set.error(), place);
    }
  }
  return {};
}

std::string toml_text(const SettingValue& value) {
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const unsigned char c : text) {
      if (c == '"' || c == '\\') {
        out += '\\';
        out += static_cast<char>(c);
      } else if (c < 0x20 || c == 0x7f) {
        char escape[8];
        std::snprintf(escape, sizeof escape, "\\u%04x", c);
        out += escape;
      } else {
        out += static_cast<char>(c);
      }
    }
    return out + '"';
  };
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", *real);
    const bool whole = std::string_view(text).find_first_of(".e") == std::string_view::npos;
    return text + std::string(whole ? ".0" : "");
  }
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  std::string out = "[";
  for (const std::string& item : std::get<std::vector<std::string>>(value)) {
    if (out.size() > 1) out += ", ";
    out += quoted(item);
  }
  return out + "]";
}

void document_key(const SettingSpec& spec, std::string_view short_key, const SettingValue& value,
                  std::string& out) {
  out += '\n';
  std::string_view help = spec.help;
  while (!help.empty()) {
    const size_t end = std::min(help.find('\n'), help.size());
    out += "# " + std::string(help.substr(0, end)) + "\n";
    help.remove_prefix(std::min(end + 1, help.size()));
  }
  if (const std::string limits = limits_text(spec); !limits.empty())
    out += "# Limits: " + limits + ".\n";
  if (!spec.choices.empty()) out += "# One of: " + choices_text(spec) + ".\n";
  const bool changed = value != spec.fallback;
  if (changed) out += "# Default: " + toml_text(spec.fallback) + "\n";
  out += (changed ? "" : "#") + std::string(short_key) + " = " + toml_text(value) + "\n";
}

}  // namespace

Settings::Settings(std::span<const SettingSpec> table) : table_(table) {
  for (const SettingSpec& spec : table) SHOAL_CHECK(find_spec(table, spec.key) == &spec);
}

Result<Settings> Settings::load(std::span<const SettingSpec> table,
                                const std::filesystem::path& path) {
  SHOAL_TRY_ASSIGN(bytes, read_file(path, kSettingsBytesMax));
  return parse(table, as_text(bytes), path.string());
}

Result<Settings> Settings::parse(std::span<const SettingSpec> table, std::string_view text,
                                 std::string_view name) {
  Settings settings(table);
  try {  // toml++ reports by exceptions; they end here.
    const toml::table root = toml::parse(text, name);
    SHOAL_TRY(take_table(root, "", name, settings));
  } catch (const toml::parse_error& error) {
    return Error{ErrorCode::kInvalid, std::string(name) + ":" +
                                          std::to_string(error.source().begin.line) + ": " +
                                          std::string(error.description())};
  }
  return settings;
}

const SettingValue& Settings::value(std::string_view key) const {
  const SettingSpec* const spec = find_spec(table_, key);
  SHOAL_CHECK(spec != nullptr);
  const auto set = values_.find(key);
  return set == values_.end() ? spec->fallback : set->second;
}

bool Settings::flag(std::string_view key) const { return std::get<bool>(value(key)); }
int64_t Settings::integer(std::string_view key) const { return std::get<int64_t>(value(key)); }
double Settings::real(std::string_view key) const { return std::get<double>(value(key)); }
const std::string& Settings::text(std::string_view key) const {
  return std::get<std::string>(value(key));
}
const std::vector<std::string>& Settings::list(std::string_view key) const {
  return std::get<std::vector<std::string>>(value(key));
}

Result<void> Settings::set(std::string_view key, SettingValue value) {
  const SettingSpec* const spec = find_spec(table_, key);
  if (spec == nullptr) return unknown_key(table_, key);
  SHOAL_TRY_ASSIGN(checked, check(*spec, std::move(value)));
  values_.insert_or_assign(std::string(key), std::move(checked));
  return {};
}

Result<void> Settings::set_from_text(std::string_view key, std::string_view text) {
  const SettingSpec* const spec = find_spec(table_, key);
  if (spec == nullptr) return unknown_key(table_, key);
  const auto number = [&]<class T>(T value) -> Result<void> {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) {
      return Error{ErrorCode::kInvalid, std::string(key) + " must be " +
                                            std::string(kTypeNames[spec->fallback.index()]) +
                                            ", not '" + std::string(text) + "'"};
    }
    return set(key, value);
  };
  switch (spec->fallback.index()) {
    case 0:
      if (text == "true" || text == "false") return set(key, text == "true");
      return Error{ErrorCode::kInvalid,
                   std::string(key) + " must be true or false, not '" + std::string(text) + "'"};
    case 1: return number(int64_t{});
    case 2: return number(double{});
    case 3: return set(key, std::string(text));
  }
  std::vector<std::string> list;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return set(key, std::move(list));
}

std::string Settings::document() const {
  std::string out =
      "# Lines that begin with # say what a setting means and what it is when left out.\n";
  // TOML wants the keys of no table first.
  for (const SettingSpec& spec : table_) {
    if (spec.key.find('.') == std::string_view::npos)
      document_key(spec, spec.key, value(spec.key), out);
  }
  std::vector<std::string_view> done;
  for (const SettingSpec& first : table_) {
    const std::string_view group = first.key.substr(0, first.key.find('.'));
    if (group.size() == first.key.size() || std::ranges::find(done, group) != done.end()) continue;
    done.push_back(group);
    out += "\n[" + std::string(group) + "]\n";
    for (const SettingSpec& spec : table_) {
      if (spec.key.size() > group.size() && spec.key.starts_with(group) &&
          spec.key[group.size()] == '.') {
        document_key(spec, spec.key.substr(group.size() + 1), value(spec.key), out);
      }
    }
  }
  return out;
}

}  // namespace shoal
