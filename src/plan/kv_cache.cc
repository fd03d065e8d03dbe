#include "plan/kv_cache.h"

#include "plan/count.h"
#include "plan/parameters.h"

namespace transept {

CacheSize count_cache(const ArchSpec& spec, int64_t context, int64_t source_context, int64_t batch,
                      const StoredType& type) {
  Count width, source_width, multi_head, a_token, held;
  for (const LayerSpec& layer : spec.layers) {
    if (!layer.causal) continue;  // nothing is decoded, so nothing is cached
    for (const CacheRow& row : std::visit([](const auto& a) { return a.cache_rows(); }, layer.attention)) {
      width += row.width;
      a_token += stored_rows(row.width, 1, type);
      held += stored_rows(row.width, cached_tokens(window_of(layer), context), type);
      if (!layer.cross_attention) continue;
      source_width += row.width;
      held += stored_rows(row.width, source_context, type);
    }
    multi_head += std::visit([](const auto& a) { return a.multi_head_cache_width(); }, layer.attention);
  }
  return {.elements_per_token = width.value(),
          .source_elements_per_token = source_width.value(),
          .multi_head_elements_per_token = multi_head.value(),
          .bytes_per_token = a_token.value(),
          .bytes = held.value(),
          .batch_bytes = (held * batch).value()};
}

}  // namespace transept
