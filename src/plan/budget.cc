#include "plan/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/format_number.h"
#include "base/problem.h"
#include "base/quantity.h"

namespace transept {
namespace {

struct Kind {
  const char* name;
  double Budget::* member;
  bool bytes;
};
constexpr Kind kKinds[] = {{"parameters", &Budget::parameters, false},
                           {"active", &Budget::active_parameters, false},
                           {"flops", &Budget::training_flops, false},
                           {"training-memory", &Budget::training_memory, true},
                           {"memory", &Budget::inference_memory, true}};

double need_of(const Plan& plan, const Kind& kind) {
  if (kind.member == &Budget::parameters) return static_cast<double>(plan.parameters.total);
  if (kind.member == &Budget::active_parameters) return static_cast<double>(plan.parameters.active);
  if (kind.member == &Budget::training_flops) return plan.chinchilla.train_flops_counted;
  if (kind.member == &Budget::training_memory) return static_cast<double>(plan.memory.peak_training);
  return static_cast<double>(plan.memory.peak_inference);
}

// The share of the tightest budget; above 1: it does not fit.
double use_of(const Plan& plan, const Budget& budget) {
  double most = 0;
  for (const Kind& kind : kKinds) {
    if (const double allowed = budget.*kind.member; allowed > 0) most = std::max(most, need_of(plan, kind) / allowed);
  }
  return most;
}

int64_t scaled(int64_t value, double ratio, int64_t multiple) {
  const double exact = static_cast<double>(value) * ratio / static_cast<double>(multiple);
  return std::max<int64_t>(1, std::llround(exact)) * multiple;
}

int64_t heads_of(const LayerSpec& layer) {
  return std::visit([](const auto& a) { return a.num_attention_heads; }, layer.attention);
}

// The shortest run of layers that, repeated, gives the stack behind its first layers that have no experts.
struct Pattern {
  size_t first = 0, period = 1;
};
Pattern pattern_of(const ArchSpec& spec) {
  std::vector<LayerGroup> each;
  for (const LayerGroup& g : count_parameters(spec).layers) {
    if (g.encoder) continue;
    LayerGroup one = g;
    one.first = 0, one.count = 1;
    each.insert(each.end(), static_cast<size_t>(g.count), one);
  }
  Pattern p;
  while (p.first < each.size() && spec.layers.back().moe && !spec.layers[p.first].moe) ++p.first;
  for (const size_t n = each.size() - p.first; p.period < n; ++p.period) {
    bool repeats = true;
    for (size_t i = p.first + p.period; i < each.size() && repeats; ++i) repeats = each[i] == each[i - p.period];
    if (repeats) break;
  }
  return p;
}

class Search {
 public:
  Search(const ArchSpec& base, const Budget& budget, const PlanOptions& options)
      : base_(base), budget_(budget), options_(options), pattern_(pattern_of(base)) {
    heads_ = heads_of(base.layers.back());
    head_width_ = static_cast<double>(base.hidden_size) / static_cast<double>(heads_);
    for (const LayerSpec& layer : base.layers) {
      if (const auto* gqa = std::get_if<GqaSpec>(&layer.attention); gqa && gqa->num_key_value_heads > 1)
        step_ = std::lcm(step_, gqa->num_attention_heads / gqa->num_key_value_heads);
    }
  }

  // A model of so many heads, layers and experts.
  ArchSpec shape(int64_t layers, int64_t heads, int64_t experts) const {
    ArchSpec spec = base_;
    const double ratio = static_cast<double>(heads) / static_cast<double>(heads_);
    const int64_t multiple = std::max<int64_t>(1, static_cast<int64_t>(head_width_));
    spec.hidden_size = head_width_ == std::floor(head_width_) ? heads * multiple : scaled(base_.hidden_size, ratio, 8);
    const double width = static_cast<double>(spec.hidden_size) / static_cast<double>(base_.hidden_size);
    const auto resize = [&](LayerSpec layer) {
      std::visit([&](auto& a) { resize_attention(a, ratio, width); }, layer.attention);
      layer.ffn.intermediate_size = scaled(layer.ffn.intermediate_size, width, 16);
      if (layer.moe) {
        layer.moe.num_experts = experts;
        layer.moe.moe_intermediate_size = scaled(layer.moe.moe_intermediate_size, width, 16);
        if (layer.moe.has_shared())
          layer.moe.shared_expert_intermediate_size = scaled(layer.moe.shared_expert_intermediate_size, width, 16);
      }
      return layer;
    };
    const auto deepen = [&](const std::vector<LayerSpec>& from, const Pattern& pattern, size_t count) {
      std::vector<LayerSpec> to;
      for (size_t i = 0; i < count; ++i) {
        const size_t at = i < pattern.first ? i : pattern.first + (i - pattern.first) % pattern.period;
        to.push_back(resize(from[at]));
      }
      return to;
    };
    spec.layers = deepen(base_.layers, pattern_, static_cast<size_t>(layers));
    if (base_.encoder_decoder()) spec.encoder.layers = deepen(base_.encoder.layers, {}, static_cast<size_t>(layers));
    return spec;
  }

  Candidate candidate(int64_t layers, int64_t heads, int64_t experts) const {
    Candidate c;
    c.spec = shape(layers, heads, experts);
    c.plan = make_plan(c.spec, options_);
    c.used = use_of(c.plan, budget_);
    return c;
  }

  Candidate smallest(int64_t layers, int64_t experts) const { return candidate(layers, step_, experts); }

  // The widest that fits; nothing when the smallest does not.
  std::optional<Candidate> widest(int64_t layers, int64_t experts) const {
    Candidate best = smallest(layers, experts);
    if (best.used > 1) return std::nullopt;
    int64_t low = 1, high = 2;
    constexpr int64_t kMostHeads = 1024;
    while (high * step_ < kMostHeads) {
      Candidate c = candidate(layers, high * step_, experts);
      if (c.used > 1) break;
      best = std::move(c);
      low = high;
      high *= 2;
    }
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      Candidate c = candidate(layers, middle * step_, experts);
      if (c.used > 1) {
        high = middle;
      } else {
        best = std::move(c);
        low = middle;
      }
    }
    return best;
  }

  std::vector<int64_t> expert_counts() const {
    const MoeSpec& moe = base_.layers.back().moe;
    if (!moe) return {0};
    std::vector<int64_t> counts;
    for (const int64_t quarter : {1, 2, 4, 8, 16}) {
      const int64_t n = moe.num_experts * quarter / 4;
      if (n >= moe.num_experts_per_tok && n % moe.n_group == 0 && n <= 65536) counts.push_back(n);
    }
    return counts;
  }

  // How far a shape is from the base's ratio of width to depth.
  double strangeness(const Candidate& c) const {
    const auto aspect = [](const ArchSpec& s) {
      return static_cast<double>(s.hidden_size) / static_cast<double>(s.layers.size());
    };
    return std::abs(std::log(aspect(c.spec) / aspect(base_)));
  }

 private:
  static void resize_attention(GqaSpec& a, double ratio, double) {
    const int64_t group = a.num_attention_heads / a.num_key_value_heads;
    a.num_attention_heads = scaled(a.num_attention_heads, ratio, 1);
    if (a.num_key_value_heads > 1) a.num_key_value_heads = std::max<int64_t>(1, a.num_attention_heads / group);
  }
  static void resize_attention(MlaSpec& a, double ratio, double width) {
    a.num_attention_heads = scaled(a.num_attention_heads, ratio, 1);
    if (a.q_lora_rank > 0) a.q_lora_rank = scaled(a.q_lora_rank, width, 16);
  }

  const ArchSpec& base_;
  const Budget& budget_;
  const PlanOptions& options_;
  Pattern pattern_;
  int64_t heads_ = 1;
  int64_t step_ = 1;       // heads come in whole groups of a KV head
  double head_width_ = 1;  // of hidden_size, a head
};

// Depths worth a look: all up to 64, then every eighth.
std::vector<int64_t> depths(size_t least) {
  std::vector<int64_t> all;
  for (int64_t layers = 1; layers <= 256; layers += layers < 64 ? 1 : 8) {
    if (layers >= static_cast<int64_t>(least)) all.push_back(layers);
  }
  return all;
}

[[noreturn]] void refuse(const Candidate& smallest, const Budget& budget) {
  Problems problems;
  for (const Kind& kind : kKinds) {
    const double allowed = budget.*kind.member, need = need_of(smallest.plan, kind);
    if (allowed <= 0 || need <= allowed) continue;
    const auto amount = [&](double x) { return kind.bytes ? format_bytes(x) : format_number(x); };
    problems.push_back(
        {std::string("budget ") + kind.name,
         fmt::format("the smallest model of this form, {} layers of width {}, needs {}, and {} is allowed",
                     smallest.spec.layers.size(), smallest.spec.hidden_size, amount(need), amount(allowed)),
         "allow more, or start from a model with a smaller vocabulary or other parts"});
  }
  throw InputError(std::move(problems));
}

}  // namespace

Budget parse_budget(const std::vector<std::string>& texts) {
  Budget budget;
  Problems problems;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals),
                      amount = equals == std::string::npos ? "" : text.substr(equals + 1);
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) { return k.name == name; });
    if (kind == std::end(kKinds)) {
      problems.push_back({"budget", "\"" + name + "\" is no budget",
                          "allowed: parameters=N, active=N, flops=C, training-memory=BYTES, memory=BYTES"});
      continue;
    }
    const std::optional<double> value = kind->bytes ? parse_bytes(amount) : parse_quantity(amount);
    if (!value) {
      problems.push_back({"budget " + name, "\"" + amount + "\" is no positive amount",
                          kind->bytes ? "say 24GiB, or 80GB" : "say 7B, 350M or 1e21"});
    } else if (budget.*kind->member > 0) {
      problems.push_back({"budget " + name, "is given twice", "leave one out"});
    } else {
      budget.*kind->member = *value;
    }
  }
  throw_if_any(std::move(problems));
  return budget;
}

std::vector<Candidate> search_budget(const ArchSpec& base, const Budget& budget, const PlanOptions& options,
                                     size_t most) {
  const Search search(base, budget, options);
  const std::vector<int64_t> tried = depths(pattern_of(base).first + 1), experts = search.expert_counts();
  std::vector<Candidate> found;
  for (const int64_t layers : tried) {
    for (const int64_t count : experts) {
      if (auto c = search.widest(layers, count)) found.push_back(std::move(*c));
    }
  }
  if (found.empty()) refuse(search.smallest(tried.front(), experts.front()), budget);

  double best = 0;
  for (const Candidate& c : found) best = std::max(best, c.used);
  std::stable_sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
    const bool well_a = a.used >= kWellUsed * best, well_b = b.used >= kWellUsed * best;
    if (well_a != well_b) return well_a;
    return well_a ? search.strangeness(a) < search.strangeness(b) : a.used > b.used;
  });
  if (found.size() > most) found.resize(most);
  // What is handed out has passed the reader's checks.
  for (Candidate& c : found) {
    c.spec.name = fmt::format("{}-{}x{}", base.name, c.spec.layers.size(), c.spec.hidden_size);
    c.spec.description.clear();
    c.spec = spec_from_json(spec_to_json(c.spec), c.spec.name);
    c.plan = make_plan(c.spec, options);
  }
  return found;
}

}  // namespace transept
