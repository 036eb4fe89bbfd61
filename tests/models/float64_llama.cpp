#include "tests/models/float64_llama.h"

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "tests/support/weight_values.h"

namespace shoal::compute {
namespace {

int64_t integer(const GgufFile& file, std::string_view key) {
  return file.integer(key, 1, 1 << 24).value();
}

}  // namespace

Float64Llama::Matrix Float64Llama::load(const GgufFile& file, const std::string& name) {
  const StoredTensor& tensor = file.tensors().at(name);
  const int64_t rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  const int64_t columns = tensor.shape.back();
  return {rows, columns, weight_values(*tensor.dtype, tensor.bytes, rows * columns)};
}

Float64Llama::Float64Llama(const GgufFile& file)
    : heads_(integer(file, "llama.attention.head_count")),
      kv_heads_(file.integer_or("llama.attention.head_count_kv", heads_, 1, 1 << 24).value()),
      epsilon_(file.number("llama.attention.layer_norm_rms_epsilon", 0, 1).value()),
      theta_(file.number_or("llama.rope.freq_base", 10000.0, 1, 1e12).value()),
      embedding_(load(file, "token_embd.weight")),
      output_norm_(load(file, "output_norm.weight").values) {
  head_dim_ = file.integer_or("llama.attention.key_length", embedding_.columns / heads_, 1, 1 << 24)
                  .value();
  vocabulary_ = embedding_.rows;
  if (file.tensors().count("output.weight") != 0) output_ = load(file, "output.weight");
  const int64_t blocks = integer(file, "llama.block_count");
  for (int64_t i = 0; i < blocks; ++i) {
    const std::string name = "blk." + std::to_string(i) + ".";
    blocks_.push_back({.attention_norm = load(file, name + "attn_norm.weight").values,
                       .ffn_norm = load(file, name + "ffn_norm.weight").values,
                       .q = load(file, name + "attn_q.weight"),
                       .k = load(file, name + "attn_k.weight"),
                       .v = load(file, name + "attn_v.weight"),
                       .o = load(file, name + "attn_output.weight"),
                       .gate = load(file, name + "ffn_gate.weight"),
                       .up = load(file, name + "ffn_up.weight"),
                       .down = load(file, name + "ffn_down.weight")});
  }
}

void Float64Llama::restart() {
  position_ = 0;
  for (Block& block : blocks_) {
    block.keys.clear();
    block.values.clear();
  }
}

std::vector<double> Float64Llama::multiply(const Matrix& matrix, const std::vector<double>& x) {
  SHOAL_CHECK(static_cast<int64_t>(x.size()) == matrix.columns);
  std::vector<double> y(static_cast<size_t>(matrix.rows));
  const double* row = matrix.values.data();
  for (double& out : y) {
    // Four sums, so that the processor need not wait for each addition.
    double sums[4] = {};
    size_t i = 0;
    for (; i + 4 <= x.size(); i += 4) {
      for (size_t l = 0; l < 4; ++l) sums[l] += row[i + l] * x[i + l];
    }
    for (; i < x.size(); ++i) sums[0] += row[i] * x[i];
    out = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    row += x.size();
  }
  return y;
}

std::vector<double> Float64Llama::norm(const std::vector<double>& x,
                                       const std::vector<double>& weight) const {
  double sum = 0;
  for (const double value : x) sum += value * value;
  const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon_);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
  return y;
}

// A GGUF's rows of q and k are ordered so that neighbours turn together.
void Float64Llama::rotate(std::vector<double>& x, int64_t heads, int64_t position) const {
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < head_dim_ / 2; ++i) {
      const double angle =
          static_cast<double>(position) *
          std::pow(theta_, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim_));
      double& a = x[static_cast<size_t>(h * head_dim_ + 2 * i)];
      double& b = x[static_cast<size_t>(h * head_dim_ + 2 * i + 1)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

std::vector<double> Float64Llama::step(int32_t token) {
  const auto width = static_cast<size_t>(embedding_.columns);
  const auto row =
      embedding_.values.begin() + static_cast<std::ptrdiff_t>(token * embedding_.columns);
  std::vector<double> x(row, row + static_cast<std::ptrdiff_t>(width));
  const auto dim = static_cast<size_t>(head_dim_);
  for (Block& block : blocks_) {
    const std::vector<double> in = norm(x, block.attention_norm);
    std::vector<double> q = multiply(block.q, in);
    std::vector<double> k = multiply(block.k, in);
    rotate(q, heads_, position_);
    rotate(k, kv_heads_, position_);
    block.keys.push_back(k);
    block.values.push_back(multiply(block.v, in));

    std::vector<double> attended(q.size());
    for (int64_t h = 0; h < heads_; ++h) {
      const double* query = q.data() + h * head_dim_;
      const int64_t shared = h / (heads_ / kv_heads_) * head_dim_;
      std::vector<double> weights;
      double largest = -INFINITY, sum = 0;
      for (const auto& key : block.keys) {
        double score = 0;
        for (size_t i = 0; i < dim; ++i) score += query[i] * key[static_cast<size_t>(shared) + i];
        weights.push_back(score / std::sqrt(static_cast<double>(head_dim_)));
        largest = std::max(largest, weights.back());
      }
      for (double& weight : weights) sum += weight = std::exp(weight - largest);
      for (size_t p = 0; p < weights.size(); ++p) {
        for (size_t i = 0; i < dim; ++i) {
          attended[static_cast<size_t>(h) * dim + i] +=
              weights[p] / sum * block.values[p][static_cast<size_t>(shared) + i];
        }
      }
    }
    const std::vector<double> mixed = multiply(block.o, attended);
    for (size_t i = 0; i < width; ++i) x[i] += mixed[i];

    const std::vector<double> ffn_in = norm(x, block.ffn_norm);
    std::vector<double> gate = multiply(block.gate, ffn_in);
    const std::vector<double> up = multiply(block.up, ffn_in);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    const std::vector<double> down = multiply(block.down, gate);
    for (size_t i = 0; i < width; ++i) x[i] += down[i];
  }
  ++position_;
  return multiply(output_.values.empty() ? embedding_ : output_, norm(x, output_norm_));
}

}  // namespace shoal::compute
