#include "nn/model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/problem.h"
#include "kernels/weights.h"
#include "nn/ffn/activation.h"
#include "ops/activation.h"
#include "ops/linear.h"

namespace transept {

Model::Model(ArchSpec spec, bool trainable, StoredMatrices stored)
    : spec_(std::move(spec)), parameters_(spec_, std::move(stored)) {
  if (trainable) parameters_.enable_gradients();
  uint32_t site = 0;
  if (spec_.encoder_decoder()) {
    encoder_ = std::make_unique<Stack>(spec_, spec_.encoder, parameters_, "encoder.", site);
    site += encoder_->sites();
  }
  stack_ = std::make_unique<Stack>(spec_, spec_, parameters_, "", site);
  if (spec_.head_transform) {
    head_transform_.emplace(HeadTransform{
        parameters_.param("head_transform.weight"), parameters_.param("head_transform.bias"),
        activation_kind(spec_.layers.back().ffn.form().activation), Norm(spec_.final_norm, parameters_, "head_norm.")});
  }
  head_ = parameters_.param(spec_.tie_word_embeddings ? "embedding.weight" : "head.weight");
  logits_end_ = {static_cast<float>(spec_.logit_scale), static_cast<float>(spec_.final_logit_softcap),
                 parameters_.param("head.bias")};
  pooler_ = parameters_.param("pooler.weight");
  pooler_bias_ = parameters_.param("pooler.bias");
}

Var Model::hidden(const OpContext& op, const ForwardCall& call) const {
  TRANSEPT_CHECK(encoder_ ? !call.source_tokens.empty() || call.cache : call.source_tokens.empty());
  EncodedSource source;
  if (encoder_ && !call.source_tokens.empty()) {
    TRANSEPT_CHECK(call.source_layout.size() == call.layout.size());
    ForwardCall encode = call;
    encode.tokens = call.source_tokens;
    encode.layout = call.source_layout;
    encode.observe_scores = nullptr;
    source.hidden = encoded(op, encode);
    source.layout = call.source_layout;
  }
  return stack_->forward(
      op, {call.tokens, call.layout, call.cache, call.dropout, call.recompute,
           source.layout.empty() ? nullptr : &source, call.observe, call.routers, call.latents, call.observe_scores});
}

Var Model::encoded(const OpContext& op, const ForwardCall& call) const {
  TRANSEPT_CHECK(encoder_);
  const auto observe = call.observe ? [&](std::string_view part, int64_t layer,
                                          ConstRows rows) { call.observe("encoder " + std::string(part), layer, rows); }
                                    : std::function<void(std::string_view, int64_t, ConstRows)>();
  return encoder_->forward(op, {call.tokens, call.layout, nullptr, call.dropout, call.recompute, nullptr, observe,
                                call.routers, call.latents, call.observe_scores});
}

Var Model::transform(const OpContext& op, const Var& hidden) const {
  if (!head_transform_) return hidden;
  const HeadTransform& t = *head_transform_;
  const Var z = linear(op, hidden, t.weight, {.bias = t.bias, .dropout = {}, .residual = nullptr});
  return t.norm.forward(op, activate(op, z, t.activation));
}

LossSum Model::loss(const OpContext& op, const Var& hidden, std::span<const int32_t> targets, float gradient_scale,
                    std::span<float> per_row, const LossTeacher& teacher) const {
  return cross_entropy(op, transform(op, hidden), head_, logits_end_, targets, gradient_scale, per_row, teacher);
}

void Model::logits(const OpContext& op, ConstRows hidden_rows, Rows out) const {
  ConstRows rows = hidden_rows;
  Var transformed;
  if (head_transform_) {
    OpContext bare = op;
    bare.tape = nullptr;
    const Var copy = bare.make(hidden_rows.rows, hidden_rows.width);
    copy_rows(hidden_rows, copy.view());
    transformed = transform(bare, copy);
    rows = transformed.view();
  }
  multiply(op.pool, rows, head_.weight(), head_.out, out);
  finish_logits(op.pool, logits_end_, out);
}

std::vector<float> Model::pool(const OpContext& op, ConstRows hidden_rows, Pooling pooling, bool pooler) const {
  TRANSEPT_CHECK(hidden_rows.rows > 0 && (pooler_ || !pooler));
  std::vector<float> pooled(static_cast<size_t>(hidden_rows.width), 0.f);
  if (pooling == Pooling::kCls) {
    std::copy_n(hidden_rows.row(0), hidden_rows.width, pooled.begin());
  } else {
    sum_columns(hidden_rows, pooled.data());
    for (float& x : pooled) x /= static_cast<float>(hidden_rows.rows);
  }
  if (!pooler) return pooled;
  std::vector<float> out(pooled.size());
  const int64_t width = hidden_rows.width;
  multiply(op.pool, {pooled.data(), 1, width, width}, pooler_.weight(), width, {out.data(), 1, width, width});
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::tanh(out[i] + pooler_bias_.value[i]);
  return out;
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
  const int64_t end = encoder_ ? std::min(encoder_->end(), stack_->end()) : stack_->end();
  if (last_position >= end) {
    problems.push_back({where,
                        "position " + std::to_string(last_position) + " has no row in the table of learned positions",
                        "use at most " + std::to_string(end) + " tokens"});
  }
  throw_if_any(std::move(problems));
}

}  // namespace transept
