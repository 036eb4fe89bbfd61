#pragma once
// A whole model as one or more stages on one device in one process: what shoal-run and the tests of
// whole models run. Knows no text and no sampling.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "compute/compute.h"

namespace shoal::compute {

struct PipelineOptions {
  std::vector<size_t> cuts;  // Ascending numbers of the fragments that begin a further stage.
  int64_t context = 512;     // Positions.
  int64_t chunk = 64;        // Rows of the largest step.
  bool digest = true;        // Whether digest() will be asked for; it costs a download a fragment.
};

// One thread. `device` outlives it.
class LocalPipeline {
 public:
  static Result<LocalPipeline> open(Device& device, std::span<const Fragment> fragments,
                                    const PipelineOptions& options);

  enum class Logits { kNone, kLast, kAll };  // Of which rows.

  // Runs one sequence's tokens, the first of them at `position`, in steps of at most `chunk` rows.
  // The logits wanted, row after row.
  Result<std::vector<float>> run(std::span<const int32_t> tokens, int64_t position, Logits logits);

  int64_t vocabulary() const { return vocabulary_; }

  // Of every fragment's output but the head's: for each fragment the digest of its rows in the
  // order in which they were run, then the digest of these digests. So it tells nothing of chunks,
  // threads, devices or cuts. REQUIRES: options.digest; called once, last.
  Digest digest();

 private:
  LocalPipeline() = default;
  Result<std::vector<float>> step(std::span<const int32_t> tokens, int64_t position, Logits logits);

  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<size_t> first_fragment_;  // Of each stage.
  std::vector<DigestBuilder> digests_;  // Of each fragment but the head; empty when none is wanted.
  int64_t chunk_ = 0;
  int64_t vocabulary_ = 0;
};

}  // namespace shoal::compute
