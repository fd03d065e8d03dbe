// Models whose weights are a hash of the names that they have in a Hugging Face checkpoint, so that tiny models of many
// families can be compared without a stored weight (tools/goldens/bugs.py, hash_fill).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/model.h"

namespace transept {

// The tensor `name`: element i is a multiplicative hash of i and crc32(name), spread over [-0.5, 0.5).
class HashedTensor {
 public:
  // `offset` is added to every element.
  HashedTensor(std::string_view name, double offset);
  float operator[](uint32_t i) const;

 private:
  uint32_t crc_;
  double offset_;
};

// What the elements of a tensor lie about: 1 for the weights of norms, but those that are added to 1.
double hash_offset(const std::string& name, const std::vector<int64_t>& shape, std::string_view model_type);

// A model of this spec with the weights that a Hugging Face model of the family has.
std::unique_ptr<Model> hashed_model(const ArchSpec& spec, const std::string& model_type, bool trainable = false);

// Of the gradient of one tensor of the checkpoint.
struct GradientSums {
  double norm = 0, product = 0;  // the latter with the hashed tensor `name.gradient`
};

// From the gradients of a trainable model, by the names that the family's checkpoints have.
std::map<std::string, GradientSums> gradient_sums(Model& model, const std::string& model_type);

}  // namespace transept
