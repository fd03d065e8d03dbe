// A training step dealt out to many processes ("ranks"): what the fullest rank of each pipeline stage holds, and what
// it sends. Data parallelism with ZeRO's stages (arXiv:1910.02054), tensor parallelism with sequence parallelism
// (arXiv:1909.08053, arXiv:2205.05198: what a layer keeps is dealt out too), pipeline parallelism with one forward, one
// backward (1F1B, arXiv:2104.04473 section 2.2), expert parallelism (arXiv:2006.16668: experts live on ranks that are
// data-parallel for the rest), context parallelism (ring attention, arXiv:2310.01889).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/problem.h"
#include "plan/memory.h"
#include "spec/arch_spec.h"

namespace transept {

struct ParallelLayout {
  int64_t data = 1;           // replicas, each with its share of the batch
  int64_t zero = 0;           // 1: optimizer, 2: gradients too, 3: weights too are dealt out to the replicas
  int64_t tensor = 1;         // ranks that share each matrix
  int64_t pipeline = 1;       // stages of neighbouring layers
  int64_t expert = 1;         // ranks, of the replicas', that share the experts
  int64_t context = 1;        // ranks that share each sequence
  int64_t micro_batches = 1;  // that a replica's share of the batch comes in
  int64_t ranks() const { return data * tensor * pipeline * context; }
};

// What one rank holds, in bytes.
struct StageMemory {
  int64_t first_layer = 0, layers = 0;
  int64_t in_flight = 0;   // micro-batches whose activations stand at a time
  int64_t parameters = 0;  // that the rank computes with (with ZeRO-3: those of its stage, gathered layer by layer)
  int64_t weights = 0, gradients = 0, master_weights = 0, optimizer = 0, activations = 0;
  int64_t total() const { return weights + gradients + master_weights + optimizer + activations; }
};

// Bytes that one rank sends in a step; of all stages' ranks the most.
struct Traffic {
  std::string kind;       // "data", "tensor", "pipeline", "expert", "context"
  std::string operation;  // "all-reduce", ...
  double bytes = 0;
};

struct ParallelPlan {
  ParallelLayout layout;
  int64_t ranks = 0;                // 0: one process was asked for
  std::vector<StageMemory> stages;  // of the pipeline
  std::vector<Traffic> traffic;     // those kinds that have any
  double bubble = 0;                // idle share of a step: (p - 1) / (m + p - 1)
  int64_t peak() const;             // of the fullest stage
};

// Everything that keeps the layout from dividing the model or the batch.
Problems check_layout(const ArchSpec& spec, const ParallelLayout& layout, const TrainingSetup& training);

// `layout` has passed check_layout.
ParallelPlan plan_parallel(const ArchSpec& spec, const ParallelLayout& layout, const TrainingSetup& training);

}  // namespace transept
