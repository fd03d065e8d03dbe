// What a module receives beside its input: the op context, how rows divide into sequences, where they stand, the
// encoder's result, and the optional cache.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/kv_view.h"
#include "nn/position/position.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "tensor/batch_layout.h"

namespace transept {

// The cache of a batch: one view a sequence and layer.
class KvCache {
 public:
  virtual ~KvCache() = default;
  virtual KvView& view(int64_t sequence, int64_t layer) = 0;
  // What cross-attention keeps of the source, once for the whole target.
  virtual KvView& source_view(int64_t sequence, int64_t layer) = 0;
  virtual int64_t context() const = 0;  // positions that a sequence may have
};

// Dropout of one forward pass; p = 0 outside training. `pass` numbers forward passes, so that no two draw the same
// mask.
struct DropoutPlan {
  float p = 0;
  uint64_t seed = 0;
  uint64_t pass = 0;
  // `site` numbers the places in the model where dropout acts.
  DropoutMask mask(uint32_t site, int64_t width) const;
  // Of a router's input, by the same numbers; drawn whatever p is.
  RouterJitter jitter(uint32_t site, float epsilon) const;
};

// An encoder's result, [rows of the source layout, hidden].
struct EncodedSource {
  Var hidden;
  BatchLayout layout;
};

// How latent attention reads a cache (nn/attention/mla.cc); both give the same.
enum class LatentForm { kCheaper, kAbsorbed, kExpanded };

// What the routers of a training pass are given and tell. Without one (evaluation, generation) there are no balance
// losses, no jitter and no capacity: every choice is computed.
struct RouterPass {
  float weight = 1;                                    // share of this batch in the step's balance losses
  std::map<std::string, RouterStatistics> statistics;  // by the layer's network: "layers.3.ffn"
};

// What the scores of a layer's self-attention are made of: queries and keys after their norm and rotation, as the op
// receives them (ops/attention.h), which forms no probabilities that could be looked at.
struct ScoreOperands {
  const AttentionInputs& inputs;
  const AttentionShape& shape;
  const ScoreBias& bias;
  const Param& sinks;
};
using ScoreObserver = std::function<void(int64_t layer, const ScoreOperands& operands)>;

struct ForwardContext {
  OpContext op;
  const BatchLayout& layout;
  std::span<const int64_t> lengths;  // of each sequence as a whole: the cache's context, or its rows here
  int64_t positions = 0;             // one past the last position of this pass
  KvCache* cache = nullptr;
  DropoutPlan dropout;
  const EncodedSource* source = nullptr;  // null without cross-attention, and when the cache has all of it already
  // Called with what a sublayer leaves ("ffn"), reads ("ffn_input") and joins ("ffn_residual"), while it is alive.
  std::function<void(std::string_view part, int64_t layer, ConstRows result)> observe;
  RouterPass* routers = nullptr;
  LatentForm latents = LatentForm::kCheaper;
  bool recompute_ffn = false;              // feed-forward sublayers run again in the backward pass
  ScoreObserver observe_scores = nullptr;  // called before each layer's self-attention; in passes without a cache
};

// What a backward pass that runs modules again needs of a context, by value: it outlives the call.
struct KeptContext {
  BatchLayout layout;
  std::vector<int64_t> lengths;
  int64_t positions;
  DropoutPlan dropout;
  EncodedSource source;
  bool crosses;
  RouterPass* routers;

  explicit KeptContext(const ForwardContext& c)
      : layout(c.layout),
        lengths(c.lengths.begin(), c.lengths.end()),
        positions(c.positions),
        dropout(c.dropout),
        source(c.source ? *c.source : EncodedSource{}),
        crosses(c.source != nullptr),
        routers(c.routers) {}
  ForwardContext at(const OpContext& op) const {
    return {op, layout, lengths, positions, nullptr, dropout, crosses ? &source : nullptr, {}, routers};
  }
};

}  // namespace transept
