#pragma once
// Makes a task's output out of its units' results, and the items of a task that goes on from it, a
// piece at a time: a large job has millions of lines, and others have their turn between.

#include <filesystem>
#include <memory>
#include <vector>

#include "coordinator/jobs/job_service.h"

namespace shoal {

// Where results lie that are too large for the store.
std::filesystem::path result_path(const std::filesystem::path& folder, UnitId unit,
                                  const Digest& digest);

class OutputMaker {
 public:
  // Begins the file `path`; results lie in `folder`. `units` outlives it.
  static Result<std::unique_ptr<OutputMaker>> begin(UnitTable& units,
                                                    std::shared_ptr<const LiveTask> task,
                                                    const std::filesystem::path& folder,
                                                    const std::filesystem::path& path);
  OutputMaker(UnitTable& units, std::shared_ptr<const LiveTask> task, std::filesystem::path folder,
              OutputWriter writer);  // For begin() alone.

  Result<bool> go_on();  // Some more of it; false when all is there that there is.
  // Whose result was found to be gone, or damaged: to go on again is of no use.
  std::optional<UnitId> lost() const { return lost_; }
  OutputWriter& writer() { return writer_; }

 private:
  Result<bool> next_unit();
  Result<ByteVector> result_bytes(const EndedUnit& unit);

  UnitTable& units_;
  const std::shared_ptr<const LiveTask> task_;
  const std::filesystem::path folder_;
  OutputWriter writer_;
  std::vector<EndedUnit> ended_;    // Those that were read last,
  size_t unit_ = 0;                 // and the next of them.
  int64_t next_item_ = 0;           // Of the unit after these.
  std::vector<WorkItem> items_;     // Of the unit that is being written,
  std::vector<ItemValues> values_;  // none when it was put aside,
  size_t item_ = 0;                 // and the next of them.
  std::optional<UnitId> lost_;
};

class ItemsMaker {
 public:
  // Of `task`, from the output file `source`.
  static Result<std::unique_ptr<ItemsMaker>> begin(std::shared_ptr<const LiveTask> task,
                                                   const std::filesystem::path& source,
                                                   const std::filesystem::path& folder,
                                                   const std::string& name);
  ItemsMaker(std::shared_ptr<const LiveTask> task, OutputReader reader, ItemsWriter writer);

  Result<bool> go_on();
  Result<Digest> finish() { return writer_.finish(); }
  const LiveTask& task() const { return *task_; }

 private:
  const std::shared_ptr<const LiveTask> task_;
  OutputReader reader_;
  ItemsWriter writer_;
  int64_t index_ = 0;
};

}  // namespace shoal
