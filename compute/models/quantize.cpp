#include "compute/models/quantize.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "compute/ops/op.h"
#include "shaders/exact_math.h"

namespace shoal::compute {
namespace {

// The nearest half, kept finite.
uint16_t half_bits(double x) {
  const auto bits =
      exact::exact_float_to_half(static_cast<float>(std::clamp(x, -65504.0, 65504.0)));
  return static_cast<uint16_t>(bits);
}

double half_value(uint16_t bits) { return static_cast<double>(exact::exact_half_to_float(bits)); }

int rounded(double x, int least, int most) {
  return static_cast<int>(std::lrint(std::clamp(x, double(least), double(most))));
}

void q8_0_block(std::span<const float> x, ByteWriter& out) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  const uint16_t d = half_bits(static_cast<double>(largest) / 127);
  const double scale = half_value(d);
  out.u16(d);
  for (const float value : x) {
    const int q = scale == 0 ? 0 : rounded(static_cast<double>(value) / scale, -127, 127);
    out.u8(static_cast<uint8_t>(q));
  }
}

void q4_0_block(std::span<const float> x, ByteWriter& out) {
  // The number of the largest magnitude becomes -8, which has no opposite.
  float extreme = 0;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  const uint16_t d = half_bits(static_cast<double>(extreme) / -8);
  const double scale = half_value(d);
  out.u16(d);
  int q[32];
  for (size_t i = 0; i < 32; ++i)
    q[i] = scale == 0 ? 8 : rounded(static_cast<double>(x[i]) / scale + 8, 0, 15);
  for (int i = 0; i < 16; ++i) out.u8(static_cast<uint8_t>(q[i] | q[i + 16] << 4));
}

// x is about scale * q - minimum, q being 0 .. 15 and neither negative.
struct Affine {
  double scale = 0, minimum = 0;
};

double affine_error(std::span<const float> x, const Affine& a) {
  double error = 0;
  for (const float value : x) {
    const double v = static_cast<double>(value);
    const int q = a.scale == 0 ? 0 : rounded((v + a.minimum) / a.scale, 0, 15);
    const double e = a.scale * q - a.minimum - v;
    error += e * e;
  }
  return error;
}

// From the range of the numbers, and from ranges a little narrower and wider, each time the scale
// and minimum that are best for the integers that come of it.
Affine fit_affine(std::span<const float> x) {
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  const double low = std::min(static_cast<double>(*least), 0.0);
  const double high = std::max(static_cast<double>(*most), low);
  Affine best{(high - low) / 15, -low};
  if (high == low) return {0, -low};
  double best_error = affine_error(x, best);
  for (int step = -5; step <= 10; ++step) {
    const double inverse = (15 + 0.1 * step) / (high - low);
    double n = 0, sum_q = 0, sum_qq = 0, sum_x = 0, sum_qx = 0;
    for (const float value : x) {
      const double v = static_cast<double>(value);
      const int q = rounded((v - low) * inverse, 0, 15);
      n += 1;
      sum_q += q;
      sum_qq += q * q;
      sum_x += v;
      sum_qx += q * v;
    }
    const double determinant = n * sum_qq - sum_q * sum_q;
    if (determinant <= 0) continue;
    Affine fitted{(n * sum_qx - sum_q * sum_x) / determinant, 0};
    fitted.minimum = -(sum_x - fitted.scale * sum_q) / n;
    if (fitted.minimum < 0) fitted = {sum_qx / sum_qq, 0};
    if (fitted.scale <= 0) continue;
    const double error = affine_error(x, fitted);
    if (error < best_error) {
      best = fitted;
      best_error = error;
    }
  }
  return best;
}

void q4_k_block(std::span<const float> x, ByteWriter& out) {
  Affine parts[8];
  double scale_most = 0, minimum_most = 0;
  for (size_t j = 0; j < 8; ++j) {
    parts[j] = fit_affine(x.subspan(j * 32, 32));
    scale_most = std::max(scale_most, parts[j].scale);
    minimum_most = std::max(minimum_most, parts[j].minimum);
  }
  const uint16_t d = half_bits(scale_most / 63), m = half_bits(minimum_most / 63);
  int scales[8], minima[8], q[256];
  for (size_t j = 0; j < 8; ++j) {
    scales[j] = half_value(d) == 0 ? 0 : rounded(parts[j].scale / half_value(d), 0, 63);
    minima[j] = half_value(m) == 0 ? 0 : rounded(parts[j].minimum / half_value(m), 0, 63);
    const double scale = half_value(d) * scales[j], minimum = half_value(m) * minima[j];
    for (size_t i = 0; i < 32; ++i) {
      const double v = static_cast<double>(x[j * 32 + i]);
      q[j * 32 + i] = scale == 0 ? 0 : rounded((v + minimum) / scale, 0, 15);
    }
  }
  out.u16(d);
  out.u16(m);
  uint8_t packed[12] = {};
  for (int j = 0; j < 4; ++j) {
    packed[j] = static_cast<uint8_t>(scales[j] | (scales[j + 4] >> 4) << 6);
    packed[j + 4] = static_cast<uint8_t>(minima[j] | (minima[j + 4] >> 4) << 6);
    packed[j + 8] = static_cast<uint8_t>((scales[j + 4] & 15) | (minima[j + 4] & 15) << 4);
  }
  for (const uint8_t byte : packed) out.u8(byte);
  for (int pair = 0; pair < 4; ++pair) {
    for (int i = 0; i < 32; ++i)
      out.u8(static_cast<uint8_t>(q[pair * 64 + i] | q[pair * 64 + 32 + i] << 4));
  }
}

// The best scale, of either sign, for integers -32 .. 31.
double fit_scale(std::span<const float> x) {
  float extreme = 0;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  if (extreme == 0) return 0;
  double best = 0, best_gain = -1;
  for (int step = -9; step <= 9; ++step) {
    const double inverse = -(32 + 0.1 * step) / static_cast<double>(extreme);
    double sum_qx = 0, sum_qq = 0;
    for (const float value : x) {
      const int q = rounded(static_cast<double>(value) * inverse, -32, 31);
      sum_qx += q * static_cast<double>(value);
      sum_qq += q * q;
    }
    if (sum_qq == 0) continue;
    const double gain = sum_qx * sum_qx / sum_qq;  // What the best scale takes off the error.
    if (gain > best_gain) {
      best_gain = gain;
      best = sum_qx / sum_qq;
    }
  }
  return best;
}

void q6_k_block(std::span<const float> x, ByteWriter& out) {
  double scales[16], extreme = 0;
  for (size_t j = 0; j < 16; ++j) {
    scales[j] = fit_scale(x.subspan(j * 16, 16));
    if (std::fabs(scales[j]) > std::fabs(extreme)) extreme = scales[j];
  }
  const uint16_t d = half_bits(extreme / -128);
  int8_t whole[16];
  int q[256];
  for (size_t j = 0; j < 16; ++j) {
    const int own = half_value(d) == 0 ? 0 : rounded(scales[j] / half_value(d), -128, 127);
    whole[j] = static_cast<int8_t>(own);
    const double scale = half_value(d) * own;
    for (size_t i = j * 16; i < j * 16 + 16; ++i)
      q[i] = scale == 0 ? 32 : rounded(static_cast<double>(x[i]) / scale + 32, 0, 63);
  }
  uint8_t low[128] = {}, high[64] = {};
  for (int i = 0; i < 256; ++i) {
    const int part = i / 128, quarter = i % 128 / 32, l = i % 32;
    low[part * 64 + quarter % 2 * 32 + l] |= static_cast<uint8_t>((q[i] & 15) << (quarter / 2 * 4));
    high[part * 32 + l] |= static_cast<uint8_t>((q[i] >> 4) << (quarter * 2));
  }
  for (const uint8_t byte : low) out.u8(byte);
  for (const uint8_t byte : high) out.u8(byte);
  for (const int8_t scale : whole) out.u8(static_cast<uint8_t>(scale));
  out.u16(d);
}

}  // namespace

Result<QuantMode> quant_mode(std::string_view name) {
  if (name == "q8_0") return QuantMode::kQ8_0;
  if (name == "q4_0") return QuantMode::kQ4_0;
  if (name == "q4_k_m") return QuantMode::kQ4_K_M;
  return Error{ErrorCode::kInvalid,
               "\"" + std::string(name) + "\" is none of q8_0, q4_0 and q4_k_m"};
}

std::optional<DType> quant_type(QuantMode mode, std::string_view role, int64_t block,
                                int64_t blocks, int64_t columns) {
  if (mode == QuantMode::kNone || role == "router" || role == "positions") return {};
  DType wanted = mode == QuantMode::kQ8_0   ? DType::kQ8_0
                 : mode == QuantMode::kQ4_0 ? DType::kQ4_0
                                            : DType::kQ4_K;
  if (mode == QuantMode::kQ4_K_M) {
    // The first and last eighth of the blocks, and every third between them.
    const bool costly =
        block < blocks / 8 || block >= 7 * blocks / 8 || (block - blocks / 8) % 3 == 2;
    const bool ends = role == "output" || role == "token_embedding";
    const bool sensitive = role == "value" || role == "down" || role == "down_experts";
    if (ends || (sensitive && costly)) wanted = DType::kQ6_K;
  }
  if (columns % block_elements(wanted) == 0) return wanted;
  if (columns % block_elements(DType::kQ8_0) == 0) return DType::kQ8_0;
  return {};
}

ByteVector quantise(DType type, std::span<const float> values) {
  const size_t block = block_elements(type);
  SHOAL_CHECK(values.size() % block == 0);
  ByteWriter out;
  for (size_t at = 0; at < values.size(); at += block) {
    const std::span<const float> x = values.subspan(at, block);
    switch (type) {
      case DType::kQ8_0: q8_0_block(x, out); break;
      case DType::kQ4_0: q4_0_block(x, out); break;
      case DType::kQ4_K: q4_k_block(x, out); break;
      case DType::kQ6_K: q6_k_block(x, out); break;
      default: SHOAL_UNREACHABLE();
    }
  }
  return out.take();
}

Result<ByteVector> quantise_tensor(DType from, ByteSpan bytes, DType to, QuantError& error) {
  constexpr size_t kPiece = size_t{1} << 16;  // Elements; a multiple of every block.
  const size_t width = from == DType::kF32 ? 4 : 2;
  const size_t count = bytes.size() / width;
  const bool minimum = has_minimum(to);
  ByteVector result;
  std::vector<float> values;
  for (size_t begin = 0; begin < count; begin += kPiece) {
    values.resize(std::min(kPiece, count - begin));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = load_element(from, bytes, static_cast<int64_t>(begin + i));
      if (!exact::exact_is_finite(values[i])) {
        return Error{ErrorCode::kUnsupported,
                     "element " + std::to_string(begin + i) + " is not finite"};
      }
    }
    const ByteVector piece = quantise(to, values);
    for (size_t at = 0; at < values.size(); at += 32) {
      const QuantBlock block = load_block(to, piece, static_cast<int64_t>(at / 32));
      for (size_t i = 0; i < 32; ++i) {
        double got = static_cast<double>(block.d) * block.scales[i / 16] * block.values[i];
        if (minimum) got += static_cast<double>(block.m) * block.minimum;
        const double wanted = static_cast<double>(values[at + i]);
        error.squares += wanted * wanted;
        error.errors += (got - wanted) * (got - wanted);
      }
    }
    result.insert(result.end(), piece.begin(), piece.end());
  }
  return result;
}

void QuantCost::add(const std::string& role, const std::string& tensor, DType type,
                    const QuantError& error) {
  Sums& sums = roles_[role];
  sums.squares += error.squares;
  sums.errors += error.errors;
  const std::string name(dtype_name(type));
  if (sums.types.find(name) == std::string::npos)
    sums.types += (sums.types.empty() ? "" : ", ") + name;
  const double relative = error.squares > 0 ? std::sqrt(error.errors / error.squares) : 0;
  if (sums.worst_tensor.empty() || relative > sums.worst) {
    sums.worst = relative;
    sums.worst_tensor = tensor;
  }
}

std::vector<QuantCost::Line> QuantCost::lines() const {
  std::vector<Line> lines;
  for (const auto& [role, sums] : roles_) {
    lines.push_back({role, sums.types, sums.squares > 0 ? std::sqrt(sums.errors / sums.squares) : 0,
                     sums.worst, sums.worst_tensor});
  }
  return lines;
}

}  // namespace shoal::compute
