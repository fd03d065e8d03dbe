#include "nn/stack.h"

#include <algorithm>

#include "base/check.h"
#include "ops/embedding.h"
#include "ops/parallel.h"

namespace transept {
namespace {

// Dropout on a value in place; the value's maker must not have kept it.
void drop_in_place(const OpContext& op, const Var& x, const DropoutMask& mask) {
  if (mask.p <= 0) return;
  const auto apply = [mask, width = x.width, rows = x.rows](ThreadPool& pool, float* data) {
    for_rows(pool, rows, width, [&](int64_t first, int64_t count) {
      dropout_rows(mask, first, 0, Rows{data, rows, width, width}.slice(first, count));
    });
  };
  apply(op.pool, x.value.data());
  if (op.tape) {
    op.tape->record([apply, &pool = op.pool, slot = x.gradient] {
      if (slot->buffer) apply(pool, slot->buffer.data());
    });
  }
}

std::string layer_prefix(const std::string& prefix, size_t layer) {
  return prefix + "layers." + std::to_string(layer) + ".";
}

}  // namespace

Stack::Stack(const ArchSpec& spec, const StackSpec& stack, const Parameters& parameters, const std::string& prefix,
             uint32_t first_site)
    : embedding_scale_(static_cast<float>(spec.embedding_scale())),
      first_site_(first_site),
      embedding_(parameters.param("embedding.weight")),
      token_type_(parameters.param("token_type.weight")),
      position_(build_position(stack.position, spec, parameters, prefix + "position.")) {
  std::vector<PositionSpec> built;
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const LayerSpec& layer = stack.layers[i];
    size_t at = static_cast<size_t>(std::find(built.begin(), built.end(), layer.position) - built.begin());
    if (at == built.size()) {
      built.push_back(layer.position);
      layer_positions_.push_back(build_position(layer.position, spec, parameters, prefix + "position."));
    }
    blocks_.push_back(std::make_unique<Block>(layer, parameters, layer_prefix(prefix, i), static_cast<int64_t>(i),
                                              first_site_ + sites_, *layer_positions_[at]));
    sites_ += static_cast<uint32_t>(layer.sublayers());
  }
  const auto norm = [&](const char* name) {
    return std::make_unique<Norm>(stack.final_norm, parameters, prefix + name);
  };
  if (spec.embedding_norm) embedding_norm_ = norm("embedding_norm.");
  if (stack.has_final_norm()) final_norm_ = norm("final_norm.");
}

Var Stack::embed_tokens(const OpContext& op, const StackCall& call, std::span<const int64_t> positions,
                        int64_t end) const {
  std::vector<Lookup> added;
  if (const Param table = position_->embedding(end)) added.push_back({table, positions});
  // One segment: type 0 everywhere.
  const std::vector<int64_t> types(token_type_ ? positions.size() : 0, 0);
  if (token_type_) added.push_back({token_type_, types});
  Var x = embed(op, embedding_, embedding_scale_, call.tokens, added);
  if (embedding_norm_) x = embedding_norm_->forward(op, x);
  drop_in_place(op, x, call.dropout.mask(first_site_, x.width));
  return x;
}

Var Stack::forward(const OpContext& op, const StackCall& call) const {
  std::vector<int64_t> positions, lengths;
  for (const SequenceRows& s : call.layout) {
    TRANSEPT_CHECK(s.first_row == static_cast<int64_t>(positions.size()));
    for (int64_t r = 0; r < s.rows; ++r) positions.push_back(s.first_position + r);
    lengths.push_back(call.cache ? call.cache->context() : s.first_position + s.rows);
  }
  TRANSEPT_CHECK(positions.size() == call.tokens.size() && !positions.empty());
  TRANSEPT_CHECK(!call.observe_scores || !call.cache);
  const int64_t end = *std::max_element(positions.begin(), positions.end()) + 1;
  const bool again = call.recompute != Recompute::kNone && op.tape;
  const ForwardContext context{op,
                               call.layout,
                               lengths,
                               end,
                               call.cache,
                               call.dropout,
                               call.source,
                               call.observe,
                               call.routers,
                               call.latents,
                               again && call.recompute == Recompute::kSelective,
                               call.observe_scores};
  Var x = embed_tokens(op, call, positions, end);
  for (const auto& block : blocks_) {
    if (again && call.recompute == Recompute::kFull) {
      x = recompute(op, x, [block = block.get(), kept = KeptContext(context)](const OpContext& inner, const Var& in) {
        return block->forward(kept.at(inner), in);
      });
    } else {
      x = block->forward(context, x);
    }
  }
  return final_norm_ ? final_norm_->forward(op, x) : x;
}

}  // namespace transept
