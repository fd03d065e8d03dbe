#include "nn/parameters.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "ops/parallel.h"

namespace transept {
namespace {

constexpr int64_t kLineFloats = 16;

// FNV-1a: gives each parameter a stream of its own, whatever else the model declares.
uint32_t name_hash(std::string_view name) {
  uint32_t h = 2166136261u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

}  // namespace

bool may_stay_stored(const ParamDecl& decl) {
  return decl.shape.size() == 2 && !decl.use.whole && decl.part != Part::kPosition;
}

Parameters::Parameters(const ArchSpec& spec, StoredMatrices stored) : stored_(std::move(stored)) {
  int64_t offset = 0;
  const ParamList declared = spec.declare();
  for (const ParamDecl& decl : declared.decls()) {
    int64_t size = 1;
    for (const int64_t extent : decl.shape) size *= extent;
    by_name_[decl.name] = entries_.size();
    count_ += size;
    if (const auto at = stored_.by_name.find(decl.name); at != stored_.by_name.end()) {
      TRANSEPT_CHECK(may_stay_stored(decl));
      entries_.push_back({decl, 0, size, &at->second});
      continue;
    }
    entries_.push_back({decl, offset, size});
    offset += (size + kLineFloats - 1) / kLineFloats * kLineFloats;
  }
  values_ = Floats(offset);
}

void Parameters::enable_gradients() {
  TRANSEPT_CHECK(stored_.by_name.empty());
  if (gradients_.size() == 0) gradients_ = Floats(values_.size());
}

void Parameters::zero_gradients(ThreadPool& pool) {
  for_flat(pool, gradients_.size(),
           [&](int64_t begin, int64_t count) { std::fill_n(gradients_.data() + begin, count, 0.f); });
}

const Parameters::Entry* Parameters::find(std::string_view name) const {
  const auto at = by_name_.find(std::string(name));
  return at == by_name_.end() ? nullptr : &entries_[at->second];
}

Param Parameters::param(std::string_view name) const {
  const Entry* e = find(name);
  if (!e) return {};
  const std::vector<int64_t>& shape = e->decl.shape;
  if (e->stored) return {nullptr, nullptr, shape[0], shape[1], e->stored->rows, e->stored->dtype};
  return {values_.data() + e->offset, gradients_.size() ? gradients_.data() + e->offset : nullptr, shape[0],
          shape.size() > 1 ? shape[1] : 1};
}

void Parameters::initialize(const ArchSpec& spec, uint64_t seed, ThreadPool& pool) {
  const auto sublayers = [](const StackSpec& stack) {
    int64_t n = 0;
    for (const LayerSpec& layer : stack.layers) n += layer.sublayers();
    return static_cast<double>(std::max<int64_t>(1, n));
  };
  TRANSEPT_CHECK(stored_.by_name.empty());
  for (const Entry& e : entries_) {
    float* to = values_.data() + e.offset;
    if (e.decl.init == Init::kZeros || e.decl.init == Init::kOnes) {
      std::fill_n(to, e.size, e.decl.init == Init::kOnes ? 1.f : 0.f);
      continue;
    }
    double sd = spec.initializer_range;
    if (e.decl.init == Init::kNormalResidual) sd /= std::sqrt(sublayers(e.decl.encoder ? spec.encoder : spec));
    const CounterRng rng(seed, Stream::kInit, name_hash(e.decl.name));
    for_flat(pool, e.size, [&](int64_t begin, int64_t count) {
      for (int64_t i = begin; i < begin + count; ++i)
        to[i] = static_cast<float>(sd * rng.normal(static_cast<uint64_t>(i)));
    });
  }
}

}  // namespace transept
