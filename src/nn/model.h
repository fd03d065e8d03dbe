// A language model built from a spec: one stack and a head, or an encoder beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/parameters.h"
#include "nn/stack.h"
#include "ops/cross_entropy.h"
#include "spec/arch_spec.h"

namespace transept {

// One forward pass over a batch of token rows.
struct ForwardCall {
  std::span<const int32_t> tokens;  // all rows of the layout
  BatchLayout layout;
  // Encoder-decoder: what the encoder reads, as many sequences as `layout` has. With a cache: in the first pass only.
  std::span<const int32_t> source_tokens = {};
  BatchLayout source_layout = {};
  KvCache* cache = nullptr;  // layout[s].first_position records are in it already
  DropoutPlan dropout;
  Recompute recompute = Recompute::kNone;
  std::function<void(std::string_view part, int64_t layer, ConstRows result)> observe;
  RouterPass* routers = nullptr;  // of a training pass; must live until the backward pass is through
  LatentForm latents = LatentForm::kCheaper;
  ScoreObserver observe_scores = nullptr;  // of the layers of the stack that is asked; in passes without a cache
};

class Model {
 public:
  // Parameters are zero until initialized or loaded. Modules point into them, so a model does not move.
  explicit Model(ArchSpec spec, bool trainable = false, StoredMatrices stored = {});
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ArchSpec& spec() const { return spec_; }
  Parameters& parameters() { return parameters_; }
  const Parameters& parameters() const { return parameters_; }

  // Hidden states after the last layer and the final norm, [rows, hidden].
  Var hidden(const OpContext& op, const ForwardCall& call) const;
  // As above, of an encoder-decoder's encoder alone over `tokens` and `layout`.
  Var encoded(const OpContext& op, const ForwardCall& call) const;
  // Logits of these hidden rows, written to out [rows, vocab].
  void logits(const OpContext& op, ConstRows hidden_rows, Rows out) const;
  // Sum of -log p(target) over these hidden rows, and what a teacher adds, as ops/cross_entropy.h says.
  LossSum loss(const OpContext& op, const Var& hidden, std::span<const int32_t> targets, float gradient_scale,
               std::span<float> per_row = {}, const LossTeacher& teacher = {}) const;
  // One vector for a sequence's hidden rows; `pooler`: through the model's linear layer and tanh.
  std::vector<float> pool(const OpContext& op, ConstRows hidden_rows, Pooling pooling, bool pooler) const;

  // InputError when a token is outside the vocabulary or a position has no encoding (`where` names the input).
  void check_input(std::span<const int32_t> tokens, int64_t last_position, const std::string& where) const;

 private:
  // What stands between the hidden states and the head.
  struct HeadTransform {
    Param weight, bias;
    ActivationKind activation;
    Norm norm;
  };
  Var transform(const OpContext& op, const Var& hidden) const;

  ArchSpec spec_;
  Parameters parameters_;
  std::unique_ptr<Stack> encoder_;  // null: none
  std::unique_ptr<Stack> stack_;
  std::optional<HeadTransform> head_transform_;
  Param head_, pooler_, pooler_bias_;
  LogitsEnd logits_end_;
};

}  // namespace transept
