#include "nn/model.h"

#include <algorithm>

#include "base/check.h"
#include "base/problem.h"
#include "kernels/gemm.h"
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

}  // namespace

Model::Model(ArchSpec spec, bool trainable) : spec_(std::move(spec)), parameters_(spec_) {
  if (trainable) parameters_.enable_gradients();
  position_ = build_position(spec_, parameters_);
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    blocks_.push_back(std::make_unique<Block>(spec_.layers[i], parameters_, static_cast<int64_t>(i)));
  }
  if (spec_.has_final_norm()) final_norm_ = std::make_unique<Norm>(spec_.final_norm, parameters_, "final_norm.");
  embedding_ = parameters_.param("embedding.weight");
  head_ = parameters_.param(spec_.tie_word_embeddings ? "embedding.weight" : "head.weight");
}

Var Model::hidden(const OpContext& op, const ForwardCall& call) const {
  std::vector<int64_t> positions;
  for (const SequenceRows& s : call.layout) {
    TRANSEPT_CHECK(s.first_row == static_cast<int64_t>(positions.size()));
    for (int64_t r = 0; r < s.rows; ++r) positions.push_back(s.first_position + r);
  }
  TRANSEPT_CHECK(positions.size() == call.tokens.size() && !positions.empty());
  const int64_t end = *std::max_element(positions.begin(), positions.end()) + 1;
  const ForwardContext context{op, call.layout, *position_, end, call.cache, call.dropout, call.observe};

  std::vector<Lookup> added;
  if (const Param table = position_->embedding()) added.push_back({table, positions});
  Var x = embed(op, embedding_, 1, call.tokens, added);
  drop_in_place(op, x, call.dropout.mask(0, x.width));
  for (const auto& block : blocks_) {
    if (call.recompute && op.tape) {
      // The backward pass outlives this call's locals, so the body takes what it needs by value.
      x = recompute(op, x,
                    [this, block = block.get(), layout = call.layout, end, dropout = call.dropout](
                        const OpContext& inner, const Var& in) {
                      return block->forward({inner, layout, *position_, end, nullptr, dropout, {}}, in);
                    });
    } else {
      x = block->forward(context, x);
    }
  }
  return final_norm_ ? final_norm_->forward(op, x) : x;
}

LossSum Model::loss(const OpContext& op, const Var& hidden, std::span<const int32_t> targets, float gradient_scale,
                    std::span<float> per_row) const {
  return cross_entropy(op, hidden, head_, {}, targets, gradient_scale, per_row);
}

void Model::logits(ThreadPool& pool, ConstRows hidden_rows, Rows out) const {
  gemm_xwt(pool, hidden_rows, head_.value, head_.out, 0.f, out);
}

void Model::check_input(std::span<const int32_t> tokens, int64_t last_position, const std::string& where) const {
  Problems problems;
  for (size_t i = 0; i < tokens.size() && problems.size() < 5; ++i) {
    if (tokens[i] < 0 || tokens[i] >= spec_.vocab_size) {
      problems.push_back({where + "[" + std::to_string(i) + "]",
                          "token " + std::to_string(tokens[i]) + " is outside the vocabulary",
                          "allowed are 0 to " + std::to_string(spec_.vocab_size - 1)});
    }
  }
  if (last_position >= position_->end()) {
    problems.push_back({where,
                        "position " + std::to_string(last_position) + " has no row in the table of learned positions",
                        "use at most " + std::to_string(position_->end()) + " tokens"});
  }
  throw_if_any(std::move(problems));
}

}  // namespace transept
