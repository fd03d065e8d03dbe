// A stack: token embeddings with their positions, layers, and the final norm. A model has one, or an encoder and a
// decoder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/block.h"
#include "nn/parameters.h"
#include "nn/position/position.h"
#include "spec/arch_spec.h"
#include "spec/recompute.h"

namespace transept {

// One pass of a stack over a batch of token rows.
struct StackCall {
  std::span<const int32_t> tokens;  // all rows of the layout
  const BatchLayout& layout;
  KvCache* cache = nullptr;
  DropoutPlan dropout;
  Recompute recompute = Recompute::kNone;
  const EncodedSource* source = nullptr;
  std::function<void(std::string_view part, int64_t layer, ConstRows result)> observe;
  RouterPass* routers = nullptr;
  LatentForm latents = LatentForm::kCheaper;
  ScoreObserver observe_scores = nullptr;
};

class Stack {
 public:
  // `prefix` is "" or "encoder."; `first_site` numbers the first place for dropout.
  Stack(const ArchSpec& spec, const StackSpec& stack, const Parameters& parameters, const std::string& prefix,
        uint32_t first_site);

  // Hidden states after the final norm, [rows, hidden].
  Var forward(const OpContext& op, const StackCall& call) const;
  // The first position that has no encoding.
  int64_t end() const { return position_->end(); }
  uint32_t sites() const { return sites_; }  // places for dropout in here

 private:
  Var embed_tokens(const OpContext& op, const StackCall& call, std::span<const int64_t> positions, int64_t end) const;

  float embedding_scale_;
  uint32_t first_site_, sites_ = 1;  // the first is the embedding's
  Param embedding_, token_type_;
  std::unique_ptr<Position> position_;                      // what is added to the embeddings
  std::vector<std::unique_ptr<Position>> layer_positions_;  // distinct kinds that act inside attention
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Norm> embedding_norm_, final_norm_;  // null: none
};

}  // namespace transept
