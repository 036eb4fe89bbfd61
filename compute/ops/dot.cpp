#include "compute/ops/dot.h"

#include "compute/ops/chunked_sum.h"
#include "shaders/exact_math.h"

namespace shoal::compute {

float float_dot(DType dtype, ByteSpan x, int64_t x_first, ByteSpan weight, int64_t weight_first,
                int64_t k) {
  return chunked_sum(k, [&](int64_t i) {
    return exact::exact_factor(load_f32(x, x_first + i)) *
           exact::exact_factor(load_element(dtype, weight, weight_first + i));
  });
}

float quantised_dot(DType dtype, ByteSpan x, int64_t values_at, int64_t scales_at, ByteSpan weight,
                    int64_t column, int64_t k) {
  const std::byte* values = x.data() + values_at;
  float sum = 0.0f;
  for (int64_t begin = 0; begin < k; begin += SHOAL_SUM_CHUNK) {
    const int64_t end = std::min<int64_t>(k, begin + SHOAL_SUM_CHUNK);
    float chunk = 0.0f;
    for (int64_t b = begin / 32; b < end / 32; ++b) {
      const QuantBlock w = load_block(dtype, weight, column * (k / 32) + b);
      float scale;
      std::memcpy(&scale, x.data() + scales_at + b * 4, 4);
      int32_t integer_sum = 0, x_sum = 0;
      for (int i = 0; i < 32; ++i) {
        const int32_t q = static_cast<int8_t>(values[b * 32 + i]);
        integer_sum += w.scales[i / 16] * w.values[i] * q;
        x_sum += q;
      }
      const float product_scale = w.d * scale;
      float product = static_cast<float>(integer_sum) * product_scale;
      if (has_minimum(dtype)) {
        const float minimum_scale = w.m * scale;
        const float minimum = static_cast<float>(w.minimum * x_sum) * minimum_scale;
        product = product + minimum;
      }
      chunk = chunk + product;
    }
    sum = begin == 0 ? chunk : sum + chunk;
  }
  return sum;
}

}  // namespace shoal::compute
