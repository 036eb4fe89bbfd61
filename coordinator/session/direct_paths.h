#pragma once
// The paths on which the stages of a session pass their hidden rows to the next one themselves, so
// that the coordinator neither carries nor waits for them. What fails on a path is nobody's
// failure: the path is dropped, the rows that the coordinator lacks are brought, and the relay goes
// on.
//
// Belongs to the coordinator's one thread. Its tasks are the session's: one at a time.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coordinator/session/stage_runner.h"

namespace shoal {

class DirectPaths {
 public:
  // `shared` and `stages`, of which there is at least one, outlive it.
  DirectPaths(SessionShared& shared, std::span<const std::unique_ptr<StageRunner>> stages);
  KJ_DISALLOW_COPY(DirectPaths);

  // Begins to open paths where there are none and may be some.
  void open();
  // When no path is being opened any more.
  kj::Promise<void> opened();

  // The last stage of those which paths join to `stage`: it is `stage` where none does.
  size_t run_end(size_t stage);
  // Blocks of stages `from` to `to`, all at once and several on their way, until `end` or until the
  // inputs of the first have no more. `done` is given what the last stage answered, block by block.
  // False when a path failed: then none joins these stages any more, and what the coordinator needs
  // to go on as the relay is here. REQUIRES: from < to <= run_end(from), and something is to be
  // done.
  struct Block {
    int64_t first = 0, rows = 0;
    bool draw = false;
  };
  using Done = std::function<void(const Block& block, StepResult result)>;
  rpc::Task<bool> run(size_t from, size_t to, int64_t end, int64_t block_rows, Done done);

  // So that the inputs of a stage are kept up to `rows`: from who passed them on, or computed anew.
  rpc::Task<void> bring(size_t stage, int64_t rows);

 private:
  // A block of rows that went over a path.
  struct Passed {
    int64_t first = 0, rows = 0;
    Digest digest;
  };
  struct Path {
    enum class State { kClosed, kOpening, kOpen };
    State state = State::kClosed;
    LeaseId from, to;  // Of the devices that it joins.
    int attempts = 0;
    kj::TimePoint not_before = kj::origin<kj::TimePoint>();
    std::vector<Passed> passed;  // Since it was opened; in order.
    kj::Promise<void> opening = nullptr;
    kj::Own<kj::PromiseFulfiller<void>> opened;  // Of who waits for it.
  };
  struct Door {
    bool dials = false;
    uint16_t port = 0;
    std::string pin, address;
    double hop_seconds = 0;
    bool hop_measured = false;
  };

  // A block that is on its way through several stages.
  struct Flight {
    Block block;
    std::vector<kj::Promise<StageDevice::DirectResponse>> answers;  // By stage.
  };

  bool may_have_paths() const;
  bool is_usable(size_t path) const;
  rpc::Task<void> open_path(size_t path);
  rpc::Task<Door> door_of(DevicePlace place);
  rpc::Task<double> meet(rpc::DirectStage::Client listens, rpc::DirectStage::Client dials,
                         Door door, bool inputs_dial);
  void close(size_t path, const std::string& why);
  Flight send(size_t from, size_t to, const Block& block);
  // The last stage's result; empty when the block did not get through, which closed the paths.
  rpc::Task<std::optional<StepResult>> hear(size_t from, size_t to, Flight& flight, bool alone);
  rpc::Task<bool> read_outputs(size_t stage);

  SessionShared& shared_;
  std::span<const std::unique_ptr<StageRunner>> stages_;
  std::vector<Path> paths_;  // Between each stage and the next.
};

}  // namespace shoal
