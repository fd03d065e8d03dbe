// Splits of work over rows, columns or flat arrays, in pieces that depend on the size alone, so that results do not
// depend on the threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace transept {

inline constexpr int64_t kFlatPiece = int64_t{1} << 15;  // floats: 128 KiB, well inside a second-level cache
inline constexpr int64_t kColumnPiece = 64;              // floats: four cache lines

// body(begin, count) over [0, n).
template <class F>
void for_flat(ThreadPool& pool, int64_t n, const F& body) {
  pool.run((n + kFlatPiece - 1) / kFlatPiece,
           [&](int64_t i, int) { body(i * kFlatPiece, std::min(kFlatPiece, n - i * kFlatPiece)); });
}

// Rows a piece so that a piece is about kFlatPiece floats.
inline int64_t rows_per_piece(int64_t width) { return std::max<int64_t>(1, kFlatPiece / std::max<int64_t>(1, width)); }

// body(first_row, rows) over [0, rows).
template <class F>
void for_rows(ThreadPool& pool, int64_t rows, int64_t width, const F& body) {
  const int64_t piece = rows_per_piece(width);
  pool.run((rows + piece - 1) / piece, [&](int64_t i, int) { body(i * piece, std::min(piece, rows - i * piece)); });
}

// body(first_column, columns) over [0, width).
template <class F>
void for_columns(ThreadPool& pool, int64_t width, const F& body) {
  pool.run((width + kColumnPiece - 1) / kColumnPiece,
           [&](int64_t i, int) { body(i * kColumnPiece, std::min(kColumnPiece, width - i * kColumnPiece)); });
}

}  // namespace transept
