// What grouped-query self- and cross-attention share: the shape of the scores, the norm of queries and keys, and the
// output projection.
#pragma once

#include <vector>

#include "nn/attention/attention.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/norm.h"

namespace transept {

class GqaParts {
 public:
  GqaParts(const GqaSpec& spec, const AttentionPlace& place);

  AttentionShape shape(bool causal, int64_t window) const;
  const Param& sinks() const { return sinks_; }
  // Norms of the query heads at `query_column` and the key heads at `key_column` of a row; of none when the spec has
  // none. A column of -1: those heads are not there.
  std::vector<HeadNorm> qk_norms(int64_t query_column, int64_t key_column) const;
  // Holds queries, keys or values between the bounds of the spec, where it has some.
  void clip(const OpContext& op, const Var& x) const;
  // heads [rows, query_width] through the output projection.
  Var project(const OpContext& op, const Var& heads, LinearEnd end) const;

 private:
  GqaSpec spec_;
  float norm_eps_, norm_offset_;
  Param q_norm_, k_norm_, sinks_, output_, output_bias_;
};

// What a view holds, as keys and values of `kv_width` side by side.
std::vector<KvChunk> cached_chunks(KvView& view, int64_t kv_width);

}  // namespace transept
