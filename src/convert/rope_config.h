// Rotary positions in config.json, in every spelling: "rope_parameters" (transformers 5), "rope_theta" with
// "rope_scaling" (4), "type" for "rope_type" (older).
#pragma once

#include "convert/config_map.h"

namespace transept {

// What a family's class takes where the config says nothing.
struct RopeDefaults {
  double theta = 10000;
  double partial_rotary_factor = 0;  // 0: the family turns whole heads, and has no such key
};

// `trained` is the trained length of rules whose block names none.
void map_rope(ConfigMap& map, RopePosition& rope, int64_t trained, const RopeDefaults& defaults = {});

// One block of rope parameters; `key` names it in problems.
void read_rope_block(ConfigMap& map, const std::string& key, const Json& block, RopePosition& rope, int64_t trained);
Json rope_block(const RopePosition& rope);

}  // namespace transept
