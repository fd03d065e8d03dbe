// How the two sublayers of a layer are joined.
#pragma once

#include <array>
#include <string_view>

#include "spec/fields.h"

namespace transept {

enum class BlockForm {
  kSequential,        // the feed-forward sublayer reads what attention left
  kParallel,          // x + attention(n(x)) + ffn(n(x)) (GPT-J, PaLM: arXiv:2204.02311 section 2)
  kParallelTwoNorms,  // x + attention(n(x)) + ffn(n'(x)) (GPT-NeoX: arXiv:2204.06745 section 2.1)
};
template <>
struct EnumNames<BlockForm> {
  static constexpr std::array<std::string_view, 3> kNames{"sequential", "parallel", "parallel_two_norms"};
};

struct BlockSpec {
  BlockForm form = BlockForm::kSequential;
  template <class V>
  void fields(V& v) {
    v("form", form, Any{}, "sequential: attention, then ffn; parallel: both read the same norm; parallel_two_norms");
  }
  bool parallel() const { return form != BlockForm::kSequential; }
};

}  // namespace transept
