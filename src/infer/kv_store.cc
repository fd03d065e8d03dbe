#include "infer/kv_store.h"

#include <algorithm>
#include <cstring>

#include "base/problem.h"

namespace transept {
namespace {

int64_t record_width(const AttentionSpec& attention) {
  int64_t width = 0;
  for (const CacheRow& row : std::visit([](const auto& a) { return a.cache_rows(); }, attention)) width += row.width;
  return width;
}

int64_t capacity(const AttentionSpec& attention, int64_t context) {
  const int64_t window = std::visit([](const auto& a) { return a.sliding_window; }, attention);
  return window > 0 ? std::min(window, context) : context;
}

}  // namespace

KvStore::KvStore(const ArchSpec& spec, int64_t sequences, int64_t context, int64_t source_context)
    : context_(context), layers_(static_cast<int64_t>(spec.layers.size())) {
  const auto source_rows = [&](const LayerSpec& layer) { return layer.cross_attention ? source_context : 0; };
  // Contexts and widths are bounded each, but not their product.
  double size = 0;
  for (const LayerSpec& layer : spec.layers) {
    size += static_cast<double>(record_width(layer.attention)) *
            (static_cast<double>(capacity(layer.attention, context)) + static_cast<double>(source_rows(layer)));
  }
  if (static_cast<double>(sequences) * size > 0x1p60) {
    throw EnvironmentError("memory", "a cache of this context does not fit", "use a shorter --context");
  }
  int64_t floats = 0;
  for (const LayerSpec& layer : spec.layers)
    floats += record_width(layer.attention) * (capacity(layer.attention, context) + source_rows(layer));
  storage_ = Floats(sequences * floats);
  float* at = storage_.data();
  const auto add = [&](std::vector<Ring>& rings, int64_t width, int64_t rows) {
    rings.emplace_back(at, width, rows);
    at += width * rows;
  };
  for (int64_t s = 0; s < sequences; ++s) {
    for (const LayerSpec& layer : spec.layers) {
      add(rings_, record_width(layer.attention), capacity(layer.attention, context));
      add(source_rings_, record_width(layer.attention), source_rows(layer));
    }
  }
}

KvView& KvStore::view(int64_t sequence, int64_t layer) {
  return rings_[static_cast<size_t>(sequence * layers_ + layer)];
}

KvView& KvStore::source_view(int64_t sequence, int64_t layer) {
  return source_rings_[static_cast<size_t>(sequence * layers_ + layer)];
}

void KvStore::clear() {
  for (Ring& ring : rings_) ring.clear();
  for (Ring& ring : source_rings_) ring.clear();
}

std::span<const RecordChunk> KvStore::Ring::chunks() {
  chunks_.clear();
  const int64_t held = std::min(end_, capacity_), first = end_ - held, slot = first % capacity_;
  const int64_t before_wrap = std::min(held, capacity_ - slot);
  if (held > 0) chunks_.push_back({data_ + slot * width_, width_, before_wrap, first});
  if (held > before_wrap) chunks_.push_back({data_, width_, held - before_wrap, first + before_wrap});
  return chunks_;
}

void KvStore::Ring::append(ConstRows records) {
  // Only the last `capacity_` of them can be seen later.
  for (int64_t r = std::max<int64_t>(0, records.rows - capacity_); r < records.rows; ++r) {
    std::memcpy(data_ + (end_ + r) % capacity_ * width_, records.row(r), static_cast<size_t>(width_) * sizeof(float));
  }
  end_ += records.rows;
}

}  // namespace transept
