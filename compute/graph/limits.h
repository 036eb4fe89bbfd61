#pragma once
// The largest that a graph and what runs it may be. Checked by verify(), decode() and the engine
// before anything is allocated; products of these stay below 2^62.

#include <cstddef>
#include <cstdint>

namespace shoal::compute::limits {

constexpr size_t kValuesMax = 16384;
constexpr size_t kOpsMax = 4096;
constexpr size_t kNameBytesMax = 256;
constexpr size_t kEncodedBytesMax = size_t{16} << 20;

constexpr int64_t kWidthMax = int64_t{1} << 20;  // Any dimension of a weight or a row.
constexpr int64_t kRowsMax = 65536;              // Of a step.
constexpr int64_t kContextMax = int64_t{1} << 20;
constexpr int64_t kSequencesMax = 65536;
constexpr int64_t kWeightBytesMax = int64_t{1} << 40;  // Of a graph, all weights together.
constexpr uint32_t kHeadsMax = 4096;
constexpr uint32_t kHeadDimMax = 512;

// Beyond 2^-100 .. 1 an epsilon, beyond 2^-50 .. 2^50 a scale makes no sense and would reach
// subnormals (docs/EXACT.md).
constexpr float kEpsilonMin = 0x1p-100f;
constexpr float kEpsilonMax = 1.0f;
constexpr float kScaleMin = 0x1p-50f;
constexpr float kScaleMax = 0x1p50f;
constexpr float kCapMin = 0x1p-20f;
constexpr float kCapMax = 0x1p20f;
constexpr uint32_t kExpertsMax = 1024;
constexpr uint32_t kExpertsUsedMax = 32;
constexpr double kMagnitudeMin = 1e-3;
constexpr double kMagnitudeMax = 1e3;
constexpr double kThetaMin = 1.0;
constexpr double kThetaMax = 1e15;
constexpr double kLinearFactorMin = 1e-6;
constexpr double kLinearFactorMax = 1e6;

// The flops of a product and of an attention.
static_assert(kRowsMax * kWidthMax * 2 <= (int64_t{1} << 62) / kWidthMax);
static_assert(kRowsMax * kWidthMax * 4 <= (int64_t{1} << 62) / kContextMax);

}  // namespace shoal::compute::limits
