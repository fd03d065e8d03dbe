// Time of serving by the roofline (Williams, Waterman, Patterson, CACM 52(4), 2009): a pass takes as long as its
// operations at the machine's peak or its bytes at the machine's bandwidth, whichever is longer. A bound: no machine is
// faster, and kernels that overlap both badly are slower.
//
// Counted are the bytes of weights, once a pass (of experts those that the rows are expected to choose), and of the KV
// cache; not those of activations. Over n machines that split each matrix (tensor parallelism, arXiv:1909.08053 section
// 3) operations and bytes fall to 1 / n, and each sublayer adds an all-reduce of its output, one for a parallel block,
// which in a ring moves 2 (n - 1) / n of it in and out of each machine, at half of interconnect_bytes_per_second each
// way; nothing hides behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/machine_type.h"
#include "plan/plan.h"

namespace transept {

// One pass of the model over some rows.
struct PassTime {
  double flops = 0, bytes = 0;  // of all machines together
  double compute_seconds = 0, memory_seconds = 0;
  double communication_seconds = 0;
  double layer_seconds = 0;  // MachineType::layer_seconds of all layers
  double seconds = 0;        // the longer of the first two, and the others

  bool compute_binds() const { return compute_seconds >= memory_seconds; }
};

// `batch` prompts of `tokens` at a time; the head runs for the last token of each alone. An encoder-decoder reads its
// prompt as source and makes the first token of the target; an encoder is done after it.
struct Prefill {
  int64_t tokens = 0, batch = 0;
  PassTime pass;
  double tokens_per_second = 0;       // read
  double seconds_to_first_token = 0;  // of the batch
  double usd_per_million_tokens = 0;  // 0: the price is not known
};

// `batch` sequences that all stand at `context`.
struct Decode {
  int64_t context = 0, batch = 0;
  PassTime step;
  double tokens_per_second = 0, tokens_per_second_per_sequence = 0;
  double usd_per_million_tokens = 0;
};

struct Serving {
  int64_t machines = 1;  // that hold one model
  MachineType::Peak peak;
  Prefill prefill;
  std::optional<Decode> decode;  // none of an encoder
  // The least batch at which operations at the peak take as long as bytes; none: however large, reading the caches
  // takes longer.
  std::optional<int64_t> compute_bound_batch;
  int64_t memory_bytes = 0;       // of the machines together
  int64_t largest_batch = 0;      // sequences at `context` that fit into it; 0: none
  std::optional<Decode> largest;  // decoding at that batch
};

// The time of a pass of so many operations and bytes that moves `reduced_bytes` through each all-reduce.
PassTime pass_time(const MachineType& machine, int64_t machines, double flops, double flops_per_second, double bytes,
                   double reduced_bytes = 0, double all_reduces = 0);

// At the options' context and batch; their memory_bytes is not looked at. InputError as make_plan, and when several
// machines have no known link.
Serving plan_serving(const ArchSpec& spec, const PlanOptions& options, const MachineType& machine, int64_t machines);

}  // namespace transept
