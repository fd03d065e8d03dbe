// Models whose weights are a hash of the names that they have in a Hugging Face checkpoint, so that tiny models of many
// families can be compared without a stored weight (tools/goldens/bugs.py, hash_fill).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

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

// A model of this spec with the weights that a Hugging Face model of the family has, each of our parameters filled from
// the rows that it is made of. Families: those of the table in hashed_model.cc.
std::unique_ptr<Model> hashed_model(const ArchSpec& spec, const std::string& family, bool trainable = false);

// Of the gradient of one tensor of the checkpoint.
struct GradientSums {
  double norm = 0, product = 0;  // the latter with the hashed tensor `name.gradient`
};

// From the gradients of a trainable model, by the names that the family's checkpoints have.
std::map<std::string, GradientSums> gradient_sums(Model& model, const std::string& family);

}  // namespace transept
