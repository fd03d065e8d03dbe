// Token embedding: y[r] = table[token[r]] (+ positions[position[r]]). Backward: rows of dy are added to the rows of the
// tables.
#pragma once

#include <cstdint>
#include <span>

#include "ops/tape.h"

namespace transept {

// Every token lies in [0, table.out), every position in [0, positions.out) when that table is given. Result [tokens,
// table.in].
Var embed(const OpContext& context, const Param& table, std::span<const int32_t> tokens, const Param& positions,
          std::span<const int64_t> position_of);

}  // namespace transept
