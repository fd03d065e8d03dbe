// Where a family's checkpoints keep the declared parameters: one row of a table a kind of parameter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/arch_spec.h"

namespace transept {

// Rows of a declared parameter, and where a stored tensor has them: element (r, c) of them is the tensor's element
// offset + r * row_stride + c * column_stride.
struct Piece {
  std::string stored_name;
  std::vector<int64_t> stored_shape;  // of the whole tensor
  int64_t first_row = 0, rows = 0;    // of the parameter
  int64_t offset = 0, row_stride = 1, column_stride = 1;

  // Whether they lie in the tensor as in a parameter of so many columns.
  bool as_declared(int64_t columns) const { return row_stride == columns && column_stride == 1; }
};

enum class Layout {
  kStacked,     // one tensor after another; three of a layer's attention are queries, keys and values, others are equal
  kTransposed,  // one tensor, [in, out] (the Conv1D of GPT-2)
  kByGroup,     // one tensor; for each KV head its queries' rows, its key's and its value's (BLOOM, GPT-NeoX, Falcon)
  kFromRow2,    // one tensor of positions, two rows before that of the first position, however many ours has (OPT)
  kByHead,      // a vector of ours is a matrix of theirs, a row a head (Cohere's norms of queries and keys)
  kOneRow,      // a vector of ours is a matrix of theirs of one row (BART's and Marian's bias on the logits)
  // Of all experts together:
  kExpertRows,  // tensors that are equal, [experts * out, in]; an expert's rows of the first, then of the next (DBRX)
  kExpertColumns,      // one tensor, [experts * in, out] (DBRX)
  kExperts,            // one tensor, [experts, in, out], or [experts, out] of biases (gpt-oss)
  kAlternatingExperts  // as that, with gate and up by turns (gpt-oss)
};

// In names '#' is the layer and '*' is "weight" or "bias"; several stored names are separated by a space, and where
// one has an '@' all are repeated for each expert. A parameter takes the first row that matches.
struct NameRow {
  std::string ours, stored;
  Layout layout = Layout::kStacked;
};
using NameTable = std::vector<NameRow>;

// `special` before the rows of `base`.
NameTable with_base(NameTable special, const NameTable& base);

// Where one parameter is kept: pieces that together are all of its rows, in order.
std::vector<Piece> pieces_of(const NameTable& table, const ArchSpec& spec, const ParamDecl& decl);

}  // namespace transept
