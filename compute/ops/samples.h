#pragma once
// Makes the data of samples: the same bytes on every machine, ordinary and awkward.

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "compute/ops/op.h"

namespace shoal::compute {

// What values a float buffer holds.
enum class Pattern {
  kOrdinary,  // About -2 .. 2, some thousandths, some zeros.
  kZero,
  kHuge,   // Ordinary, and one value of 1e20.
  kLarge,  // All of magnitude 2^98 or so, either sign.
  kTiny,   // Subnormals, and both sides of 2^-50 and 2^-100.
  kMax,    // The largest finite f32, either sign.
};

constexpr Pattern kPatterns[] = {Pattern::kOrdinary, Pattern::kZero, Pattern::kHuge,
                                 Pattern::kLarge,    Pattern::kTiny, Pattern::kMax};
const char* pattern_name(Pattern pattern);

// Every type that a weight may have.
constexpr DType kWeightTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                                  DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                  DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

// Positions of a state that holds so many sequences, in whole pages.
int64_t state_positions(int64_t sequences, int64_t context);

class SampleMaker {
 public:
  explicit SampleMaker(uint64_t seed) : state_(seed) {}

  uint32_t next();
  float ordinary();
  float value(Pattern pattern);

  SampleBuffer floats(int64_t rows, int64_t columns, Pattern pattern = Pattern::kOrdinary);
  SampleBuffer weights(DType dtype, int64_t rows, int64_t columns,
                       Pattern pattern = Pattern::kOrdinary);
  SampleBuffer states(DType dtype, int64_t rows, int64_t columns,
                      Pattern pattern = Pattern::kOrdinary);
  SampleBuffer q8_rows(int64_t rows, int64_t columns, Pattern pattern = Pattern::kOrdinary);
  SampleBuffer integers(const std::vector<int32_t>& values);
  // A step's rows and where their sequences have their pages, which lie in disorder in a state of
  // state_positions() positions. REQUIRES: each row's sequence and position are below these.
  SampleBuffer row_info(const std::vector<RowInfo>& rows, int64_t sequences = 1,
                        int64_t context = 0);
  // Inputs of one row of 33, whose last number becomes `bad`, so that the call must fail.
  OpSample failing(const char* label, const ParamBlock& params, std::vector<SampleBuffer> inputs,
                   float bad);
  SampleBuffer poison(DType dtype, int64_t rows, int64_t columns);  // What an output holds before.

 private:
  void fill_blocks(SampleBuffer& buffer, Pattern pattern);

  uint64_t state_;
};

// "rows 3 width 65 tiny"
std::string label(std::initializer_list<std::pair<const char*, int64_t>> numbers, Pattern pattern);

}  // namespace shoal::compute
