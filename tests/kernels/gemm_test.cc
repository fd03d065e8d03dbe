// Matrix products and their grid of tiles against plain sums in double.
#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "support/compare.h"
#include "support/rows.h"
#include "support/tolerances.h"

namespace transept {
namespace {

// Around the tile's extents (256 rows, 512 columns; 256 columns for 16 rows and fewer) and their multiples of 16.
struct Extents {
  int64_t m, n;
};
constexpr Extents kGrids[] = {{1, 1},     {1, 256},   {1, 257},   {5, 1030},  {16, 513},  {17, 15},    {17, 513},
                              {255, 512}, {256, 512}, {257, 513}, {300, 520}, {511, 100}, {600, 1500}, {1025, 33}};

struct Product {
  int64_t m, n, k;
};
constexpr Product kProducts[] = {{1, 1, 1},    {1, 7, 5},    {1, 600, 33},   {2, 16, 16},  {5, 257, 3},    {16, 530, 8},
                                 {17, 31, 65}, {33, 48, 24}, {257, 520, 20}, {300, 7, 48}, {300, 1030, 10}};

// Floats between the rows of one operand and the next, and off a cache line.
struct Layout {
  int64_t gap, misaligned;
};
constexpr Layout kLayouts[] = {{0, 0}, {3, 1}, {16, 0}};

std::string text(const Product& p, const Layout& l) {
  return std::to_string(p.m) + " x " + std::to_string(p.n) + " x " + std::to_string(p.k) + ", gap " +
         std::to_string(l.gap);
}

std::vector<double> transposed(const std::vector<double>& a, int64_t rows, int64_t columns) {
  std::vector<double> t(a.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      t[static_cast<size_t>(c * rows + r)] = a[static_cast<size_t>(r * columns + c)];
  }
  return t;
}

// before + alpha * A[m, k] B[k, n].
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, const Product& p,
                            double alpha = 1, std::vector<double> before = {}) {
  before.resize(static_cast<size_t>(p.m * p.n), 0.0);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t l = 0; l < p.k; ++l) {
      const double factor = alpha * a[static_cast<size_t>(i * p.k + l)];
      for (int64_t j = 0; j < p.n; ++j)
        before[static_cast<size_t>(i * p.n + j)] += factor * b[static_cast<size_t>(l * p.n + j)];
    }
  }
  return before;
}

TEST(Tiles, CoverEveryElementOnceWhateverTheThreads) {
  for (const Extents& e : kGrids) {
    SCOPED_TRACE(std::to_string(e.m) + " x " + std::to_string(e.n));
    std::vector<std::vector<int>> grids;  // which tile an element lies in, by its first element
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      std::vector<int> times(static_cast<size_t>(e.m * e.n)), owner(times.size());
      std::mutex mutex;
      for_tiles(pool, e.m, e.n, [&](const Tile& t) {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(t.rows > 0 && t.columns > 0 && t.row >= 0 && t.column >= 0);
        ASSERT_TRUE(t.row + t.rows <= e.m && t.column + t.columns <= e.n);
        // Later tiles start on a vector of the row and of the column.
        EXPECT_EQ(t.row % 16, 0);
        EXPECT_EQ(t.column % 16, 0);
        for (int64_t r = t.row; r < t.row + t.rows; ++r) {
          for (int64_t c = t.column; c < t.column + t.columns; ++c) {
            ++times[static_cast<size_t>(r * e.n + c)];
            owner[static_cast<size_t>(r * e.n + c)] = static_cast<int>(t.row * e.n + t.column);
          }
        }
      });
      EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
      grids.push_back(owner);
    }
    EXPECT_EQ(grids[0], grids[1]);
    EXPECT_EQ(grids[0], grids[2]);
  }
}

TEST(Tiles, LargeMatricesAreSplitBothWays) {
  ThreadPool pool(1);
  int64_t tiles = 0, widest = 0, tallest = 0;
  for_tiles(pool, 600, 1500, [&](const Tile& t) {
    ++tiles;
    widest = std::max(widest, t.columns);
    tallest = std::max(tallest, t.rows);
  });
  EXPECT_LT(widest, 1500);
  EXPECT_LT(tallest, 600);
  EXPECT_GE(tiles, 4);
}

TEST(Tiles, AGroupHasTheTilesOfEachOfItsMatrices) {
  const std::vector<int64_t> rows{0, 300, 5, 0, 16, 700, 0};
  for (const int64_t n : {int64_t{1}, int64_t{257}, int64_t{1030}}) {
    using Corner = std::array<int64_t, 5>;
    std::vector<Corner> expected;
    ThreadPool one(1);
    for (size_t g = 0; g < rows.size(); ++g) {
      if (rows[g] == 0) continue;
      for_tiles(one, rows[g], n, [&](const Tile& t) {
        expected.push_back({static_cast<int64_t>(g), t.row, t.rows, t.column, t.columns});
      });
    }
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      std::mutex mutex;
      std::vector<Corner> tiles;
      for_group_tiles(pool, rows, n, [&](const GroupTile& g) {
        const std::lock_guard lock(mutex);
        const Tile& t = g.tile;
        EXPECT_EQ(g.column_tile == 0, t.column == 0);
        EXPECT_LT(g.column_tile, column_tiles(n));
        tiles.push_back({g.group, t.row, t.rows, t.column, t.columns});
      });
      std::sort(tiles.begin(), tiles.end());
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(tiles, expected);
    }
  }
}

TEST(GemmTile, EveryTransposeFactorAndStride) {
  for (const Product& p : {Product{1, 1, 1}, {3, 5, 7}, {16, 16, 16}, {17, 33, 9}}) {
    const std::vector<float> a = random_floats(p.m * p.k, 1), b = random_floats(p.k * p.n, 2),
                             c = random_floats(p.m * p.n, 3);
    for (const Layout& l : kLayouts) {
      for (const Transpose ta : {Transpose::kNo, Transpose::kYes}) {
        for (const Transpose tb : {Transpose::kNo, Transpose::kYes}) {
          for (const float alpha : {1.f, -0.5f}) {
            for (const float beta : {0.f, 1.f, 0.25f}) {
              SCOPED_TRACE(text(p, l));
              GuardedRows stored_a(ta == Transpose::kYes ? RowsShape{p.k, p.m, l.gap, l.misaligned}
                                                         : RowsShape{p.m, p.k, l.gap, l.misaligned},
                                   a);
              GuardedRows stored_b(tb == Transpose::kYes ? RowsShape{p.n, p.k, l.gap, l.misaligned}
                                                         : RowsShape{p.k, p.n, l.gap, l.misaligned},
                                   b);
              GuardedRows out(RowsShape{p.m, p.n, l.gap, l.misaligned});
              std::vector<double> before;
              if (beta != 0) {  // else it holds NaN
                out.set(c);
                for (const float x : c) before.push_back(static_cast<double>(beta * x));
              }
              const Rows va = stored_a.view(), vb = stored_b.view(), vc = out.view();
              gemm_tile(ta, tb, p.m, p.n, p.k, alpha, va.data, va.stride, vb.data, vb.stride, beta, vc.data, vc.stride);
              const std::vector<double> left =
                  ta == Transpose::kYes ? transposed(as_doubles(a), p.k, p.m) : as_doubles(a);
              const std::vector<double> right =
                  tb == Transpose::kYes ? transposed(as_doubles(b), p.n, p.k) : as_doubles(b);
              EXPECT_TRUE(close(as_doubles(out.values()), product(left, right, p, static_cast<double>(alpha), before),
                                tolerance::kKernel));
              EXPECT_TRUE(out.guard_intact());
            }
          }
        }
      }
    }
  }
}

// One of the two products of activations with a weight: forward (X W^T) or the gradient of the input (dY W).
struct WeightProduct {
  const char* name;
  bool weight_is_transposed;
  void (*run)(ThreadPool& pool, ConstRows a, const float* w, int64_t n, float beta, Rows c,
              const TileEpilogue& epilogue);
};
constexpr WeightProduct kWeightProducts[] = {{"xwt", true, gemm_xwt}, {"xw", false, gemm_xw}};

TEST(Gemm, ProductsWithAWeightEqualTheSums) {
  for (const WeightProduct& kind : kWeightProducts) {
    for (const Product& p : kProducts) {
      const std::vector<float> a = random_floats(p.m * p.k, 1), w = random_floats(p.k * p.n, 2),
                               c = random_floats(p.m * p.n, 3);
      const std::vector<double> b = kind.weight_is_transposed ? transposed(as_doubles(w), p.n, p.k) : as_doubles(w);
      const std::vector<double> plain = product(as_doubles(a), b, p),
                                added = product(as_doubles(a), b, p, 1, as_doubles(c));
      for (const Layout& l : kLayouts) {
        for (const float beta : {0.f, 1.f}) {
          SCOPED_TRACE(std::string(kind.name) + " " + text(p, l));
          std::vector<float> first;
          for (const int threads : {1, 2, 3}) {
            ThreadPool pool(threads);
            GuardedRows x(RowsShape{p.m, p.k, l.gap, l.misaligned}, a), out(RowsShape{p.m, p.n, l.gap, l.misaligned});
            if (beta != 0) out.set(c);  // else it holds NaN, which must not be read
            kind.run(pool, x.view(), w.data(), p.n, beta, out.view(), {});
            const std::vector<float> values = out.values();
            EXPECT_TRUE(close(as_doubles(values), beta == 0 ? plain : added, tolerance::kKernel));
            EXPECT_TRUE(out.guard_intact());
            if (first.empty()) first = values;
            EXPECT_EQ(std::memcmp(first.data(), values.data(), values.size() * sizeof(float)), 0)
                << threads << " threads";
          }
        }
      }
    }
  }
}

TEST(Gemm, TheGradientOfAWeightIsAdded) {
  for (const Product& p : kProducts) {  // dW[m, n] over k rows
    const std::vector<float> dy = random_floats(p.k * p.m, 1), x = random_floats(p.k * p.n, 2),
                             dw = random_floats(p.m * p.n, 3);
    const std::vector<double> expected =
        product(transposed(as_doubles(dy), p.k, p.m), as_doubles(x), p, 1, as_doubles(dw));
    for (const Layout& l : kLayouts) {
      SCOPED_TRACE(text(p, l));
      std::vector<float> first;
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        GuardedRows g(RowsShape{p.k, p.m, l.gap, l.misaligned}, dy), in(RowsShape{p.k, p.n, l.gap, l.misaligned}, x);
        GuardedRows out(RowsShape{p.m, p.n, 0, l.misaligned}, dw);
        gemm_ytx(pool, g.view(), in.view(), out.view().data);
        const std::vector<float> values = out.values();
        EXPECT_TRUE(close(as_doubles(values), expected, tolerance::kKernel));
        EXPECT_TRUE(out.guard_intact());
        if (first.empty()) first = values;
        EXPECT_EQ(std::memcmp(first.data(), values.data(), values.size() * sizeof(float)), 0) << threads << " threads";
      }
    }
  }
}

TEST(Gemm, NoRowsIsNoWork) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const std::vector<float> w = random_floats(7 * 5, 1);
    for (const WeightProduct& kind : kWeightProducts) {
      for (const float beta : {0.f, 1.f}) {
        GuardedRows x(RowsShape{0, kind.weight_is_transposed ? 5 : 7, 0, 0}),
            out(RowsShape{0, kind.weight_is_transposed ? 7 : 5, 0, 0});
        kind.run(pool, x.view(), w.data(), out.view().width, beta, out.view(), {});
        EXPECT_TRUE(out.guard_intact());
      }
    }
    GuardedRows dy(RowsShape{0, 7, 0, 0}), x(RowsShape{0, 5, 0, 0});
    std::vector<float> dw = w;
    gemm_ytx(pool, dy.view(), x.view(), dw.data());
    EXPECT_EQ(dw, w);
    std::mutex mutex;
    for (const Extents& e : {Extents{0, 5}, {5, 0}, {0, 0}}) {
      for_tiles(pool, e.m, e.n, [&](const Tile& t) {
        const std::lock_guard lock(mutex);
        EXPECT_EQ(t.rows * t.columns, 0) << "a tile of an empty matrix is empty";
      });
    }
  }
}

TEST(Gemm, TheEpilogueMeetsEachFinishedTileOnce) {
  for (const WeightProduct& kind : kWeightProducts) {
    for (const Product& p : {Product{1, 600, 33}, {5, 257, 3}, {257, 520, 20}, {300, 1030, 10}}) {
      SCOPED_TRACE(std::string(kind.name) + " " + text(p, {3, 1}));
      const std::vector<float> a = random_floats(p.m * p.k, 1), w = random_floats(p.k * p.n, 2);
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        GuardedRows x(RowsShape{p.m, p.k, 3, 1}, a), plain(RowsShape{p.m, p.n, 3, 1}), out(RowsShape{p.m, p.n, 3, 1});
        kind.run(pool, x.view(), w.data(), p.n, 0, plain.view(), {});
        std::vector<int> times(static_cast<size_t>(p.m * p.n));
        std::mutex mutex;
        bool finished = true;
        kind.run(pool, x.view(), w.data(), p.n, 0, out.view(), [&](Rows tile, int64_t row, int64_t column) {
          const std::lock_guard lock(mutex);
          EXPECT_EQ(tile.data, out.view().row(row) + column);
          EXPECT_EQ(tile.stride, out.view().stride);
          for (int64_t r = 0; r < tile.rows; ++r) {
            for (int64_t c = 0; c < tile.width; ++c) {
              ++times[static_cast<size_t>((row + r) * p.n + column + c)];
              finished &= tile.row(r)[c] == plain.view().row(row + r)[column + c];
              tile.row(r)[c] += static_cast<float>((row + r) * 10'000 + column + c);
            }
          }
        });
        EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](int n) { return n == 1; }));
        EXPECT_TRUE(finished) << "an epilogue came before its tile was done";
        // What the epilogue leaves is the result.
        std::vector<float> expected = plain.values();
        for (size_t i = 0; i < expected.size(); ++i) {
          const int64_t at = static_cast<int64_t>(i);
          expected[i] += static_cast<float>(at / p.n * 10'000 + at % p.n);
        }
        EXPECT_EQ(out.values(), expected);
        EXPECT_TRUE(out.guard_intact());
      }
    }
  }
}

TEST(GemmDeath, ShapesMustAgree) {
  ThreadPool pool(1);
  std::vector<float> m(100);
  const Rows x{m.data(), 4, 5, 5}, y{m.data(), 3, 6, 6};
  EXPECT_DEATH(gemm_xwt(pool, x, m.data(), 6, 0, y), "does not hold");
  EXPECT_DEATH(gemm_xw(pool, x, m.data(), 6, 0, y), "does not hold");
  EXPECT_DEATH(gemm_ytx(pool, x, y, m.data()), "does not hold");
}

}  // namespace
}  // namespace transept
