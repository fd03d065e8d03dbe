#include "infer/embed.h"

#include <cmath>

#include "base/problem.h"
#include "kernels/elementwise.h"

namespace transept {

EmbedOptions embed_options(const ArchSpec& spec) { return {spec.pooling, spec.pooler, false}; }

std::vector<std::vector<float>> embed_sequences(const Model& model, ThreadPool& pool,
                                                std::span<const std::vector<int32_t>> sequences,
                                                const EmbedOptions& options) {
  std::vector<int32_t> tokens;
  BatchLayout layout;
  for (const std::vector<int32_t>& sequence : sequences) {
    const int64_t rows = static_cast<int64_t>(sequence.size());
    if (rows == 0) throw InputError("tokens", "are none", "give one at least");
    model.check_input(sequence, rows - 1, "tokens");
    layout.push_back({static_cast<int64_t>(tokens.size()), rows, 0});
    tokens.insert(tokens.end(), sequence.begin(), sequence.end());
  }
  if (layout.empty()) return {};
  Arena arena;
  const OpContext op{pool, arena, nullptr};
  const ForwardCall call{.tokens = tokens, .layout = layout, .dropout = {}, .observe = {}};
  const Var hidden = model.spec().encoder_decoder() ? model.encoded(op, call) : model.hidden(op, call);
  std::vector<std::vector<float>> embeddings;
  for (const SequenceRows& s : layout) {
    std::vector<float>& e = embeddings.emplace_back(
        model.pool(op, ConstRows(hidden.view()).slice(s.first_row, s.rows), options.pooling, options.pooler));
    const double length = std::sqrt(sum_of_squares(e.data(), static_cast<int64_t>(e.size())));
    if (!options.normalize || length == 0) continue;
    for (float& x : e) x = static_cast<float>(static_cast<double>(x) / length);
  }
  return embeddings;
}

}  // namespace transept
