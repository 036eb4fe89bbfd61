#pragma once
// Reads a job file (docs/JOBS.md), TOML or JSON, as hostile input. Pure: knows no model and no
// input file.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "coordinator/session/session_types.h"
#include "coordinator/work/broker.h"

namespace shoal {

struct JobTask {
  std::string name;
  TaskKind kind = TaskKind::kGenerate;
  std::string model;
  // A file's name, or of the task whose output it is.
  std::string input;
  std::optional<size_t> input_task;
  std::vector<size_t> after;  // Tasks that must be done before; those of `input` among them.
  std::string text_template;  // What goes to the model: "{text}" stands for the line's text.
  int64_t tokens_max = 0;     // generate
  SamplingChoice sampling;    // generate; its seed is that of the task.
  bool ignore_eos = false;
  std::vector<int32_t> stop;  // Token ids that end a text besides the model's own.
  Millis unit_target;         // 0: the coordinator's.
};

struct JobFile {
  std::string name;
  int priority = 0;
  Millis deadline;  // Wall time; 0: none.
  bool anchored = false;
  std::string group;  // Whose hosts alone compute it; empty: all may. Never with `anchored`.
  std::vector<JobTask> tasks;       // Each after those that it needs.
  std::vector<std::string> inputs;  // The files that the tasks name, once each.
};

// kInvalid with the line (of TOML; of JSON when it does not parse) and the field.
Result<JobFile> read_job_file(std::string_view text);

// The seed of an item: its own text, whatever unit it is in.
uint64_t item_seed(uint64_t task_seed, int64_t item);

// What of a choice is out of its bounds, as a job file names it; nothing when all is within them.
struct OutOfBounds {
  const char* field;
  std::string what;  // "it is not between 0 and 1"
};
std::optional<OutOfBounds> out_of_bounds(const SamplingChoice& sampling);

}  // namespace shoal
