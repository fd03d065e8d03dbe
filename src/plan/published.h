// Why a published count of parameters differs from the planner's: files hold copies and buffers that are no parameters
// of the model as it is computed, and some parts are not part of the spec.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spec/arch_spec.h"

namespace transept {

struct CountDifference {
  std::string what;
  int64_t elements = 0;  // that the published count has more
};

// Everything of this model that published counts are known to hold, or to leave out.
std::vector<CountDifference> known_differences(const ArchSpec& spec);

struct PublishedCount {
  int64_t published = 0, counted = 0;
  bool explained = false;
  std::vector<CountDifference> parts;  // that add up to the difference, the fewest that do; empty when there is none
};

// InputError when `published` is not positive.
PublishedCount explain_count(const ArchSpec& spec, int64_t published);

}  // namespace transept
