// The plan of a spec: exact parameter counts, cache bytes, FLOPs, memory, and closed forms on compute-optimal training
// and serving. Arithmetic on the spec; no tensor is made. Counts that do not fit 64 bits are refused (plan/count.h);
// FLOPs that need not be whole or small are doubles.
//
// An encoder-decoder has a source of `source_context` tokens beside the target of `context` tokens; its figures a token
// are those of one source token and one target token together.
//
// Conventions: a multiply-add is two FLOPs. `linear`: 2 x every matrix that multiplies the token, the head included
// even when it is the embedding table; the embedding lookup is free. `attention`: scores and weighted sum for one query
// token at the mean number of keys that it sees over a sequence of `context` tokens: causal, (T + 1) / 2 without a
// window; bidirectional, T; the exact mean with a window. Training costs three times the forward pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/activations.h"
#include "spec/arch_spec.h"

namespace transept {

struct PlanOptions {
  int64_t context = 0;         // tokens of a sequence; 0: max_position_embeddings
  int64_t batch = 1;           // sequences
  int64_t source_context = 0;  // encoder-decoder: tokens of the source; 0: as context
  std::string dtype = "f32";   // of the weights when the model is run; training is in f32
  std::string kv_dtype = {};   // empty: as dtype
  bool recompute = false;      // training keeps only each layer's input
  int64_t memory_bytes = 0;    // of the machine that serves; 0: not asked
};

// Names that dtype and kv_dtype may have.
const std::vector<std::string>& plan_dtypes();

struct Plan {
  // Equal neighbouring layers of one stack.
  struct LayerGroup {
    bool encoder = false;  // of an encoder-decoder's encoder
    int64_t first = 0, count = 0;
    int64_t attention = 0, cross_attention = 0, ffn = 0, norm = 0;  // parameters of one layer
    int64_t source_kv_elements_per_token = 0;                       // of cross-attention, per source token
    int64_t kv_elements_per_token = 0;
    int64_t cached_tokens = 0;  // at `context`: less than it with a window
    bool operator==(const LayerGroup&) const = default;
  };
  struct Parameters {
    int64_t total = 0;
    int64_t active = 0;                          // that one token touches
    int64_t embedding = 0;                       // the token embedding table
    int64_t active_without_input_embedding = 0;  // the table counts when it is the head as well
    // With embedding, these add up to total.
    int64_t position = 0, attention = 0, cross_attention = 0, ffn = 0, norm = 0, pooler = 0, head = 0;
    std::vector<LayerGroup> layers;
  };
  struct KvCache {
    int64_t elements_per_token = 0;
    int64_t source_elements_per_token = 0;      // of cross-attention
    int64_t multi_head_elements_per_token = 0;  // if each query head had keys and values of its own
    int64_t bytes_per_token = 0;                // while no window is full
    int64_t bytes = 0;                          // of one sequence at `context`, its source included
    int64_t batch_bytes = 0;                    // of `batch` sequences
  };
  struct Flops {
    int64_t linear_forward_per_token = 0;
    double attention_forward_per_token = 0;
    double forward_per_token = 0;
    double train_per_token = 0;
    double train_per_step = 0;  // batch x context tokens
  };
  struct Memory {
    int64_t weights = 0;           // in dtype
    int64_t training_weights = 0;  // in f32
    int64_t gradients = 0;         // in f32
    int64_t optimizer = 0;         // AdamW's two moments in f32
    int64_t activations = 0;       // training, at batch x context
    ActivationBytes activation_terms;
    int64_t peak_training = 0;        // training weights, gradients, optimizer, activations
    int64_t inference_workspace = 0;  // see kPrefillRows
    int64_t peak_inference = 0;       // weights, cache of the batch, workspace
  };
  // arXiv:2203.15556: about 20 tokens a parameter, and C = 6 N D.
  struct Chinchilla {
    int64_t tokens_per_parameter = 20;
    int64_t tokens = 0;
    double train_flops = 0;          // 6 N D
    double train_flops_counted = 0;  // train_per_token x tokens, attention included
  };
  // One decode step of `batch` sequences that all stand at `context`: the weights are read once a step, each cache once
  // a token. Of experts, those that a batch of independent, evenly spread choices is expected to touch.
  struct Serving {
    int64_t weight_bytes_per_step = 0;
    int64_t kv_bytes_per_decoded_token = 0;
    double bytes_per_decoded_token = 0;
    double flops_per_decoded_token = 0;
    double arithmetic_intensity = 0;  // FLOPs a byte
    int64_t memory_bytes = 0;         // as asked
    int64_t largest_batch = 0;        // sequences at `context` that fit into memory_bytes; 0: none, or not asked
  };

  std::string name;
  int64_t context = 0, source_context = 0, batch = 0;
  std::string dtype, kv_dtype;
  bool recompute = false;
  Parameters parameters;
  KvCache kv_cache;
  Flops flops;
  Memory memory;
  Chinchilla chinchilla;
  Serving serving;
};

// A prompt is read in pieces of at most this many tokens, one sequence at a time; a decode step has one row a sequence.
inline constexpr int64_t kPrefillRows = 512;

// InputError on an unknown dtype, a batch or context below 1, a context beyond a table of positions.
Plan make_plan(const ArchSpec& spec, const PlanOptions& options);

// Keys as the members are named, in the order above.
Json to_json(const Plan& plan);

// For a person at a terminal.
std::string to_text(const Plan& plan);

}  // namespace transept
