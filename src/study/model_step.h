// How a study makes its models: a recipe is a list of steps, each of which takes the model that the one before left.
// Recipes that begin alike share what they begin with.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "convert/kv_heads.h"
#include "nlohmann/json.hpp"
#include "spec/fields.h"
#include "spec/kinds.h"

namespace transept {

// From random weights. `spec` is laid over the study's base, group by group; `training` over the study's training.
struct TrainStep {
  static constexpr std::string_view kName = "train";
  Json spec = Json::object();
  Json training = Json::object();
  template <class V>
  void fields(V&) {}
};

// Query heads share fewer heads of keys and values (convert/kv_heads.h), fitted to training text where the method asks.
struct KvHeadsStep {
  static constexpr std::string_view kName = "kv_heads";
  int64_t num_key_value_heads = 0;
  KvMerge method = KvMerge::kMean;
  template <class V>
  void fields(V& v) {
    v("num_key_value_heads", num_key_value_heads, AtLeast{1}, "heads of keys and values afterwards");
    v("method", method, Any{}, "how heads become one");
  }
};

// Goes on training for some steps, with the study's training otherwise: a rate that falls from `lr` over all of them.
struct UptrainStep {
  static constexpr std::string_view kName = "uptrain";
  int64_t steps = 0;
  double lr = 0;
  double teacher = 0;
  template <class V>
  void fields(V& v) {
    v("steps", steps, AtLeast{1}, "optimizer steps");
    v("lr", lr, Above{0}, "highest learning rate");
    v("teacher", teacher, Between{0, 1},
      "share of the loss that is the divergence from the model that the train step left");
  }
};

// Rules that stretch rotary positions without training (spec/rope_scaling.h).
enum class StretchRule { kLinear, kNtk, kDynamic, kYarn };
template <>
struct EnumNames<StretchRule> {
  static constexpr std::array<std::string_view, 4> kNames{"linear", "ntk", "dynamic", "yarn"};
};
struct StretchStep {
  static constexpr std::string_view kName = "stretch";
  StretchRule rule = StretchRule::kLinear;
  int64_t length = 0;
  template <class V>
  void fields(V& v) {
    v("rule", rule, Any{}, "how rotary positions are stretched");
    v("length", length, AtLeast{1}, "tokens that positions are stretched to, from max_position_embeddings");
  }
};

using ModelStepKinds = Kinds<TrainStep, KvHeadsStep, UptrainStep, StretchStep>;
using ModelStep = ModelStepKinds::Any;

}  // namespace transept
