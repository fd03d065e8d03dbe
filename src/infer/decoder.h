// Prefill and decode of a sequence through a cache, and of the branches that go on from it. Prefill goes in chunks, so
// its memory does not grow with the prompt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/kv_store.h"
#include "nn/model.h"

namespace transept {

class Decoder {
 public:
  // `context` positions at the most and, in an encoder-decoder, `source_context` tokens of source; `branches` at the
  // most. InputError when the model's positions end before, or when it is an encoder, which decodes nothing.
  Decoder(const Model& model, ThreadPool& pool, int64_t context, int64_t source_context = 0, int64_t branches = 1);

  // Encoder-decoder: the source of what is fed from now on, after a reset. InputError when a token is outside the
  // vocabulary, or the source is empty or too long.
  void read_source(std::span<const int32_t> tokens);

  // Feeds tokens; gives the logits [vocab] that follow the last one. Valid until the next call. InputError when a token
  // is outside the vocabulary or the context is full. As the two below, before branching only.
  std::span<const float> feed(std::span<const int32_t> tokens);
  // Feeds tokens and writes the logits that follow each, out [tokens.size(), vocab].
  void feed_all(std::span<const int32_t> tokens, std::span<float> out);
  // Feeds tokens and writes the last hidden state of each, out [tokens.size(), hidden].
  void feed_hidden(std::span<const int32_t> tokens, std::span<float> out);

  // From now on there are from.size() branches, of which branch b goes on from what branch from[b] has been fed; at
  // first there is one.
  void branch(std::span<const int64_t> from);
  // Feeds a token to each branch, in one pass; gives the logits that follow, [branches, vocab], as `feed` does.
  std::span<const float> step(std::span<const int32_t> tokens);

  const ArchSpec& spec() const { return model_.spec(); }
  int64_t position() const { return position_; }  // tokens fed so far, to each branch
  int64_t context() const { return cache_.context(); }
  // Tokens that a prompt may have: an encoder-decoder reads it as source.
  int64_t prompt_context() const { return spec().encoder_decoder() ? source_context_ : context(); }
  int64_t cache_bytes() const { return cache_.bytes(); }
  void set_latent_form(LatentForm form) { latents_ = form; }  // from now on; at first the cheaper one
  void reset();

 private:
  static constexpr int64_t kChunk =
      512;  // tokens of prefill at a time: long enough for full products, short enough to stay small
  // Runs `rows` tokens of each branch and calls use(op, hidden rows).
  template <class F>
  void run(std::span<const int32_t> tokens, int64_t rows, const F& use);
  // Runs the tokens of the one branch in chunks and calls use(op, hidden rows, whether they are the last) for each.
  template <class F>
  void run_chunks(std::span<const int32_t> tokens, const F& use);
  void check(std::span<const int32_t> tokens, int64_t rows) const;

  const Model& model_;
  ThreadPool& pool_;
  Arena arena_;
  KvStore cache_;
  int64_t source_context_;
  std::vector<int32_t> source_;  // until the first chunk has put it into the cache
  std::vector<float> logits_;
  LatentForm latents_ = LatentForm::kCheaper;
  int64_t branches_ = 1;
  int64_t position_ = 0;
};

// Logits of a whole sequence in one pass without a cache, out [tokens.size(), vocab]. `source` is what the encoder of
// an encoder-decoder reads; empty otherwise.
void forward_logits(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens, std::span<float> out,
                    std::span<const int32_t> source = {});
// As above, the last hidden states, out [tokens.size(), hidden].
void forward_hidden(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens, std::span<float> out,
                    std::span<const int32_t> source = {});

}  // namespace transept
