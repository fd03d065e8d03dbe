// Products with 16-bit weights against plain sums in double, on every instruction set; weights in floats and weights in
// runs of stored rows are one case table.
#include "kernels/weights.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/elementwise.h"
#include "kernels/elementwise_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/tolerances.h"

namespace transept {
namespace {

enum class Form { kFloats, kBf16, kF16 };

struct Case {
  int64_t m, n, k;
  std::vector<int64_t> runs;  // rows of each; together n
};
// Few rows and many (more than 16), runs that tiles cut, vectors with tails, sums longer than a panel.
const Case kCases[] = {{1, 1, 1, {1}},          {1, 300, 33, {300}},       {3, 40, 64, {8, 8, 24}}, {4, 7, 31, {3, 4}},
                       {5, 530, 100, {1, 529}}, {16, 20, 257, {20}},       {17, 20, 16, {5, 15}},   {40, 33, 300, {33}},
                       {300, 50, 20, {20, 30}}, {20, 1030, 9, {600, 430}}, {18, 5, 600, {2, 2, 1}}};

std::string text(const Case& c) {
  return std::to_string(c.m) + " x " + std::to_string(c.n) + " x " + std::to_string(c.k);
}

// Weights in one of the forms, each run apart from the others, and what they are in double.
class Weights {
 public:
  Weights(const Case& c, Form form, uint64_t seed) : form_(form), columns_(c.k) {
    const CounterRng rng(seed, Stream::kTest);
    uint64_t draw = 0;
    int64_t first = 0;
    for (const int64_t rows : c.runs) {
      std::vector<float> values(static_cast<size_t>(rows * c.k));
      for (float& v : values) v = static_cast<float>(rng.normal(draw++));
      std::vector<uint16_t>& half = halves_.emplace_back(values.size());
      if (form != Form::kFloats) {
        const bool bf16 = form == Form::kBf16;
        (bf16 ? bf16_from_f32 : f16_from_f32)(values.data(), rows * c.k, half.data());
        for (size_t i = 0; i < half.size(); ++i)
          exact_.push_back(ref::value_of(bf16 ? ref::kBF16 : ref::kF16, half[i]));
      } else {
        exact_.insert(exact_.end(), values.begin(), values.end());
      }
      floats_.insert(floats_.end(), values.begin(), values.end());
      stored_.push_back({nullptr, first, rows});
      first += rows;
    }
    for (size_t i = 0; i < stored_.size(); ++i) stored_[i].data = halves_[i].data();
  }
  Weight view() const {
    if (form_ == Form::kFloats) return {floats_.data(), {}, DType::kF32, columns_};
    return {nullptr, stored_, form_ == Form::kBf16 ? DType::kBF16 : DType::kF16, columns_};
  }
  double operator()(int64_t row, int64_t column) const { return exact_[static_cast<size_t>(row * columns_ + column)]; }

 private:
  Form form_;
  int64_t columns_;
  std::vector<std::vector<uint16_t>> halves_;
  std::vector<StoredRows> stored_;
  std::vector<float> floats_;
  std::vector<double> exact_;
};

TEST(Weights, ProductsMatchSumsInDouble) {
  ThreadPool pool(2);
  for_each_instruction_set([&] {
    for (const Case& c : kCases) {
      for (const Form form : {Form::kFloats, Form::kBf16, Form::kF16}) {
        SCOPED_TRACE(text(c) + ", form " + std::to_string(static_cast<int>(form)));
        const Weights w(c, form, 3);
        constexpr int64_t kGap = 3;
        const CounterRng rng(5, Stream::kTest);
        std::vector<float> x(static_cast<size_t>(c.m * (c.k + kGap))), y(static_cast<size_t>(c.m * (c.n + kGap)), -7.f);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(rng.normal(i));
        int64_t finished = 0;
        std::mutex mutex;
        multiply(pool, {x.data(), c.m, c.k, c.k + kGap}, w.view(), c.n, {y.data(), c.m, c.n, c.n + kGap},
                 [&](Rows tile, int64_t, int64_t) {
                   const std::lock_guard lock(mutex);
                   finished += tile.rows * tile.width;
                 });
        EXPECT_EQ(finished, c.m * c.n) << "each element has its epilogue once";
        std::vector<float> got;
        std::vector<double> right;
        for (int64_t r = 0; r < c.m; ++r) {
          for (int64_t j = 0; j < c.n; ++j) {
            double sum = 0;
            for (int64_t i = 0; i < c.k; ++i)
              sum += static_cast<double>(x[static_cast<size_t>(r * (c.k + kGap) + i)]) * w(j, i);
            right.push_back(sum);
            got.push_back(y[static_cast<size_t>(r * (c.n + kGap) + j)]);
          }
          for (int64_t g = 0; g < kGap; ++g) EXPECT_EQ(y[static_cast<size_t>(r * (c.n + kGap) + c.n + g)], -7.f);
        }
        EXPECT_TRUE(close(got, right, tolerance::kKernel));
      }
    }
  });
}

TEST(Weights, RowsAreReadAsTheyAre) {
  const Case c{1, 9, 37, {2, 3, 4}};
  for (const Form form : {Form::kFloats, Form::kBf16, Form::kF16}) {
    const Weights w(c, form, 4);
    for (int64_t row = 0; row < c.n; ++row) {
      std::vector<float> got(static_cast<size_t>(c.k));
      read_weight_row(w.view(), row, got.data());
      for (int64_t i = 0; i < c.k; ++i) EXPECT_EQ(static_cast<double>(got[static_cast<size_t>(i)]), w(row, i));
    }
  }
}

// The result of a row does not depend on how many threads there are.
TEST(Weights, ThreadsDoNotChangeABit) {
  const Case c{7, 700, 90, {300, 400}};
  const Weights w(c, Form::kBf16, 6);
  const std::vector<float> x(static_cast<size_t>(c.m * c.k), 0.37f);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::vector<float>& y = results.emplace_back(static_cast<size_t>(c.m * c.n));
    multiply(pool, {x.data(), c.m, c.k, c.k}, w.view(), c.n, {y.data(), c.m, c.n, c.n});
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace transept
