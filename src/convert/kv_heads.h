// Fewer KV heads: multi-head attention made grouped-query or multi-query attention, as a checkpoint is before it is
// trained on (arXiv:2305.13245 section 2.1).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "convert/kv_calibration.h"
#include "convert/layer_place.h"
#include "nn/model.h"
#include "spec/fields.h"

namespace transept {

// How the heads of a group, which are neighbours, become one.
enum class KvMerge {
  kMean,     // of their weights (arXiv:2305.13245 section 2.1)
  kFirst,    // the first of them
  kAligned,  // the one from which queries and output projection can make the most of theirs (kv_heads.cc)
};
template <>
struct EnumNames<KvMerge> {
  static constexpr std::array<std::string_view, 3> kNames{"mean", "first", "aligned"};
};

struct KvConversion {
  int64_t heads = 1;  // KV heads of each layer afterwards
  KvMerge merge = KvMerge::kMean;
  const KvCalibration* calibration = nullptr;  // kAligned: null weighs all inputs alike
  std::optional<LayerPlace> only = {};         // convert this layer alone
};

// The spec afterwards, cross-attention included. InputError names every layer that can't have so many KV heads, and how
// many it can have.
ArchSpec with_kv_heads(const ArchSpec& spec, int64_t heads, const std::optional<LayerPlace>& only = {});

// The model afterwards; `source` holds its matrices as float32. A layer that has so many KV heads already keeps its
// bits.
std::unique_ptr<Model> convert_kv_heads(const Model& source, const KvConversion& conversion, bool trainable = false);

}  // namespace transept
