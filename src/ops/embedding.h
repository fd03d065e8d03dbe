// Embedding: y[r] = scale * table[token[r]] + the sum of other tables' rows (positions, token types). Backward: rows of
// dy are added to the rows of the tables, times scale for the table of tokens.
#pragma once

#include <cstdint>
#include <span>

#include "ops/tape.h"

namespace transept {

// A table [rows, width], of which each row of the result gets one row.
struct Lookup {
  Param table;  // without a gradient: constants
  std::span<const int64_t> row_of;
};

// Every token lies in [0, table.out), every row of a lookup in [0, its table.out). Result [tokens, table.in].
Var embed(const OpContext& context, const Param& table, float scale, std::span<const int32_t> tokens,
          std::span<const Lookup> added = {});

}  // namespace transept
