#include "study/attention_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/check.h"
#include "base/problem.h"
#include "kernels/attention_ref.h"

namespace transept {
namespace {

std::vector<double> columns_of(const Var& x, int64_t first, int64_t count) {
  std::vector<double> packed;
  packed.reserve(static_cast<size_t>(x.rows * count));
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* const row = x.view().row(r) + first;
    packed.insert(packed.end(), row, row + count);
  }
  return packed;
}

// One sequence from position 0 on, as the reference reads it; the values are left out.
ref::AttentionInput reference_input(const ScoreOperands& operands) {
  const auto& [inputs, shape, bias, sinks] = operands;
  ref::AttentionInput in;
  in.heads = shape.heads;
  in.kv_heads = shape.kv_heads;
  in.head_dim = shape.head_dim;
  in.scale = static_cast<double>(shape.scale);
  in.window = shape.window;
  in.key_positions.resize(static_cast<size_t>(inputs.kv.rows));
  std::iota(in.key_positions.begin(), in.key_positions.end(), 0);
  in.q = columns_of(inputs.q, inputs.q_column, shape.heads * shape.head_dim);
  in.k = columns_of(inputs.kv, inputs.k_column, shape.kv_heads * shape.head_dim);
  in.causal = shape.causal;
  in.softcap = static_cast<double>(shape.softcap);
  if (bias) {
    in.bias.assign(bias.table->begin(), bias.table->end());
    in.bias_first = bias.first;
  }
  if (sinks) in.sinks.assign(sinks.value, sinks.value + shape.heads);
  return in;
}

void add_maps(ThreadPool& pool, int64_t layer, const ScoreOperands& operands, std::vector<AttentionMap>& maps) {
  const ref::AttentionInput in = reference_input(operands);
  const int64_t tokens = operands.inputs.q.rows;
  const size_t first = maps.size();
  for (int64_t head = 0; head < in.heads; ++head)
    maps.push_back({layer, head, tokens, std::vector<float>(static_cast<size_t>(tokens * tokens))});
  pool.run(in.heads * tokens, [&](int64_t at, int) {
    const int64_t head = at / tokens, row = at % tokens;
    std::ranges::transform(ref::attention_probabilities(in, row, head),
                           maps[first + static_cast<size_t>(head)].probabilities.begin() + row * tokens,
                           [](double p) { return static_cast<float>(p); });
  });
}

int64_t heads_of(const StackSpec& stack) {
  int64_t heads = 0;
  for (const LayerSpec& layer : stack.layers)
    heads += std::visit([](const auto& kind) { return kind.num_attention_heads; }, layer.attention);
  return heads;
}

void check_tokens(const Model& model, const StackSpec& stack, std::span<const int32_t> tokens) {
  if (tokens.empty()) throw InputError("tokens", "are none", "give one at least");
  const int64_t count = static_cast<int64_t>(tokens.size());
  model.check_input(tokens, count - 1, "tokens");
  const int64_t most = static_cast<int64_t>(std::sqrt(static_cast<double>(kMostMapElements / heads_of(stack))));
  if (count > most) {
    throw InputError("tokens", fmt::format("{} make maps of more than {} numbers", count, kMostMapElements),
                     fmt::format("give at most {}", most));
  }
}

}  // namespace

std::vector<AttentionMap> attention_maps(const Model& model, const OpContext& op, std::span<const int32_t> tokens) {
  TRANSEPT_CHECK(!op.tape);
  const ArchSpec& spec = model.spec();
  check_tokens(model, spec.encoder_decoder() ? spec.encoder : spec, tokens);
  std::vector<AttentionMap> maps;
  const ForwardCall call{.tokens = tokens,
                         .layout = equal_sequences(1, static_cast<int64_t>(tokens.size())),
                         .dropout = {},
                         .observe = {},
                         .observe_scores = [&](int64_t layer, const ScoreOperands& operands) {
                           add_maps(op.pool, layer, operands, maps);
                         }};
  spec.encoder_decoder() ? model.encoded(op, call) : model.hidden(op, call);
  return maps;
}

MapStatistics map_statistics(const AttentionMap& map) {
  const int64_t n = map.tokens;
  MapStatistics sum;
  for (int64_t i = 0; i < n; ++i) {
    const float* const row = map.probabilities.data() + i * n;
    for (int64_t j = 0; j < n; ++j) {
      const double p = static_cast<double>(row[j]);
      if (p > 0) sum.entropy -= p * std::log(p);
      sum.distance += p * static_cast<double>(std::abs(i - j));
    }
    if (i == 0) continue;
    sum.first_token += static_cast<double>(row[0]);
    sum.previous_token += static_cast<double>(row[i - 1]);
  }
  const double rows = static_cast<double>(n), later = std::max(rows - 1, 1.0);
  return {sum.entropy / rows, sum.distance / rows, sum.first_token / later, sum.previous_token / later};
}

}  // namespace transept
