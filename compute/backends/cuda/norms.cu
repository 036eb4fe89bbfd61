// rms_norm and layer_norm: a block for each row. quantize: a warp for each block of 32.

#include "compute/backends/cuda/kernel.h"
#include "compute/backends/cuda/sums.cuh"

namespace shoal::compute::cuda {
namespace {

__global__ void __launch_bounds__(kSumThreads) rms_norm(Call call) {
  const auto p = call.as<RmsNormParams>();
  const float* x = call.at<const float>(0) + uint64_t{blockIdx.x} * p.width;
  const float* weight = call.at<const float>(1);
  float* y = call.at<float>(2) + uint64_t{blockIdx.x} * p.width;
  const float sum = block_sum(p.width, [x](uint k) {
    const float factor = exact_factor(x[k]);
    return factor * factor;
  });
  const float mean = sum * p.inverse_width;
  const float inverse = exact_rsqrt(mean + p.epsilon);
  bool finite = exact_is_finite(mean);
  for (uint i = threadIdx.x; i < p.width; i += kSumThreads) {
    const float scaled = exact_flush(exact_flush(x[i]) * inverse);
    const float result = exact_flush(scaled * exact_factor(weight[i]));
    finite = finite && exact_is_finite(result);
    y[i] = result;
  }
  if (!finite) report_non_finite(call);
}

__global__ void __launch_bounds__(kSumThreads) layer_norm(Call call) {
  const auto p = call.as<LayerNormParams>();
  const float* x = call.at<const float>(0) + uint64_t{blockIdx.x} * p.width;
  const float* weight = call.at<const float>(1);
  const float* bias = call.at<const float>(2);
  float* y = call.at<float>(3) + uint64_t{blockIdx.x} * p.width;
  const float sum = block_sum(p.width, [x](uint k) { return exact_flush(x[k]); });
  const float mean = exact_flush(exact_flush(sum) * p.inverse_width);
  const float squares = block_sum(p.width, [x, mean](uint k) {
    const float factor = exact_factor(exact_flush(exact_flush(x[k]) - mean));
    return factor * factor;
  });
  const float variance = squares * p.inverse_width;
  const float inverse = exact_rsqrt(variance + p.epsilon);
  bool finite = exact_is_finite(mean) && exact_is_finite(variance);
  for (uint i = threadIdx.x; i < p.width; i += kSumThreads) {
    const float centred = exact_flush(exact_flush(x[i]) - mean);
    const float scaled = exact_flush(centred * inverse);
    const float weighted = exact_flush(scaled * exact_factor(weight[i]));
    const float result = exact_flush(weighted + exact_factor(bias[i]));
    finite = finite && exact_is_finite(result);
    y[i] = result;
  }
  if (!finite) report_non_finite(call);
}

constexpr uint kQuantizeWarps = 8;

__global__ void quantize(Call call) {
  const auto p = call.as<QuantizeParams>();
  const uint lane = threadIdx.x % kWarp;
  const uint block = blockIdx.y * kQuantizeWarps + threadIdx.x / kWarp;
  if (block >= p.width / 32) return;
  const float x = call.at<const float>(0)[uint64_t{blockIdx.x} * p.width + 32 * block + lane];
  uint largest = floatBitsToUint(x) & 0x7FFFFFFFu;  // Magnitudes are ordered as their bits are.
  for (uint step = 16; step > 0; step /= 2) {
    const uint other = __shfl_xor_sync(kAllLanes, largest, step);
    largest = other > largest ? other : largest;
  }
  std::byte* row = call.buffers[1] + blockIdx.x * (uint64_t{p.width} + p.width / 8);
  const int q = exact_quant_value(exact_flush(x), exact_quant_inverse(largest));
  reinterpret_cast<int8_t*>(row)[32 * block + lane] = static_cast<int8_t>(q);
  if (lane != 0) return;
  reinterpret_cast<float*>(row + p.width)[block] = exact_quant_scale(largest);
  if (largest > SHOAL_MAGNITUDE_BITS) report_non_finite(call);
}

void enqueue_rms_norm(Launcher& launcher, const Call& call) {
  launcher.run(rms_norm, call.as<RmsNormParams>().rows, 1, kSumThreads, call);
}
void enqueue_layer_norm(Launcher& launcher, const Call& call) {
  launcher.run(layer_norm, call.as<LayerNormParams>().rows, 1, kSumThreads, call);
}
void enqueue_quantize(Launcher& launcher, const Call& call) {
  const auto p = call.as<QuantizeParams>();
  launcher.run(quantize, p.rows, divide_up(p.width / 32, kQuantizeWarps), kQuantizeWarps * kWarp,
               call);
}

const KernelEntry kEntries[] = {
    {"rms_norm", "f32", enqueue_rms_norm},
    {"layer_norm", "f32", enqueue_layer_norm},
    {"quantize", "f32", enqueue_quantize},
};

}  // namespace

KernelList norm_kernels() { return {kEntries, sizeof kEntries / sizeof kEntries[0]}; }

}  // namespace shoal::compute::cuda
