#pragma once
// A Llama evaluated in float64 with plain formulas, from a GGUF file's tensors: what exact
// arithmetic is measured against. Shares only the reader with what it judges. Slow.

#include <cstdint>
#include <span>
#include <vector>

#include "compute/models/gguf.h"

namespace shoal::compute {

class Float64Llama {
 public:
  // REQUIRES: the file is a Llama that open_model takes. The file's bytes may go afterwards.
  explicit Float64Llama(const GgufFile& file);

  void restart();                           // Forgets the sequence.
  std::vector<double> step(int32_t token);  // Logits after one more token.

  int64_t vocabulary() const { return vocabulary_; }

 private:
  struct Matrix {
    int64_t rows = 0, columns = 0;
    std::vector<double> values;
  };
  struct Block {
    std::vector<double> attention_norm, ffn_norm;
    Matrix q, k, v, o, gate, up, down;
    std::vector<std::vector<double>> keys, values;  // By position.
  };
  static Matrix load(const GgufFile& file, const std::string& name);
  static std::vector<double> multiply(const Matrix& matrix, const std::vector<double>& x);
  std::vector<double> norm(const std::vector<double>& x, const std::vector<double>& weight) const;
  void rotate(std::vector<double>& x, int64_t heads, int64_t position) const;

  int64_t heads_, kv_heads_, head_dim_, vocabulary_;
  double epsilon_, theta_;
  Matrix embedding_, output_;  // Without `output_` the embedding is used.
  std::vector<double> output_norm_;
  std::vector<Block> blocks_;
  int64_t position_ = 0;
};

}  // namespace shoal::compute
