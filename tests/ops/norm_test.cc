// Norms, of rows and of heads inside them, through the tape against the references in double.
#include "ops/norm.h"

#include "kernels/norm_ref.h"
#include "op_case.h"

namespace transept {
namespace {

struct Kind {
  bool rms, weighted = true;
  float offset = 0;
  bool bias = false;
  const char* name;
};
constexpr Kind kKinds[] = {
    {.rms = true, .name = "RMSNorm"},
    {.rms = true, .offset = 1, .name = "RMSNorm, unit offset"},
    {.rms = true, .weighted = false, .name = "RMSNorm without a weight"},
    {.rms = false, .bias = true, .name = "LayerNorm"},
    {.rms = false, .name = "LayerNorm without a bias"},
    {.rms = false, .weighted = false, .name = "LayerNorm without parameters"},
    {.rms = false, .weighted = false, .bias = true, .name = "LayerNorm without a weight"},
};
constexpr float kEps = 0.1f;  // large enough that its place in the formula matters

// What the reference takes for the weight.
Doubles factors(const Kind& kind, const Values& v, int64_t width) {
  Doubles f(static_cast<size_t>(width), 1.0);
  if (!kind.weighted) return f;
  for (size_t i = 0; i < f.size(); ++i) f[i] = static_cast<double>(kind.offset) + v.params[0][i];
  return f;
}

OpCase norm_case(const Kind& kind, int64_t rows, int64_t width) {
  OpCase c;
  c.name = kind.name + std::string(", ") + std::to_string(rows) + " x " + std::to_string(width);
  c.inputs = {{rows, width, 1.5f, 0.5f}};
  if (kind.weighted) c.params.push_back({width, 1, 0.3f, 1.f});
  if (kind.bias) c.params.push_back({width, 1});
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    const Param weight = kind.weighted ? params.front() : Param{}, bias = kind.bias ? params.back() : Param{};
    return kind.rms ? rms_norm(context, inputs[0], weight, kind.offset, kEps)
                    : layer_norm(context, inputs[0], weight, bias, kEps);
  };
  c.forward = [=](const Values& v) {
    const Doubles weight = factors(kind, v, width);
    if (kind.rms) return ref::rmsnorm(v.inputs[0], weight, kEps);
    return ref::layernorm(v.inputs[0], weight, kind.bias ? v.params.back() : Doubles{}, kEps);
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    const Doubles weight = factors(kind, v, width);
    const ref::NormGradient g = kind.rms ? ref::rmsnorm_backward(dy, v.inputs[0], weight, kEps)
                                         : ref::layernorm_backward(dy, v.inputs[0], weight, kEps);
    Values gradient{{g.dx}, {}};
    if (kind.weighted) gradient.params.push_back(g.dweight);
    if (kind.bias) gradient.params.push_back(g.dbias);
    return gradient;
  };
  return c;
}

TEST(Norm, ReferenceGradientsMatchCentralDifferences) {
  for (const Kind& kind : kKinds) EXPECT_TRUE(reference_gradients_match(norm_case(kind, 3, 7)));
}

TEST(Norm, EqualsTheReference) {
  for (const Kind& kind : kKinds) {
    for (const int64_t rows : {1, 5, 257, 300}) {
      for (const int64_t width : {8, 48, 520, 1030}) check_op(norm_case(kind, rows, width));
    }
  }
}

// More rows than the partial sums of the parameters' gradients have room for at their least size.
TEST(Norm, EqualsTheReferenceWithManyRows) { check_op(norm_case(kKinds[3], 1100, 1030)); }

struct Heads {
  int64_t column, heads, head_dim;
  HeadNormKind kind;
  HeadNormScope scope;
  bool weighted = true;
  float offset = 0;

  int64_t groups() const { return scope == HeadNormScope::kAllHeads ? 1 : heads; }
  int64_t group_width() const { return heads * head_dim / groups(); }
  Operand weight() const {
    if (scope == HeadNormScope::kEachHead) return {heads, head_dim, 0.3f, 1.f};
    return {group_width(), 1, 0.3f, 1.f};
  }
};

// f(heads, index of their weight, first element of a group in x, first element of its weight) for every group.
template <class F>
void for_groups(const std::vector<Heads>& parts, int64_t rows, int64_t width, const F& f) {
  size_t param = 0;
  for (const Heads& h : parts) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < h.groups(); ++i) {
        f(h, param, static_cast<size_t>(r * width + h.column + i * h.group_width()),
          static_cast<size_t>(h.scope == HeadNormScope::kEachHead ? i * h.head_dim : 0));
      }
    }
    param += h.weighted;
  }
}

OpCase heads_case(int64_t rows, int64_t width, const std::vector<Heads>& parts) {
  OpCase c;
  c.name = std::to_string(rows) + " x " + std::to_string(width);
  for (const Heads& h : parts) {
    c.name += ", " + std::to_string(h.heads) + " heads of " + std::to_string(h.head_dim) + " at " +
              std::to_string(h.column) + ", kind " + std::to_string(static_cast<int>(h.kind)) + ", scope " +
              std::to_string(static_cast<int>(h.scope));
  }
  c.inputs = {{rows, width, 1.5f, 0.5f}};
  for (const Heads& h : parts) {
    if (h.weighted) c.params.push_back(h.weight());
  }
  c.in_place = true;
  c.op = [=](const OpContext& context, const std::vector<Var>& inputs, const std::vector<Param>& params) {
    std::vector<HeadNorm> norms;
    size_t param = 0;
    for (const Heads& h : parts) {
      norms.push_back(
          {h.column, h.heads, h.head_dim, h.kind, h.scope, h.weighted ? params[param++] : Param{}, h.offset, kEps});
    }
    normalize_heads_in_place(context, inputs[0], norms);
    return inputs[0];
  };
  const auto weight_of_group = [](const Heads& h, const Values& v, size_t param, size_t first) {
    Doubles weight(static_cast<size_t>(h.group_width()), 1.0);
    if (!h.weighted) return weight;
    for (size_t i = 0; i < weight.size(); ++i) {
      weight[i] = static_cast<double>(h.offset) + v.params[param][first + i];
    }
    return weight;
  };
  c.forward = [=](const Values& v) {
    Doubles y = v.inputs[0];
    for_groups(parts, rows, width, [&](const Heads& h, size_t param, size_t at, size_t first) {
      const std::span<const double> x(v.inputs[0].data() + at, static_cast<size_t>(h.group_width()));
      const Doubles weight = weight_of_group(h, v, param, first);
      const Doubles normed =
          h.kind == HeadNormKind::kRms ? ref::rmsnorm(x, weight, kEps) : ref::layernorm(x, weight, {}, kEps);
      std::copy(normed.begin(), normed.end(), y.begin() + static_cast<int64_t>(at));
    });
    return y;
  };
  c.backward = [=](const Values& v, const Doubles& dy) {
    Values gradient{{dy}, {}};
    for (const Doubles& p : v.params) gradient.params.emplace_back(p.size());
    for_groups(parts, rows, width, [&](const Heads& h, size_t param, size_t at, size_t first) {
      const size_t n = static_cast<size_t>(h.group_width());
      const std::span<const double> x(v.inputs[0].data() + at, n), g(dy.data() + at, n);
      const Doubles weight = weight_of_group(h, v, param, first);
      const ref::NormGradient d = h.kind == HeadNormKind::kRms ? ref::rmsnorm_backward(g, x, weight, kEps)
                                                               : ref::layernorm_backward(g, x, weight, kEps);
      std::copy(d.dx.begin(), d.dx.end(), gradient.inputs[0].begin() + static_cast<int64_t>(at));
      if (!h.weighted) return;
      for (size_t i = 0; i < n; ++i) gradient.params[param][first + i] += d.dweight[i];
    });
    return gradient;
  };
  return c;
}

constexpr HeadNormScope kScopes[] = {HeadNormScope::kHead, HeadNormScope::kEachHead, HeadNormScope::kAllHeads};
constexpr HeadNormKind kHeadKinds[] = {HeadNormKind::kRms, HeadNormKind::kLayer};

TEST(HeadNorm, ReferenceGradientsMatchCentralDifferences) {
  for (const HeadNormScope scope : kScopes) {
    for (const HeadNormKind kind : kHeadKinds) {
      EXPECT_TRUE(
          reference_gradients_match(heads_case(3, 22, {{1, 3, 4, kind, scope}, {14, 2, 3, kind, scope, false}})));
    }
  }
}

TEST(HeadNorm, EqualsTheReferenceInEveryScope) {
  for (const HeadNormScope scope : kScopes) {
    for (const HeadNormKind kind : kHeadKinds) {
      const float offset = kind == HeadNormKind::kRms ? 1.f : 0.f;
      // Queries and keys, the columns after them untouched; more rows than one piece; no weight; odd sizes.
      for (const int64_t rows : {1, 5, 300}) {
        check_op(heads_case(rows, 88, {{0, 6, 8, kind, scope}, {48, 2, 8, kind, scope, true, offset}}));
      }
      check_op(heads_case(300, 1000, {{7, 3, 65, kind, scope}, {300, 5, 128, kind, scope, false}}));
    }
  }
  check_op(heads_case(1100, 600, {{0, 8, 64, HeadNormKind::kRms, HeadNormScope::kHead}}));
}

// The two readings of QK-norm give other values (RMS over each head, or over all heads).
TEST(HeadNorm, OfEachHeadAndOfAllHeadsTogether) {
  const std::vector<float> queries{3, 4, 0, 0, 0, 0, 0, 10}, ones(8, 1.f);
  const auto normalized = [&](HeadNormScope scope, int64_t weights) {
    ThreadPool pool(1);
    Arena arena;
    const Var x = OpContext{pool, arena, nullptr}.make(1, 8);
    std::copy(queries.begin(), queries.end(), x.value.data());
    const HeadNorm norm{.heads = 2, .head_dim = 4, .scope = scope, .weight = {ones.data(), nullptr, weights, 1}};
    normalize_heads_in_place({pool, arena, nullptr}, x, {{norm}});
    return std::vector<float>(x.value.data(), x.value.data() + 8);
  };
  const double all = std::sqrt(125.0 / 8);
  for_each_instruction_set([&] {
    EXPECT_TRUE(close(normalized(HeadNormScope::kHead, 4), Doubles{1.2, 1.6, 0, 0, 0, 0, 0, 2}, tolerance::kKernel));
    EXPECT_TRUE(close(normalized(HeadNormScope::kAllHeads, 8), Doubles{3 / all, 4 / all, 0, 0, 0, 0, 0, 10 / all},
                      tolerance::kKernel));
  });
  EXPECT_DEATH(normalized(HeadNormScope::kHead, 8), "does not hold");
  EXPECT_DEATH(normalized(HeadNormScope::kEachHead, 4), "does not hold");
  EXPECT_DEATH(normalized(HeadNormScope::kAllHeads, 4), "does not hold");
}

}  // namespace
}  // namespace transept
