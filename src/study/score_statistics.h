// Why attention scores are divided by sqrt(d_k) (arXiv:1706.03762 section 3.2.1 and footnote 4): the dot product of two
// vectors of d_k independent elements of mean 0 and variance 1 has mean 0 and variance d_k, and a softmax of large
// scores puts all its weight on one key, where its gradient is small. Measured on such vectors, in double.
#pragma once

#include <cstdint>

namespace transept {

// A probability above this saturates its softmax.
inline constexpr double kSaturated = 0.99;

// Of the norms that single queries give: a few queries between two keys have nearly all of the mean where most have
// next to nothing, and the median tells.
struct NormStatistics {
  double mean = 0, median = 0;
};

struct ScoreStatistics {
  double score_deviation = 0;      // standard deviation of the scores about 0: sqrt(d_k), or 1 when scaled
  double entropy = 0;              // nats of a query's softmax, mean over the queries
  double entropy_share = 0;        // of ln(keys), which is that of equal probabilities; 1 when there is one key
  double largest_probability = 0;  // mean over the queries
  double saturated_share = 0;      // of the queries
  // Absolute norms of the gradients that a random gradient of the attention's result leaves behind the softmax. With
  // values of standard normal elements, a gradient of length 1 reaches the probabilities as independent standard normal
  // numbers. Of the scores as they enter the softmax; of the query; of all keys, one query's share.
  NormStatistics score_gradient, query_gradient, key_gradient;
};

// Queries and keys of `head_dim` standard normal elements, drawn from the seed alone; every query sees every key.
// `scaled`: scores are divided by sqrt(head_dim). InputError for sizes below one.
ScoreStatistics score_statistics(int64_t head_dim, bool scaled, int64_t queries, int64_t keys, uint64_t seed);

}  // namespace transept
