// Attention kinds: what planner, cache, checkpoint and optimizer must know of them. No tensors here.
#pragma once

#include <cmath>
#include <cstdint>
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

// Scaled dot-product attention with grouped keys and values: softmax(q k^T * scale) v (arXiv:1706.03762 section 3.2.1),
// query head h reading KV head h / (heads / kv_heads) (arXiv:2305.13245). As many KV heads as heads is multi-head
// attention, one is multi-query.
struct GqaSpec {
  static constexpr std::string_view kName = "gqa";
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;  // 0: as many as heads. Resolved by ArchSpec::resolve
  int64_t head_dim = 0;             // 0: hidden_size / heads. Resolved by ArchSpec::resolve
  double scale = 0;                 // 0: 1 / sqrt(head_dim)
  int64_t sliding_window = 0;       // keys a query sees, itself included; 0: all before it
  bool qkv_bias = false;
  bool output_bias = false;

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
  }

  int64_t query_width() const { return num_attention_heads * head_dim; }
  int64_t kv_width() const { return num_key_value_heads * head_dim; }
  int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
  double score_scale() const { return scale > 0 ? scale : 1.0 / std::sqrt(static_cast<double>(head_dim)); }

  // Rows of qkv: all query heads, then all key heads, then all value heads.
  void declare(int64_t hidden_size, ParamList& p) const {
    p.add("qkv.weight", {qkv_width(), hidden_size}, Init::kNormal);
    if (qkv_bias) p.add("qkv.bias", {qkv_width()}, Init::kZeros);
    p.add("output.weight", {hidden_size, query_width()}, Init::kNormalResidual);
    if (output_bias) p.add("output.bias", {hidden_size}, Init::kZeros);
  }
  std::vector<CacheRow> cache_rows() const { return {{"k", kv_width()}, {"v", kv_width()}}; }
  // Multiply-adds counted as two, forward, for one query token and one attended key: scores and weighted sum.
  int64_t flops_per_query_key() const { return 4 * query_width(); }
};

using AttentionKinds = Kinds<GqaSpec>;
using AttentionSpec = AttentionKinds::Any;

}  // namespace transept
