#include "plan/parameters.h"

#include <algorithm>

namespace transept {
namespace {

int64_t kv_elements(const AttentionSpec& any) {
  Count width;
  for (const CacheRow& row : std::visit([](const auto& a) { return a.cache_rows(); }, any)) width += row.width;
  return width.value();
}

// Merges equal neighbours into groups.
void add_groups(const std::vector<LayerGroup>& layers, std::vector<LayerGroup>& groups) {
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerGroup layer = layers[i];
    if (i > 0) {
      layer.first = groups.back().first;
      layer.count = groups.back().count;
      if (layer == groups.back()) {
        ++groups.back().count;
        continue;
      }
    }
    layer.first = static_cast<int64_t>(i);
    layer.count = 1;
    groups.push_back(layer);
  }
}

// The count that a parameter belongs to, of the model and of its layer.
int64_t& part_of(ParameterCounts& counts, Part part) {
  switch (part) {
    case Part::kEmbedding:
      return counts.embedding;
    case Part::kPosition:
      return counts.position;
    case Part::kAttention:
      return counts.attention;
    case Part::kCrossAttention:
      return counts.cross_attention;
    case Part::kFfn:
      return counts.ffn;
    case Part::kNorm:
      return counts.norm;
    case Part::kPooler:
      return counts.pooler;
    case Part::kHead:
      break;
  }
  return counts.head;
}
int64_t& part_of(LayerGroup& layer, Part part) {
  if (part == Part::kAttention) return layer.attention;
  if (part == Part::kCrossAttention) return layer.cross_attention;
  return part == Part::kNorm ? layer.norm : layer.ffn;
}

}  // namespace

Count elements(const ParamDecl& decl) {
  Count n(1);
  for (const int64_t extent : decl.shape) n = n * extent;
  return n;
}

int64_t window_of(const LayerSpec& layer) {
  return std::visit([](const auto& a) { return a.sliding_window; }, layer.attention);
}

int64_t cached_tokens(int64_t sliding_window, int64_t context) {
  return sliding_window > 0 ? std::min(sliding_window, context) : context;
}

ParameterCounts count_parameters(const ArchSpec& spec) {
  ParameterCounts p;
  std::vector<LayerGroup> layers(spec.layers.size()), encoder_layers(spec.encoder.layers.size());
  Count total, matrices, idle;  // idle: that a token does not touch
  for (const ParamDecl& decl : spec.declare().decls()) {
    const int64_t n = elements(decl).value(), active = n / decl.experts * decl.active_experts;
    total += n;
    idle += n - active;
    part_of(p, decl.part) += n;
    if (decl.layer >= 0) {
      LayerGroup& layer = (decl.encoder ? encoder_layers : layers)[static_cast<size_t>(decl.layer)];
      part_of(layer, decl.part) += n;
      layer.active += active;
    }
    const bool looked_up = decl.part == Part::kPosition || (decl.part == Part::kEmbedding && !spec.tie_word_embeddings);
    // The pooler reads one vector a sequence.
    if (decl.shape.size() == 2 && !looked_up && decl.part != Part::kPooler) matrices += active;
  }
  p.total = total.value();
  p.active = p.total - idle.value();
  p.active_without_input_embedding = spec.tie_word_embeddings ? p.active : p.active - p.embedding;
  p.matrices = matrices.value();

  for (LayerGroup& layer : encoder_layers) layer.encoder = true;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerSpec& spec_layer = spec.layers[i];
    layers[i].sliding_window = window_of(spec_layer);
    if (!spec_layer.causal) continue;  // nothing is decoded, so nothing is cached
    layers[i].kv_elements_per_token = kv_elements(spec_layer.attention);
    if (spec_layer.cross_attention) layers[i].source_kv_elements_per_token = kv_elements(spec_layer.attention);
  }
  add_groups(encoder_layers, p.layers);
  add_groups(layers, p.layers);
  return p;
}

}  // namespace transept
