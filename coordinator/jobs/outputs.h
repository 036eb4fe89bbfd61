#pragma once
// A task's output file: one JSON line an item, in the order of the input. Knows no table.
//
//   generate  {"id":…,"text":"…","tokens":[…],"finish_reason":"stop"|"length","seed":…}
//   score     {"id":…,"log_likelihoods":[…],"sum":…}
//   embed     {"id":…,"vector":[…]}
//   an item that broke every host, or whose own input did: {"id":…,"error":"…"}

#include <filesystem>
#include <functional>
#include <string>

#include "base/files.h"
#include "coordinator/jobs/items_file.h"
#include "coordinator/session/live_model.h"
#include "schema/unit_output.h"

namespace shoal {

UnitKind unit_kind(TaskKind kind);

// One line, with its end.
std::string output_line(const WorkItem& item, const ItemValues& values, TaskKind kind,
                        const LiveModel& model, std::span<const int32_t> stop);
std::string quarantined_line(const WorkItem& item);

// What comes back for each line of such a file of a task that generated. kCorrupt when it is none.
Result<void> read_output_file(const std::filesystem::path& path,
                              const std::function<Result<void>(const FormerOutput&)>& take);

// Lines in, a file out. Dropped before finish(), it leaves nothing.
class OutputWriter {
 public:
  static Result<OutputWriter> begin(const std::filesystem::path& path);
  OutputWriter(OutputWriter&& other) noexcept;
  ~OutputWriter();

  Result<void> add(std::string_view line);
  int64_t lines() const { return lines_; }
  // Names the file DIGEST.jsonl in its folder, durably.
  Result<Digest> finish();
  // Leaves the file where it is, and to the caller.
  Result<void> leave();

 private:
  OutputWriter(std::filesystem::path path, AppendFile file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Result<void> flush();

  std::filesystem::path path_;  // Empty when moved from or finished.
  AppendFile file_;
  DigestBuilder digest_;
  std::string waiting_;
  int64_t lines_ = 0;
};

}  // namespace shoal
