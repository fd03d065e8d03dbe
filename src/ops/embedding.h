// Token embedding: y[r] = scale * table[token[r]] + the rows that other tables have for r (positions, segment types).
// Backward: rows of dy are added to the rows of the tables.
#pragma once

#include <cstdint>
#include <span>

#include "ops/tape.h"

namespace transept {

// A table [rows, width] and the row that each row of y takes from it. A constant table has no gradient.
struct Lookup {
  Param table;
  std::span<const int64_t> row_of;
};

// Every token lies in [0, table.out), every row of a lookup in its table. Result [tokens, table.in].
Var embed(const OpContext& context, const Param& table, float scale, std::span<const int32_t> tokens,
          std::span<const Lookup> added);

}  // namespace transept
