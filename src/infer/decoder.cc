#include "infer/decoder.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/problem.h"

namespace transept {

Decoder::Decoder(const Model& model, ThreadPool& pool, int64_t context, int64_t source_context, int64_t branches)
    : model_(model),
      pool_(pool),
      cache_(model.spec(), branches, context, source_context),
      source_context_(source_context),
      logits_(static_cast<size_t>(branches * model.spec().vocab_size)) {
  if (model.spec().topology == Topology::kEncoder)
    throw InputError("topology", "an encoder names masked tokens and does not continue text", "try embed or logits");
  model.check_input({}, context - 1, "context");
}

void Decoder::read_source(std::span<const int32_t> tokens) {
  TRANSEPT_CHECK(model_.spec().encoder_decoder() && position_ == 0);
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (count == 0 || count > source_context_) {
    throw InputError("source", "has " + std::to_string(count) + " tokens",
                     "allowed are 1 to " + std::to_string(source_context_));
  }
  model_.check_input(tokens, count - 1, "source");
  source_.assign(tokens.begin(), tokens.end());
}

void Decoder::check(std::span<const int32_t> tokens, int64_t rows) const {
  if (rows > context() - position_) {
    throw InputError(
        "tokens",
        std::to_string(position_ + rows) + " tokens do not fit into a context of " + std::to_string(context()),
        "shorten the input or raise --context");
  }
  model_.check_input(tokens, position_ + rows - 1, "tokens");
}

template <class F>
void Decoder::run(std::span<const int32_t> tokens, int64_t rows, const F& use) {
  const OpContext op{pool_, arena_, nullptr};
  ForwardCall call{
      .tokens = tokens, .layout = equal_sequences(branches_, rows), .cache = &cache_, .dropout = {}, .observe = {}};
  call.latents = latents_;
  for (SequenceRows& sequence : call.layout) sequence.first_position = position_;
  if (!source_.empty()) {
    call.source_tokens = source_;
    call.source_layout = equal_sequences(1, static_cast<int64_t>(source_.size()));
  }
  const Var h = model_.hidden(op, call);
  source_.clear();
  use(op, ConstRows(h.view()));
  position_ += rows;
}

template <class F>
void Decoder::run_chunks(std::span<const int32_t> tokens, const F& use) {
  TRANSEPT_CHECK(branches_ == 1);
  check(tokens, static_cast<int64_t>(tokens.size()));
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min<size_t>(tokens.size(), kChunk));
    tokens = tokens.subspan(chunk.size());
    run(chunk, static_cast<int64_t>(chunk.size()),
        [&](const OpContext& op, ConstRows h) { use(op, h, tokens.empty()); });
  }
}

std::span<const float> Decoder::feed(std::span<const int32_t> tokens) {
  TRANSEPT_CHECK(!tokens.empty());
  const int64_t vocab = model_.spec().vocab_size;
  run_chunks(tokens, [&](const OpContext& op, ConstRows h, bool last) {
    if (last) model_.logits(op, h.slice(h.rows - 1, 1), {logits_.data(), 1, vocab, vocab});
  });
  return std::span(logits_).first(static_cast<size_t>(vocab));
}

void Decoder::feed_all(std::span<const int32_t> tokens, std::span<float> out) {
  const int64_t vocab = model_.spec().vocab_size;
  TRANSEPT_CHECK(out.size() == tokens.size() * static_cast<size_t>(vocab));
  float* to = out.data();
  run_chunks(tokens, [&](const OpContext& op, ConstRows h, bool) {
    model_.logits(op, h, {to, h.rows, vocab, vocab});
    to += h.rows * vocab;
  });
}

void Decoder::feed_hidden(std::span<const int32_t> tokens, std::span<float> out) {
  const int64_t width = model_.spec().hidden_size;
  TRANSEPT_CHECK(out.size() == tokens.size() * static_cast<size_t>(width));
  float* to = out.data();
  run_chunks(tokens, [&](const OpContext&, ConstRows h, bool) {
    copy_rows(h, {to, h.rows, width, width});
    to += h.rows * width;
  });
}

void Decoder::branch(std::span<const int64_t> from) {
  TRANSEPT_CHECK(!from.empty() && source_.empty());
  for (const int64_t b : from) TRANSEPT_CHECK(b >= 0 && b < branches_);
  cache_.reorder(from);
  branches_ = static_cast<int64_t>(from.size());
}

std::span<const float> Decoder::step(std::span<const int32_t> tokens) {
  TRANSEPT_CHECK(static_cast<int64_t>(tokens.size()) == branches_);
  check(tokens, 1);
  const int64_t vocab = model_.spec().vocab_size;
  run(tokens, 1,
      [&](const OpContext& op, ConstRows h) { model_.logits(op, h, {logits_.data(), branches_, vocab, vocab}); });
  return std::span(logits_).first(static_cast<size_t>(branches_ * vocab));
}

void Decoder::reset() {
  cache_.clear();
  source_.clear();
  branches_ = 1;
  position_ = 0;
}

namespace {

// use(op, hidden rows) of one pass over a sequence.
template <class F>
void forward(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens, std::span<const int32_t> source,
             const F& use) {
  const int64_t rows = static_cast<int64_t>(tokens.size()), source_rows = static_cast<int64_t>(source.size());
  if (rows == 0) return;
  if (model.spec().encoder_decoder() != (source_rows > 0)) {
    throw InputError("source", source_rows > 0 ? "is given, and the model has no encoder" : "is missing",
                     "an encoder-decoder reads a source, other models do not");
  }
  model.check_input(tokens, rows - 1, "tokens");
  ForwardCall call{.tokens = tokens, .layout = equal_sequences(1, rows), .dropout = {}, .observe = {}};
  if (source_rows > 0) {
    model.check_input(source, source_rows - 1, "source");
    call.source_tokens = source;
    call.source_layout = equal_sequences(1, source_rows);
  }
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  const Var h = model.hidden(op, call);
  use(op, ConstRows(h.view()));
}

}  // namespace

void forward_logits(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens, std::span<float> out,
                    std::span<const int32_t> source) {
  const int64_t vocab = model.spec().vocab_size;
  TRANSEPT_CHECK(out.size() == tokens.size() * static_cast<size_t>(vocab));
  forward(model, pool, tokens, source,
          [&](const OpContext& op, ConstRows h) { model.logits(op, h, {out.data(), h.rows, vocab, vocab}); });
}

void forward_hidden(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens, std::span<float> out,
                    std::span<const int32_t> source) {
  const int64_t width = model.spec().hidden_size;
  TRANSEPT_CHECK(out.size() == tokens.size() * static_cast<size_t>(width));
  forward(model, pool, tokens, source,
          [&](const OpContext&, ConstRows h) { copy_rows(h, {out.data(), h.rows, width, width}); });
}

}  // namespace transept
