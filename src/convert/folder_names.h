// What reading and writing a model folder share: which pieces of which stored tensors a model's parameters are.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "convert/family.h"

namespace transept {

// model_type of folders in our own form.
inline constexpr std::string_view kOwnType = "transept";

// Keys of config.json for special tokens: the first three are always written, for classes have defaults that may lie
// outside of the vocabulary.
inline constexpr std::array<const char*, 8> kTokenIdKeys{
    "bos_token_id", "eos_token_id",           "pad_token_id",        "sep_token_id",
    "unk_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id"};
inline constexpr size_t kTokenIdsAlways = 3;

// Columns of the parameter: 1 for a vector.
inline int64_t columns_of(const ParamDecl& decl) { return decl.shape.size() > 1 ? decl.shape[1] : 1; }

// Pieces of a family's folders, or, without a family, of our own form: tensors under their declared names.
class FolderNames {
 public:
  FolderNames(const Family* family, const ArchSpec& spec)
      : spec_(&spec), own_(!family), table_(family ? family->names(spec) : NameTable{}) {}

  std::vector<Piece> pieces(const ParamDecl& decl) const {
    if (own_) return {{decl.name, decl.shape, 0, decl.shape[0], 0, columns_of(decl)}};
    return pieces_of(table_, *spec_, decl);
  }
  bool is_head(std::string_view stored_name) const {
    for (const NameRow& r : table_) {
      if (r.ours == "head.weight" && r.stored == stored_name) return true;
    }
    return stored_name == "lm_head.weight";
  }

 private:
  const ArchSpec* spec_;
  bool own_;
  NameTable table_;
};

// visit(index in the parameter, index in the stored tensor) for the elements of a piece.
template <class F>
void for_elements(const Piece& piece, int64_t columns, const F& visit) {
  for (int64_t r = 0; r < piece.rows; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      visit((piece.first_row + r) * columns + c, piece.offset + r * piece.row_stride + c * piece.column_stride);
  }
}

}  // namespace transept
