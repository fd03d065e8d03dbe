// What attention reads of a text: second moments of its inputs, by which a conversion weighs what it loses.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nn/model.h"

namespace transept {

class KvCalibration {
 public:
  // Adds the rows that one pass of the model reads.
  void add(const Model& model, const OpContext& op, ForwardCall call);

  struct Moment {
    int64_t width = 0;        // of z: hidden_size + 1
    int64_t rows = 0;         // read so far
    std::vector<double> sum;  // of z z^T with z = [x, 1], row-major [width, width]
  };
  // `part` as the block names it: "attention_input", "cross_attention_input", "cross_attention_source", behind
  // "encoder " in an encoder. Null: no pass has come by there.
  const Moment* find(const std::string& part, int64_t layer) const;

 private:
  std::map<std::pair<std::string, int64_t>, Moment> moments_;
};

}  // namespace transept
