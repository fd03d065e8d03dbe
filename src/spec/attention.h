// Attention kinds: what planner, cache, checkpoint and optimizer must know of them. No tensors here.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/fields.h"
#include "spec/kinds.h"
#include "spec/params.h"

namespace transept {

// One row stored in the cache per token and layer.
struct CacheRow {
  std::string_view name;
  int64_t width;  // elements
};

enum class QkNorm { kNone, kRmsnorm, kLayernorm };
template <>
struct EnumNames<QkNorm> {
  static constexpr std::array<std::string_view, 3> kNames{"none", "rmsnorm", "layernorm"};
};

// What one statistic is taken over, and which weights there are.
enum class QkNormScope {
  kHead,      // each head by itself, one weight vector for all heads (Qwen 3, Gemma 3)
  kEachHead,  // each head by itself, each with weights of its own (Command R+)
  kAllHeads,  // all heads of a token together (OLMo 2)
};
template <>
struct EnumNames<QkNormScope> {
  static constexpr std::array<std::string_view, 3> kNames{"head", "each_head", "all_heads"};
};

// Scaled dot-product attention with grouped keys and values: softmax(q k^T * scale) v (arXiv:1706.03762 section 3.2.1),
// query head h reading KV head h / (heads / kv_heads) (arXiv:2305.13245). As many KV heads as heads is multi-head
// attention, one is multi-query.
struct GqaSpec {
  static constexpr std::string_view kName = "gqa";
  static constexpr bool kCross = true;  // whether a decoder can attend with it to its encoder
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;  // 0: as many as heads. Resolved by ArchSpec::resolve
  int64_t head_dim = 0;             // 0: hidden_size / heads. Resolved by ArchSpec::resolve
  double scale = 0;                 // 0: 1 / sqrt(head_dim)
  int64_t sliding_window = 0;       // keys a query sees, itself included; 0: all before it
  bool qkv_bias = false;
  bool output_bias = false;
  double clip_qkv = 0;  // c: queries, keys and values are held between -c and c, before norm and rotation; 0: none
  QkNorm qk_norm = QkNorm::kNone;  // of queries and keys, before rotation; eps, and RMSNorm's unit offset, are those of
                                   // the layer's norm
  QkNormScope qk_norm_scope = QkNormScope::kHead;
  double logit_softcap = 0;  // c: scores become c tanh(score / c) before bias and mask (arXiv:2408.00118); 0: none
  bool sinks = false;        // a learned logit a head that joins the softmax and carries no value

  template <class V>
  void fields(V& v) {
    v("num_attention_heads", num_attention_heads, AtLeast{1}, "query heads");
    v("num_key_value_heads", num_key_value_heads, AtLeast{0},
      "key and value heads, a divisor of the query heads; 0: as many as query heads");
    v("head_dim", head_dim, AtLeast{0}, "elements of a head; 0: hidden_size / num_attention_heads");
    v("scale", scale, AtLeast{0}, "factor on the scores before the softmax; 0: 1 / sqrt(head_dim)");
    v("sliding_window", sliding_window, AtLeast{0}, "keys a query sees, itself included; 0: every earlier one");
    v("qkv_bias", qkv_bias, Any{}, "biases on the query, key and value projections");
    v("output_bias", output_bias, Any{}, "bias on the output projection");
    v("clip_qkv", clip_qkv, AtLeast{0},
      "c: queries, keys and values are held between -c and c, before norm and rotation; 0: as they are");
    v("qk_norm", qk_norm, Any{}, "norm of queries and keys, before rotation");
    v("qk_norm_scope", qk_norm_scope, Any{},
      "head: each head by itself, weights shared; each_head: weights of its own; all_heads: all heads together");
    v("logit_softcap", logit_softcap, AtLeast{0}, "c: scores become c tanh(score / c); 0: none");
    v("sinks", sinks, Any{}, "a learned logit a head that joins the softmax and carries no value");
  }

  int64_t query_width() const { return num_attention_heads * head_dim; }
  int64_t kv_width() const { return num_key_value_heads * head_dim; }
  int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
  int64_t rotary_dim() const { return head_dim; }  // elements of a head that positions may turn
  double score_scale() const { return scale > 0 ? scale : 1.0 / std::sqrt(static_cast<double>(head_dim)); }

  // Elements of the norm's weights for this many heads.
  int64_t qk_norm_width(int64_t heads) const {
    return qk_norm_scope == QkNormScope::kHead ? head_dim : heads * head_dim;
  }

  // Self-attention. Rows of qkv: all query heads, then all key heads, then all value heads. `unit` is the value at
  // which the layer's norm weights are an identity.
  void declare(int64_t hidden_size, Init unit, ParamList& p) const {
    p.add("qkv.weight", {qkv_width(), hidden_size}, Init::kNormal, {.shard = Shard::kRows});
    if (qkv_bias) p.add("qkv.bias", {qkv_width()}, Init::kZeros, {.shard = Shard::kRows});
    declare_rest(hidden_size, unit, p);
  }
  // Cross-attention: queries from the decoder, keys and values (in this order) from the encoder.
  void declare_cross(int64_t hidden_size, Init unit, ParamList& p) const {
    p.add("q.weight", {query_width(), hidden_size}, Init::kNormal, {.shard = Shard::kRows});
    if (qkv_bias) p.add("q.bias", {query_width()}, Init::kZeros, {.shard = Shard::kRows});
    p.add("kv.weight", {2 * kv_width(), hidden_size}, Init::kNormal, {.shard = Shard::kRows});
    if (qkv_bias) p.add("kv.bias", {2 * kv_width()}, Init::kZeros, {.shard = Shard::kRows});
    declare_rest(hidden_size, unit, p);
  }
  // Elements a token if each query head had keys and values of its own.
  int64_t multi_head_cache_width() const { return 2 * query_width(); }
  std::vector<CacheRow> cache_rows() const { return {{"k", kv_width()}, {"v", kv_width()}}; }
  // Multiply-adds counted as two, forward, for one query token and one attended key: scores and weighted sum.
  int64_t flops_per_query_key() const { return 4 * query_width(); }
  // The same where the key is read from a cache.
  int64_t flops_per_cached_key() const { return flops_per_query_key(); }

 private:
  void declare_rest(int64_t hidden_size, Init unit, ParamList& p) const {
    if (qk_norm != QkNorm::kNone) {
      const Init init = qk_norm == QkNorm::kRmsnorm ? unit : Init::kOnes;
      const ParamUse use{.shard = qk_norm_scope == QkNormScope::kHead ? Shard::kNone : Shard::kRows};
      p.add("q_norm.weight", {qk_norm_width(num_attention_heads)}, init, use);
      p.add("k_norm.weight", {qk_norm_width(num_key_value_heads)}, init, use);
    }
    if (sinks) p.add("sinks", {num_attention_heads}, Init::kZeros, {.shard = Shard::kRows});
    p.add("output.weight", {hidden_size, query_width()}, Init::kNormalResidual, {.shard = Shard::kColumns});
    if (output_bias) p.add("output.bias", {hidden_size}, Init::kZeros);
  }
};

// Multi-head latent attention (arXiv:2405.04434 section 2.1). Keys and values of a token are made from one latent c of
// kv_lora_rank elements, which is all that is kept of them beside one rotated key for all heads:
//   c = rmsnorm(W_down x),  k_h = [W_UK,h c ; rope(W_kr x)],  v_h = W_UV,h c,
//   q_h = [W_q,h x' ; rope(W_qr,h x')],  with x' = x, or rmsnorm(W_qdown x) where queries have a latent too,
//   o_h = softmax(q_h k_h^T * scale) v_h.
// Norms of latents have the eps of the layer's norm, and RMSNorm's unit offset when that has it.
struct MlaSpec {
  static constexpr std::string_view kName = "mla";
  static constexpr bool kCross = false;
  int64_t num_attention_heads = 0;
  int64_t q_lora_rank = 0;
  int64_t kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t v_head_dim = 0;
  double scale = 0;
  int64_t sliding_window = 0;
  bool bias = false;

  template <class V>
  void fields(V& v) {
    v("num_attention_heads", num_attention_heads, AtLeast{1}, "heads of queries, keys and values");
    v("q_lora_rank", q_lora_rank, AtLeast{0}, "elements of the queries' latent; 0: projected from the input");
    v("kv_lora_rank", kv_lora_rank, AtLeast{1}, "elements of the latent that keys and values are made from");
    v("qk_nope_head_dim", qk_nope_head_dim, AtLeast{1}, "elements of a head of queries and keys that do not turn");
    v("qk_rope_head_dim", qk_rope_head_dim, AtLeast{1},
      "elements of a head of queries that turn, and of the one key that turns and that all heads share");
    v("v_head_dim", v_head_dim, AtLeast{1}, "elements of a head of values");
    v("scale", scale, AtLeast{0},
      "factor on the scores before the softmax; 0: 1 / sqrt(qk_nope_head_dim + qk_rope_head_dim). The position's "
      "scaling may multiply it (yarn's mscale_all_dim)");
    v("sliding_window", sliding_window, AtLeast{0}, "keys a query sees, itself included; 0: every earlier one");
    v("bias", bias, Any{}, "biases on the projections to latents and on the output projection");
  }

  int64_t query_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }  // of a head, and of its keys
  int64_t query_width() const { return num_attention_heads * query_dim(); }
  int64_t value_width() const { return num_attention_heads * v_head_dim; }
  int64_t record_width() const { return kv_lora_rank + qk_rope_head_dim; }         // what is kept of a token
  int64_t expanded_width() const { return query_width() + value_width(); }         // keys and values of all heads
  int64_t absorbed_width() const { return num_attention_heads * record_width(); }  // queries against records
  int64_t rotary_dim() const { return qk_rope_head_dim; }
  double score_scale() const { return scale > 0 ? scale : 1.0 / std::sqrt(static_cast<double>(query_dim())); }

  // Rows of q and q_up: head by head, what does not turn before what does. Rows of kv_down: the latent, then the key
  // that turns. Rows of kv_up: head by head, its key before its value.
  void declare(int64_t hidden_size, Init unit, ParamList& p) const {
    const auto project = [&](const char* name, int64_t out, int64_t in, Init init, bool biased, ParamUse use = {}) {
      p.add(std::string(name) + ".weight", {out, in}, init, use);
      if (biased) p.add(std::string(name) + ".bias", {out}, Init::kZeros);
    };
    if (q_lora_rank > 0) {
      project("q_down", q_lora_rank, hidden_size, Init::kNormal, bias);
      p.add("q_norm.weight", {q_lora_rank}, unit);
      project("q_up", query_width(), q_lora_rank, Init::kNormal, false, {.shard = Shard::kRows});
    } else {
      project("q", query_width(), hidden_size, Init::kNormal, false, {.shard = Shard::kRows});
    }
    project("kv_down", record_width(), hidden_size, Init::kNormal, bias);
    p.add("kv_norm.weight", {kv_lora_rank}, unit);
    project("kv_up", num_attention_heads * (qk_nope_head_dim + v_head_dim), kv_lora_rank, Init::kNormal, false,
            {.shard = Shard::kRows, .whole = true});
    project("output", hidden_size, value_width(), Init::kNormalResidual, bias, {.shard = Shard::kColumns});
  }
  // As 2 n_h d_h of the paper's table 1: without the part that turns.
  int64_t multi_head_cache_width() const { return num_attention_heads * (qk_nope_head_dim + v_head_dim); }
  std::vector<CacheRow> cache_rows() const { return {{"latent", kv_lora_rank}, {"k_rope", qk_rope_head_dim}}; }
  // Of heads with keys and values of their own.
  int64_t flops_per_query_key() const { return 2 * num_attention_heads * (query_dim() + v_head_dim); }
  // Queries that took W_UK in stand against the records, and the weighted sum of latents takes W_UV after it (absorbed:
  // section 2.1.2). Taking both in costs as much as making one token's keys and values.
  int64_t flops_per_cached_key() const { return 2 * num_attention_heads * (record_width() + kv_lora_rank); }
  // Making keys and values of a cached token from its latent, which each step repeats in the expanded form.
  int64_t flops_to_expand() const { return 2 * kv_lora_rank * num_attention_heads * (qk_nope_head_dim + v_head_dim); }
};

using AttentionKinds = Kinds<GqaSpec, MlaSpec>;
using AttentionSpec = AttentionKinds::Any;

}  // namespace transept
