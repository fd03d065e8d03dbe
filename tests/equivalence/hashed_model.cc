#include "equivalence/hashed_model.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "convert/family.h"
#include "convert/folder_names.h"

namespace transept {
namespace {

const Family& family_of(const std::string& model_type) {
  const Family* family = find_family(model_type);
  if (!family) throw std::logic_error("no family " + model_type);
  return *family;
}

}  // namespace

double hash_offset(const std::string& name, const std::vector<int64_t>& shape, std::string_view model_type) {
  return shape.size() == 1 && name.ends_with("weight") && !model_type.starts_with("gemma") ? 1 : 0;
}

HashedTensor::HashedTensor(std::string_view name, double offset) : crc_(~0u), offset_(offset) {
  // CRC-32 of IEEE 802.3, bit by bit.
  for (const char c : name) {
    crc_ ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc_ = (crc_ >> 1) ^ (crc_ & 1 ? 0xEDB88320u : 0u);
  }
  crc_ = ~crc_;
}

float HashedTensor::operator[](uint32_t i) const {
  uint32_t x = i * 2654435761u + crc_;
  x ^= x >> 16;
  x *= 2246822519u;
  x ^= x >> 13;
  return static_cast<float>(0.5 * (2.0 * x / 4294967296.0 - 1) + offset_);
}

std::unique_ptr<Model> hashed_model(const ArchSpec& spec, const std::string& model_type, bool trainable) {
  const NameTable names = family_of(model_type).names(spec);
  auto model = std::make_unique<Model>(spec, trainable);
  Parameters& parameters = model->parameters();
  for (const auto& e : parameters.entries()) {
    const std::span<float> to = parameters.values(e);
    for (const Piece& piece : pieces_of(names, spec, e.decl)) {
      const HashedTensor tensor(piece.stored_name, hash_offset(piece.stored_name, piece.stored_shape, model_type));
      for_elements(piece, columns_of(e.decl), [&](int64_t ours, int64_t theirs) {
        to[static_cast<size_t>(ours)] = tensor[static_cast<uint32_t>(theirs)];
      });
    }
  }
  return model;
}

std::map<std::string, GradientSums> gradient_sums(Model& model, const std::string& model_type) {
  const NameTable names = family_of(model_type).names(model.spec());
  std::map<std::string, GradientSums> sums;
  Parameters& parameters = model.parameters();
  for (const auto& e : parameters.entries()) {
    const std::span<const float> gradient = parameters.gradients(e);
    for (const Piece& piece : pieces_of(names, model.spec(), e.decl)) {
      GradientSums& sum = sums[piece.stored_name];
      const HashedTensor direction(piece.stored_name + ".gradient", 0);
      for_elements(piece, columns_of(e.decl), [&](int64_t ours, int64_t theirs) {
        const double g = static_cast<double>(gradient[static_cast<size_t>(ours)]);
        sum.norm += g * g;
        sum.product += g * static_cast<double>(direction[static_cast<uint32_t>(theirs)]);
      });
    }
  }
  for (auto& [name, sum] : sums) sum.norm = std::sqrt(sum.norm);
  return sums;
}

}  // namespace transept
