#pragma once
// One unit of a job as a device computes it: what is asked for, checked as hostile input; how far
// it is; which rows its next step has; and its form on disk. Pure: no worker, no wire but messages.
//
// What comes out depends on the input alone: rows do not depend on those beside them, and a draw is
// a function of logits, history, seed and position. So several items run at once, and a unit that
// was interrupted goes on with one prefill of what it had.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/result.h"
#include "base/units.h"
#include "schema/receipt.h"
#include "schema/unit_output.h"
#include "schema/work.capnp.h"

namespace shoal::client {

struct UnitItem {
  std::vector<int32_t> tokens;
  uint32_t tokens_max = 0;
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  uint32_t top_k = 0;
  uint64_t seed = 0;
  std::vector<int32_t> stop;
  uint32_t score_from = 0;
};

struct UnitInput {
  UnitKind kind = UnitKind::kGenerate;
  std::vector<Digest> shards;
  uint32_t context = 0, sequences = 0, rows_max = 0;
  std::vector<UnitItem> items;
};

// Refuses, by field, what is beyond limits.h or cannot be computed whatever the model is.
Result<UnitInput> read_unit(rpc::Unit::Reader unit);
// Of all that the output depends on.
Digest input_digest(const UnitInput& input);

// Of a stage that was opened for it.
struct StageFacts {
  bool begins_with_tokens = false, ends_with_logits = false;
  uint32_t width = 0, vocabulary = 0;
};

struct ItemOutput {
  bool done = false;
  std::vector<int32_t> tokens;  // generate: those drawn so far.
  std::vector<float> numbers;   // score, embed; of a done item.

  friend bool operator==(const ItemOutput&, const ItemOutput&) = default;
};

// What a step of a unit asks for, beside its rows.
struct UnitStep {
  struct Row {
    uint32_t sequence = 0, position = 0;
    int32_t token = 0;
  };
  struct Draw {
    uint32_t row = 0;
    size_t item = 0;
  };
  struct Score {
    uint32_t row = 0;
    int32_t token = 0;
    size_t item = 0;
  };
  std::vector<Row> rows;
  std::vector<Draw> draws;
  std::vector<Score> scores;
  bool features = false;
};

class UnitWork {
 public:
  explicit UnitWork(UnitInput input);

  const UnitInput& input() const { return input_; }
  const Digest& digest() const { return digest_; }  // Of the input.
  const std::vector<ItemOutput>& outputs() const { return outputs_; }
  bool done() const { return items_done_ == outputs_.size(); }
  uint32_t items_done() const { return static_cast<uint32_t>(items_done_); }
  // Of the rows that it may take at most: 0 to 1.
  double fraction() const;

  // Goes on from what an earlier run had. Fails, and changes nothing, when that is not of this
  // input.
  Result<void> go_on_from(std::vector<ItemOutput> outputs);

  // A stage was opened, or is used for another unit before: from here on its caches hold nothing.
  // Fails when the unit does not fit it. It may be done after this.
  Result<void> begin(const StageFacts& stage);

  // REQUIRES: begin(), and !done().
  UnitStep next_step();
  void write_step(const UnitStep& step, rpc::StepInput::Builder to) const;
  // What the worker answered to the step that next_step() gave last. kCorrupt when it is not what
  // was asked for; then nothing has changed.
  Result<void> take(const UnitStep& step, rpc::StepOutput::Reader output);

  // REQUIRES: done().
  void write_output(rpc::UnitOutput::Builder to) const;

 private:
  // An item on its way through one sequence of the stage.
  struct Slot {
    bool busy = false;
    size_t item = 0;
    size_t fed = 0;            // Rows that its caches hold.
    std::vector<double> sums;  // embed
  };

  size_t rows_of(size_t item) const;  // That must have run for its next output.
  int32_t token_at(size_t item, size_t position) const;
  void fill_slots();
  void add_rows(uint32_t sequence, size_t count, UnitStep& step) const;
  void finish(Slot& slot);
  bool ends(size_t item) const;

  UnitInput input_;
  Digest digest_;
  StageFacts stage_;
  std::vector<ItemOutput> outputs_;
  size_t items_done_ = 0;
  size_t next_item_ = 0;  // Those before it are done or in a slot.
  std::vector<Slot> slots_;
};

// A unit as it is kept on disk, so that a client that was ended goes on with it. It holds no
// prompt: the coordinator hands the input out again, and its digest tells whether it is the same.
struct UnitCheckpoint {
  std::string coordinator;  // Its pin.
  std::string coordinator_name;
  std::string device;
  uint64_t lease = 0, unit = 0;
  JobClass job_class;
  Digest input;
  UnitKind kind = UnitKind::kGenerate;
  Millis since{0};  // Wall time.
  Millis estimate{0};
  uint64_t steps = 0, rows = 0;
  std::vector<ItemOutput> outputs;

  bool done() const;
};
ByteVector checkpoint_bytes(const UnitCheckpoint& checkpoint);
// kCorrupt when they are not such bytes of this version.
Result<UnitCheckpoint> read_checkpoint(ByteSpan bytes);
// REQUIRES: it is done.
void write_output(UnitKind kind, const std::vector<ItemOutput>& outputs,
                  rpc::UnitOutput::Builder to);

}  // namespace shoal::client
