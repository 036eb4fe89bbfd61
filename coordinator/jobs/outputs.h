#pragma once
// A task's output file: one JSON line an item, in the order of the input. Knows no table.
//
//   generate  {"id":…,"text":"…","tokens":[…],"finish_reason":"stop"|"length","seed":…}
//   score     {"id":…,"log_likelihoods":[…],"sum":…}
//   embed     {"id":…,"vector":[…]}
//   an item that broke every host, or whose own input did: {"id":…,"error":"…"}

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/jobs/digest_file.h"
#include "coordinator/jobs/items_file.h"
#include "coordinator/session/live_model.h"
#include "schema/unit_output.h"

namespace shoal {

UnitKind unit_kind(TaskKind kind);

// One line, with its end.
std::string output_line(const WorkItem& item, const ItemValues& values, TaskKind kind,
                        const LiveModel& model, std::span<const int32_t> stop);
std::string quarantined_line(const WorkItem& item);

// Reads such a file of a task that generated, a line at a time.
class OutputReader {
 public:
  static Result<OutputReader> open(const std::filesystem::path& path);

  // Nothing after the last. kCorrupt when the file is no output.
  Result<std::optional<FormerOutput>> next();

 private:
  explicit OutputReader(InputFile file) : file_(std::move(file)) {}

  InputFile file_;
  uint64_t offset_ = 0;
  std::string read_;  // What was read of the file,
  size_t taken_ = 0;  // and how much of it was taken.
};

// Lines in, a file out: named when it is finished, and gone when it is dropped before.
class OutputWriter {
 public:
  static Result<OutputWriter> begin(const std::filesystem::path& path);

  Result<void> add(std::string_view line);
  int64_t lines() const { return lines_; }
  Result<Digest> finish() { return file_.finish("jsonl"); }
  Result<void> leave() { return file_.leave(); }

 private:
  explicit OutputWriter(DigestFile file) : file_(std::move(file)) {}

  DigestFile file_;
  int64_t lines_ = 0;
};

}  // namespace shoal
