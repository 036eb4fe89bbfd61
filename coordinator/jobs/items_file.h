#pragma once
// The items of a task as a file: written once at submission, read back a unit at a time. And the
// lines of input files that they are made from, checked as hostile input.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/files.h"
#include "coordinator/jobs/digest_file.h"
#include "coordinator/jobs/job_file.h"
#include "coordinator/session/live_model.h"

namespace shoal {

struct WorkItem {
  std::string id;               // JSON, as the input had it; the line's number when it had none.
  std::vector<int32_t> tokens;  // generate: the prompt. score, embed: the text.
  uint32_t tokens_max = 0;      // generate
  uint32_t score_from = 0;      // score
  SamplingChoice sampling;      // generate
  bool missing = false;         // What it is made from was quarantined: it stands for nothing.
};

// A line of an input file.
//
//   {"prompt": "…"} or {"text": "…"}, and "id": any text or number; of generate besides
//   "max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed"; of score
//   besides "prompt", which is not scored itself.
//
// kInvalid without the line's number, which the caller knows.
Result<WorkItem> read_input_line(std::string_view line, const JobTask& task, const LiveModel& model,
                                 int64_t item);

// The item made from the output of another task: its text, and what it went on from.
struct FormerOutput {
  std::string id;                   // JSON.
  std::optional<std::string> text;  // Empty: it was quarantined.
};
WorkItem item_from_output(const FormerOutput& former, const JobTask& task, const LiveModel& model,
                          int64_t item);

// Tokens that end a text.
std::vector<int32_t> stop_tokens(const JobTask& task, const LiveModel& model);

// What a task's items need at most, and on average.
struct ItemSums {
  int64_t count = 0;
  int64_t rows = 0;         // To run, at most: prompts and all that may be drawn.
  int64_t context_max = 1;  // Positions of the longest.
  int64_t tokens_max = 1;   // Of one item, in or out: bounds a unit.

  void add(const WorkItem& item, TaskKind kind);
};

// How many items a unit of the task may have: what goes out and what comes back are one message
// each. `tokens_max`: of one item; `width`: of the model's rows.
int64_t unit_items_max(TaskKind kind, int64_t tokens_max, int64_t width);

// Items in, a file out. Dropped before finish(), it leaves nothing.
class ItemsWriter {
 public:
  static Result<ItemsWriter> begin(const std::filesystem::path& folder, const std::string& name);

  Result<void> add(const WorkItem& item);
  // Names the file DIGEST.items in its folder.
  Result<Digest> finish();

 private:
  explicit ItemsWriter(DigestFile file) : file_(std::move(file)) {}

  DigestFile file_;
  std::vector<uint64_t> offsets_;
};

std::filesystem::path items_path(const std::filesystem::path& folder, const Digest& digest);

class ItemsFile {
 public:
  static Result<ItemsFile> open(const std::filesystem::path& folder, const Digest& digest);

  int64_t count() const { return count_; }
  // kCorrupt when the file is not what it was. REQUIRES: within the file.
  Result<std::vector<WorkItem>> read(int64_t first, int64_t count) const;

 private:
  ItemsFile(InputFile file, int64_t count, uint64_t offsets_at)
      : file_(std::move(file)), count_(count), offsets_at_(offsets_at) {}

  InputFile file_;
  int64_t count_ = 0;
  uint64_t offsets_at_ = 0;
};

}  // namespace shoal
