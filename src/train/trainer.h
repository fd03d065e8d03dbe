// One optimization step: forward and backward over the micro-batches, then the update. The loss is the mean over all
// scored tokens of the step, so that any split into micro-batches is, by definition, the one big batch. The balance
// losses of routers are those of each micro-batch, weighted by its scored tokens; `loss` does not hold them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/batch.h"
#include "nn/model.h"
#include "train/optimizer.h"
#include "train/routers.h"

namespace transept {

struct StepResult {
  double loss = 0;           // nats a token, mean over the scored tokens; a teacher's share with it
  double gradient_norm = 0;  // before clipping
  int64_t tokens = 0;        // scored
  int64_t rows = 0;          // read, by all stacks
  RouterLoads routers;       // of the layers with experts
};

// A model of the same vocabulary and stacks that the loss is also taken against (kernels/distillation.h): with
// `weight`, in [0, 1], its divergence from the teacher, and with the rest the text's.
struct Teacher {
  const Model* model = nullptr;  // null: none
  double weight = 0;
};

struct TrainerOptions {
  AdamWOptions adamw;
  uint64_t dropout_seed = 0;
  Recompute recompute = Recompute::kNone;
  Teacher teacher = {};
};

class Trainer {
 public:
  // The model must be trainable.
  Trainer(Model& model, ThreadPool& pool, const TrainerOptions& options);

  // Loss and gradients of these micro-batches, without an update. `first_pass` numbers their forward passes for
  // dropout.
  StepResult accumulate(std::span<const Batch> micro_batches, uint64_t first_pass);
  // accumulate, then the update; EnvironmentError naming the layer, with parameters and moments untouched, when loss or
  // gradients are not finite.
  StepResult step(std::span<const Batch> micro_batches, uint64_t first_pass, double lr);

  AdamW& optimizer() { return optimizer_; }
  // For passes without gradients between steps, in the memory that steps use.
  OpContext inference_context() { return {pool_, arena_, nullptr}; }
  size_t activation_peak_bytes() const { return arena_.peak_bytes(); }

 private:
  // What the teacher makes of the batch; holds its hidden states.
  LossTeacher teacher_of(const Batch& batch);
  // Where the first value that is not finite appears: "layer 3, ffn", ...
  std::string find_divergence(std::span<const Batch> micro_batches, uint64_t first_pass);

  Model& model_;
  ThreadPool& pool_;
  TrainerOptions options_;
  Arena arena_;
  AdamW optimizer_;
};

}  // namespace transept
