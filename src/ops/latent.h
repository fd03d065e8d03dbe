// Multi-head latent attention's products by head (arXiv:2405.04434 section 2.1), between a token's record [latent, key
// that turns] and what attention reads. Expanded: keys and values of every head from the records. Absorbed (the end of
// section 2.1.2): since q_h . (W_UK,h c) = (W_UK,h^T q_h) . c and sum_j p_j W_UV,h c_j = W_UV,h (sum_j p_j c_j), the
// records themselves serve all heads as one key, and its first `rank` elements as the value.
#pragma once

#include <cstdint>

#include "ops/tape.h"

namespace transept {

struct LatentHeads {
  int64_t heads = 1;
  int64_t rank = 1;   // elements of a latent
  int64_t nope = 1;   // of a head's key, made from the latent
  int64_t rope = 1;   // of the key that turns, one for all heads
  int64_t value = 1;  // of a head's value

  int64_t record() const { return rank + rope; }
  int64_t key() const { return nope + rope; }
  int64_t keys() const { return heads * key(); }
  int64_t values() const { return heads * value; }
};

// The weight of all of these is [heads * (nope + value), rank]: for each head the rows of its key, then of its value.

// records [n, rank + rope] to [n, heads * (nope + rope) + heads * value]: the keys of all heads, each with the record's
// end behind it, then all values.
Var expand_records(const OpContext& context, const Var& records, const Param& weight, const LatentHeads& heads);
// The same for records that lie elsewhere, without gradients.
void expand_records(ThreadPool& pool, ConstRows records, const Param& weight, const LatentHeads& heads, Rows out);

// Absorbed, without gradients. Queries [n, heads * (nope + rope)] to [n, heads * (rank + rope)].
Var absorb_queries(const OpContext& context, const Var& q, const Param& weight, const LatentHeads& heads);
// Sums of latents by head [n, heads * rank] to [n, heads * value].
Var values_of_latents(const OpContext& context, const Var& latents, const Param& weight, const LatentHeads& heads);

}  // namespace transept
