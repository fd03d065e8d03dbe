#include "plan/training_types.h"

namespace transept {
namespace {

constexpr int64_t kFloat = 4, kMoments = 2;
constexpr int64_t kBlock = 2048, kSmallest8BitTensor = 4096;

}  // namespace

const std::vector<TrainingPrecision>& training_precisions() {
  static const std::vector<TrainingPrecision> all = {{"f32", 4, 0}, {"bf16", 2, 4}};
  return all;
}

const std::vector<OptimizerKind>& optimizer_kinds() {
  static const std::vector<OptimizerKind> all = {{"adamw", false}, {"adamw_8bit", true}};
  return all;
}

Count optimizer_bytes(const OptimizerKind& optimizer, Count tensor_elements) {
  if (!optimizer.eight_bits || tensor_elements < Count(kSmallest8BitTensor))
    return tensor_elements * (kMoments * kFloat);
  const int64_t blocks = (tensor_elements.value() + kBlock - 1) / kBlock;
  return Count(kMoments) * (tensor_elements + Count(blocks) * kFloat);
}

}  // namespace transept
