// Where a family's checkpoints keep the declared parameters: one row of a table a kind of parameter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/arch_spec.h"

namespace transept {

// Rows of a stored tensor that are rows of a declared parameter.
struct Piece {
  std::string stored_name;
  std::vector<int64_t> stored_shape;  // of the whole tensor
  int64_t first_row = 0, rows = 0;    // of the parameter
  int64_t stored_first = 0;           // of the stored tensor, or of its transpose
  bool transposed = false;            // stored as [in, out]
};

enum class Layout {
  kStacked,     // one tensor after another; three of a layer's attention are queries, keys and values, others are equal
  kTransposed,  // one tensor, [in, out] (the Conv1D of GPT-2)
  kByGroup,     // one tensor; for each KV head its queries' rows, its key's and its value's (BLOOM, GPT-NeoX, Falcon)
  kFromRow2,    // one tensor; two rows before ours that no token reads (positions of BART and RoBERTa)
  kByHead,      // a vector of ours is a matrix of theirs, a row a head (Cohere's norms of queries and keys)
  kOneRow,      // a vector of ours is a matrix of theirs of one row (BART's and Marian's bias on the logits)
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
