// rules, what-if: the settings of the client, and what others would have meant for the last days.

#include <algorithm>

#include "base/text.h"
#include "client/agent_wire.h"
#include "client/commands/commands.h"
#include "client/commands/words.h"
#include "client/live_settings.h"
#include "client/rules/validate_rules.h"
#include "client/settings.h"

namespace shoal::client {
namespace {

using List = std::vector<std::string>;

std::string value_text(const SettingValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return Json(*real).dump();
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string all;
  for (const std::string& text : std::get<List>(value)) all += (all.empty() ? "" : ", ") + text;
  return all;
}

Json value_json(const SettingValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

// What the commands know of one setting, from the client that runs or from the file.
struct Known {
  std::string key, help;
  SettingValue value, fallback;
};

// Whose settings a command reads and changes.
struct Owner {
  std::function<Result<std::vector<Known>>()> read;
  // All or nothing, and durable.
  std::function<Result<void>(const std::vector<std::pair<std::string, SettingValue>>&)> change;
  bool running = false;
};

void write_changes(const std::vector<std::pair<std::string, SettingValue>>& changes,
                   capnp::List<rpc::SettingChange>::Builder to) {
  for (uint32_t i = 0; i < to.size(); ++i) {
    to[i].setKey(changes[i].first);
    write_setting_value(changes[i].second, to[i].initValue());
  }
}

Owner agent_owner(AgentSession& session) {
  Owner owner;
  owner.running = true;
  owner.read = [&session]() -> Result<std::vector<Known>> {
    const auto answer = session.ask(session.agent.settingsRequest());
    std::vector<Known> all;
    for (const auto setting : answer.getSettings()) {
      all.push_back({setting.getKey().cStr(), setting.getHelp().cStr(),
                     read_setting_value(setting.getValue()),
                     read_setting_value(setting.getFallback())});
    }
    return all;
  };
  owner.change = [&session](const auto& changes) -> Result<void> {
    auto request = session.agent.changeSettingsRequest();
    write_changes(changes, request.initChanges(static_cast<uint32_t>(changes.size())));
    session.ask(kj::mv(request));
    return {};
  };
  return owner;
}

// REQUIRES: the caller holds the folder's lock.
Owner file_owner(Workplace& place) {
  Owner owner;
  owner.read = [&place]() -> Result<std::vector<Known>> {
    std::vector<Known> all;
    for (const SettingSpec& spec : place.settings.table()) {
      all.push_back({std::string(spec.key), std::string(spec.help), place.settings.value(spec.key),
                     spec.fallback});
    }
    return all;
  };
  owner.change = [&place](const auto& changes) -> Result<void> {
    // As the client that runs would do it.
    LiveSettings live(place.settings, place.settings_file(), validate_rules);
    std::vector<SettingChange> wanted;
    for (const auto& [key, value] : changes) wanted.push_back({key, value});
    return live.change(wanted);
  };
  return owner;
}

// The settings of the client that runs; else those of its file.
Result<void> with_owner(const CommandOptions& options,
                        const std::function<Result<void>(Owner& owner)>& body) {
  const AgentBody by_agent = [&body](AgentSession& session) {
    Owner owner = agent_owner(session);
    return body(owner);
  };
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  SHOAL_TRY_ASSIGN(lock, ask_or_lock(options, place, by_agent));
  if (!lock) return {};
  Owner owner = file_owner(place);
  return body(owner);
}

const Known* find(const std::vector<Known>& all, const std::string& key) {
  const auto found = std::ranges::find(all, key, &Known::key);
  return found == all.end() ? nullptr : &*found;
}

// For a mistyped key: the table's own answer, which names the nearest one.
Error unknown_key(const std::string& key) {
  const Result<void> refused = Settings(settings_table()).set(key, false);
  return refused.ok() ? Error{ErrorCode::kInvalid, "unknown setting '" + key + "'"}
                      : refused.error();
}

Json known_json(const Known& known) {
  return {{"key", known.key},
          {"value", value_json(known.value)},
          {"default", value_json(known.fallback)},
          {"help", known.help}};
}

Result<void> list_rules(const CommandOptions& options, bool changed_only) {
  return with_owner(options, [&](Owner& owner) -> Result<void> {
    SHOAL_TRY_ASSIGN(all, owner.read());
    Json list = Json::array();
    std::string text;
    for (const Known& known : all) {
      if (changed_only && known.value == known.fallback) continue;
      list.push_back(known_json(known));
      const auto shown = [](const SettingValue& value) {
        const std::string in_words = printable(value_text(value));
        return in_words.empty() ? std::string("(empty)") : in_words;
      };
      text += printable(known.key) + " = " + shown(known.value);
      if (known.value != known.fallback) text += "   [default: " + shown(known.fallback) + "]";
      text += "\n";
    }
    if (options.json) {
      print_json(Json{{"settings", list}, {"running", owner.running}});
    } else {
      print_text(text.empty() ? "Every setting is at its default." : text);
    }
    return {};
  });
}

Result<void> get_rule(const CommandOptions& options, const std::string& key) {
  return with_owner(options, [&](Owner& owner) -> Result<void> {
    SHOAL_TRY_ASSIGN(all, owner.read());
    const Known* const known = find(all, key);
    if (known == nullptr) return unknown_key(key);
    if (options.json) {
      print_json(known_json(*known));
    } else {
      print_text(printable(value_text(known->value)));
    }
    return {};
  });
}

struct RuleChange {
  std::string key;
  List values;
};

// What was typed, as a value of the setting's own kind: a list takes each word as one text.
Result<SettingValue> typed_value(const std::string& key, const List& words) {
  Settings settings(settings_table());
  const auto spec = std::ranges::find(settings.table(), key, &SettingSpec::key);
  if (spec == settings.table().end()) return unknown_key(key);
  if (std::holds_alternative<List>(spec->fallback)) {
    SHOAL_TRY(settings.set(key, words));
  } else if (words.size() != 1) {
    return Error{ErrorCode::kInvalid,
                 key + " takes one value, not " + std::to_string(words.size())};
  } else {
    SHOAL_TRY(settings.set_from_text(key, words[0]));
  }
  SHOAL_TRY(validate_rules(settings));
  return settings.value(key);
}

Result<void> change_rule(const CommandOptions& options, const std::string& key,
                         const SettingValue& value) {
  return with_owner(options, [&](Owner& owner) -> Result<void> {
    SHOAL_TRY(owner.change({{key, value}}));
    if (options.json) {
      print_json(Json{{"key", key}, {"value", value_json(value)}, {"running", owner.running}});
    } else {
      print_text(key + " = " + printable(value_text(value)));
    }
    return {};
  });
}

Result<void> set_rule(const CommandOptions& options, const RuleChange& change) {
  SHOAL_TRY_ASSIGN(value, typed_value(change.key, change.values));
  return change_rule(options, change.key, value);
}

Result<void> reset_rule(const CommandOptions& options, const std::string& key) {
  const Settings settings(settings_table());
  const auto spec = std::ranges::find(settings.table(), key, &SettingSpec::key);
  if (spec == settings.table().end()) return unknown_key(key);
  return change_rule(options, key, spec->fallback);
}

// --- what-if

struct Question {
  List changes;
  int days = 7;
};

Result<void> what_if(const CommandOptions& options, const Question& question) {
  std::vector<std::pair<std::string, SettingValue>> changes;
  for (const std::string& text : question.changes) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Error{ErrorCode::kInvalid, "'" + text + "' is not KEY=VALUE"};
    }
    const std::string key = text.substr(0, equals);
    Settings settings(settings_table());
    SHOAL_TRY(settings.set_from_text(key, text.substr(equals + 1)));
    SHOAL_TRY(validate_rules(settings));
    changes.emplace_back(key, settings.value(key));
  }
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    auto request = session.agent.whatIfRequest();
    write_changes(changes, request.initChanges(static_cast<uint32_t>(changes.size())));
    request.setDays(static_cast<uint32_t>(question.days));
    const auto answer = session.ask(kj::mv(request), 60 * kj::SECONDS);
    Table table({{"resource", "RESOURCE"},
                 {"known_ms", "WATCHED"},
                 {"allowed_ms", "ALLOWED"},
                 {"would_be_ms", "WOULD BE"},
                 {"difference_ms", "DIFFERENCE"}});
    for (const auto row : answer.getResources()) {
      const auto known = static_cast<int64_t>(row.getKnownMs());
      const auto allowed = static_cast<int64_t>(row.getAllowedMs());
      const auto would_be = static_cast<int64_t>(row.getWouldBeMs());
      const int64_t difference = would_be - allowed;
      const char* const sign = difference > 0 ? "+" : difference < 0 ? "-" : "";
      table.add({word_of(row.getResource()),
                 {text_of(Millis{known}), known},
                 {text_of(Millis{allowed}), allowed},
                 {text_of(Millis{would_be}), would_be},
                 {sign + text_of(Millis{std::abs(difference)}), difference}});
    }
    if (options.json) {
      print_json(Json{{"days", question.days}, {"resources", table.json()}});
    } else {
      print_text(table.text());
    }
    return {};
  });
}

}  // namespace

void add_rule_commands(Commands& commands) {
  CLI::App& rules =
      commands.group("rules", "Settings: of the client that runs, or of its file while none does");
  bool& changed = commands.keep<bool>();
  commands
      .add(rules, "list", "All settings and their values",
           [&changed](const CommandOptions& options) { return list_rules(options, changed); })
      .add_flag("--changed", changed, "Only those that are not at their default");
  std::string& key = commands.keep<std::string>();
  commands
      .add(rules, "get", "One setting",
           [&key](const CommandOptions& options) { return get_rule(options, key); })
      .add_option("key", key, "Such as rules.idle_seconds")
      ->required();
  RuleChange& change = commands.keep<RuleChange>();
  CLI::App& set =
      commands.add(rules, "set", "Change a setting, now and for good",
                   [&change](const CommandOptions& options) { return set_rule(options, change); });
  set.add_option("key", change.key, "Such as rules.compute_hours")->required();
  set.add_option("value", change.values,
                 "Such as true, 300 or \"mon-fri 22:00-06:00\"; several for a list, none for an "
                 "empty one");
  std::string& reset = commands.keep<std::string>();
  commands
      .add(rules, "reset", "Put a setting back to its default",
           [&reset](const CommandOptions& options) { return reset_rule(options, reset); })
      .add_option("key", reset, "Such as rules.compute_hours")
      ->required();

  Question& question = commands.keep<Question>();
  CLI::App& what = commands.add(
      "what-if", "How long each resource could have worked in the last days under other rules",
      [&question](const CommandOptions& options) { return what_if(options, question); });
  what.add_option("changes", question.changes, "KEY=VALUE, such as rules.idle_seconds=60")
      ->required();
  what.add_option("--days", question.days, "How many days back: conditions are kept for eight")
      ->check(CLI::Range(1, 8));
}

}  // namespace shoal::client
