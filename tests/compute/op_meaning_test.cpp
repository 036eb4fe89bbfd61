// Goal: each op's reference, which every plane must equal bit by bit, means what it should. Method:
// the ops' own ordinary samples against a plain evaluation in double, written from the formula and
// with its own reading of weights, within a tolerance that follows from f32.

#include <QTest>

#include <algorithm>
#include <cmath>

#include "compute/ops/op.h"
#include "tests/support/weight_values.h"

using namespace shoal;
using namespace shoal::compute;

namespace {

// Any tensor as doubles, row by row.
std::vector<double> values_of(const SampleBuffer& buffer, ByteSpan bytes) {
  const int64_t count = buffer.rows * buffer.columns;
  if (buffer.dtype != DType::kI32 && buffer.dtype != DType::kQ8Rows)
    return weight_values(buffer.dtype, bytes, count);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    if (buffer.dtype == DType::kI32) {
      values.push_back(load_i32(bytes, i));
      continue;
    }
    const int64_t row = i / buffer.columns, column = i % buffer.columns;
    const std::byte* at = bytes.data() + row * (buffer.columns / 32 * 36);
    float scale;
    std::memcpy(&scale, at + buffer.columns + column / 32 * 4, 4);
    values.push_back(double(scale) * static_cast<int8_t>(at[column]));
  }
  return values;
}

using Values = std::vector<double>;

// What the output should be, and how far off f32 may be, element by element.
struct Expected {
  Values values;
  Values tolerance;
  void push(double value, double tolerated) {
    values.push_back(value), tolerance.push_back(tolerated);
  }
};

Expected expect_embed(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<EmbedParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    for (size_t i = 0; i < p.width; ++i) {
      const double x = in[1][size_t(in[0][row]) * p.width + i];
      // With a minimum it is a difference of two.
      const bool minimum = has_minimum(sample.variant);
      e.push(x, std::fabs(x) * 1e-7 + (minimum ? 1e-7 : 1e-15));
    }
  }
  return e;
}

Expected expect_rms_norm(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<RmsNormParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    double squares = 0;
    for (size_t i = 0; i < p.width; ++i)
      squares += in[0][row * p.width + i] * in[0][row * p.width + i];
    const double root = std::sqrt(squares / p.width + double(p.epsilon));
    for (size_t i = 0; i < p.width; ++i) {
      const double y = in[0][row * p.width + i] / root * in[1][i];
      e.push(y, std::fabs(y) * 1e-6);
    }
  }
  return e;
}

Expected expect_quantize(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<QuantizeParams>();
  Expected e;
  for (size_t i = 0; i < size_t{p.rows} * p.width; ++i) {
    double largest = 0;
    for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j)
      largest = std::max(largest, std::fabs(in[0][j]));
    e.push(in[0][i], largest / 127 * 0.50002);
  }
  return e;
}

Expected expect_matmul(const OpSample& sample, const std::vector<Values>& in,
                       const Values& before) {
  const auto p = sample.params.as<MatmulParams>();
  Expected e{before, Values(before.size(), 0.0)};  // Other columns stay.
  for (size_t row = 0; row < p.rows; ++row) {
    for (size_t column = 0; column < p.n; ++column) {
      double sum = 0, magnitude = 0;
      for (size_t i = 0; i < p.k; ++i) {
        const double product = in[0][row * p.k + i] * in[1][column * p.k + i];
        sum += product;
        magnitude += std::fabs(product);
      }
      e.values[row * p.n_total + p.n_first + column] = sum;
      e.tolerance[row * p.n_total + p.n_first + column] = magnitude * 3e-6;
    }
  }
  return e;
}

Expected expect_rope(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<RopeParams>();
  Expected e{in[0], Values(in[0].size(), 0.0)};
  for (size_t row = 0; row < p.rows; ++row) {
    for (size_t head = 0; head < p.heads; ++head) {
      const size_t first = (row * p.heads + head) * p.head_dim;
      for (size_t i = 0; i < p.rotary / 2; ++i) {
        const size_t a = first + (p.interleaved != 0 ? 2 * i : i);
        const size_t b = first + (p.interleaved != 0 ? 2 * i + 1 : i + p.rotary / 2);
        const double angle = in[2][row * 2 + 1] * std::pow(10000.0, -2.0 * double(i) / p.rotary);
        const double tolerance = (std::fabs(in[0][a]) + std::fabs(in[0][b])) * 3e-7;
        e.values[a] = in[0][a] * std::cos(angle) - in[0][b] * std::sin(angle);
        e.values[b] = in[0][a] * std::sin(angle) + in[0][b] * std::cos(angle);
        e.tolerance[a] = e.tolerance[b] = tolerance;
      }
    }
  }
  return e;
}

// Where the caches have a position of a row's sequence: 32 of them a page.
size_t place_of(const Values& row_info, size_t row, size_t position) {
  return size_t(row_info[size_t(row_info[row * 2]) + position / 32]) * 32 + position % 32;
}

Expected expect_cache_append(const OpSample& sample, const std::vector<Values>& in,
                             const Values& before) {
  const auto p = sample.params.as<CacheAppendParams>();
  Expected e{before, Values(before.size(), 0.0)};
  for (size_t row = 0; row < p.rows; ++row) {
    for (size_t i = 0; i < p.width; ++i) {
      const double x = in[0][row * p.width + i];
      const size_t at = place_of(in[1], row, size_t(in[1][row * 2 + 1])) * p.width + i;
      e.values[at] = x;
      e.tolerance[at] = sample.variant == DType::kF16 ? std::fabs(x) * 0x1p-11 + 0x1p-25 : 1e-15;
    }
  }
  return e;
}

Expected expect_attention(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<AttentionParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    const auto position = size_t(in[3][row * 2 + 1]);
    for (size_t head = 0; head < p.heads; ++head) {
      const size_t kv_head = head / (p.heads / p.kv_heads);
      Values weights;
      double largest = -1e300, total = 0, score_max = 0;
      const size_t from = p.window == 0 || position < p.window ? 0 : position - p.window + 1;
      for (size_t j = 0; j <= position; ++j) {
        if (j < from) {
          weights.push_back(-1e300);
          continue;
        }
        double dot = 0;
        for (size_t d = 0; d < p.head_dim; ++d) {
          dot += in[0][(row * p.heads + head) * p.head_dim + d] *
                 in[1][(place_of(in[3], row, j) * p.kv_heads + kv_head) * p.head_dim + d];
        }
        weights.push_back(dot * p.scale);
        if (p.cap != 0) weights.back() = p.cap * std::tanh(weights.back() / p.cap);
        largest = std::max(largest, weights.back());
        score_max = std::max(score_max, std::fabs(weights.back()));
      }
      for (double& weight : weights) total += weight = std::exp(weight - largest);
      for (size_t d = 0; d < p.head_dim; ++d) {
        double sum = 0, magnitude = 0;
        for (size_t j = 0; j <= position; ++j) {
          const double v = in[2][(place_of(in[3], row, j) * p.kv_heads + kv_head) * p.head_dim + d];
          sum += weights[j] / total * v;
          magnitude += weights[j] / total * std::fabs(v);
        }
        // An error of a score is a relative error of its weight.
        e.push(sum, magnitude * (1e-5 + score_max * 2e-6));
      }
    }
  }
  return e;
}

Expected expect_swiglu(const OpSample& sample, const std::vector<Values>& in) {
  Expected e;
  for (size_t i = 0; i < in[0].size(); ++i) {
    const double y = in[0][i] / (1.0 + std::exp(-in[0][i])) * in[1][i];
    e.push(y, std::fabs(y) * 1e-6 + 0x1p-90);
  }
  Q_UNUSED(sample);
  return e;
}

Expected expect_add(const std::vector<Values>& in) {
  Expected e;
  for (size_t i = 0; i < in[0].size(); ++i) {
    const double y = in[0][i] + in[1][i];
    e.push(y, std::fabs(y) * 1e-7);
  }
  return e;
}

Expected expect_select_rows(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<SelectRowsParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    for (size_t i = 0; i < p.width; ++i) e.push(in[0][size_t(in[1][row]) * p.width + i], 0.0);
  }
  return e;
}

Expected expect_layer_norm(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<LayerNormParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    const double* x = in[0].data() + row * p.width;
    double mean = 0, squares = 0, largest = 0;
    for (size_t i = 0; i < p.width; ++i) {
      mean += x[i] / p.width;
      largest = std::max(largest, std::fabs(x[i]));
    }
    for (size_t i = 0; i < p.width; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double root = std::sqrt(squares / p.width + double(p.epsilon));
    for (size_t i = 0; i < p.width; ++i) {
      const double y = (x[i] - mean) / root * in[1][i] + in[2][i];
      // The mean is off by a little of the largest element.
      e.push(y, (std::fabs(y) + std::fabs(in[2][i])) * 1e-6 +
                    largest / root * 3e-7 * std::fabs(in[1][i]));
    }
  }
  return e;
}

Expected expect_bias(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<BiasParams>();
  Expected e;
  for (size_t i = 0; i < in[0].size(); ++i) {
    const double y = in[0][i] + in[1][i % p.width];
    e.push(y, std::fabs(y) * 1e-7);
  }
  return e;
}

Expected expect_gelu(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<GeluParams>();
  Expected e;
  for (const double x : in[0]) {
    const double phi = p.error_function != 0
                           ? std::erfc(-x / std::sqrt(2.0)) / 2
                           : (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) / 2;
    e.push(x * phi, std::fabs(x) * 3e-7);
  }
  return e;
}

Expected expect_multiply(const std::vector<Values>& in) {
  Expected e;
  for (size_t i = 0; i < in[0].size(); ++i)
    e.push(in[0][i] * in[1][i], std::fabs(in[0][i] * in[1][i]) * 1e-7);
  return e;
}

Expected expect_soft_cap(const OpSample& sample, const std::vector<Values>& in) {
  const double cap = double(sample.params.as<SoftCapParams>().cap);
  Expected e;
  for (const double x : in[0]) {
    const double y = cap * std::tanh(x / cap);
    e.push(y, std::fabs(y) * 1e-6);
  }
  return e;
}

Expected expect_scale(const OpSample& sample, const std::vector<Values>& in) {
  Expected e;
  for (const double x : in[0]) {
    const double y = x * double(sample.params.as<ScaleParams>().scale);
    e.push(y, std::fabs(y) * 1e-7);
  }
  return e;
}

Expected expect_positions(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<PositionsParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    for (size_t i = 0; i < p.width; ++i) {
      const double x = in[0][size_t(in[1][row * 2 + 1]) * p.width + i];
      e.push(x, std::fabs(x) * 1e-7 + (has_minimum(sample.variant) ? 1e-7 : 1e-15));
    }
  }
  return e;
}

Expected expect_route(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<RouteParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    const double* x = in[0].data() + row * p.experts;
    std::vector<size_t> order(p.experts);
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
    double sum = 0;
    for (size_t i = 0; i < (p.renormalise != 0 ? p.used : p.experts); ++i)
      sum += std::exp(x[order[i]] - x[order[0]]);
    for (size_t i = 0; i < p.used; ++i) e.push(double(order[i]), 0);
    for (size_t i = 0; i < p.used; ++i) {
      const double weight = std::exp(x[order[i]] - x[order[0]]) / sum;
      e.push(weight, weight * 5e-6);
    }
  }
  return e;
}

Expected expect_expert_matmul(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<ExpertMatmulParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    for (size_t slot = 0; slot < p.used; ++slot) {
      const auto expert = size_t(in[2][row * 2 * p.used + slot]);
      const double* x = in[0].data() + (row * p.slots + (p.slots == 1 ? 0 : slot)) * p.k;
      for (size_t column = 0; column < p.n; ++column) {
        double sum = 0, magnitude = 0;
        for (size_t i = 0; i < p.k; ++i) {
          const double product = x[i] * in[1][(expert * p.n + column) * p.k + i];
          sum += product;
          magnitude += std::fabs(product);
        }
        e.push(sum, magnitude * 3e-6);
      }
    }
  }
  return e;
}

Expected expect_combine(const OpSample& sample, const std::vector<Values>& in) {
  const auto p = sample.params.as<CombineParams>();
  Expected e;
  for (size_t row = 0; row < p.rows; ++row) {
    for (size_t i = 0; i < p.width; ++i) {
      double sum = 0, magnitude = 0;
      for (size_t slot = 0; slot < p.used; ++slot) {
        const double product =
            in[1][row * 2 * p.used + p.used + slot] * in[0][(row * p.used + slot) * p.width + i];
        sum += product;
        magnitude += std::fabs(product);
      }
      e.push(sum, magnitude * 3e-6);
    }
  }
  return e;
}

Expected expect(OpKind kind, const OpSample& sample, const std::vector<Values>& in,
                const Values& before) {
  switch (kind) {
    case OpKind::kEmbed: return expect_embed(sample, in);
    case OpKind::kRmsNorm: return expect_rms_norm(sample, in);
    case OpKind::kQuantize: return expect_quantize(sample, in);
    case OpKind::kMatmul: return expect_matmul(sample, in, before);
    case OpKind::kRope: return expect_rope(sample, in);
    case OpKind::kCacheAppend: return expect_cache_append(sample, in, before);
    case OpKind::kAttention: return expect_attention(sample, in);
    case OpKind::kSwiglu: return expect_swiglu(sample, in);
    case OpKind::kAdd: return expect_add(in);
    case OpKind::kSelectRows: return expect_select_rows(sample, in);
    case OpKind::kLayerNorm: return expect_layer_norm(sample, in);
    case OpKind::kBias: return expect_bias(sample, in);
    case OpKind::kGelu: return expect_gelu(sample, in);
    case OpKind::kMultiply: return expect_multiply(in);
    case OpKind::kSoftCap: return expect_soft_cap(sample, in);
    case OpKind::kScale: return expect_scale(sample, in);
    case OpKind::kPositions: return expect_positions(sample, in);
    case OpKind::kRoute: return expect_route(sample, in);
    case OpKind::kExpertMatmul: return expect_expert_matmul(sample, in);
    case OpKind::kCombine: return expect_combine(sample, in);
  }
  SHOAL_UNREACHABLE();
}

bool is_ordinary(const OpSample& sample) {
  for (const char* word : {"tiny", "huge", "large", "max", "zero", "bounds"}) {
    if (sample.label.find(word) != std::string::npos) return false;
  }
  return !sample.non_finite;
}

}  // namespace

class OpMeaningTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_reference_means_its_formula_data();
  void every_reference_means_its_formula();
  void what_is_not_finite_is_named();
  void the_list_is_in_order();
};

void OpMeaningTest::every_reference_means_its_formula_data() {
  QTest::addColumn<int>("kind");
  for (int kind = 0; kind < kOpKinds; ++kind)
    QTest::addRow("%s", op_name(OpKind(kind)).data()) << kind;
}

void OpMeaningTest::every_reference_means_its_formula() {
  QFETCH(int, kind);
  const OpSpec& spec = op_spec(OpKind(kind));
  int compared = 0;
  for (const OpSample& sample : spec.samples()) {
    if (!is_ordinary(sample)) continue;
    std::vector<ByteSpan> inputs;
    std::vector<Values> values;
    for (const SampleBuffer& input : sample.inputs) {
      inputs.push_back(input.bytes);
      values.push_back(values_of(input, input.bytes));
    }
    ByteVector output = sample.output.bytes;
    QVERIFY(spec.reference(sample.variant, sample.params, inputs, output).ok());
    const Values got = values_of(sample.output, output);
    const Expected expected =
        expect(spec.kind, sample, values, values_of(sample.output, sample.output.bytes));
    QCOMPARE(got.size(), expected.values.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const double error = std::fabs(got[i] - expected.values[i]);
      QVERIFY2(error <= expected.tolerance[i] + 1e-30,
               qPrintable(QString("%1: element %2 is %3, should be %4 within %5")
                              .arg(QString::fromStdString(sample.label))
                              .arg(i)
                              .arg(got[i], 0, 'g', 9)
                              .arg(expected.values[i], 0, 'g', 9)
                              .arg(expected.tolerance[i])));
    }
    ++compared;
  }
  QVERIFY(compared >= 2);
}

void OpMeaningTest::what_is_not_finite_is_named() {
  for (const OpSpec& spec : op_list()) {
    int found = 0;
    for (const OpSample& sample : spec.samples()) {
      if (!sample.non_finite) continue;
      ++found;
      std::vector<ByteSpan> inputs;
      for (const SampleBuffer& input : sample.inputs) inputs.push_back(input.bytes);
      ByteVector output = sample.output.bytes;
      const Result<void> result = spec.reference(sample.variant, sample.params, inputs, output);
      QVERIFY2(!result.ok(), sample.label.c_str());
      QCOMPARE(result.error().code, ErrorCode::kNonFinite);
      QVERIFY(result.error().message.starts_with(op_name(spec.kind)));
    }
    // An embedding or a copied row can not become infinite unless the weights are.
    QVERIFY2(found > 0 || spec.kind == OpKind::kEmbed || spec.kind == OpKind::kSelectRows,
             op_name(spec.kind).data());
  }
}

void OpMeaningTest::the_list_is_in_order() {
  QCOMPARE(op_list().size(), size_t(kOpKinds));
  for (int kind = 0; kind < kOpKinds; ++kind) QCOMPARE(int(op_list()[size_t(kind)].kind), kind);
}

QTEST_GUILESS_MAIN(OpMeaningTest)
#include "op_meaning_test.moc"
