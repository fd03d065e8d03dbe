#include "infer/decoder.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/problem.h"

namespace transept {

Decoder::Decoder(const Model& model, ThreadPool& pool, int64_t context)
    : model_(model),
      pool_(pool),
      cache_(model.spec(), 1, context),
      logits_(static_cast<size_t>(model.spec().vocab_size)) {
  model.check_input({}, context - 1, "context");
}

void Decoder::check(std::span<const int32_t> tokens) const {
  const int64_t count = static_cast<int64_t>(tokens.size());
  if (count > context() - position_) {
    throw InputError(
        "tokens",
        std::to_string(position_ + count) + " tokens do not fit into a context of " + std::to_string(context()),
        "shorten the input or raise --context");
  }
  model_.check_input(tokens, position_ + count - 1, "tokens");
}

template <class F>
void Decoder::run_chunk(std::span<const int32_t> tokens, const F& use) {
  const int64_t rows = static_cast<int64_t>(tokens.size());
  const OpContext op{pool_, arena_, nullptr};
  const Var h = model_.hidden(
      op, {.tokens = tokens, .layout = {{0, rows, position_}}, .cache = &cache_, .dropout = {}, .observe = {}});
  use(ConstRows(h.view()));
  position_ += rows;
}

std::span<const float> Decoder::feed(std::span<const int32_t> tokens) {
  TRANSEPT_CHECK(!tokens.empty());
  check(tokens);
  const int64_t vocab = model_.spec().vocab_size;
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min<size_t>(tokens.size(), kChunk));
    tokens = tokens.subspan(chunk.size());
    run_chunk(chunk, [&](ConstRows h) {
      if (tokens.empty()) model_.logits(pool_, h.slice(h.rows - 1, 1), {logits_.data(), 1, vocab, vocab});
    });
  }
  return logits_;
}

void Decoder::feed_all(std::span<const int32_t> tokens, std::span<float> out) {
  check(tokens);
  const int64_t vocab = model_.spec().vocab_size;
  TRANSEPT_CHECK(out.size() == tokens.size() * static_cast<size_t>(vocab));
  float* to = out.data();
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min<size_t>(tokens.size(), kChunk));
    tokens = tokens.subspan(chunk.size());
    run_chunk(chunk, [&](ConstRows h) { model_.logits(pool_, h, {to, h.rows, vocab, vocab}); });
    to += static_cast<int64_t>(chunk.size()) * vocab;
  }
}

void Decoder::reset() {
  cache_.clear();
  position_ = 0;
}

void forward_logits(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens, std::span<float> out) {
  const int64_t rows = static_cast<int64_t>(tokens.size()), vocab = model.spec().vocab_size;
  TRANSEPT_CHECK(static_cast<int64_t>(out.size()) == rows * vocab);
  if (rows == 0) return;
  model.check_input(tokens, rows - 1, "tokens");
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  const Var h = model.hidden(op, {.tokens = tokens, .layout = equal_sequences(1, rows), .dropout = {}, .observe = {}});
  model.logits(pool, h.view(), {out.data(), rows, vocab, vocab});
}

}  // namespace transept
