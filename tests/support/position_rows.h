// A row for each kind of position and for each RoPE rule, as a spec writes them: tests that hold for all kinds walk
// these, and fail when a kind has no row.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "base/json.h"

namespace transept {

// The position kinds but "rope", with all keys away from their defaults.
inline std::vector<Json> position_rows() {
  return {{{"kind", "none"}},
          {{"kind", "learned"}, {"offset", 2}},
          {{"kind", "sinusoidal"}, {"theta", 500}, {"pairing", "half_split"}},
          {{"kind", "alibi"}, {"max_bias", 4}},
          {{"kind", "t5"}, {"num_buckets", 8}, {"max_distance", 16}}};
}

struct RopeRule {
  Json neutral;    // keys that leave 16 turning elements as they are, up to 32 tokens
  Json stretched;  // all keys away from their defaults, for 16 turning elements: beyond 32 tokens the lowest frequency
                   // falls by more than a factor of 3
};

inline std::vector<RopeRule> rope_rule_rows() {
  const auto row = [](const char* kind, const Json& neutral, const Json& stretched) {
    RopeRule rule{{{"kind", kind}}, {{"kind", kind}}};
    rule.neutral.update(neutral);
    rule.stretched.update(stretched);
    return rule;
  };
  const char* const trained = "original_max_position_embeddings";
  const std::vector<double> ones(8, 1), shorts{1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875},
      longs{1, 1.5, 2, 3, 4, 4.25, 4.5, 4.75};
  const Json yarn = {
      {"factor", 4},    {trained, 32},           {"beta_fast", 16},  {"beta_slow", 2}, {"attention_factor", 1.5},
      {"mscale", 0.75}, {"mscale_all_dim", 0.5}, {"truncate", false}};
  const Json llama3 = {{"factor", 8}, {"low_freq_factor", 2}, {"high_freq_factor", 8}, {trained, 32}};
  const auto longrope = [&](const auto& short_factor, const auto& long_factor, double factor) {
    return Json{{"short_factor", short_factor}, {"long_factor", long_factor}, {trained, 32}, {"factor", factor}};
  };
  Json stretched_longrope = longrope(shorts, longs, 3);
  stretched_longrope["attention_factor"] = 1.25;
  return {
      row("none", Json::object(), Json::object()),
      row("linear", {{"factor", 1}}, {{"factor", 4}}),
      row("ntk", {{"factor", 1}}, {{"factor", 4}}),
      row("dynamic", {{"factor", 1}, {trained, 32}}, {{"factor", 4}, {trained, 32}}),
      row("yarn", {{"factor", 1}, {trained, 32}}, yarn),
      row("llama3", {{"factor", 1}, {trained, 32}}, llama3),
      row("longrope", longrope(ones, ones, 1), stretched_longrope),
  };
}

}  // namespace transept
