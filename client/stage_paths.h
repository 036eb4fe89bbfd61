#pragma once
// The paths of one stage: the rows that its neighbour before it sent and no step has taken yet, and
// those that it passed on itself, kept for a coordinator that may ask for them. Everything that
// comes from a neighbour is hostile.
//
// Belongs to the KJ loop's thread.

#include <kj/async.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/result.h"
#include "client/path_door.h"
#include "schema/direct.capnp.h"
#include "schema/task.h"

namespace shoal::client {

// What all stages of a host may keep together.
constexpr int64_t kKeptBytesMax = int64_t{256} << 20;

// What came over a path and was not taken yet: a block for each step that waits, and kBlocksMax
// more.
class RowInlet final : public kj::Refcounted {
 public:
  static constexpr size_t kBlocksMax = 2;  // A neighbour may be ahead of the coordinator's word.

  RowInlet(size_t row_bytes, size_t rows_max) : row_bytes_(row_bytes), rows_max_(rows_max) {}

  // Throws, and ends the path, when that is no block of rows, or none that may come now.
  void put(uint32_t first, ByteSpan hidden);
  // The next block, once it is there. Rejects when another one comes, or none can come any more.
  kj::Promise<ByteVector> take(uint32_t first, uint32_t rows);
  void end(const std::string& why);

 private:
  struct Block {
    uint32_t first = 0;
    ByteVector hidden;
  };
  struct Taker {
    uint32_t first = 0, rows = 0;
    kj::Own<kj::PromiseFulfiller<ByteVector>> fulfiller;
  };
  void give();

  const size_t row_bytes_, rows_max_;
  std::string ended_;  // Why nothing comes any more; empty: it may.
  // One of the two is always empty.
  std::deque<Block> blocks_;
  std::deque<Taker> takers_;
};

class StagePaths final : private kj::TaskSet::ErrorHandler {
 public:
  // `row_bytes` of hidden rows; steps have at most `rows_max`. The door outlives this.
  StagePaths(PathDoor& door, size_t row_bytes, size_t rows_max)
      : door_(door), row_bytes_(row_bytes), rows_max_(rows_max), sending_(*this) {}
  ~StagePaths() noexcept(false) { end(); }
  KJ_DISALLOW_COPY(StagePaths);

  size_t row_bytes() const { return row_bytes_; }
  // Leaves both neighbours and frees all that is kept; there are no paths after it.
  void end();

  // As of DirectStage. Throw what a coordinator is to be told.
  void expect(rpc::PathEnd::Reader end);
  rpc::Task<uint32_t> dial(rpc::DirectStage::DialParams::Reader params);

  kj::Promise<ByteVector> take(uint32_t first, uint32_t rows);
  // Whether there is a path, and room to keep so many rows more.
  Result<void> may_pass_on(uint32_t rows) const;
  // Keeps them, and sends them on their way. Whether they arrive is for the neighbour to say. Fails
  // when there is no path any more, or rows before them are missing.
  Result<Digest> pass_on(uint32_t first, ByteSpan hidden);
  Result<ByteSpan> outputs(uint32_t first, uint32_t rows) const;

 private:
  struct Side {
    std::unique_ptr<PathDoor::Expectation> expectation;
    kj::Maybe<PathDoor::Meeting> meeting;
    uint64_t begun = 0;  // Counts the paths that this side had.
  };
  static constexpr int kUnheardMax = 4;

  Side& side(rpc::PathEnd::Side which) {
    return which == rpc::PathEnd::Side::INPUTS ? inputs_ : outputs_;
  }
  // The side has another path from now on. What the neighbour gets of it.
  kj::Maybe<rpc::PathInlet::Client> begin(rpc::PathEnd::Reader end);
  void forget(size_t bytes_left);
  void taskFailed(kj::Exception&& exception) override;

  PathDoor& door_;
  const size_t row_bytes_, rows_max_;
  bool ended_ = false;

  Side inputs_, outputs_;
  kj::Own<RowInlet> inlet_;  // Null: nothing comes.

  std::optional<uint32_t> kept_first_;  // Empty: nothing was passed on yet.
  ByteVector kept_;
  int unheard_ = 0;  // Blocks that the neighbour has not answered for.
  kj::TaskSet sending_;
};

}  // namespace shoal::client
