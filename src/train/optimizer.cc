#include "train/optimizer.h"

#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/adamw.h"
#include "kernels/elementwise.h"
#include "ops/parallel.h"

namespace transept {
namespace {
// torch.nn.utils.clip_grad_norm_ adds this to the norm it divides by; equal training needs the equal constant.
constexpr double kClipEps = 1e-6;
}  // namespace

AdamW::AdamW(Parameters& parameters, const AdamWOptions& options)
    : parameters_(parameters), options_(options), m_(parameters.block_size()), v_(parameters.block_size()) {
  TRANSEPT_CHECK(!parameters.gradients().empty());
}

double AdamW::gradient_norm(ThreadPool& pool) {
  const std::span<const float> g = parameters_.gradients();
  const int64_t n = static_cast<int64_t>(g.size());
  std::vector<double> sums(static_cast<size_t>((n + kFlatPiece - 1) / kFlatPiece));
  for_flat(pool, n, [&](int64_t begin, int64_t count) {
    sums[static_cast<size_t>(begin / kFlatPiece)] = sum_of_squares(g.data() + begin, count);
  });
  double total = 0;
  for (const double s : sums) total += s;
  return std::sqrt(total);
}

void AdamW::step(ThreadPool& pool, double lr, double norm) {
  ++steps_;
  AdamWStep step;
  step.lr = static_cast<float>(lr);
  step.beta1 = static_cast<float>(options_.beta1);
  step.beta2 = static_cast<float>(options_.beta2);
  step.eps = static_cast<float>(options_.eps);
  step.bias_correction1 = static_cast<float>(1 - std::pow(options_.beta1, static_cast<double>(steps_)));
  step.bias_correction2 = static_cast<float>(1 - std::pow(options_.beta2, static_cast<double>(steps_)));
  if (options_.clip_norm > 0 && norm + kClipEps > options_.clip_norm)
    step.gradient_scale = static_cast<float>(options_.clip_norm / (norm + kClipEps));
  struct Piece {
    int64_t begin, count;
    float weight_decay;
  };
  std::vector<Piece> pieces;
  for (const Parameters::Entry& e : parameters_.entries()) {
    const float decay = e.decl.decays() ? static_cast<float>(options_.weight_decay) : 0.f;
    for (int64_t at = 0; at < e.size; at += kFlatPiece)
      pieces.push_back({e.offset + at, std::min(kFlatPiece, e.size - at), decay});
  }
  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t i, int) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    AdamWStep mine = step;
    mine.weight_decay = piece.weight_decay;
    adamw_update(mine, piece.count, parameters_.gradients().data() + piece.begin, m_.data() + piece.begin,
                 v_.data() + piece.begin, parameters_.values().data() + piece.begin);
  });
}

}  // namespace transept
