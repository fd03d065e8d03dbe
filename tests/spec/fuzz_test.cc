// Random and mutated documents: the reader answers each with a spec or an InputError, and what it accepts it can write
// back and the schema accepts.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "spec/arch_spec.h"
#include "spec/presets.h"
#include "spec/schema_check.h"

namespace transept {
namespace {

class Fuzzer {
 public:
  explicit Fuzzer(uint32_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  Json value(int depth) {
    static const Json kScalars[] = {Json(),
                                    true,
                                    false,
                                    0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    5,
                                    8,
                                    16,
                                    64,
                                    4096,
                                    -1,
                                    0.5,
                                    1e-5,
                                    1.0,
                                    1e30,
                                    -1e300,
                                    std::nan(""),
                                    std::numeric_limits<int64_t>::max(),
                                    std::numeric_limits<int64_t>::min(),
                                    uint64_t{1} << 63,
                                    INFINITY,
                                    "",
                                    "x",
                                    "pre",
                                    "post",
                                    "rope",
                                    "none",
                                    "learned",
                                    "sinusoidal",
                                    "alibi",
                                    "t5",
                                    "linear",
                                    "dynamic",
                                    "yarn",
                                    "llama3",
                                    "longrope",
                                    "interleaved",
                                    "layernorm",
                                    "rmsnorm",
                                    "gqa",
                                    "relu",
                                    "gelu",
                                    "gpt2",
                                    "\xff",
                                    int64_t{1} << 30,
                                    int64_t{1} << 20};
    if (depth > 0 && below(4) == 0) return object(depth - 1);
    if (depth > 0 && below(6) == 0) {
      Json list = Json::array();
      for (int64_t n = below(4); n > 0; --n) list.push_back(value(depth - 1));
      return list;
    }
    return kScalars[below(std::size(kScalars))];
  }

  std::string key() {
    static const char* kKeys[] = {"name",
                                  "vocab_size",
                                  "hidden_size",
                                  "max_position_embeddings",
                                  "tie_word_embeddings",
                                  "dropout",
                                  "norm",
                                  "position",
                                  "attention",
                                  "ffn",
                                  "layers",
                                  "num_hidden_layers",
                                  "extends",
                                  "repeat",
                                  "kind",
                                  "eps",
                                  "bias",
                                  "placement",
                                  "theta",
                                  "scaling",
                                  "factor",
                                  "original_max_position_embeddings",
                                  "short_factor",
                                  "long_factor",
                                  "partial_rotary_factor",
                                  "pairing",
                                  "num_buckets",
                                  "num_attention_heads",
                                  "num_key_value_heads",
                                  "head_dim",
                                  "scale",
                                  "sliding_window",
                                  "qkv_bias",
                                  "kv_lora_rank",
                                  "qk_nope_head_dim",
                                  "qk_rope_head_dim",
                                  "v_head_dim",
                                  "intermediate_size",
                                  "",
                                  "unknown",
                                  "\xc3\x28",
                                  "$schema",
                                  "topology",
                                  "initializer_range"};
    return kKeys[below(std::size(kKeys))];
  }

  Json object(int depth) {
    Json o = Json::object();
    for (int64_t n = below(8); n > 0; --n) o[key()] = value(depth);
    return o;
  }

  // One change somewhere inside.
  void mutate(Json& v, int depth) {
    if (v.is_structured() && !v.empty() && below(4) != 0) {
      auto it = v.begin();
      std::advance(it, below(static_cast<int64_t>(v.size())));
      return mutate(*it, depth + 1);
    }
    if (v.is_object() && below(2) == 0) {
      v[key()] = value(2);
    } else if (v.is_object() && !v.empty() && below(2) == 0) {
      v.erase(v.begin());
    } else if (v.is_array() && !v.empty() && below(2) == 0) {
      v.push_back(v.front());
    } else if (depth > 0) {
      v = value(2);
    }
  }

 private:
  std::mt19937 random_;
};

struct Tally {
  int accepted = 0, refused = 0;
};

void feed(const Json& document, Tally& tally) {
  static const Json schema = spec_schema();
  try {
    const ArchSpec spec = spec_from_json(document, "fuzz");
    ++tally.accepted;
    ASSERT_TRUE(schema_accepts(schema, schema, document)) << document.dump();
    const Json written = spec_to_json(spec);
    ASSERT_EQ(spec_to_json(spec_from_json(written, "again")), written);
  } catch (const InputError& e) {
    ++tally.refused;
    ASSERT_FALSE(e.problems().empty());
    for (const Problem& p : e.problems()) {
      ASSERT_LT(p.where.size() + p.what.size() + p.mend.size(), 4000u);
      ASSERT_NO_THROW((void)Json(p.to_string()).dump()) << "errors are valid UTF-8";
    }
  }
}

TEST(Fuzz, MutatedPresets) {
  Fuzzer fuzzer(1);
  Tally tally;
  std::vector<Json> seeds;
  for (const char* name : {"small-1m", "gpt2", "mistral-7b"}) {
    seeds.push_back(preset_document(name));
    Json listed = seeds.back();
    listed.erase("num_hidden_layers");
    listed["layers"] = {{{"repeat", 2}, {"attention", {{"sliding_window", 8}}}}, {{"norm", {{"kind", "layernorm"}}}}};
    seeds.push_back(listed);
    seeds.push_back({{"extends", name}, {"attention", {{"head_dim", 64}}}});
    for (const char* rule : {"linear", "yarn", "llama3"}) {
      const Json scaling = {{"kind", rule}, {"factor", 4}, {"original_max_position_embeddings", 64}};
      seeds.push_back({{"extends", name}, {"position", {{"kind", "rope"}, {"scaling", scaling}}}});
      if (rule == std::string("linear")) seeds.back()["position"]["scaling"].erase("original_max_position_embeddings");
    }
    const std::vector<double> divisors(8, 2);
    const Json longrope = {{"kind", "longrope"},
                           {"short_factor", divisors},
                           {"long_factor", divisors},
                           {"original_max_position_embeddings", 64}};
    seeds.push_back({{"extends", name},
                     {"attention", {{"head_dim", 16}}},
                     {"position", {{"kind", "rope"}, {"scaling", longrope}}}});
    seeds.push_back({{"extends", name}, {"position", {{"kind", "t5"}, {"num_buckets", 8}}}});
  }
  for (int i = 0; i < 6000; ++i) {
    Json document = seeds[static_cast<size_t>(fuzzer.below(static_cast<int64_t>(seeds.size())))];
    for (int64_t n = 1 + fuzzer.below(3); n > 0; --n) fuzzer.mutate(document, 0);
    feed(document, tally);
    if (HasFatalFailure()) return;
  }
  // Neither everything nor nothing: otherwise one side is not tried.
  EXPECT_GT(tally.accepted, 200);
  EXPECT_GT(tally.refused, 1000);
}

TEST(Fuzz, RandomDocuments) {
  Fuzzer fuzzer(2);
  Tally tally;
  for (int i = 0; i < 6000; ++i) {
    feed(i % 10 == 0 ? fuzzer.value(3) : fuzzer.object(3), tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.refused, 5000);
}

// Bytes, through the parser: truncations and flips of a document's text.
TEST(Fuzz, MutatedText) {
  Fuzzer fuzzer(3);
  Tally tally;
  const std::string text = preset_document("gpt2").dump();
  for (int i = 0; i < 3000; ++i) {
    std::string bytes =
        text.substr(0, i % 3 == 0 ? static_cast<size_t>(fuzzer.below(static_cast<int64_t>(text.size()))) : text.size());
    for (int64_t n = fuzzer.below(4); n > 0 && !bytes.empty(); --n) {
      bytes[static_cast<size_t>(fuzzer.below(static_cast<int64_t>(bytes.size())))] =
          static_cast<char>(fuzzer.below(256));
    }
    Json document;
    try {
      document = parse_json(bytes, "bytes");
    } catch (const InputError&) {
      continue;
    }
    feed(document, tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.refused + tally.accepted, 500);
}

}  // namespace
}  // namespace transept
