// Steps and stage specs as a worker receives them. The first bytes choose the stage's shape; the
// rest is the message. Whatever comes, it is refused by field, or what was read obeys every bound
// that the engine relies on.

#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "compute/worker/step_input.h"
#include "schema/limits.h"

using namespace shoal;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const worker::StepRequest& step, const compute::StageShape& shape,
           const compute::StageOptions& options) {
  const size_t rows = step.rows.size();
  require(rows >= 1 && rows <= static_cast<size_t>(options.rows_max));
  for (const compute::RowInfo& row : step.rows) {
    require(row.sequence < static_cast<uint32_t>(options.sequences));
    require(row.position < static_cast<uint32_t>(options.context));
  }
  require(step.tokens.size() == (shape.begins_with_tokens ? rows : 0));
  require(step.hidden.size() ==
          (shape.begins_with_tokens ? 0 : rows * static_cast<size_t>(shape.width)));
  require(step.output_rows.size() <= rows);
  for (size_t i = 0; i < step.output_rows.size(); ++i) {
    require(step.output_rows[i] < rows);
    require(i == 0 || step.output_rows[i] > step.output_rows[i - 1]);
  }
  require(shape.ends_with_logits || step.output_rows.empty());
  require(!step.wants_features || step.output_rows.size() == rows);
  require(!step.wants_features || (step.draws.empty() && step.scores.empty()));
  for (const worker::DrawRequest& draw : step.draws) {
    require(draw.output < step.output_rows.size());
    require(draw.history.size() <= limits::kHistoryMax);
    require(draw.sampling.check().ok());
  }
  for (const worker::ScoreRequest& score : step.scores) {
    require(score.output < step.output_rows.size());
    require(score.token >= 0 && score.token < shape.vocabulary);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  compute::StageShape shape{};
  shape.begins_with_tokens = (data[0] & 1) != 0;
  shape.ends_with_logits = (data[0] & 2) != 0;
  shape.width = 1 + data[1] % 8;
  shape.vocabulary = shape.ends_with_logits ? 50 : 0;
  const compute::StageOptions options{1 + data[2], 1 + data[3] % 4, 1 + data[3] / 4};
  const bool is_spec = (data[0] & 4) != 0;
  data += 4, size -= 4;
  std::vector<capnp::word> words(size / sizeof(capnp::word));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(capnp::word));

  capnp::ReaderOptions limits;
  limits.traversalLimitInWords = limits::kMessageBytesMax / sizeof(capnp::word);
  limits.nestingLimit = limits::kNestingMax;
  try {
    capnp::FlatArrayMessageReader message({words.data(), words.size()}, limits);
    if (is_spec) {
      (void)worker::read_stage_options(message.getRoot<rpc::StageSpec>());
      return 0;
    }
    const Result<worker::StepRequest> step =
        worker::read_step(message.getRoot<rpc::StepInput>(), shape, options);
    if (step.ok()) check(step.value(), shape, options);
  } catch (const kj::Exception&) {  // As the RPC layer would: the call fails.
  }
  return 0;
}
