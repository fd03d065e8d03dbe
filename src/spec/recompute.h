// What training computes again in the backward pass instead of keeping it (arXiv:1604.06174; arXiv:2205.05198 section
// 5).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "spec/fields.h"

namespace transept {

enum class Recompute {
  kNone,       // every activation that the backward pass reads is kept, save the feed-forward activation itself
  kSelective,  // the feed-forward sublayer, the widest part of a layer, runs again; attention's results are kept
  kFull,       // a layer keeps only its input
};
template <>
struct EnumNames<Recompute> {
  static constexpr std::array<std::string_view, 3> kNames{"none", "selective", "full"};
};

inline constexpr char kRecomputeHelp[] =
    "compute activations again in the backward pass instead of keeping them: full (the value when none is given), "
    "selective (the feed-forward sublayers) or none";
inline std::string_view recompute_name(Recompute recompute) {
  return EnumNames<Recompute>::kNames[static_cast<size_t>(recompute)];
}
inline std::optional<Recompute> recompute_from_name(std::string_view name) {
  for (const Recompute r : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    if (recompute_name(r) == name) return r;
  }
  return std::nullopt;
}

}  // namespace transept
