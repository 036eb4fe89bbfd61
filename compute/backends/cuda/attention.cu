// attention and cache_append. A block of 256 threads makes one head of one row over a chunk of 32
// positions: eight lanes a position for the scores, then a thread a dimension for the values.
// Either the block goes on to the next chunk (many rows), or each chunk has a block of its own and
// a second kernel merges what they left in scratch memory, in ascending order (few rows).

#include "compute/backends/cuda/kernel.h"
#include "compute/backends/cuda/sums.cuh"
#include "compute/graph/tensor.h"

namespace shoal::compute::cuda {
namespace {

constexpr uint kThreads = SHOAL_ATTENTION_CHUNK * SHOAL_SUM_LANES;
constexpr uint kHeadDimMax = 512;  // As graph/limits.h has it.
constexpr uint kDimsPerThread = kHeadDimMax / kThreads;

// Where a row stands, and where the caches keep the positions that it sees (shaders/op_params.h).
struct RowPlaces {
  uint position;
  const uint* pages;

  SHOAL_DEVICE RowPlaces(const uint* row_info, uint row) {
    const RowPlace place = reinterpret_cast<const RowPlace*>(row_info)[row];
    position = place.position;
    pages = row_info + place.pages;
  }
  SHOAL_DEVICE uint64_t of(uint j) const {
    return uint64_t{pages[j / SHOAL_ATTENTION_CHUNK]} * SHOAL_ATTENTION_CHUNK +
           j % SHOAL_ATTENTION_CHUNK;
  }
};

// Keys or values of one head.
template <DType T>
struct State {
  const std::byte* at;
  uint64_t first, stride;  // In elements: of the head, and from place to place.

  // No half is small enough for exact_factor() to change it.
  SHOAL_DEVICE float factor(uint64_t place, uint d) const {
    const uint64_t i = first + place * stride + d;
    if constexpr (T == DType::kF32) return exact_factor(reinterpret_cast<const float*>(at)[i]);
    return exact_half_to_float(reinterpret_cast<const uint16_t*>(at)[i]);
  }
};

// A head of a row: which positions it sees, and where its numbers lie.
template <DType T>
struct Head {
  State<T> keys, values;
  RowPlaces places;
  const float* q;
  float* result;
  uint seen_from, length;

  SHOAL_DEVICE Head(const Call& call, const AttentionParams& p, uint head_of_all)
      : places(call.at<const uint>(3), head_of_all / p.heads) {
    const uint kv_head = head_of_all % p.heads / (p.heads / p.kv_heads);
    keys.at = call.buffers[1];
    values.at = call.buffers[2];
    keys.first = values.first = uint64_t{kv_head} * p.head_dim;
    keys.stride = values.stride = uint64_t{p.kv_heads} * p.head_dim;
    q = call.at<const float>(0) + uint64_t{head_of_all} * p.head_dim;
    result = call.at<float>(4) + uint64_t{head_of_all} * p.head_dim;
    length = places.position + 1;
    seen_from = p.window == 0 || length <= p.window ? 0 : length - p.window;
  }
  SHOAL_DEVICE uint first_chunk() const { return seen_from / SHOAL_ATTENTION_CHUNK; }
  SHOAL_DEVICE uint end_chunk() const { return divide_up(length, SHOAL_ATTENTION_CHUNK); }
};

// A head over one chunk, or over several of them merged.
struct Part {
  float m = 0.0f, l = 0.0f;
  float o[kDimsPerThread] = {};  // Dimensions threadIdx.x, threadIdx.x + kThreads.
};

// Query times key in the order of float chunks; eight lanes share it, and each gets it.
template <DType T>
SHOAL_DEVICE float score(const AttentionParams& p, const Head<T>& head, uint position, bool seen) {
  const uint lane = threadIdx.x % SHOAL_SUM_LANES;
  const uint64_t place = seen ? head.places.of(position) : 0;
  float sum = 0.0f;
  for (uint first = 0; first < p.head_dim; first += SHOAL_SUM_CHUNK) {
    const uint end = first + SHOAL_SUM_CHUNK < p.head_dim ? first + SHOAL_SUM_CHUNK : p.head_dim;
    float part = 0.0f;
    if (seen) {
      for (uint d = first + lane; d < end; d += SHOAL_SUM_LANES) {
        part = part + exact_factor(head.q[d]) * head.keys.factor(place, d);
      }
    }
    const float chunk = sum_of_lanes(part);
    sum = first == 0 ? chunk : sum + chunk;
  }
  return exact_flush(sum * p.scale);
}

// The chunk's part of a head, by the whole block. Its sums stand in m and l of every thread.
template <DType T>
SHOAL_DEVICE Part chunk_part(const Call& call, const AttentionParams& p, const Head<T>& head,
                             uint chunk) {
  SHOAL_SHARED(float, weights, SHOAL_ATTENTION_CHUNK);
  SHOAL_SHARED(float, sums, 2);
  const uint begin = chunk * SHOAL_ATTENTION_CHUNK;
  const uint first = begin > head.seen_from ? begin : head.seen_from;
  const uint end =
      begin + SHOAL_ATTENTION_CHUNK < head.length ? begin + SHOAL_ATTENTION_CHUNK : head.length;
  const uint count = end - first;

  const uint mine = threadIdx.x / SHOAL_SUM_LANES;
  float s = score(p, head, first + mine, mine < count);
  if (mine < count && !exact_is_finite(s)) report_non_finite(call);
  if (p.cap != 0.0f) s = exact_soft_cap(s, p.cap, p.inverse_cap);
  if (threadIdx.x % SHOAL_SUM_LANES == 0) weights[mine] = s;
  __syncthreads();

  if (threadIdx.x < kWarp) {
    const uint j = threadIdx.x;
    const float own = weights[j < count ? j : 0];
    float m = own;
    for (uint step = 1; step < kWarp; step *= 2) {
      const float other = __shfl_xor_sync(kAllLanes, m, step);
      m = other > m ? other : m;
    }
    const float w = exact_factor(exact_exp(own - m));
    float l = 0.0f;
    for (uint i = 0; i < count; ++i) l = l + __shfl_sync(kAllLanes, w, i);
    __syncwarp();  // weights[0] has been read by those beyond the end.
    weights[j] = w;
    if (j == 0) {
      sums[0] = m;
      sums[1] = l;
    }
  }
  __syncthreads();

  Part part;
  part.m = sums[0];
  part.l = sums[1];
  SHOAL_UNROLL
  for (uint i = 0; i < kDimsPerThread; ++i) {
    const uint d = threadIdx.x + i * kThreads;
    if (d >= p.head_dim) break;
    float o = 0.0f;
    for (uint j = 0; j < count; ++j) {
      o = o + weights[j] * head.values.factor(head.places.of(first + j), d);
    }
    part.o[i] = o;
  }
  __syncthreads();  // Until all have read, the next chunk may not write.
  return part;
}

// How much the sums so far and the next chunk's count for in the sums of both.
struct Merge {
  float m, a, b;
  SHOAL_DEVICE Merge(float before, float next) {
    m = next > before ? next : before;
    a = exact_factor(exact_exp(before - m));
    b = exact_factor(exact_exp(next - m));
  }
  SHOAL_DEVICE float l(float before, float next) const { return before * a + next * b; }
  SHOAL_DEVICE float o(float before, float next) const {
    return exact_flush(before * a) + exact_flush(next * b);
  }
};

SHOAL_DEVICE void put(const Call& call, float* at, float o, float inverse) {
  const float y = exact_flush(o * inverse);
  if (!exact_is_finite(y)) report_non_finite(call);
  *at = y;
}

template <DType T>
SHOAL_DEVICE void attend_to_all(const Call& call, const AttentionParams& p, const Head<T>& head) {
  Part sum = chunk_part(call, p, head, head.first_chunk());
  for (uint chunk = head.first_chunk() + 1; chunk < head.end_chunk(); ++chunk) {
    const Part next = chunk_part(call, p, head, chunk);
    const Merge merge(sum.m, next.m);
    sum.m = merge.m;
    sum.l = merge.l(sum.l, next.l);
    SHOAL_UNROLL
    for (uint i = 0; i < kDimsPerThread; ++i) sum.o[i] = merge.o(sum.o[i], next.o[i]);
  }
  const float inverse = exact_reciprocal(sum.l);
  SHOAL_UNROLL
  for (uint i = 0; i < kDimsPerThread; ++i) {
    const uint d = threadIdx.x + i * kThreads;
    if (d < p.head_dim) put(call, head.result + d, sum.o[i], inverse);
  }
}

template <DType T>
__global__ void __launch_bounds__(kThreads) attend(Call call) {
  const auto p = call.as<AttentionParams>();
  attend_to_all(call, p, Head<T>(call, p, blockIdx.x));
}

// Scratch memory, shared evenly by all heads of all rows: m, l and o of each chunk that a head
// sees. Null where they are too many, which only the card knows.
template <DType T>
SHOAL_DEVICE float* scratch_of(const Call& call, const AttentionParams& p, const Head<T>& head) {
  const uint64_t words = call.scratch_bytes / sizeof(float) / gridDim.x;
  const uint64_t chunks = head.end_chunk() - head.first_chunk();
  if (chunks * (p.head_dim + 2) > words) return nullptr;
  return reinterpret_cast<float*>(call.scratch) + blockIdx.x * words;
}

template <DType T>
__global__ void __launch_bounds__(kThreads) attend_to_chunks(Call call) {
  const auto p = call.as<AttentionParams>();
  const Head<T> head(call, p, blockIdx.x);
  float* scratch = scratch_of(call, p, head);
  if (scratch == nullptr) return;
  for (uint chunk = head.first_chunk() + blockIdx.y; chunk < head.end_chunk(); chunk += gridDim.y) {
    const Part part = chunk_part(call, p, head, chunk);
    float* to = scratch + uint64_t{chunk - head.first_chunk()} * (p.head_dim + 2);
    if (threadIdx.x == 0) {
      to[0] = part.m;
      to[1] = part.l;
    }
    SHOAL_UNROLL
    for (uint i = 0; i < kDimsPerThread; ++i) {
      const uint d = threadIdx.x + i * kThreads;
      if (d < p.head_dim) to[2 + d] = part.o[i];
    }
  }
}

template <DType T>
__global__ void __launch_bounds__(kThreads) merge_chunks(Call call) {
  const auto p = call.as<AttentionParams>();
  const Head<T> head(call, p, blockIdx.x);
  const float* part = scratch_of(call, p, head);
  if (part == nullptr) return attend_to_all(call, p, head);
  for (uint d = threadIdx.x; d < p.head_dim; d += kThreads) {
    float m = part[0], l = part[1], o = part[2 + d];
    for (uint i = 1; i < head.end_chunk() - head.first_chunk(); ++i) {
      const float* next = part + uint64_t{i} * (p.head_dim + 2);
      const Merge merge(m, next[0]);
      m = merge.m;
      l = merge.l(l, next[1]);
      o = merge.o(o, next[2 + d]);
    }
    put(call, head.result + d, o, exact_reciprocal(l));
  }
}

// Fewer heads than this leave a card idle, so their chunks are spread.
constexpr uint64_t kHeadsToSpread = 256;
constexpr uint kSpread = 32;

template <DType T>
void enqueue_attention(Launcher& launcher, const Call& call) {
  const auto p = call.as<AttentionParams>();
  const uint heads = p.rows * p.heads;
  if (heads > kHeadsToSpread) return launcher.run(attend<T>, heads, 1, kThreads, call);
  launcher.run(attend_to_chunks<T>, heads, kSpread, kThreads, call);
  launcher.run(merge_chunks<T>, heads, 1, kThreads, call);
}

template <DType T>
__global__ void cache_append(Call call) {
  const auto p = call.as<CacheAppendParams>();
  const uint row = blockIdx.x, column = blockIdx.y * kThreads + threadIdx.x;
  if (column >= p.width) return;
  const RowPlaces places(call.at<const uint>(1), row);
  const uint64_t to = places.of(places.position) * p.width + column;
  const float x = call.at<const float>(0)[uint64_t{row} * p.width + column];
  if constexpr (T == DType::kF32) {
    if (!exact_is_finite(x)) report_non_finite(call);
    call.at<float>(2)[to] = exact_factor(x);
  } else {
    const uint bits = exact_float_to_half(x);
    if ((bits & 0x7C00u) == 0x7C00u) report_non_finite(call);
    call.at<uint16_t>(2)[to] = static_cast<uint16_t>(bits);
  }
}

template <DType T>
void enqueue_cache_append(Launcher& launcher, const Call& call) {
  const auto p = call.as<CacheAppendParams>();
  launcher.run(cache_append<T>, p.rows, divide_up(p.width, kThreads), kThreads, call);
}

const KernelEntry kEntries[] = {
    {"attention", "f32", enqueue_attention<DType::kF32>},
    {"attention", "f16", enqueue_attention<DType::kF16>},
    {"cache_append", "f32", enqueue_cache_append<DType::kF32>},
    {"cache_append", "f16", enqueue_cache_append<DType::kF16>},
};

}  // namespace

KernelList attention_kernels() { return {kEntries, sizeof kEntries / sizeof kEntries[0]}; }

}  // namespace shoal::compute::cuda
