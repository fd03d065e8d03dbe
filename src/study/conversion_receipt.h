// The receipt of a conversion between architectures: what it saved, and what it cost in quality on held-out text. It
// knows nothing of the conversion but the models before and after it.
//
// Logits of the scored positions, z before and z' after, over all positions and tokens:
//   largest error max |z' - z|, rms error, relative to the rms of z; KL(p || p') of the distributions that they give,
//   nats a position, and how often both have the same first choice.
// Layer by layer, each converted alone in a model that is otherwise the source: || y' - y || / || y - x ||, with x the
// residual stream before its attention and y after it: the error as a share of what attention changes; and the loss.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "convert/layer_place.h"
#include "data/batch.h"
#include "nn/model.h"
#include "plan/kv_cache.h"
#include "train/evaluate.h"

namespace transept {

struct LogitDamage {
  double max_error = 0, rms_error = 0, relative_rms = 0;
  double kl_nats = 0;
  double same_choice = 0;  // share of positions
};

struct LayerDamage {
  LayerPlace place;
  double attention_error = 0;
  std::optional<double> cross_attention_error = {};  // with what the attention before it passes on
  double loss = 0, loss_increase = 0;                // on the probe
};

// A part of the held-out text that is read again and again, and all of it.
class ConversionProbe {
 public:
  // `op` has no tape. The probe holds about `tokens` tokens; split, tokenizer's vocabulary and source must outlive it.
  ConversionProbe(const Model& source, const OpContext& op, const Split& held_out, const EvalOptions& options,
                  const Vocabulary& vocabulary, int64_t tokens);

  int64_t tokens() const { return tokens_; }  // that the probe scores
  LogitDamage logits(const Model& converted) const;
  // `converted`: the source with this layer converted.
  LayerDamage layer(const Model& converted, const LayerPlace& place) const;
  // Nats a token over all of the held-out text.
  double loss(const Model& model) const;

 private:
  double probe_loss(const Model& model) const;

  const Model& source_;
  OpContext op_;
  Split held_out_;
  EvalOptions options_;
  std::vector<Batch> batches_;
  int64_t tokens_ = 0;
  double source_loss_ = 0;  // on the probe
};

// What a text shows.
struct MeasuredDamage {
  int64_t held_out_tokens = 0, probe_tokens = 0, context = 0;
  std::string objective;
  double loss_before = 0, loss_after = 0;
  LogitDamage logits;
  std::vector<LayerDamage> layers;
};

// Training after the conversion.
struct Recovery {
  int64_t steps = 0, tokens = 0;
  double lr = 0, teacher = 0, seconds = 0;
  double loss = 0;  // as loss_after
  LogitDamage logits;
};

struct ConversionReceipt {
  Json conversion;        // what was done, by its own keys
  std::string own_stack;  // what the stack is that ends in the head: "encoder" or "decoder"
  int64_t parameters_before = 0, parameters_after = 0;
  CacheSize cache_before, cache_after;  // of one sequence as long as the spec allows, stored as cache_dtype
  std::string cache_dtype;
  std::optional<MeasuredDamage> measured;  // where there was text
  std::optional<Recovery> recovery;
};

// With what the specs alone say.
ConversionReceipt start_receipt(Json conversion, const ArchSpec& before, const ArchSpec& after);

// NaN becomes null.
Json to_json(const ConversionReceipt& receipt);
std::string to_text(const ConversionReceipt& receipt);

}  // namespace transept
