#include "coordinator/jobs/job_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/text.h"
#include "schema/limits.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr int kPriorityMax = 1000;
constexpr int64_t kUnitSecondsMax = 7 * 86'400;
constexpr int kDepthMax = 8;

// Where each field stands in the file, by its path: "tasks[1].kind". Empty for JSON.
using Lines = std::map<std::string, size_t>;

Error wrong(const std::string& where, std::string_view what) {
  return {ErrorCode::kInvalid, "job file: " + where + ": " + std::string(what)};
}

// A date with its time zone, in milliseconds since 1970.
std::optional<int64_t> wall_of(const toml::date_time& at) {
  if (!at.offset) return std::nullopt;
  const std::chrono::year_month_day day{std::chrono::year{at.date.year},
                                        std::chrono::month{at.date.month},
                                        std::chrono::day{at.date.day}};
  if (!day.ok()) return std::nullopt;
  const int64_t days = std::chrono::sys_days{day}.time_since_epoch().count();
  const int64_t minutes = int64_t{at.time.hour} * 60 + at.time.minute - at.offset->minutes;
  return ((days * 1440 + minutes) * 60 + at.time.second) * 1000;
}

Result<Json> json_of(const toml::node& node, const std::string& path, int depth, Lines& lines) {
  lines[path] = node.source().begin.line;
  const auto refuse = [&](const char* what) {
    return wrong("line " + std::to_string(lines[path]) + ": " + path, what);
  };
  if (depth > kDepthMax) return refuse("it is nested too deeply");
  if (const auto* table = node.as_table()) {
    Json out = Json::object();
    for (const auto& [key, value] : *table) {
      const std::string name(key.str());
      SHOAL_TRY_ASSIGN(inner,
                       json_of(value, path.empty() ? name : path + "." + name, depth + 1, lines));
      out[name] = std::move(inner);
    }
    return out;
  }
  if (const auto* array = node.as_array()) {
    Json out = Json::array();
    for (const toml::node& value : *array) {
      SHOAL_TRY_ASSIGN(
          inner, json_of(value, path + "[" + std::to_string(out.size()) + "]", depth + 1, lines));
      out.push_back(std::move(inner));
    }
    return out;
  }
  if (const auto* text = node.as_string()) return Json(text->get());
  if (const auto* integer = node.as_integer()) return Json(integer->get());
  if (const auto* real = node.as_floating_point()) return Json(real->get());
  if (const auto* flag = node.as_boolean()) return Json(flag->get());
  if (const auto* at = node.as_date_time()) {
    const auto wall = wall_of(at->get());
    if (!wall) return refuse("a time needs its zone, as 2026-12-24T12:00:00Z");
    return Json(*wall);
  }
  if (node.is_date()) return refuse("a day needs its time and zone, as 2026-12-24T12:00:00Z");
  return refuse("a value of this kind means nothing here");
}

bool nested_too_deeply(const Json& json, int depth = 0) {
  if (depth > kDepthMax) return true;
  if (!json.is_structured()) return false;
  return std::ranges::any_of(
      json, [depth](const Json& inner) { return nested_too_deeply(inner, depth + 1); });
}

// One table of the file: its fields are taken one by one, and what is left over is refused.
class Fields {
 public:
  Fields(const Json& json, std::string path, const Lines& lines)
      : json_(json), path_(std::move(path)), lines_(lines) {}

  Error error(const std::string& key, std::string_view what) const {
    const std::string path = path_of(key);
    const auto line = lines_.find(path);
    return wrong(line == lines_.end() ? path : "line " + std::to_string(line->second) + ": " + path,
                 what);
  }
  bool has(const std::string& key) const { return json_.contains(key); }
  const Json& at(const std::string& key) { return json_.at(take(key)); }
  const std::string& take(const std::string& key) {
    taken_.insert(key);
    return key;
  }

  Result<std::string> text(const std::string& key, std::string fallback, size_t bytes_max,
                           bool lines_allowed = false) {
    take(key);
    if (!has(key)) return fallback;
    const Json& value = json_[key];
    if (!value.is_string()) return error(key, "it is not a text");
    std::string text = value.get<std::string>();
    if (text.size() > bytes_max) return error(key, "it is too long");
    if (printable(text, lines_allowed) != text)
      return error(key, "it holds what cannot be shown: control characters, or no UTF-8");
    return text;
  }
  Result<std::string> name(const std::string& key) {
    SHOAL_TRY_ASSIGN(text, this->text(key, "", limits::kNameBytesMax));
    if (text.empty()) return error(key, "it is missing");
    return text;
  }
  Result<int64_t> integer(const std::string& key, int64_t fallback, int64_t min, int64_t max) {
    take(key);
    if (!has(key)) return fallback;
    const Json& value = json_[key];
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT64_MAX});
    if (!fits || value.get<int64_t>() < min || value.get<int64_t>() > max) {
      return error(key, "it is not a whole number between " + std::to_string(min) + " and " +
                            std::to_string(max));
    }
    return value.get<int64_t>();
  }
  Result<float> real(const std::string& key, float fallback) {
    take(key);
    if (!has(key)) return fallback;
    if (!json_[key].is_number()) return error(key, "it is not a number");
    return json_[key].get<float>();
  }
  Result<bool> flag(const std::string& key, bool fallback) {
    take(key);
    if (!has(key)) return fallback;
    if (!json_[key].is_boolean()) return error(key, "it is neither true nor false");
    return json_[key].get<bool>();
  }
  // All that was not taken makes no sense.
  Result<void> no_others() const {
    for (const auto& [key, value] : json_.items()) {
      if (!taken_.contains(key))
        return error(std::string(cut_utf8(printable(key), 64)), "there is no such field");
    }
    return {};
  }

 private:
  std::string path_of(const std::string& key) const {
    return path_.empty() ? key : path_ + "." + key;
  }

  const Json& json_;
  const std::string path_;
  const Lines& lines_;
  std::set<std::string> taken_;
};

std::optional<size_t> place_of(const std::vector<JobTask>& tasks, std::string_view name) {
  const auto found = std::ranges::find(tasks, name, &JobTask::name);
  if (found == tasks.end()) return std::nullopt;
  return static_cast<size_t>(found - tasks.begin());
}

Result<SamplingChoice> read_sampling(Fields& fields) {
  SamplingChoice sampling;
  SHOAL_TRY_ASSIGN(temperature, fields.real("temperature", 0.8f));
  SHOAL_TRY_ASSIGN(top_k, fields.integer("top_k", 40, 0, INT32_MAX));
  SHOAL_TRY_ASSIGN(top_p, fields.real("top_p", 0.95f));
  SHOAL_TRY_ASSIGN(min_p, fields.real("min_p", 0.05f));
  SHOAL_TRY_ASSIGN(penalty, fields.real("repetition_penalty", 1.0f));
  sampling.temperature = temperature;
  sampling.top_k = static_cast<uint32_t>(top_k);
  sampling.top_p = top_p;
  sampling.min_p = min_p;
  sampling.repetition_penalty = penalty;
  return sampling;
}

Result<JobTask> read_task(const Json& json, size_t index, uint64_t job_seed,
                          const std::vector<JobTask>& before, const Lines& lines) {
  const std::string path = "tasks[" + std::to_string(index) + "]";
  if (!json.is_object()) return wrong(path, "it is not a table");
  Fields fields(json, path, lines);
  JobTask task;
  SHOAL_TRY_ASSIGN(name, fields.name("name"));
  if (!std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
      })) {
    return fields.error("name", "a task's name has letters, digits, - and _ only");
  }
  if (place_of(before, name)) return fields.error("name", "two tasks have it");
  task.name = name;
  SHOAL_TRY_ASSIGN(kind, fields.name("kind"));
  if (kind == "generate") {
    task.kind = TaskKind::kGenerate;
  } else if (kind == "score") {
    task.kind = TaskKind::kScore;
  } else if (kind == "embed") {
    task.kind = TaskKind::kEmbed;
  } else {
    return fields.error("kind", "it is not generate, score or embed");
  }
  SHOAL_TRY_ASSIGN(model, fields.name("model"));
  task.model = model;

  SHOAL_TRY_ASSIGN(input, fields.name("input"));
  if (input.starts_with('@')) {
    const auto source = place_of(before, std::string_view(input).substr(1));
    if (!source) return fields.error("input", "no task before this one has the name " + input);
    if (before[*source].kind != TaskKind::kGenerate)
      return fields.error("input", input + " generates no text");
    task.input_task = source;
    task.after.push_back(*source);
  }
  task.input = input;
  if (fields.has("after")) {
    const Json& after = fields.at("after");
    if (!after.is_array()) return fields.error("after", "it is not a list of tasks' names");
    for (const Json& item : after) {
      const auto place =
          item.is_string() ? place_of(before, item.get<std::string>()) : std::nullopt;
      if (!place)
        return fields.error("after",
                            "it names what is no task before this one (tasks stand "
                            "after those that they wait for)");
      if (std::ranges::find(task.after, *place) == task.after.end()) task.after.push_back(*place);
    }
  }
  SHOAL_TRY_ASSIGN(text_template, fields.text("template", "{text}", limits::kItemBytesMax / 4,
                                              /*lines_allowed=*/true));
  if (text_template.find("{text}") == std::string::npos)
    return fields.error("template", "it has no {text} in it");
  task.text_template = text_template;
  SHOAL_TRY_ASSIGN(unit_seconds, fields.integer("unit_seconds", 0, 1, kUnitSecondsMax));
  task.unit_target = Millis{unit_seconds * 1000};
  const bool generates = task.kind == TaskKind::kGenerate;
  if (generates) {
    SHOAL_TRY_ASSIGN(tokens_max, fields.integer("max_tokens", 128, 1, limits::kTokensPerUnitMax));
    task.tokens_max = tokens_max;
    SHOAL_TRY_ASSIGN(sampling, read_sampling(fields));
    task.sampling = sampling;
    if (const auto bad = out_of_bounds(sampling)) return fields.error(bad->field, bad->what);
    // Seeds of TOML have 63 bits: enough for anybody.
    SHOAL_TRY_ASSIGN(seed, fields.integer("seed", static_cast<int64_t>(job_seed), 0, INT64_MAX));
    task.sampling.seed = static_cast<uint64_t>(seed);
    SHOAL_TRY_ASSIGN(ignore_eos, fields.flag("ignore_eos", false));
    task.ignore_eos = ignore_eos;
    if (fields.has("stop_tokens")) {
      const Json& stop = fields.at("stop_tokens");
      if (!stop.is_array() || stop.size() > limits::kStopTokensMax / 2)
        return fields.error("stop_tokens", "it is not a list of at most " +
                                               std::to_string(limits::kStopTokensMax / 2) +
                                               " token ids");
      for (const Json& token : stop) {
        if (!token.is_number_integer() || token.get<int64_t>() < 0 ||
            token.get<int64_t>() > INT32_MAX) {
          return fields.error("stop_tokens", "it holds what is no token id");
        }
        task.stop.push_back(token.get<int32_t>());
      }
    }
  }
  SHOAL_TRY(fields.no_others());
  return task;
}

size_t line_of(std::string_view text, size_t byte) {
  return static_cast<size_t>(std::ranges::count(text.substr(0, byte), '\n')) + 1;
}

Result<Json> parse(std::string_view text, Lines& lines) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    Json json;
    size_t failed_at = 0;
    bool failed = false;
    try {  // The parser tells where by an exception alone.
      json = Json::parse(text);
    } catch (const Json::parse_error& error) {
      failed = true;
      failed_at = error.byte;
    }
    if (failed) {
      return wrong("line " + std::to_string(line_of(text, failed_at)),
                   "it is no JSON from here on");
    }
    if (nested_too_deeply(json)) return wrong("it", "it is nested too deeply");
    return json;
  }
  const auto parsed = [&]() -> Result<toml::table> {
    try {  // Likewise.
      return toml::parse(text);
    } catch (const toml::parse_error& error) {
      return wrong("line " + std::to_string(error.source().begin.line),
                   printable(error.description()));
    }
  }();
  if (!parsed.ok()) return parsed.error();
  return json_of(parsed.value(), "", 0, lines);
}

}  // namespace

std::optional<OutOfBounds> out_of_bounds(const SamplingChoice& sampling) {
  struct Bound {
    const char* field;
    float value, min, max;
  };
  const Bound bounds[] = {
      // 0 always takes the likeliest token.
      {"temperature", sampling.temperature == 0 ? 1 : sampling.temperature, 0.01f, 100},
      {"top_p", sampling.top_p, 0, 1},
      {"min_p", sampling.min_p, 0, 1},
      {"repetition_penalty", sampling.repetition_penalty, 0.01f, 100},
  };
  for (const Bound& bound : bounds) {
    if (std::isfinite(bound.value) && bound.value >= bound.min && bound.value <= bound.max)
      continue;
    std::ostringstream text;
    text << "it is not between " << bound.min << " and " << bound.max;
    return OutOfBounds{bound.field, text.str()};
  }
  return std::nullopt;
}

uint64_t item_seed(uint64_t task_seed, int64_t item) {
  // The first item has the task's seed itself, so that a job of one prompt is what generate gives.
  if (item == 0) return task_seed;
  uint64_t mix = task_seed + static_cast<uint64_t>(item) * 0x9e3779b97f4a7c15ull;
  mix = (mix ^ (mix >> 30)) * 0xbf58476d1ce4e5b9ull;
  mix = (mix ^ (mix >> 27)) * 0x94d049bb133111ebull;
  return (mix ^ (mix >> 31)) >> 1;  // Of 63 bits, as seeds of files are.
}

Result<JobFile> read_job_file(std::string_view text) {
  if (text.size() > limits::kJobBytesMax) {
    return Error{ErrorCode::kInvalid, "job file: it is larger than a job file can be"};
  }
  Lines lines;
  SHOAL_TRY_ASSIGN(json, parse(text, lines));
  if (!json.is_object()) return wrong("it", "it is not a table");
  Fields fields(json, "", lines);
  JobFile job;
  SHOAL_TRY_ASSIGN(name, fields.name("name"));
  job.name = name;
  SHOAL_TRY_ASSIGN(priority, fields.integer("priority", 0, -kPriorityMax, kPriorityMax));
  job.priority = static_cast<int>(priority);
  SHOAL_TRY_ASSIGN(deadline, fields.integer("deadline", 0, 0, int64_t{1} << 50));
  job.deadline = Millis{deadline};
  SHOAL_TRY_ASSIGN(seed, fields.integer("seed", 0, 0, INT64_MAX));
  SHOAL_TRY_ASSIGN(privacy, fields.text("privacy", "public", 64));
  if (privacy != "public" && privacy != "anchored" && privacy != "group")
    return fields.error("privacy", "it is neither public nor anchored nor group");
  job.anchored = privacy == "anchored";
  SHOAL_TRY_ASSIGN(group, fields.text("group", "", limits::kNameBytesMax));
  if (group.empty() == (privacy == "group"))
    return fields.error("group", "a group's name goes with privacy = \"group\", and it needs one");
  job.group = group;
  if (!fields.has("tasks") || !json["tasks"].is_array() || json["tasks"].empty()) {
    return wrong("tasks", "a job has at least one task: [[tasks]]");
  }
  const Json& tasks = fields.at("tasks");
  if (tasks.size() > limits::kTasksPerJobMax) return fields.error("tasks", "there are too many");
  SHOAL_TRY(fields.no_others());
  for (size_t i = 0; i < tasks.size(); ++i) {
    SHOAL_TRY_ASSIGN(task, read_task(tasks[i], i, static_cast<uint64_t>(seed), job.tasks, lines));
    if (!task.input_task && std::ranges::find(job.inputs, task.input) == job.inputs.end()) {
      job.inputs.push_back(task.input);
    }
    job.tasks.push_back(std::move(task));
  }
  return job;
}

}  // namespace shoal
