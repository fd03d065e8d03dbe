// Prefill and decode of one sequence through a cache. Prefill goes in chunks, so its memory does not grow with the
// prompt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/kv_store.h"
#include "nn/model.h"

namespace transept {

class Decoder {
 public:
  // `context` positions at the most and, in an encoder-decoder, `source_context` tokens of source; InputError when the
  // model's positions end before, or when it is an encoder, which decodes nothing.
  Decoder(const Model& model, ThreadPool& pool, int64_t context, int64_t source_context = 0);

  // Encoder-decoder: the source of what is fed from now on, after a reset. InputError when a token is outside the
  // vocabulary, or the source is empty or too long.
  void read_source(std::span<const int32_t> tokens);

  // Feeds tokens; gives the logits [vocab] that follow the last one. Valid until the next call. InputError when a token
  // is outside the vocabulary or the context is full.
  std::span<const float> feed(std::span<const int32_t> tokens);
  // Feeds tokens and writes the logits that follow each, out [tokens.size(), vocab].
  void feed_all(std::span<const int32_t> tokens, std::span<float> out);

  int64_t position() const { return position_; }  // tokens fed so far
  int64_t context() const { return cache_.context(); }
  int64_t cache_bytes() const { return cache_.bytes(); }
  void reset();

 private:
  static constexpr int64_t kChunk =
      512;  // tokens of prefill at a time: long enough for full products, short enough to stay small
  // Runs one chunk and calls use(hidden rows).
  template <class F>
  void run_chunk(std::span<const int32_t> tokens, const F& use);
  void check(std::span<const int32_t> tokens) const;

  const Model& model_;
  ThreadPool& pool_;
  Arena arena_;
  KvStore cache_;
  int64_t source_context_;
  std::vector<int32_t> source_;  // until the first chunk has put it into the cache
  std::vector<float> logits_;
  int64_t position_ = 0;
};

// Logits of a whole sequence in one pass without a cache, out [tokens.size(), vocab]. `source` is what the encoder of an
// encoder-decoder reads; empty otherwise.
void forward_logits(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens, std::span<float> out,
                    std::span<const int32_t> source = {});
// As above, the last hidden states, out [tokens.size(), hidden].
void forward_hidden(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens, std::span<float> out,
                    std::span<const int32_t> source = {});
// A sequence as one vector [hidden] (Model::pool): an encoder's, or any stack's last hidden states.
std::vector<float> embed_sequence(const Model& model, ThreadPool& pool, std::span<const int32_t> tokens);

}  // namespace transept
