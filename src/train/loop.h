// The training loop: batches, steps, evaluation, samples, checkpoints, metrics. What a run computes is a pure function
// of its configuration and data: batches and dropout masks are drawn by counter, so a run that is stopped and resumed
// ends with the same bits as one that was not.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/sampler.h"
#include "train/checkpoint.h"
#include "train/progress.h"
#include "train/schedule.h"
#include "train/trainer.h"

namespace transept {

struct TrainConfig {
  int64_t context = 256;     // tokens of a sequence
  int64_t batch = 16;        // sequences of a micro-batch
  int64_t accumulation = 1;  // micro-batches of a step
  Schedule schedule;         // total_steps: how many steps the run has
  AdamWOptions adamw;
  ExampleOptions examples;
  uint64_t seed = 0;
  Recompute recompute = Recompute::kNone;

  int64_t eval_every = 250;        // steps; 0: only at the end
  int64_t eval_tokens = 65536;     // of the held-out part, at the evaluations on the way; the last one takes all of it
  int64_t sample_every = 0;        // steps; 0: only at the end
  int64_t checkpoint_every = 250;  // steps; 0: only at the end

  // The options by name, once for flags, checkpoint and comparison: v(name, member, what it is, fixed). A fixed one
  // determines the numbers, so a resumed run cannot change it; `steps` may grow, as a person would expect.
  template <class V>
  void fields(V& v) {
    v("objective", examples.objective,
      "causal, mlm, span, denoise or seq2seq (default: a decoder causal, an encoder mlm, both seq2seq where the data "
      "are "
      "pairs, else span)",
      true);
    v("separate-documents", examples.separate_documents, "files that share a window do not see each other", true);
    v("permute-sentences", examples.permute_sentences, "denoise: sentences come in random order as well", true);
    v("context", context, "tokens of a sequence (default: the spec's longest, at most 1024)", true);
    v("batch", batch, "sequences of a micro-batch", true);
    v("accumulate", accumulation, "micro-batches of a step", true);
    v("steps", schedule.total_steps, "optimizer steps of the whole run", false);
    v("schedule", schedule.kind, "of the learning rate: cosine (default), wsd, linear or constant", true);
    v("lr", schedule.peak, "highest learning rate", true);
    v("min-lr", schedule.minimum, "learning rate at the end (default: a tenth of --lr)", true);
    v("warmup", schedule.warmup_steps,
      "steps over which the rate rises to its highest (default: a tenth of --steps, at most 100)", true);
    v("decay-steps", schedule.decay_steps, "last steps over which the rate of wsd falls (default: a fifth of --steps)",
      true);
    v("beta1", adamw.beta1, "decay of AdamW's first moment", true);
    v("beta2", adamw.beta2, "decay of AdamW's second moment", true);
    v("eps", adamw.eps, "added to AdamW's denominator", true);
    v("weight-decay", adamw.weight_decay, "on matrices; norms and biases never decay", true);
    v("clip", adamw.clip_norm, "largest norm of all gradients together; 0: no clipping", true);
    v("recompute", recompute, kRecomputeHelp, false);
    v("eval-every", eval_every, "steps between evaluations on the held-out text; 0: at the end only", false);
    v("eval-tokens", eval_tokens, "held-out tokens of an evaluation on the way; the last one takes all", false);
    v("sample-every", sample_every, "steps between samples; 0: at the end only", false);
    v("checkpoint-every", checkpoint_every, "steps between checkpoints; 0: at the end only", false);
  }

  // Problems with these values, each under its flag.
  Problems check() const;
};

// What a checkpoint records of a configuration, and back. InputError when the document is damaged.
Json config_to_json(TrainConfig config);
TrainConfig config_from_json(const Json& document, const std::string& where);

// What the model says as it is: a record of samples.jsonl.
struct TrainingSample {
  std::string text;                           // what it wrote
  std::optional<std::string> source, target;  // what it read, and what it was asked for, where there is such a thing
};
// The sample as a person reads it.
std::string to_text(const TrainingSample& sample);

struct LoopHooks {
  ModelIo io;
  Teacher teacher = {};
  std::function<TrainingSample(const Model&)> sample;  // null: no samples
  std::function<void(const ProgressState&)> progress;  // after each step
  std::function<void(std::string)> note;               // lines for the person who watches
  std::function<bool()> save_due;                      // after each step: whether to save now, beside checkpoint_every
  const std::atomic<bool>* stop = nullptr;             // set by a signal: save and return
};

// A LoopHooks::save_due of runs that nobody set an interval for: every 20 seconds, or more seldom where saving would
// take more than a twentieth of the time. A kill loses about so much.
std::function<bool()> save_now_and_then();

struct LoopResult {
  int64_t step = 0;                                        // of the run, at the end
  int64_t steps_done = 0;                                  // here
  int64_t tokens = 0;                                      // read
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last step; NaN without a step
  std::optional<double> val_loss;
  double seconds = 0;            // spent here
  double tokens_per_second = 0;  // median over the steps done here
  int64_t activation_peak_bytes = 0;
  bool interrupted = false;
};

// Trains `model` (initialized or just loaded) in `run_folder`: metrics.jsonl, tensorboard/, samples.jsonl, checkpoint/.
// `run` is what the checkpoint records beside the configuration; with `resume`, weights and moments come from there.
// `flops_per_token` (training, forward and backward) makes FLOP/s of tokens/s.
LoopResult run_training(Model& model, ThreadPool& pool, const Corpus& corpus, const Vocabulary& vocabulary,
                        const TrainConfig& config, const std::filesystem::path& run_folder, const Json& run,
                        const std::optional<FoundCheckpoint>& resume, double flops_per_token, const LoopHooks& hooks);

// Seconds of one step of this configuration, measured without changing the model (median of a few).
double measure_step_seconds(Model& model, ThreadPool& pool, const Corpus& corpus, const Vocabulary& vocabulary,
                            const TrainConfig& config);

}  // namespace transept
