// The plan of a spec: exact parameter counts, cache bytes, FLOPs, memory, and closed forms on compute-optimal training
// and serving. Arithmetic on the spec; no tensor is made. Counts that do not fit 64 bits are refused (plan/count.h);
// FLOPs that need not be whole or small are doubles. Each part says in its own header what it counts and how.
//
// An encoder-decoder has a source of `source_context` tokens beside the target of `context` tokens; its figures a token
// are those of one source token and one target token together.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "plan/architecture.h"
#include "plan/flops.h"
#include "plan/kv_cache.h"
#include "plan/memory.h"
#include "plan/parallel.h"
#include "plan/parameters.h"
#include "plan/serving.h"
#include "spec/arch_spec.h"
#include "spec/recompute.h"

namespace transept {

struct PlanOptions {
  int64_t context = 0;              // tokens of a sequence; 0: max_position_embeddings
  int64_t batch = 1;                // sequences
  int64_t source_context = 0;       // encoder-decoder: tokens of the source; 0: as context
  std::string dtype = "f32";        // of the weights when the model is run
  std::string kv_dtype = {};        // empty: dtype, or f16 when that is a quantized type
  std::string train_dtype = "f32";  // of weights, gradients and activations when it is trained
  std::string optimizer = "adamw";
  Recompute recompute = Recompute::kNone;
  ParallelLayout parallel = {};
  int64_t memory_bytes = 0;  // of the machine that serves; 0: not asked
};

struct Plan {
  // arXiv:2203.15556: about 20 tokens a parameter, and C = 6 N D.
  struct Chinchilla {
    int64_t tokens_per_parameter = 20;
    int64_t tokens = 0;
    double train_flops = 0;          // 6 N D
    double train_flops_counted = 0;  // train_per_token x tokens, attention included
  };

  std::string name;
  int64_t context = 0, source_context = 0, batch = 0;
  std::string dtype, kv_dtype, train_dtype, optimizer;
  Recompute recompute = Recompute::kNone;
  Architecture architecture;
  ParameterCounts parameters;
  CacheSize kv_cache;
  FlopCounts flops;
  MemoryNeeds memory;
  ParallelPlan parallel;  // without stages: one process was asked for
  Chinchilla chinchilla;
  ServingWork serving;
};

// InputError on an unknown type, a batch or context below 1, a context beyond a table of positions, a layout that does
// not divide the model.
Plan make_plan(const ArchSpec& spec, const PlanOptions& options);

// Keys as the members are named, in the order above.
Json to_json(const Plan& plan);

// For a person at a terminal.
std::string to_text(const Plan& plan);

}  // namespace transept
