// Sinusoidal absolute positions (arXiv:1706.03762 section 3.5): a constant table added to the token embeddings. Waves
// are computed in double.
#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/position/position.h"

namespace transept {
namespace {

class Sinusoidal final : public Position {
 public:
  Sinusoidal(const SinusoidalPosition& kind, int64_t hidden_size)
      : hidden_size_(hidden_size), inv_freq_(kind.inv_freq(hidden_size)) {
    const bool halves = kind.pairing == RopePairing::kHalfSplit;
    step_ = halves ? 1 : 2;
    cosine_ = halves ? static_cast<int64_t>(inv_freq_.size()) : 1;
  }

  Param embedding(int64_t positions) const override {
    // Grows by doubling, so that decoding token by token seldom computes.
    if (positions > rows_) grow(std::max({positions, 2 * rows_, int64_t{256}}));
    return {table_.data(), nullptr, rows_, hidden_size_};
  }

 private:
  void grow(int64_t rows) const {
    table_.resize(static_cast<size_t>(rows * hidden_size_));
    for (int64_t p = rows_; p < rows; ++p) {
      float* to = table_.data() + p * hidden_size_;
      for (const double f : inv_freq_) {
        to[0] = static_cast<float>(std::sin(static_cast<double>(p) * f));
        to[cosine_] = static_cast<float>(std::cos(static_cast<double>(p) * f));
        to += step_;
      }
    }
    rows_ = rows;
  }

  int64_t hidden_size_;
  std::vector<double> inv_freq_;
  int64_t step_ = 0, cosine_ = 0;     // from one sine to the next, and to its cosine
  mutable std::vector<float> table_;  // [rows, hidden]
  mutable int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Position> build(const SinusoidalPosition& kind, const ArchSpec& spec, const Parameters&,
                                const std::string&) {
  return std::make_unique<Sinusoidal>(kind, spec.hidden_size);
}

}  // namespace transept
