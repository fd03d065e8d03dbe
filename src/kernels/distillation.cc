// Distillation of rows in four passes: both maxima; the student's and the teacher's sums of exponentials; and the
// gradient, which computes the exponentials again rather than keep them. Teacher and student are both needed in full
// until the last pass.
#include "kernels/distillation.h"

#include <algorithm>
#include <cmath>

#include "kernels/cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/distillation.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/lanes-inl.h"
#include "kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace transept {
namespace HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;

void DistillationRows(Rows logits, float softcap, ConstRows teacher, float weight, const int32_t* targets,
                      float gradient_scale, float* loss) {
  const DF d;
  const int64_t n = logits.width;
  const float inverse_cap = softcap == 0 ? 0 : 1 / softcap;
  for (int64_t r = 0; r < logits.rows; ++r) {
    float* z = logits.row(r);
    if (targets[r] == kIgnoredTarget) {
      loss[r] = 0;
      if (gradient_scale != 0) std::fill_n(z, n, 0.0f);
      continue;
    }
    const float* t = teacher.row(r);
    const float z_max = MaxLanes(d, n, z), t_max = MaxLanes(d, n, t), at_target = z[targets[r]];
    const auto below = [&](const float* x, float maximum, int64_t i, auto part)
                           HWY_ATTR { return hn::Sub(part.Load(d, x + i), hn::Set(d, maximum)); };
    const float z_sum = SumLanes(d, n, [&](int64_t i, auto part, auto& total) HWY_ATTR {
      total = hn::Add(total, part.Fill(d, Exp(d, below(z, z_max, i, part)), 0.0f));
    });
    float t_sum, distance;  // sum_j exp(t_j - t_max), and of that times (t_j - t_max) - (z_j - z_max)
    SumLanesOfTwo(
        d, n,
        [&](int64_t i, auto part, auto& exponentials, auto& distances) HWY_ATTR {
          const auto above = below(t, t_max, i, part);
          const auto e = part.Fill(d, Exp(d, above), 0.0f);
          exponentials = hn::Add(exponentials, e);
          // What the teacher forbids weighs nothing, though its logit be infinite.
          const auto term = hn::Mul(e, hn::Sub(above, below(z, z_max, i, part)));
          distances = hn::Add(distances, hn::IfThenElseZero(hn::Ne(e, hn::Zero(d)), term));
        },
        t_sum, distance);
    // In double: the logarithm is small beside logits of thousands.
    const double log_sum = std::log(static_cast<double>(z_sum));
    const double target_loss = log_sum + (static_cast<double>(z_max) - static_cast<double>(at_target));
    const double divergence =
        static_cast<double>(distance) / static_cast<double>(t_sum) + log_sum - std::log(static_cast<double>(t_sum));
    const double share = static_cast<double>(weight);
    loss[r] = static_cast<float>((share < 1 ? (1 - share) * target_loss : 0) + (share > 0 ? share * divergence : 0));
    if (gradient_scale == 0) continue;
    const auto z_factor = hn::Set(d, gradient_scale / z_sum), t_factor = hn::Set(d, gradient_scale * weight / t_sum);
    // 1 - (v / softcap)^2.
    const auto slope = [&](auto v) HWY_ATTR {
      const auto x = hn::Mul(v, hn::Set(d, inverse_cap));
      return hn::NegMulAdd(x, x, hn::Set(d, 1.0f));
    };
    ForLanes(d, n, [&](int64_t i, auto part) HWY_ATTR {
      const auto p = hn::Mul(Exp(d, below(z, z_max, i, part)), z_factor);
      const auto q = hn::Mul(Exp(d, below(t, t_max, i, part)), t_factor);
      auto g = hn::Sub(p, q);
      if (inverse_cap != 0) g = hn::Mul(g, slope(part.Load(d, z + i)));
      part.Store(g, d, z + i);
    });
    const float hard = gradient_scale * (1 - weight);
    z[targets[r]] -= inverse_cap != 0 ? hard * hn::GetLane(slope(hn::Set(d, at_target))) : hard;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace transept
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace transept {

HWY_EXPORT(DistillationRows);

void distillation_rows(Rows logits, float softcap, ConstRows teacher, float weight, const int32_t* targets,
                       float gradient_scale, float* loss) {
  HWY_DYNAMIC_DISPATCH(DistillationRows)(logits, softcap, teacher, weight, targets, gradient_scale, loss);
}

}  // namespace transept
#endif
