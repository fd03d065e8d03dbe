// The sweep's own checks: it meets every key and kind, it covers what it says, and the reader refuses exactly what it
// leaves out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/spec_sweep.h"
#include "support/throws.h"

namespace transept {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SpecSweep, EveryPairHasACase) {
  const SpecSweep& sweep = covering_sweep();
  EXPECT_THAT(sweep.missing(), IsEmpty()) << "numbers without a row in number_examples";
  EXPECT_THAT(sweep.uncovered(), IsEmpty());
  EXPECT_LT(sweep.accepted().size(), 330u) << "each costs every test that walks them";
}

// Counted again from what the reader made of the cases: all kinds of each list, in pairs across the lists of one layer.
TEST(SpecSweep, TheModelsHaveEveryKind) {
  std::map<std::string, std::set<std::string>> met;
  std::set<std::string> pairs;
  for (const SpecCase& c : spec_cases()) {
    for (const StackSpec* stack : {static_cast<const StackSpec*>(&c.spec), &c.spec.encoder}) {
      for (const LayerSpec& layer : stack->layers) {
        std::map<std::string, std::string> of{{"position", std::string(kind_name(layer.position))},
                                              {"norm", std::string(kind_name(layer.norm))}};
        const auto name = [&]<class E>(const char* key, E value) {
          of[key] = std::string(EnumNames<E>::kNames[static_cast<size_t>(value)]);
        };
        name("topology", c.spec.topology), name("placement", layer.placement), name("form", layer.block.form);
        name("ffn", layer.ffn.kind);
        of["attention"] = kind_name(layer.attention);
        of["window"] =
            std::visit([](const auto& a) { return a.sliding_window; }, layer.attention) > 0 ? "window" : "full";
        if (const auto* a = std::get_if<GqaSpec>(&layer.attention)) {
          name("gqa qk_norm", a->qk_norm), name("gqa scope", a->qk_norm_scope);
          of["gqa heads"] = a->num_key_value_heads == a->num_attention_heads ? "multi-head"
                            : a->num_key_value_heads == 1                    ? "multi-query"
                                                                             : "grouped";
        }
        for (const auto& [a, x] : of) {
          met[a].insert(x);
          for (const auto& [b, y] : of) pairs.insert(a + x + b + y);
        }
      }
    }
    if (const auto* rope = std::get_if<RopePosition>(&c.spec.layers[0].position))
      met["scaling"].insert(std::string(kind_name(rope->scaling)));
  }
  const auto all = [](const auto& names) { return std::set<std::string>(names.begin(), names.end()); };
  EXPECT_EQ(met["position"], all(PositionKinds::kNames));
  EXPECT_EQ(met["scaling"], all(RopeScalingKinds::kNames));
  EXPECT_EQ(met["norm"], all(NormKinds::kNames));
  EXPECT_EQ(met["topology"], all(EnumNames<Topology>::kNames));
  EXPECT_EQ(met["placement"], all(EnumNames<NormPlacement>::kNames));
  EXPECT_EQ(met["form"], all(EnumNames<BlockForm>::kNames));
  EXPECT_EQ(met["ffn"], all(EnumNames<FfnKind>::kNames));
  EXPECT_EQ(met["attention"], all(AttentionKinds::kNames));
  EXPECT_EQ(met["gqa qk_norm"], all(EnumNames<QkNorm>::kNames));
  EXPECT_EQ(met["gqa scope"], all(EnumNames<QkNormScope>::kNames));
  std::vector<std::string> absent;
  for (const auto& [a, xs] : met) {
    for (const auto& [b, ys] : met) {
      for (const std::string& x : xs) {
        for (const std::string& y : ys) {
          if (x == "mla" && b.starts_with("gqa ")) continue;  // keys of the other kind
          if (a < b && a != "scaling" && b != "scaling" && !pairs.contains(a + x + b + y))
            absent.push_back(a + " " + x + ", " + b + " " + y);
        }
      }
    }
  }
  // What no model has: parallel sublayers have their norm before them.
  EXPECT_THAT(absent, ElementsAre("form parallel, placement post", "form parallel, placement post_sublayer",
                                  "form parallel, placement sandwich", "form parallel_two_norms, placement post",
                                  "form parallel_two_norms, placement post_sublayer",
                                  "form parallel_two_norms, placement sandwich"));
}

void expect_agreement(const SpecSweep& sweep, const SpecSweep::Choice& choice) {
  const Json document = sweep.document(choice);
  const std::string said = input_error([&] { spec_from_json(document, ""); });
  const std::vector<std::string> refusals = sweep.refusals(choice);
  if (refusals.empty()) {
    ASSERT_EQ(said, "(no error)") << document;
  }
  for (const std::string& refusal : refusals) ASSERT_THAT(said, HasSubstr(refusal)) << document;
}

TEST(SpecSweep, TheReaderRefusesExactlyWhatIsLeftOut) {
  const SpecSweep& sweep = covering_sweep();
  for (const auto& choice : sweep.accepted()) {
    ASSERT_THAT(sweep.refusals(choice), IsEmpty());
    expect_agreement(sweep, choice);
  }
  EXPECT_FALSE(sweep.refused().empty());
  for (const auto& choice : sweep.refused()) {
    ASSERT_FALSE(sweep.refusals(choice).empty());
    expect_agreement(sweep, choice);
  }
  // Any combination, with several faults at once.
  std::set<std::string> reasons;
  size_t accepted = 0;
  constexpr size_t kRandom = 4000;
  for (uint64_t n = 0; n < kRandom && !HasFatalFailure(); ++n) {
    const auto choice = sweep.random(n);
    expect_agreement(sweep, choice);
    const std::vector<std::string> refusals = sweep.refusals(choice);
    accepted += refusals.empty();
    for (const std::string& r : refusals)
      reasons.insert(r.substr(r.rfind("block.form: ") == std::string::npos ? 0 : r.rfind(": ")));
  }
  EXPECT_GT(accepted, kRandom / 10);
  EXPECT_LT(accepted, kRandom * 9 / 10);
  for (const char* reason :
       {": parallel sublayers with", ": parallel sublayers in a decoder", "position.kind: of ", "t5 has one table",
        "attention.num_key_value_heads", "attention.head_dim", "position.partial_rotary_factor",
        "position.scaling.short_factor", "norm.bias", "attention.qk_rope_head_dim",
        "attention.kind: \"mla\" in a decoder", "attention.kind: mla turns the part", "moe.n_group",
        "moe.shared_expert_gate", "moe.router_choice"}) {
    EXPECT_THAT(reasons, Contains(HasSubstr(reason)));
  }
}

TEST(SpecSweep, CasesReadBackAsTheyWere) {
  for (const SpecCase& c : spec_cases()) {
    const Json written = spec_to_json(c.spec);
    ASSERT_EQ(spec_to_json(spec_from_json(written, "")), written) << c.name;
  }
}

// The controls: a kind that joins a list is walked, and its number without examples is seen.
struct PlainKind {
  static constexpr std::string_view kName = "plain";
  bool twice = false;
  template <class V>
  void fields(V& v) {
    v("twice", twice, Any{}, "whether it is added twice");
  }
};
struct KindWithANumber {
  static constexpr std::string_view kName = "forgotten";
  double width = 1;
  template <class V>
  void fields(V& v) {
    v("width", width, Above{0}, "how wide");
  }
};

TEST(SpecSweep, AKindThatJoinsAListIsSwept) {
  SweepAxes axes;
  axes.kinds(Kinds<NoPosition, PlainKind, KindWithANumber>{}, "position.", "position.");
  ASSERT_EQ(axes.axes.size(), 2u);
  EXPECT_THAT(axes.axes[0].values, ElementsAre("none", "plain", "forgotten"));
  EXPECT_EQ(axes.axes[1].path, "position.twice");
  EXPECT_EQ(axes.axes[1].parent, 0);
  EXPECT_EQ(axes.axes[1].parent_value, 1u);
  EXPECT_THAT(axes.missing, ElementsAre("position.forgotten.width"));
}

TEST(SpecSweep, APairWithoutACaseIsSeen) {
  SpecSweep sweep;
  EXPECT_THAT(sweep.uncovered(), Contains("norm.placement = \"sandwich\" with ffn.kind = \"glu\""));
  sweep.cover();
  EXPECT_THAT(sweep.uncovered(), IsEmpty());
}

TEST(SpecSweep, ANewNameReachesTheCases) {
  SweepAxes walked = spec_axes();
  for (SweepAxis& axis : walked.axes) {
    if (axis.path == "norm.placement") axis.values.push_back("between");
  }
  SpecSweep sweep(std::move(walked));
  sweep.cover();
  size_t refused = 0;
  for (const auto& choice : sweep.accepted())
    refused += input_error([&] { spec_from_json(sweep.document(choice), ""); }) != "(no error)";
  EXPECT_GT(refused, 0u) << "the reader knows no such placement";
}

}  // namespace
}  // namespace transept
