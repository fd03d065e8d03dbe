#include "train/trainer.h"

#include <cmath>

#include "base/check.h"
#include "base/problem.h"
#include "kernels/elementwise.h"
#include "ops/parallel.h"
#include "train/batch_call.h"

namespace transept {
namespace {

bool finite(ConstRows x) {
  for (int64_t r = 0; r < x.rows; ++r) {
    if (!all_finite(x.row(r), x.width)) return false;
  }
  return true;
}

}  // namespace

Trainer::Trainer(Model& model, ThreadPool& pool, const TrainerOptions& options)
    : model_(model), pool_(pool), options_(options), optimizer_(model.parameters(), options.adamw) {
  TRANSEPT_CHECK(!options.teacher.model || options.teacher.model->spec().vocab_size == model.spec().vocab_size);
}

LossTeacher Trainer::teacher_of(const Batch& batch) {
  const auto [model, weight] = options_.teacher;
  if (!model || weight == 0) return {};
  const OpContext op = inference_context();
  return {static_cast<float>(weight), [=, hidden = model->hidden(op, call_of(batch))](int64_t first, Rows out) {
            model->logits(op, ConstRows(hidden.view()).slice(first, out.rows), out);
          }};
}

StepResult Trainer::accumulate(std::span<const Batch> micro_batches, uint64_t first_pass) {
  StepResult result;
  for (const Batch& b : micro_batches) {
    result.tokens += b.target_count;
    result.rows += b.rows();
  }
  TRANSEPT_CHECK(result.tokens > 0);
  const float scale = static_cast<float>(1.0 / static_cast<double>(result.tokens));
  model_.parameters().zero_gradients(pool_);
  double nats = 0;
  for (const Batch& b : micro_batches) {
    Tape tape;
    const OpContext op{pool_, arena_, &tape};
    const double share = static_cast<double>(b.target_count) / static_cast<double>(result.tokens);
    RouterPass routers{.weight = static_cast<float>(share), .statistics = {}};
    {
      const LossTeacher teacher = teacher_of(b);
      const Var h = model_.hidden(
          op, {.tokens = b.tokens,
               .layout = b.layout,
               .source_tokens = b.source_tokens,
               .source_layout = b.source_layout,
               .dropout = {static_cast<float>(model_.spec().dropout), options_.dropout_seed, first_pass++},
               .recompute = options_.recompute,
               .observe = {},
               .routers = &routers});
      nats += model_.loss(op, h, b.targets, scale, {}, teacher).nats;
    }
    tape.backward();
    add_batch(routers.statistics, share, result.routers);
  }
  TRANSEPT_CHECK(arena_.live_bytes() == 0);
  result.loss = nats / static_cast<double>(result.tokens);
  return result;
}

StepResult Trainer::step(std::span<const Batch> micro_batches, uint64_t first_pass, double lr) {
  StepResult result = accumulate(micro_batches, first_pass);
  result.gradient_norm = optimizer_.gradient_norm(pool_);
  if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm)) {
    throw EnvironmentError(find_divergence(micro_batches, first_pass), "is not finite any more: training has diverged",
                           "lower the learning rate, lengthen the warm-up, or clip harder");
  }
  optimizer_.step(pool_, lr, result.gradient_norm);
  update_selection_biases(result.routers, model_);
  return result;
}

std::string Trainer::find_divergence(std::span<const Batch> micro_batches, uint64_t first_pass) {
  Parameters& parameters = model_.parameters();
  for (const Parameters::Entry& e : parameters.entries()) {
    if (!all_finite(parameters.values(e).data(), e.size)) return "parameter " + e.decl.name;
  }
  for (const Batch& b : micro_batches) {
    std::string place;
    const OpContext op{pool_, arena_, nullptr};
    const Var h =
        model_.hidden(op, {.tokens = b.tokens,
                           .layout = b.layout,
                           .source_tokens = b.source_tokens,
                           .source_layout = b.source_layout,
                           .dropout = {static_cast<float>(model_.spec().dropout), options_.dropout_seed, first_pass++},
                           .observe = [&](std::string_view part, int64_t layer, ConstRows x) {
                             if (place.empty() && !finite(x))
                               place = "layer " + std::to_string(layer) + ", " + std::string(part);
                           }});
    if (place.empty() && !finite(h.view())) place = "final norm";
    if (!place.empty()) return place;
  }
  // The forward pass is sound: gradients overflowed on their way back, so the last layer that has such a gradient is
  // where it began.
  for (auto e = parameters.entries().rbegin(); e != parameters.entries().rend(); ++e) {
    if (!all_finite(parameters.gradients(*e).data(), e->size)) return "gradient of " + e->decl.name;
  }
  return "loss";
}

}  // namespace transept
