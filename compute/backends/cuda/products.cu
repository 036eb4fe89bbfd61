// matmul and expert_matmul. Three kernels of quantised weights and one of floats, which differ in
// what a warp shares, never in the order of a sum:
// - product_of_few: a warp has a column and few rows; its lanes take a block of K each (decode).
// - product_of_tile: a block of warps has a tile of rows and columns; int8 tensor cores (prefill).
// - product_of_expert: as product_of_few, for one row and the weight that its route names.

#include "compute/backends/cuda/kernel.h"
#include "compute/backends/cuda/sums.cuh"
#include "compute/backends/cuda/weights.cuh"

namespace shoal::compute::cuda {
namespace {

constexpr uint kOnes = 0x01010101u;
constexpr uint kChunkBlocks = SHOAL_SUM_CHUNK / SHOAL_QUANT_BLOCK;

// A row of quantised activations: `values` with a scale for each block.
struct ActivationRow {
  const std::byte* values;
  const float* scales;

  SHOAL_DEVICE void load_codes(uint block, uint (&codes)[8]) const {
    const std::byte* at = values + 32u * block;
    if (reinterpret_cast<uintptr_t>(values) % 16 == 0) {
      const FourWords low = load_four_words(at), high = load_four_words(at + 16);
      SHOAL_UNROLL
      for (int j = 0; j < 4; ++j) {
        codes[j] = low.at[j];
        codes[4 + j] = high.at[j];
      }
      return;
    }
    SHOAL_UNROLL
    for (int j = 0; j < 8; ++j) codes[j] = reinterpret_cast<const uint*>(at)[j];
  }
};

SHOAL_DEVICE ActivationRow activation_row(const std::byte* x, uint64_t row, uint width, uint from) {
  const std::byte* at = x + row * (uint64_t{width} + width / 8);
  return {at + from, reinterpret_cast<const float*>(at + width) + from / 32};
}

// Whether a type needs the sums of the activations beside the products.
template <DType T>
constexpr bool kNeedsSums = weight_format(T).zero != 0 || weight_format(T).minimum;

template <DType T>
SHOAL_DEVICE float lane_product(const uint (&w)[8], const Scales& scales, const ActivationRow& x,
                                uint block) {
  uint codes[8];
  x.load_codes(block, codes);
  int low = 0, high = 0, x_low = 0, x_high = 0;
  SHOAL_UNROLL
  for (int j = 0; j < 4; ++j) {
    low = dot_bytes(codes[j], w[j], low);
    high = dot_bytes(codes[4 + j], w[4 + j], high);
    if constexpr (kNeedsSums<T>) {
      x_low = dot_bytes(codes[j], kOnes, x_low);
      x_high = dot_bytes(codes[4 + j], kOnes, x_high);
    }
  }
  return block_product<T>(low, high, x_low, x_high, scales, x.scales[block]);
}

// Adds what 32 lanes hold for the blocks from `first` on, of `blocks`, to a sum: eight in ascending
// order make a chunk, and chunks are added in ascending order. All lanes get it.
SHOAL_DEVICE float add_blocks(float sum, float product, uint first, uint blocks) {
  float chunk = 0.0f;
  SHOAL_UNROLL
  for (uint i = 0; i < kChunkBlocks; ++i) {
    chunk = chunk + __shfl_sync(kAllLanes, product, i, kChunkBlocks);
  }
  SHOAL_UNROLL
  for (uint i = 0; i < kWarp / kChunkBlocks; ++i) {
    const float next = __shfl_sync(kAllLanes, chunk, i * kChunkBlocks);
    if (first + i * kChunkBlocks < blocks) sum = first + i == 0 ? next : sum + next;
  }
  return sum;
}

constexpr uint kFewWarps = 4;

template <DType T, uint kRows>
__global__ void __launch_bounds__(kFewWarps* kWarp) product_of_few(Call call) {
  const auto p = call.as<MatmulParams>();
  const uint lane = threadIdx.x % kWarp;
  const uint column = blockIdx.x * kFewWarps + threadIdx.x / kWarp;
  const uint row = blockIdx.y * kRows;
  if (column >= p.n) return;
  const WeightRow<T> weight(call.buffers[1], column, p.k);
  ActivationRow x[kRows];
  float sums[kRows];
  SHOAL_UNROLL
  for (uint r = 0; r < kRows; ++r) {
    x[r] = activation_row(call.buffers[0], row + r < p.rows ? row + r : p.rows - 1, p.k, 0);
    sums[r] = 0.0f;
  }
  const uint blocks = p.k / 32;
  for (uint first = 0; first < blocks; first += kWarp) {
    const uint block = first + lane;
    float products[kRows];
    SHOAL_UNROLL
    for (uint r = 0; r < kRows; ++r) products[r] = 0.0f;
    if (block < blocks) {
      uint codes[8];
      weight.load_codes(block, codes);
      const Scales scales = weight.load_scales(block);
      SHOAL_UNROLL
      for (uint r = 0; r < kRows; ++r) products[r] = lane_product<T>(codes, scales, x[r], block);
    }
    SHOAL_UNROLL
    for (uint r = 0; r < kRows; ++r) sums[r] = add_blocks(sums[r], products[r], first, blocks);
  }
  if (lane != 0) return;
  SHOAL_UNROLL
  for (uint r = 0; r < kRows; ++r) {
    if (row + r >= p.rows) return;
    const float y = exact_flush(sums[r]);
    if (!exact_is_finite(y)) report_non_finite(call);
    call.at<float>(2)[uint64_t{row + r} * p.n_total + p.n_first + column] = y;
  }
}

// A tile: four warps, each of 16 * kRowTiles rows and 8 * kColumnTiles columns, kWarpRows of them
// one below the other. Stages of four blocks along K are brought to shared memory.
constexpr uint kTileWarps = 4;
constexpr uint kStageBlocks = 4;
constexpr uint kTileStride = kStageBlocks * 8 + 4;  // Words; so that lanes meet different banks.

template <DType T, uint kRowTiles, uint kColumnTiles, uint kWarpRows>
__global__ void __launch_bounds__(kTileWarps* kWarp) product_of_tile(Call call) {
  constexpr uint kThreads = kTileWarps * kWarp;
  constexpr uint kRows = 16 * kRowTiles * kWarpRows;
  constexpr uint kColumns = 8 * kColumnTiles * (kTileWarps / kWarpRows);
  constexpr bool kSums = kNeedsSums<T>;
  constexpr bool kPairs = weight_format(T).scale_bytes != 0;
  SHOAL_SHARED(uint, x_codes, kRows * kTileStride);
  SHOAL_SHARED(uint, w_codes, kColumns * kTileStride);
  SHOAL_SHARED(float, x_scales, kRows* kStageBlocks);
  SHOAL_SHARED(int, x_low, kSums ? kRows* kStageBlocks : 1);
  SHOAL_SHARED(int, x_high, kSums ? kRows* kStageBlocks : 1);
  SHOAL_SHARED(float, w_d, kColumns* kStageBlocks);
  SHOAL_SHARED(float, w_m, weight_format(T).minimum ? kColumns* kStageBlocks : 1);
  SHOAL_SHARED(int, w_first, kPairs ? kColumns* kStageBlocks : 1);
  SHOAL_SHARED(int, w_second, kPairs ? kColumns* kStageBlocks : 1);

  const auto p = call.as<MatmulParams>();
  const uint row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
  const uint warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const uint warp_row = warp % kWarpRows * kRowTiles * 16;
  const uint warp_column = warp / kWarpRows * kColumnTiles * 8;
  const uint g = lane / 4, t = lane % 4;

  // For each tile of 16 x 8: the lane's four results, as warp_product() gives them.
  float sums[kRowTiles][kColumnTiles][4], chunks[kRowTiles][kColumnTiles][4];
  SHOAL_UNROLL
  for (uint i = 0; i < kRowTiles; ++i) {
    SHOAL_UNROLL
    for (uint j = 0; j < kColumnTiles; ++j) {
      SHOAL_UNROLL
      for (uint e = 0; e < 4; ++e) sums[i][j][e] = chunks[i][j][e] = 0.0f;
    }
  }

  const uint blocks = p.k / 32;
  for (uint first = 0; first < blocks; first += kStageBlocks) {
    // Beyond the ends of the matrix the last row or column comes again, which is not stored.
    for (uint i = threadIdx.x; i < kRows * kStageBlocks; i += kThreads) {
      const uint row = i / kStageBlocks, block = first + i % kStageBlocks;
      if (block >= blocks) continue;
      const uint from = row0 + row < p.rows ? row0 + row : p.rows - 1;
      const ActivationRow x = activation_row(call.buffers[0], from, p.k, 0);
      uint codes[8];
      x.load_codes(block, codes);
      SHOAL_UNROLL
      for (uint j = 0; j < 8; ++j) x_codes[row * kTileStride + i % kStageBlocks * 8 + j] = codes[j];
      x_scales[i] = x.scales[block];
      if constexpr (kSums) {
        int low = 0, high = 0;
        SHOAL_UNROLL
        for (uint j = 0; j < 4; ++j) {
          low = dot_bytes(codes[j], kOnes, low);
          high = dot_bytes(codes[4 + j], kOnes, high);
        }
        x_low[i] = low;
        x_high[i] = high;
      }
    }
    for (uint i = threadIdx.x; i < kColumns * kStageBlocks; i += kThreads) {
      const uint column = i / kStageBlocks, block = first + i % kStageBlocks;
      if (block >= blocks) continue;
      const uint from = column0 + column < p.n ? column0 + column : p.n - 1;
      const WeightRow<T> weight(call.buffers[1], from, p.k);
      uint codes[8];
      weight.load_codes(block, codes);
      SHOAL_UNROLL
      for (uint j = 0; j < 8; ++j) {
        w_codes[column * kTileStride + i % kStageBlocks * 8 + j] = codes[j];
      }
      const Scales scales = weight.load_scales(block);
      w_d[i] = scales.d;
      if constexpr (weight_format(T).minimum) w_m[i] = scales.m;
      if constexpr (kPairs) {
        w_first[i] = scales.first;
        w_second[i] = scales.second;
      }
    }
    __syncthreads();

    for (uint s = 0; s < kStageBlocks && first + s < blocks; ++s) {
      uint a[kRowTiles][4], b[kColumnTiles][2];
      SHOAL_UNROLL
      for (uint i = 0; i < kRowTiles; ++i) {
        SHOAL_UNROLL
        for (uint e = 0; e < 4;
             ++e) {  // Rows g and g + 8 of the first sixteen of K, then of the last.
          const uint row = warp_row + i * 16 + g + e % 2 * 8;
          a[i][e] = x_codes[row * kTileStride + s * 8 + e / 2 * 4 + t];
        }
      }
      SHOAL_UNROLL
      for (uint j = 0; j < kColumnTiles; ++j) {
        SHOAL_UNROLL
        for (uint e = 0; e < 2; ++e) {
          b[j][e] = w_codes[(warp_column + j * 8 + g) * kTileStride + s * 8 + e * 4 + t];
        }
      }
      SHOAL_UNROLL
      for (uint j = 0; j < kColumnTiles; ++j) {
        Scales scales[2];  // Of the lane's two columns.
        SHOAL_UNROLL
        for (uint c = 0; c < 2; ++c) {
          const uint at = (warp_column + j * 8 + 2 * t + c) * kStageBlocks + s;
          scales[c].d = w_d[at];
          if constexpr (weight_format(T).minimum) scales[c].m = w_m[at];
          if constexpr (kPairs) {
            scales[c].first = w_first[at];
            scales[c].second = w_second[at];
          }
        }
        SHOAL_UNROLL
        for (uint i = 0; i < kRowTiles; ++i) {
          int low[4] = {}, high[4] = {};
          warp_product(low, a[i][0], a[i][1], b[j][0]);
          if constexpr (T == DType::kQ6_K) {
            warp_product(high, a[i][2], a[i][3], b[j][1]);
          } else {
            warp_product(low, a[i][2], a[i][3], b[j][1]);
          }
          SHOAL_UNROLL
          for (uint e = 0; e < 4; ++e) {
            const uint at = (warp_row + i * 16 + g + e / 2 * 8) * kStageBlocks + s;
            int of_low = 0, of_high = 0;
            if constexpr (kSums) {
              of_low = x_low[at];
              of_high = x_high[at];
            }
            const float product =
                block_product<T>(low[e], high[e], of_low, of_high, scales[e % 2], x_scales[at]);
            chunks[i][j][e] = chunks[i][j][e] + product;
          }
        }
      }
      const uint block = first + s;
      if (block % kChunkBlocks != kChunkBlocks - 1 && block + 1 != blocks) continue;
      SHOAL_UNROLL
      for (uint i = 0; i < kRowTiles; ++i) {
        SHOAL_UNROLL
        for (uint j = 0; j < kColumnTiles; ++j) {
          SHOAL_UNROLL
          for (uint e = 0; e < 4; ++e) {
            sums[i][j][e] =
                block < kChunkBlocks ? chunks[i][j][e] : sums[i][j][e] + chunks[i][j][e];
            chunks[i][j][e] = 0.0f;
          }
        }
      }
    }
    __syncthreads();
  }

  bool finite = true;
  SHOAL_UNROLL
  for (uint i = 0; i < kRowTiles; ++i) {
    SHOAL_UNROLL
    for (uint j = 0; j < kColumnTiles; ++j) {
      SHOAL_UNROLL
      for (uint e = 0; e < 4; ++e) {
        const uint row = row0 + warp_row + i * 16 + g + e / 2 * 8;
        const uint column = column0 + warp_column + j * 8 + 2 * t + e % 2;
        if (row >= p.rows || column >= p.n) continue;
        const float y = exact_flush(sums[i][j][e]);
        finite = finite && exact_is_finite(y);
        call.at<float>(2)[uint64_t{row} * p.n_total + p.n_first + column] = y;
      }
    }
  }
  if (!finite) report_non_finite(call);
}

// The weight and the activations of each of a row's experts: x counts rows and slots.
struct ExpertPlace {
  uint row, slot, expert, from, width;
};
SHOAL_DEVICE ExpertPlace expert_place(const Call& call, const ExpertMatmulParams& p) {
  ExpertPlace place;
  place.row = blockIdx.x / p.used;
  place.slot = blockIdx.x % p.used;
  place.expert = static_cast<uint>(call.at<const float>(2)[place.row * 2ull * p.used + place.slot]);
  if (place.expert >= p.experts) place.expert = 0;  // No route makes one; never read beyond.
  place.from = p.slots == 1 ? 0 : place.slot * p.k;
  place.width = p.slots * p.k;
  return place;
}
SHOAL_DEVICE void put_expert(const Call& call, uint64_t at, float sum) {
  const float y = exact_flush(sum);
  if (!exact_is_finite(y)) report_non_finite(call);
  call.at<float>(3)[at] = y;
}

// TODO(perf): with many rows, rows of one expert could share what is loaded of its weight.
template <DType T>
__global__ void __launch_bounds__(kFewWarps* kWarp) product_of_expert(Call call) {
  const auto p = call.as<ExpertMatmulParams>();
  const ExpertPlace place = expert_place(call, p);
  const uint lane = threadIdx.x % kWarp;
  const ActivationRow x = activation_row(call.buffers[0], place.row, place.width, place.from);
  const uint blocks = p.k / 32;
  for (uint column = blockIdx.y * kFewWarps + threadIdx.x / kWarp; column < p.n;
       column += gridDim.y * kFewWarps) {
    const WeightRow<T> weight(call.buffers[1], uint64_t{place.expert} * p.n + column, p.k);
    float sum = 0.0f;
    for (uint first = 0; first < blocks; first += kWarp) {
      const uint block = first + lane;
      float product = 0.0f;
      if (block < blocks) {
        uint codes[8];
        weight.load_codes(block, codes);
        product = lane_product<T>(codes, weight.load_scales(block), x, block);
      }
      sum = add_blocks(sum, product, first, blocks);
    }
    if (lane == 0) put_expert(call, uint64_t{blockIdx.x} * p.n + column, sum);
  }
}

// The product of k floats and a row of a float weight, for each of kRows rows, by a warp: eight
// lanes a chunk, four chunks at once.
template <DType T, uint kRows>
SHOAL_DEVICE void float_products(const WeightRow<T>& weight, const float* const (&x)[kRows], uint k,
                                 float (&sums)[kRows]) {
  constexpr uint kAtOnce = kWarp / SHOAL_SUM_LANES;
  const uint lane = threadIdx.x % SHOAL_SUM_LANES, group = threadIdx.x % kWarp / SHOAL_SUM_LANES;
  for (uint first = 0; first < k; first += kAtOnce * SHOAL_SUM_CHUNK) {
    const uint begin = first + group * SHOAL_SUM_CHUNK;
    const uint end = begin + SHOAL_SUM_CHUNK < k ? begin + SHOAL_SUM_CHUNK : k;
    float lanes[kRows];
    SHOAL_UNROLL
    for (uint r = 0; r < kRows; ++r) lanes[r] = 0.0f;
    for (uint i = begin + lane; i < end; i += SHOAL_SUM_LANES) {
      const float w = weight.element(i);
      SHOAL_UNROLL
      for (uint r = 0; r < kRows; ++r) lanes[r] = lanes[r] + exact_factor(x[r][i]) * w;
    }
    SHOAL_UNROLL
    for (uint r = 0; r < kRows; ++r) {
      const float chunk = sum_of_lanes(lanes[r]);
      SHOAL_UNROLL
      for (uint i = 0; i < kAtOnce; ++i) {
        const float next = __shfl_sync(kAllLanes, chunk, i * SHOAL_SUM_LANES);
        if (first + i * SHOAL_SUM_CHUNK < k) sums[r] = first + i == 0 ? next : sums[r] + next;
      }
    }
  }
}

// TODO(perf): a tile of rows and columns, where 16-bit weights meet many rows in exact arithmetic.
template <DType T, uint kRows>
__global__ void __launch_bounds__(kFewWarps* kWarp) product_of_floats(Call call) {
  const auto p = call.as<MatmulParams>();
  const uint column = blockIdx.x * kFewWarps + threadIdx.x / kWarp;
  const uint row = blockIdx.y * kRows;
  if (column >= p.n) return;
  const float* x[kRows];
  float sums[kRows];
  SHOAL_UNROLL
  for (uint r = 0; r < kRows; ++r) {
    const uint from = row + r < p.rows ? row + r : p.rows - 1;
    x[r] = call.at<const float>(0) + uint64_t{from} * p.k;
    sums[r] = 0.0f;
  }
  float_products<T, kRows>(WeightRow<T>(call.buffers[1], column, p.k), x, p.k, sums);
  if (threadIdx.x % kWarp != 0) return;
  SHOAL_UNROLL
  for (uint r = 0; r < kRows; ++r) {
    if (row + r >= p.rows) return;
    const float y = exact_flush(sums[r]);
    if (!exact_is_finite(y)) report_non_finite(call);
    call.at<float>(2)[uint64_t{row + r} * p.n_total + p.n_first + column] = y;
  }
}

template <DType T>
__global__ void __launch_bounds__(kFewWarps* kWarp) product_of_expert_floats(Call call) {
  const auto p = call.as<ExpertMatmulParams>();
  const ExpertPlace place = expert_place(call, p);
  const float* const x[1] = {call.at<const float>(0) + uint64_t{place.row} * place.width +
                             place.from};
  for (uint column = blockIdx.y * kFewWarps + threadIdx.x / kWarp; column < p.n;
       column += gridDim.y * kFewWarps) {
    const WeightRow<T> weight(call.buffers[1], uint64_t{place.expert} * p.n + column, p.k);
    float sums[1] = {0.0f};
    float_products<T, 1>(weight, x, p.k, sums);
    if (threadIdx.x % kWarp == 0) put_expert(call, uint64_t{blockIdx.x} * p.n + column, sums[0]);
  }
}

template <DType T>
void enqueue_matmul(Launcher& launcher, const Call& call) {
  const auto p = call.as<MatmulParams>();
  const uint few = divide_up(p.n, kFewWarps), threads = kFewWarps * kWarp;
  if constexpr (!weight_format(T).quantised) {
    if (p.rows == 1) return launcher.run(product_of_floats<T, 1>, few, 1, threads, call);
    launcher.run(product_of_floats<T, 4>, few, divide_up(p.rows, 4), threads, call);
  } else {
    if (p.rows == 1) return launcher.run(product_of_few<T, 1>, few, 1, threads, call);
    if (p.rows <= 4) return launcher.run(product_of_few<T, 4>, few, 1, threads, call);
    if (p.rows <= 16) {
      return launcher.run(product_of_tile<T, 1, 2, 1>, divide_up(p.n, 64), 1, threads, call);
    }
    launcher.run(product_of_tile<T, 2, 4, 2>, divide_up(p.n, 64), divide_up(p.rows, 64), threads,
                 call);
  }
}

template <DType T>
void enqueue_expert_matmul(Launcher& launcher, const Call& call) {
  const auto p = call.as<ExpertMatmulParams>();
  const uint few = divide_up(p.n, kFewWarps), most = 65535, places = p.rows * p.used;
  if constexpr (weight_format(T).quantised) {
    launcher.run(product_of_expert<T>, places, few < most ? few : most, kFewWarps * kWarp, call);
  } else {
    launcher.run(product_of_expert_floats<T>, places, few < most ? few : most, kFewWarps * kWarp,
                 call);
  }
}

const KernelEntry kEntries[] = {SHOAL_FOR_WEIGHT_TYPES("matmul", enqueue_matmul)
                                    SHOAL_FOR_WEIGHT_TYPES("expert_matmul", enqueue_expert_matmul)};

}  // namespace

KernelList product_kernels() { return {kEntries, sizeof kEntries / sizeof kEntries[0]}; }

}  // namespace shoal::compute::cuda
