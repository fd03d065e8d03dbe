#include "plan/published.h"

#include <algorithm>
#include <bit>

#include "base/problem.h"
#include "plan/count.h"
#include "plan/parameters.h"

namespace transept {
namespace {

constexpr int64_t kScaledBlock = 128;  // rows and columns that share an FP8 scale (arXiv:2412.19437 section 3.3.2)

int64_t blocks(int64_t n) { return (n + kScaledBlock - 1) / kScaledBlock; }

// Elements that turn, of a layer's rotary positions.
int64_t rotary_width(const LayerSpec& layer) {
  if (!std::holds_alternative<RopePosition>(layer.position)) return 0;
  return std::visit([](const auto& a) { return a.rotary_dim(); }, layer.attention);
}

// Scales of a layer's matrices: each projection and each expert by itself; the router is not quantized.
Count scales_of(const ParamDecl& decl, const LayerSpec& layer) {
  if (decl.shape.size() != 2 || decl.name.ends_with("router.weight") || decl.name.ends_with("gate.weight")) return {};
  std::vector<int64_t> rows = {decl.shape[0] / decl.experts};
  if (decl.name.ends_with("gate_up.weight")) rows.assign(2, rows[0] / 2);
  if (const auto* gqa = std::get_if<GqaSpec>(&layer.attention); gqa && decl.name.ends_with("attention.qkv.weight"))
    rows = {gqa->query_width(), gqa->kv_width(), gqa->kv_width()};
  Count scales;
  for (const int64_t n : rows) scales += Count(decl.experts) * blocks(n) * blocks(decl.shape[1]);
  return scales;
}

}  // namespace

std::vector<CountDifference> known_differences(const ArchSpec& spec) {
  const ParameterCounts p = count_parameters(spec);
  const int64_t hidden = spec.hidden_size, table = (Count(spec.vocab_size) * hidden).value();
  std::vector<CountDifference> all;
  const auto add = [&](std::string what, int64_t elements) {
    if (elements != 0) all.push_back({std::move(what), elements});
  };
  if (spec.tie_word_embeddings) add("the tied head stored a second time", table);
  add("the embedding table left out", -p.embedding);
  add("tables of positions left out", -p.position);
  add("the pooler left out", -p.pooler);
  add("the head left out", -p.head);

  Count frequencies, masks, scales, last_scales, last_layer;
  const auto last = static_cast<int64_t>(spec.layers.size()) - 1;
  for (const LayerSpec& layer : spec.layers) frequencies += rotary_width(layer) / 2;
  for (const ParamDecl& decl : spec.declare().decls()) {
    if (decl.layer < 0 || decl.encoder) continue;
    const Count own = scales_of(decl, spec.layers[static_cast<size_t>(decl.layer)]);
    scales += own;
    if (decl.layer == last) last_scales += own, last_layer += elements(decl);
  }
  if (spec.topology == Topology::kDecoder)
    masks = Count(last + 1) * spec.max_position_embeddings * spec.max_position_embeddings;
  add("rotary frequencies kept as a buffer of each layer", frequencies.value());
  add("causal masks kept as a buffer of each layer", masks.value());
  if (spec.topology != Topology::kDecoder) return all;
  // arXiv:2412.19437 section 2.2: the two inputs' norms, their projection, one more layer, and the output's norm.
  const Count further = last_layer + Count(2) * hidden * hidden + Count(3) * hidden;
  add("a layer that predicts one further token (MTP)", further.value());
  add("that layer's own copies of embedding and head", (Count(2) * table).value());
  add("FP8 scales of 128 x 128 blocks", scales.value());
  add("FP8 scales of the further layer", last_scales.value());
  return all;
}

PublishedCount explain_count(const ArchSpec& spec, int64_t published) {
  if (published < 1) throw InputError("published", "got " + std::to_string(published), "give a count of parameters");
  PublishedCount result;
  result.published = published;
  result.counted = count_parameters(spec).total;
  const std::vector<CountDifference> known = known_differences(spec);
  const int64_t wanted = published - result.counted;
  // A dozen candidates at most, so all sets of them are few.
  uint32_t best = 0;
  for (uint32_t set = 0; set < (uint32_t{1} << known.size()); ++set) {
    int64_t sum = 0;
    for (size_t i = 0; i < known.size(); ++i) sum += (set >> i & 1) ? known[i].elements : 0;
    if (sum != wanted || (result.explained && std::popcount(set) >= std::popcount(best))) continue;
    result.explained = true;
    best = set;
  }
  for (size_t i = 0; i < known.size(); ++i) {
    if (best >> i & 1) result.parts.push_back(known[i]);
  }
  return result;
}

}  // namespace transept
