// Rules that stretch rotary positions beyond the length that a model was trained at. A rule is a struct with its keys
// and `angles`, which turns the plain base into inverse frequencies. Key names are those of "rope_parameters" in
// Hugging Face configs, and the formulas where publications leave a choice are those of
// transformers.modeling_rope_utils.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "spec/fields.h"
#include "spec/kinds.h"

namespace transept {

// What a rule is asked.
struct RopeQuery {
  double theta = 10000;
  int64_t rotated = 0;  // elements of a head that turn; even
  int64_t length = 0;   // tokens of the whole sequence
  int64_t max_position_embeddings = 0;
};

// Pair i of a head at position p turns by p * inv_freq[i]; cosine and sine are multiplied by `amplitude`, so that a
// score of two rotated vectors grows by its square (the attention temperature of arXiv:2309.00071 section 3.4).
// `score_factor` multiplies the scores of heads of which only a part turns, by design: what does not turn has no
// amplitude (DeepSeek-V2's published code).
struct RopeAngles {
  std::vector<double> inv_freq;  // [rotated / 2]
  double amplitude = 1;
  double score_factor = 1;
};

// theta^(-2i / rotated) (arXiv:2104.09864 section 3.2.2).
std::vector<double> plain_inv_freq(double theta, int64_t rotated);

// Rules that look at the sequence's length have kByLength: the same length always gives the same angles, whatever came
// before. `check` adds what is wrong with a rule's keys taken together; `where` is the place of the position group.

struct NoScaling {
  static constexpr std::string_view kName = "none";
  static constexpr bool kByLength = false;
  template <class V>
  void fields(V&) {}
  RopeAngles angles(const RopeQuery& query) const;
  bool operator==(const NoScaling&) const = default;
};

// Position interpolation (arXiv:2306.15595 section 2.3): positions are divided by the factor.
struct LinearScaling {
  static constexpr std::string_view kName = "linear";
  static constexpr bool kByLength = false;
  double factor = 0;
  template <class V>
  void fields(V& v) {
    v("factor", factor, AtLeast{1}, "by how much the context grows");
  }
  RopeAngles angles(const RopeQuery& query) const;
  bool operator==(const LinearScaling&) const = default;
};

// NTK-aware interpolation (arXiv:2309.00071 section 3.1, definition 1): theta * factor^(d / (d - 2)), which leaves the
// highest frequency alone and divides the lowest by the factor.
struct NtkScaling {
  static constexpr std::string_view kName = "ntk";
  static constexpr bool kByLength = false;
  double factor = 0;
  template <class V>
  void fields(V& v) {
    v("factor", factor, AtLeast{1}, "by how much the context grows");
  }
  RopeAngles angles(const RopeQuery& query) const;
  bool operator==(const NtkScaling&) const = default;
};

// Dynamic NTK (arXiv:2309.00071 section 3.3): up to the trained length L' nothing changes; a sequence of L tokens
// beyond it has the base theta * (factor * L / L' - (factor - 1))^(d / (d - 2)).
struct DynamicScaling {
  static constexpr std::string_view kName = "dynamic";
  static constexpr bool kByLength = true;
  double factor = 0;
  int64_t original_max_position_embeddings = 0;
  template <class V>
  void fields(V& v) {
    v("factor", factor, AtLeast{1}, "how fast the base grows beyond the trained length");
    v("original_max_position_embeddings", original_max_position_embeddings, AtLeast{0},
      "trained length; 0: max_position_embeddings");
  }
  RopeAngles angles(const RopeQuery& query) const;
  bool operator==(const DynamicScaling&) const = default;
};

// YaRN (arXiv:2309.00071): "NTK-by-parts" (section 3.2) keeps pairs that turn more than beta_fast times in the trained
// length, divides the frequency of those that turn less than beta_slow times by the factor, and goes from one to the
// other by a ramp over the pairs between; section 3.4 multiplies queries and keys by 0.1 ln(factor) + 1. With
// `truncate` the ramp's ends are rounded outwards to whole pairs, as in the authors' code.
struct YarnScaling {
  static constexpr std::string_view kName = "yarn";
  static constexpr bool kByLength = false;
  double factor = 0;
  int64_t original_max_position_embeddings = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double attention_factor = 0;
  double mscale = 0;
  double mscale_all_dim = 0;
  bool truncate = true;
  template <class V>
  void fields(V& v) {
    v("factor", factor, AtLeast{1}, "by how much the context grows");
    v("original_max_position_embeddings", original_max_position_embeddings, AtLeast{1}, "trained length");
    v("beta_fast", beta_fast, Above{0}, "turns in the trained length above which a pair keeps its frequency");
    v("beta_slow", beta_slow, Above{0}, "turns in the trained length below which a frequency is divided by the factor");
    v("attention_factor", attention_factor, AtLeast{0},
      "factor on queries and keys; 0: 0.1 ln(factor) + 1, or the ratio by mscale and mscale_all_dim");
    v("mscale", mscale, AtLeast{0},
      "with mscale_all_dim, both above 0: (0.1 mscale ln(factor) + 1) over the same of it");
    v("mscale_all_dim", mscale_all_dim, AtLeast{0},
      "see mscale; in latent attention scores are multiplied by (0.1 mscale_all_dim ln(factor) + 1)^2");
    v("truncate", truncate, Any{}, "the ends of the ramp are rounded outwards to whole pairs");
  }
  RopeAngles angles(const RopeQuery& query) const;
  void check(const RopeQuery& query, const std::string& where, Problems& problems) const;
  bool operator==(const YarnScaling&) const = default;
};

// Llama 3.1 (arXiv:2407.21783 section 3.4.2, formula of the published code): pairs that turn more than
// high_freq_factor times in the trained length keep their frequency, those that turn less than low_freq_factor times
// have it divided by the factor, and those between have a mean weighted by their turns.
struct Llama3Scaling {
  static constexpr std::string_view kName = "llama3";
  static constexpr bool kByLength = false;
  double factor = 0;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  int64_t original_max_position_embeddings = 0;
  template <class V>
  void fields(V& v) {
    v("factor", factor, AtLeast{1}, "by how much the context grows");
    v("low_freq_factor", low_freq_factor, Above{0},
      "turns in the trained length below which a frequency is divided by the factor");
    v("high_freq_factor", high_freq_factor, Above{0},
      "turns in the trained length above which a pair keeps its frequency");
    v("original_max_position_embeddings", original_max_position_embeddings, AtLeast{1}, "trained length");
  }
  RopeAngles angles(const RopeQuery& query) const;
  void check(const RopeQuery& query, const std::string& where, Problems& problems) const;
  bool operator==(const Llama3Scaling&) const = default;
};

// LongRoPE (arXiv:2402.13753 section 3): each pair's frequency is divided by a searched factor of its own, one list for
// sequences within the trained length and one for longer ones. Queries and keys are multiplied by
// sqrt(1 + ln(s) / ln(trained length)) at every length, as in the published Phi-3 code.
struct LongRopeScaling {
  static constexpr std::string_view kName = "longrope";
  static constexpr bool kByLength = true;
  std::vector<double> short_factor;
  std::vector<double> long_factor;
  int64_t original_max_position_embeddings = 0;
  double factor = 0;
  double attention_factor = 0;
  template <class V>
  void fields(V& v) {
    v("short_factor", short_factor, Above{0}, "divisor of each pair's frequency up to the trained length");
    v("long_factor", long_factor, Above{0}, "divisor of each pair's frequency beyond the trained length");
    v("original_max_position_embeddings", original_max_position_embeddings, AtLeast{2}, "trained length");
    v("factor", factor, AtLeast{0},
      "s: by how much the context grows; 0: max_position_embeddings / original_max_position_embeddings");
    v("attention_factor", attention_factor, AtLeast{0},
      "factor on queries and keys; 0: sqrt(1 + ln(s) / ln(trained length)), and 1 when s is at most 1");
  }
  RopeAngles angles(const RopeQuery& query) const;
  void check(const RopeQuery& query, const std::string& where, Problems& problems) const;
  bool operator==(const LongRopeScaling&) const = default;
};

using RopeScalingKinds =
    Kinds<NoScaling, LinearScaling, NtkScaling, DynamicScaling, YarnScaling, Llama3Scaling, LongRopeScaling>;
using RopeScaling = RopeScalingKinds::Any;

}  // namespace transept
