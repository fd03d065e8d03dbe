#include "infer/kv_store.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
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
  places_.resize(static_cast<size_t>(sequences));
  clear();
  for (int64_t s = 0; s < sequences; ++s) {
    for (const LayerSpec& layer : spec.layers) {
      add(rings_, record_width(layer.attention), capacity(layer.attention, context));
      add(source_rings_, record_width(layer.attention), source_rows(layer));
    }
  }
}

KvView& KvStore::view(int64_t sequence, int64_t layer) {
  return rings_[ring(places_[static_cast<size_t>(sequence)], layer)];
}

KvView& KvStore::source_view(int64_t sequence, int64_t layer) {
  return source_rings_[ring(source_places_[static_cast<size_t>(sequence)], layer)];
}

void KvStore::clear() {
  for (Ring& ring : rings_) ring.clear();
  for (Ring& ring : source_rings_) ring.clear();
  std::iota(places_.begin(), places_.end(), 0);
  source_places_ = places_;
}

void KvStore::reorder(std::span<const int64_t> from) {
  const size_t sequences = places_.size();
  TRANSEPT_CHECK(from.size() <= sequences);
  constexpr int64_t kNone = -1;
  // The first to go on from a sequence takes its place.
  std::vector<int64_t> places(sequences, kNone), source_places = source_places_;
  std::vector<bool> taken(sequences);
  for (size_t s = 0; s < from.size(); ++s) {
    const size_t parent = static_cast<size_t>(from[s]);
    TRANSEPT_CHECK(parent < sequences);
    source_places[s] = source_places_[parent];
    const int64_t place = places_[parent];
    if (taken[static_cast<size_t>(place)]) continue;
    taken[static_cast<size_t>(place)] = true;
    places[s] = place;
  }
  size_t free = 0;
  for (size_t s = 0; s < sequences; ++s) {
    if (places[s] != kNone) continue;
    while (taken[free]) ++free;
    places[s] = static_cast<int64_t>(free++);
    for (int64_t layer = 0; layer < layers_; ++layer) {
      Ring& to = rings_[ring(places[s], layer)];
      if (s < from.size()) {
        to.copy_from(rings_[ring(places_[static_cast<size_t>(from[s])], layer)]);
      } else {
        to.clear();
      }
    }
  }
  places_ = std::move(places);
  source_places_ = std::move(source_places);
}

void KvStore::Ring::copy_from(const Ring& other) {
  std::memcpy(data_, other.data_, static_cast<size_t>(std::min(other.end_, capacity_) * width_) * sizeof(float));
  end_ = other.end_;
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
