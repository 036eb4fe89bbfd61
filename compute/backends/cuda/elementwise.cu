// The ops whose results each come of a few numbers: a thread for each of them.

#include "compute/backends/cuda/kernel.h"
#include "compute/backends/cuda/weights.cuh"

namespace shoal::compute::cuda {
namespace {

constexpr uint kThreads = 256;

// Grids have a row of blocks for each row: y counts the blocks in it.
SHOAL_DEVICE uint grid_column() { return blockIdx.y * kThreads + threadIdx.x; }

// An op is: its parameters; the number of its output; and element(), the result in a row and
// column.
template <class Op>
__global__ void per_element(Call call) {
  const auto p = call.as<typename Op::Params>();
  const uint row = blockIdx.x, column = grid_column();
  if (column >= p.width) return;
  const float y = Op::element(call, p, row, column);
  if (!exact_is_finite(y)) report_non_finite(call);
  call.at<float>(Op::kOutput)[uint64_t{row} * p.width + column] = y;
}

template <class Op>
void enqueue(Launcher& launcher, const Call& call) {
  const auto p = call.as<typename Op::Params>();
  launcher.run(per_element<Op>, p.rows, divide_up(p.width, kThreads), kThreads, call);
}

SHOAL_DEVICE float flushed(const Call& call, int buffer, uint64_t i) {
  return exact_flush(call.at<const float>(buffer)[i]);
}

struct Add {
  using Params = AddParams;
  static constexpr int kOutput = 2;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const uint64_t i = uint64_t{row} * p.width + column;
    return exact_flush(flushed(call, 0, i) + flushed(call, 1, i));
  }
};

struct Multiply {
  using Params = MultiplyParams;
  static constexpr int kOutput = 2;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const uint64_t i = uint64_t{row} * p.width + column;
    return exact_flush(flushed(call, 0, i) * flushed(call, 1, i));
  }
};

struct Bias {
  using Params = BiasParams;
  static constexpr int kOutput = 2;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const float bias = exact_factor(call.at<const float>(1)[column]);
    return exact_flush(flushed(call, 0, uint64_t{row} * p.width + column) + bias);
  }
};

struct Scale {
  using Params = ScaleParams;
  static constexpr int kOutput = 1;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    return exact_flush(flushed(call, 0, uint64_t{row} * p.width + column) * p.scale);
  }
};

struct Swiglu {
  using Params = SwigluParams;
  static constexpr int kOutput = 2;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const uint64_t i = uint64_t{row} * p.width + column;
    return exact_flush(exact_silu(flushed(call, 0, i)) * flushed(call, 1, i));
  }
};

struct Gelu {
  using Params = GeluParams;
  static constexpr int kOutput = 1;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const float x = flushed(call, 0, uint64_t{row} * p.width + column);
    return p.error_function != 0 ? exact_gelu_erf(x) : exact_gelu_tanh(x);
  }
};

struct SoftCap {
  using Params = SoftCapParams;
  static constexpr int kOutput = 1;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const float x = call.at<const float>(0)[uint64_t{row} * p.width + column];
    if (!exact_is_finite(x)) report_non_finite(call);
    return exact_soft_cap(x, p.cap, p.inverse_cap);
  }
};

// The engine has checked what it picks; a wrong number reads the last row rather than beyond it.
struct SelectRows {
  using Params = SelectRowsParams;
  static constexpr int kOutput = 2;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const uint picked = call.at<const uint>(1)[row];
    const uint from = picked < p.rows_in ? picked : p.rows_in - 1;
    return flushed(call, 0, uint64_t{from} * p.width + column);
  }
};

template <DType T>
struct Embed {
  using Params = EmbedParams;
  static constexpr int kOutput = 2;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const uint token = call.at<const uint>(0)[row];  // Checked by the engine, as above.
    const uint from = token < p.vocabulary ? token : p.vocabulary - 1;
    return exact_factor(WeightRow<T>(call.buffers[1], from, p.width).table_element(column));
  }
};

template <DType T>
struct Positions {
  using Params = PositionsParams;
  static constexpr int kOutput = 2;
  static SHOAL_DEVICE float element(const Call& call, const Params& p, uint row, uint column) {
    const uint position = call.at<const RowPlace>(1)[row].position;
    if (position >= p.positions) {
      report_non_finite(call);
      return 0.0f;
    }
    return exact_factor(WeightRow<T>(call.buffers[0], position, p.width).table_element(column));
  }
};

template <DType T>
void enqueue_embed(Launcher& launcher, const Call& call) {
  enqueue<Embed<T>>(launcher, call);
}
template <DType T>
void enqueue_positions(Launcher& launcher, const Call& call) {
  enqueue<Positions<T>>(launcher, call);
}

// A thread turns a pair, or copies two elements beyond `rotary`. It reads both before it writes, so
// the result may lie in the input's place.
__global__ void rope(Call call) {
  const auto p = call.as<RopeParams>();
  const uint pairs = (p.head_dim + 1) / 2;
  const uint row = blockIdx.x, i = grid_column();
  if (i >= p.heads * pairs) return;
  const uint pair = i % pairs;
  const uint64_t base = (uint64_t{row} * p.heads + i / pairs) * p.head_dim;
  const float* x = call.at<const float>(0) + base;
  float* y = call.at<float>(3) + base;
  const uint half_rotary = p.rotary / 2;
  if (pair >= half_rotary) {
    const uint element = 2 * pair;  // rotary is even, so rotary + 2 * (pair - rotary / 2).
    y[element] = exact_flush(x[element]);
    if (element + 1 < p.head_dim) y[element + 1] = exact_flush(x[element + 1]);
    return;
  }
  const uint a = p.interleaved != 0 ? 2 * pair : pair;
  const uint b = p.interleaved != 0 ? 2 * pair + 1 : pair + half_rotary;
  const uint position = call.at<const RowPlace>(2)[row].position;
  const float* angle = call.at<const float>(1) + 2 * (uint64_t{position} * half_rotary + pair);
  const float cosine = exact_factor(angle[0]), sine = exact_factor(angle[1]);
  const float xa = exact_factor(x[a]), xb = exact_factor(x[b]);
  const float ya = exact_flush(xa * cosine - xb * sine);
  const float yb = exact_flush(xa * sine + xb * cosine);
  if (!exact_is_finite(ya) || !exact_is_finite(yb)) report_non_finite(call);
  y[a] = ya;
  y[b] = yb;
}

void enqueue_rope(Launcher& launcher, const Call& call) {
  const auto p = call.as<RopeParams>();
  const uint pairs = p.heads * ((p.head_dim + 1) / 2);
  launcher.run(rope, p.rows, divide_up(pairs, kThreads), kThreads, call);
}

const KernelEntry kEntries[] = {{"add", "f32", enqueue<Add>},
                                {"multiply", "f32", enqueue<Multiply>},
                                {"bias", "f32", enqueue<Bias>},
                                {"scale", "f32", enqueue<Scale>},
                                {"swiglu", "f32", enqueue<Swiglu>},
                                {"gelu", "f32", enqueue<Gelu>},
                                {"soft_cap", "f32", enqueue<SoftCap>},
                                {"select_rows", "f32", enqueue<SelectRows>},
                                {"rope", "f32", enqueue_rope},
                                SHOAL_FOR_WEIGHT_TYPES("embed", enqueue_embed)
                                    SHOAL_FOR_WEIGHT_TYPES("positions", enqueue_positions)};

}  // namespace

KernelList elementwise_kernels() { return {kEntries, sizeof kEntries / sizeof kEntries[0]}; }

}  // namespace shoal::compute::cuda
