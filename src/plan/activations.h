// Memory of activations, in bytes, from the spec alone: what training keeps for the backward pass, what it needs for a
// moment on top, and what a forward pass without gradients needs. All activations are float32.
#pragma once

#include <cstdint>

#include "plan/count.h"
#include "spec/arch_spec.h"

namespace transept {

// What one layer keeps for its backward pass, in elements for `rows` tokens. The feed-forward activation is not kept:
// the backward pass computes it again from ffn_first.
struct LayerSaved {
  Count residual_in;       // input of the layer
  Count attention_input;   // normalized
  Count qkv;               // after rotation
  Count attention_output;  // before the output projection
  Count log_sum_exp;       // of each row of scores, one a head
  Count residual_middle;   // after the attention sublayer
  Count ffn_input;         // normalized
  Count ffn_first;         // gate and up, or up
  Count norm_statistics;   // of both norms
  Count total() const;
};
LayerSaved layer_saved(const ArchSpec& spec, const LayerSpec& layer, Count rows);

// What the backward pass of one layer holds beside the saved ones, in elements: the larger of its two sublayers.
struct LayerBackward {
  Count ffn;        // gradients of the residual, of the activation, of ffn_first and of ffn_input, and the activation
                    // computed again
  Count attention;  // gradients of the residual, of attention_output, of qkv and of attention_input, and the row sums
                    // of output times its gradient
  Count peak() const { return std::max(ffn, attention); }
};
LayerBackward layer_backward(const ArchSpec& spec, const LayerSpec& layer, Count rows);

// Rows of logits that the head and the loss make at a time: a chunk holds at most 4 Mi floats, within 64 to 1024 rows.
int64_t head_chunk_rows(int64_t vocab_size);

struct ActivationBytes {
  int64_t saved_layers = 0;        // kept by all layers until their backward pass
  int64_t saved_ends = 0;          // final norm: its input, its output, its statistics
  int64_t head_transient = 0;      // a chunk of logits, and the gradient of the final norm's output
  int64_t backward_transient = 0;  // of the layer that needs most; with recomputation also its saved set, made again
  // The two transients follow one another, while everything saved still stands.
  int64_t total() const;
};

// `recompute`: a layer keeps only its input, and computes the rest again in its backward pass.
ActivationBytes activation_bytes(const ArchSpec& spec, int64_t batch, int64_t context, bool recompute);

// A forward pass of `rows` tokens without gradients, of which `logit_rows` reach the head: layers share their buffers.
int64_t inference_bytes(const ArchSpec& spec, int64_t rows, int64_t logit_rows);

}  // namespace transept
