#include "plan/memory.h"

#include <algorithm>
#include <cmath>

#include "plan/count.h"
#include "tensor/logit_rows.h"

namespace transept {

MemoryNeeds count_memory(const ArchSpec& spec, const ParameterCounts& parameters, const CacheSize& cache,
                         const TrainingSetup& training, const WeightFormat& weights) {
  MemoryNeeds m;
  Count stored, moments;
  for (const ParamDecl& decl : spec.declare().decls()) {
    stored += weights.bytes(spec, decl);
    moments += optimizer_bytes(training.optimizer, elements(decl));
  }
  const Count total = parameters.total;
  const int64_t element = training.precision.element_bytes;
  m.weights = stored.value();
  m.training_weights = (total * element).value();
  m.gradients = m.training_weights;
  m.master_weights = (total * training.precision.master_bytes).value();
  m.optimizer = moments.value();

  const Count rows = Count(training.batch) * training.context;
  m.activation_terms =
      activation_bytes(spec, {training.batch, training.context, training.source_context, training.recompute, element});
  m.activations = m.activation_terms.total();
  m.logits = (Count(std::min(rows.value(), logit_rows(spec.vocab_size))) * spec.vocab_size * kLogitBytes).value();
  m.fragmentation = std::llround(kFragmentation * static_cast<double>(m.activations));
  m.peak_training = (Count(m.training_weights) + m.gradients + m.master_weights + m.optimizer + m.activations).value();

  const int64_t piece = std::min(training.context, kPrefillRows);
  m.inference_workspace =
      inference_bytes(spec, std::max(piece, training.batch), training.batch, training.context - piece);
  m.peak_inference = (stored + cache.batch_bytes + m.inference_workspace).value();
  return m;
}

}  // namespace transept
