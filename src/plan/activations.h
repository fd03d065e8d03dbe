// Memory of activations, in bytes, from the spec alone: what training keeps for the backward pass, what it needs for a
// moment on top, and what a forward pass without gradients needs. The engine's activations are float32; those of mixed
// precision are counted by their element size.
#pragma once

#include <cstdint>
#include <span>

#include "plan/count.h"
#include "spec/arch_spec.h"
#include "spec/recompute.h"

namespace transept {

// Token rows of a batch: of the layer's own sequences, and of the sources that cross-attention reads.
struct TokenRows {
  Count own, source;
};

// What one layer keeps for its backward pass, in elements. The feed-forward activation is not kept: the backward pass
// computes it again from ffn_first.
struct LayerSaved {
  Count residual_in;       // input of the layer
  Count attention_input;   // normalized
  Count qkv;               // after rotation; of latent attention, expanded, and what they are made from
  Count qk_norm;           // queries and keys before their norm, and its statistics
  Count attention_output;  // before the output projection
  Count log_sum_exp;       // of each row of scores, one a head
  Count cross_attention;   // the whole sublayer
  Count residual_middle;   // after the attention sublayer
  Count ffn_input;         // normalized
  Count ffn_first;         // gate and up, or up, of all networks that a token passes, and the router's logits
  Count post_norm_inputs;  // what the second norms of sandwich placement read
  Count norm_statistics;   // of all norms
  Count total() const;
};
// Without recomputation.
LayerSaved layer_saved(const ArchSpec& spec, const LayerSpec& layer, const TokenRows& rows);

// Of it, in elements, what stands between a layer's forward pass and its backward pass.
Count layer_kept(const ArchSpec& spec, const LayerSpec& layer, const TokenRows& rows, Recompute recompute);

// What a layer holds at the fullest moment of its backward pass, in elements: of its saved set what still stands, and
// what is needed on top. Buffers go back as soon as their last reader is through, so the sublayers' needs do not add
// up. What was not kept is made again first.
Count layer_peak(const ArchSpec& spec, const LayerSpec& layer, const TokenRows& rows, Recompute recompute);

// A run of layers: what all of them keep, and the fullest moment of their backward pass, both in elements.
struct RunOfLayers {
  Count kept, fullest;
};
RunOfLayers run_of_layers(const ArchSpec& spec, std::span<const LayerSpec> layers, const TokenRows& rows,
                          Recompute recompute);

// What stands after a stack's last layer, in elements: input, output and statistics of its final norm.
Count stack_end(const ArchSpec& spec, const StackSpec& stack, Count rows);

// Two moments can be the fullest: the head's, when everything saved stands, and one within the backward pass, when what
// belongs to the head and to later layers is gone.
struct ActivationBytes {
  int64_t saved_layers = 0;        // kept by all layers until their backward pass
  int64_t saved_ends = 0;          // final norm: its input, its output, its statistics; gone before the layers' turn
  int64_t head_transient = 0;      // a chunk of logits, and the gradient of the final norm's output
  int64_t backward_transient = 0;  // at the fullest moment of the layers' backward pass, beyond saved_layers
  // The buffers alive at the same time. What the arena takes may be a few percent more: a gap too small for the next
  // buffer stays empty.
  int64_t total() const;
};

inline constexpr int64_t kLogitBytes = 4;  // of a logit, in any precision

struct ActivationShape {
  int64_t batch = 1, context = 1, source_context = 0;  // sequences, tokens
  Recompute recompute = Recompute::kNone;
  int64_t element_bytes = 4;
};
ActivationBytes activation_bytes(const ArchSpec& spec, const ActivationShape& shape);

// A forward pass of `rows` tokens without gradients, of which `logit_rows` reach the head: layers share their buffers.
// `cached`: tokens whose latents such a pass expands, where attention has some.
int64_t inference_bytes(const ArchSpec& spec, int64_t rows, int64_t logit_rows, int64_t cached = 0);

}  // namespace transept
