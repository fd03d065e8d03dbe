#include "plan/variants.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "plan/parameters.h"

namespace transept {
namespace {

int64_t quarter_of(int64_t heads) {
  int64_t best = 1;
  for (int64_t d = 1; d <= heads; ++d) {
    if (heads % d == 0 && std::abs(4 * d - heads) <= std::abs(4 * best - heads)) best = d;
  }
  return best;
}

// What grouped attention of the same heads looks like; of latent attention, with the width of its values.
GqaSpec grouped(const AttentionSpec& any) {
  if (const auto* gqa = std::get_if<GqaSpec>(&any)) return *gqa;
  const auto& mla = std::get<MlaSpec>(any);
  GqaSpec gqa;
  gqa.num_attention_heads = gqa.num_key_value_heads = mla.num_attention_heads;
  gqa.head_dim = mla.v_head_dim;
  gqa.sliding_window = mla.sliding_window;
  return gqa;
}

AttentionSpec latent(const AttentionSpec& any) {
  if (std::holds_alternative<MlaSpec>(any)) return any;
  const auto& gqa = std::get<GqaSpec>(any);
  MlaSpec mla;
  mla.num_attention_heads = gqa.num_attention_heads;
  mla.kv_lora_rank = 4 * gqa.head_dim;
  mla.qk_nope_head_dim = mla.v_head_dim = gqa.head_dim;
  mla.qk_rope_head_dim = std::max<int64_t>(2, gqa.head_dim / 4 * 2);
  mla.sliding_window = gqa.sliding_window;
  return mla;
}

}  // namespace

std::vector<Variant> attention_variants(const ArchSpec& spec) {
  std::vector<Variant> all;
  const auto add = [&](const char* name, const std::function<void(AttentionSpec&)>& change) {
    ArchSpec changed = spec;
    for (LayerSpec& layer : changed.layers) change(layer.attention);
    changed.name = spec.name + ", " + name;
    try {
      all.push_back({name, spec_from_json(spec_to_json(changed), name)});
    } catch (const InputError&) {  // the model's other parts do not allow it
    }
  };
  const auto kv_heads = [&](auto count) {
    return [count](AttentionSpec& a) {
      GqaSpec gqa = grouped(a);
      gqa.num_key_value_heads = count(gqa);
      a = gqa;
    };
  };
  add("mha", kv_heads([](const GqaSpec& a) { return a.num_attention_heads; }));
  add("gqa", kv_heads([](const GqaSpec& a) {
        const bool already = a.num_key_value_heads > 1 && a.num_key_value_heads < a.num_attention_heads;
        return already ? a.num_key_value_heads : quarter_of(a.num_attention_heads);
      }));
  add("mqa", kv_heads([](const GqaSpec&) { return int64_t{1}; }));
  if (!spec.encoder_decoder()) add("mla", [](AttentionSpec& a) { a = latent(a); });
  int64_t window = 0;
  for (const LayerSpec& layer : spec.layers) window = std::max(window, window_of(layer));
  constexpr int64_t kUsual = 4096;
  if (window == 0) window = std::max<int64_t>(1, std::min(kUsual, spec.max_position_embeddings / 4));
  add("window", [window](AttentionSpec& a) { std::visit([&](auto& kind) { kind.sliding_window = window; }, a); });
  return all;
}

}  // namespace transept
