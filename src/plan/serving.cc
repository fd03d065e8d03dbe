#include "plan/serving.h"

#include <algorithm>
#include <cmath>

#include "plan/count.h"

namespace transept {
namespace {

// Of the source, once for the whole target: the encoder, and cross-attention's keys and values.
bool reads_source(const ParamDecl& decl) {
  return decl.encoder ||
         (decl.part == Part::kCrossAttention && decl.name.find("cross_attention.kv.") != std::string::npos);
}

// Experts of a layer that one of `batch` tokens, or more, is sent to, when choices are independent and even.
double touched_experts(const ParamDecl& decl, int64_t batch) {
  const double all = static_cast<double>(decl.experts), share = static_cast<double>(decl.active_experts) / all;
  return all * (1 - std::pow(1 - share, static_cast<double>(batch)));
}

}  // namespace

ServingWork count_serving(const ArchSpec& spec, const ParameterCounts& parameters, const CacheSize& cache,
                          const MemoryNeeds& memory, const ServingSetup& setup) {
  ServingWork s;
  Count read, source_matrices;
  double experts = 0, looked_up = 0;  // bytes
  for (const ParamDecl& decl : spec.declare().decls()) {
    if (reads_source(decl)) {
      if (decl.shape.size() == 2 && decl.part != Part::kPosition) source_matrices += elements(decl);
      continue;
    }
    const Count bytes = setup.weights.bytes(spec, decl);
    if (decl.part == Part::kEmbedding && !spec.tie_word_embeddings) {
      looked_up += static_cast<double>(bytes.value()) / static_cast<double>(decl.shape[0]);  // one row
    } else if (decl.experts > 1) {
      experts +=
          static_cast<double>(bytes.value()) / static_cast<double>(decl.experts) * touched_experts(decl, setup.batch);
    } else {
      read += bytes;
    }
  }
  s.weight_bytes_per_step = (read + static_cast<int64_t>(std::llround(experts))).value();
  s.kv_bytes_per_decoded_token = cache.bytes;
  s.bytes_per_decoded_token = static_cast<double>(s.weight_bytes_per_step) / static_cast<double>(setup.batch) +
                              static_cast<double>(s.kv_bytes_per_decoded_token) + looked_up;
  s.flops_per_decoded_token = 2 * static_cast<double>(parameters.matrices - source_matrices.value());
  for (const LayerSpec& layer : spec.layers) {
    const int64_t keys =
        cached_tokens(window_of(layer), setup.context) + (layer.cross_attention ? setup.source_context : 0);
    s.flops_per_decoded_token +=
        std::visit([](const auto& a) { return static_cast<double>(a.flops_per_cached_key()); }, layer.attention) *
        static_cast<double>(keys);
  }
  s.arithmetic_intensity = s.flops_per_decoded_token / s.bytes_per_decoded_token;
  s.memory_bytes = setup.memory_bytes;
  if (setup.memory_bytes <= 0) return s;
  // The workspace has a part for a piece of a prompt, and one for each sequence's row and logits.
  const int64_t piece_rows = std::min(setup.context, kPrefillRows);
  const int64_t piece = inference_bytes(spec, piece_rows, 0, setup.context - piece_rows);
  const Count each = Count(cache.bytes) + inference_bytes(spec, 1, 1);
  const Count fixed = Count(memory.weights) + piece;
  if (fixed.value() < setup.memory_bytes) s.largest_batch = (setup.memory_bytes - fixed.value()) / each.value();
  return s;
}

}  // namespace transept
