// Fewer KV heads: what is kept of the bits, the means by hand, the errors that Eckart and Young allow, and models whose
// heads are equal but for what attention leaves free, which "aligned" must find.
#include "convert/kv_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <complex>
#include <nlohmann/json.hpp>

#include "infer/decoder.h"
#include "support/compare.h"
#include "support/models.h"
#include "support/spec_sweep.h"
#include "support/throws.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Matrix = Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr KvMerge kAll[] = {KvMerge::kMean, KvMerge::kFirst, KvMerge::kAligned};

Json gqa(int64_t heads, int64_t kv_heads, Json more = Json::object()) {
  more.update({{"num_attention_heads", heads}, {"num_key_value_heads", kv_heads}});
  return more;
}

// A decoder; `changes` to the document.
ArchSpec decoder(const Json& attention, const Json& position = {{"kind", "rope"}},
                 const Json& changes = Json::object()) {
  Json document{{"attention", attention}, {"position", position}};
  document.update(changes);
  return topology_spec("decoder", document);
}

std::vector<float> logits_of(const Model& model) {
  ThreadPool pool(1);
  constexpr int64_t kTokens = 17;
  const auto ids = random_ids(kTokens, model.spec().vocab_size, 1);
  const auto source =
      model.spec().encoder_decoder() ? random_ids(9, model.spec().vocab_size, 2) : std::vector<int32_t>{};
  std::vector<float> logits(ids.size() * static_cast<size_t>(model.spec().vocab_size));
  forward_logits(model, pool, ids, logits, source);
  return logits;
}

KvCalibration calibrated(const Model& model) {
  ThreadPool pool(1);
  Arena arena;
  KvCalibration calibration;
  const bool reads = model.spec().encoder_decoder();
  for (uint64_t pass = 0; pass < 4; ++pass) {
    const auto ids = random_ids(40, model.spec().vocab_size, 10 + pass),
               source = random_ids(60, model.spec().vocab_size, 20 + pass);
    ForwardCall call{.tokens = ids, .layout = equal_sequences(2, 20), .dropout = {}, .observe = {}};
    if (reads) call.source_tokens = source, call.source_layout = equal_sequences(2, 30);
    calibration.add(model, {pool, arena, nullptr}, call);
  }
  return calibration;
}

Matrix values(const Model& model, const std::string& name) {
  const Param p = model.parameters().param(name);
  if (!p) return {};
  return Eigen::Map<const RowMajor>(p.value, p.out, p.in).cast<double>();
}

void set(Model& model, const std::string& name, const Matrix& m) {
  const auto to = model.parameters().values(*model.parameters().find(name));
  ASSERT_EQ(static_cast<Eigen::Index>(to.size()), m.size());
  Eigen::Map<RowMajor>(to.data(), m.rows(), m.cols()) = m.cast<float>();
}

void expect_same_bits(const Model& a, const Model& b, const std::string& prefix = "") {
  for (const auto& e : a.parameters().entries()) {
    if (!e.decl.name.starts_with(prefix)) continue;
    const Param x = a.parameters().param(e.decl.name), y = b.parameters().param(e.decl.name);
    EXPECT_EQ(0, std::memcmp(x.value, y.value, static_cast<size_t>(e.size) * sizeof(float))) << e.decl.name;
  }
}

TEST(KvHeads, AsManyAsThereAreKeepEveryBit) {
  for (const char* topology : {"decoder", "encoder", "encoder_decoder"}) {
    const auto model = random_model(topology_spec(topology, {{"attention", gqa(4, 2, {{"qkv_bias", true}})}}), false);
    for (const KvMerge merge : kAll) expect_same_bits(*model, *convert_kv_heads(*model, {.heads = 2, .merge = merge}));
  }
}

// Every divisor, with every choice that a spec offers; the layers that are alike stay so, and the model runs.
TEST(KvHeads, EveryModelHasThem) {
  int64_t models = 0;
  for (const SpecCase& c : spec_cases()) {
    if (!std::holds_alternative<GqaSpec>(c.spec.layers.front().attention)) continue;
    SCOPED_TRACE(c.name);
    for (const int64_t heads : {1, 2, 3, 6}) {
      if (input_error([&] { with_kv_heads(c.spec, heads); }) != "(no error)") continue;
      const auto model = random_model(c.spec, false);
      for (const KvMerge merge : kAll) {
        const auto fewer = convert_kv_heads(*model, {.heads = heads, .merge = merge});
        for (const LayerSpec& layer : fewer->spec().layers)
          EXPECT_EQ(std::get<GqaSpec>(layer.attention).num_key_value_heads, heads);
        EXPECT_EQ(spec_to_json(fewer->spec()), spec_to_json(spec_from_json(spec_to_json(fewer->spec()), "again")));
        for (const float x : logits_of(*fewer)) ASSERT_TRUE(std::isfinite(x));
        ++models;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(models, 100);
}

// K and V by hand, neighbours together, the biases and the weights of each head's norm with them.
TEST(KvHeads, MeanAndFirstByHand) {
  const Json attention = gqa(6, 6, {{"qkv_bias", true}, {"qk_norm", "rmsnorm"}, {"qk_norm_scope", "each_head"}});
  const auto model = random_model(decoder(attention), false);
  constexpr int64_t kDim = 4, kOld = 6, kNew = 2;
  for (const bool mean : {true, false}) {
    const auto fewer = convert_kv_heads(*model, {.heads = kNew, .merge = mean ? KvMerge::kMean : KvMerge::kFirst});
    for (const char* name : {"qkv.weight", "qkv.bias", "k_norm.weight"}) {
      const std::string full = std::string("layers.1.attention.") + name;
      const Matrix before = values(*model, full), after = values(*fewer, full);
      const int64_t queries = name[0] == 'q' ? 6 * kDim : 0;
      const int64_t parts = name[0] == 'q' ? 2 : 1;  // keys and values, or keys
      ASSERT_EQ(after.rows(), queries + parts * kNew * kDim);
      Matrix expected = before.topRows(after.rows());
      for (int64_t r = queries; r < after.rows(); ++r) {
        const int64_t part = (r - queries) / (kNew * kDim), g = (r - queries) / kDim % kNew, i = (r - queries) % kDim;
        const auto old = [&](int64_t h) { return before.row(queries + (part * kOld + h) * kDim + i); };
        expected.row(r) = old(3 * g);
        if (mean) expected.row(r) = (old(3 * g) + old(3 * g + 1) + old(3 * g + 2)) / 3;
      }
      EXPECT_EQ(after.cast<float>(), expected.cast<float>()) << name;
    }
    expect_same_bits(*fewer, *model, "layers.1.ffn");
    expect_same_bits(*fewer, *model, "layers.1.attention.output");
  }
}

TEST(KvHeads, OneLayerAlone) {
  const auto model = random_model(topology_spec("encoder_decoder"), false);
  for (const KvMerge merge : kAll) {
    const auto encoder = convert_kv_heads(*model, {.heads = 2, .merge = merge, .only = LayerPlace{true, 1}});
    EXPECT_EQ(std::get<GqaSpec>(encoder->spec().encoder.layers[1].attention).num_key_value_heads, 2);
    EXPECT_EQ(std::get<GqaSpec>(encoder->spec().encoder.layers[0].attention).num_key_value_heads, 4);
    for (const char* same : {"layers.", "encoder.layers.0.", "encoder.layers.1.ffn", "embedding"})
      expect_same_bits(*encoder, *model, same);
    const auto both = convert_kv_heads(*model, {.heads = 2, .merge = merge, .only = LayerPlace{false, 0}});
    expect_same_bits(*both, *model, "layers.1.");
    expect_same_bits(*both, *model, "encoder.");
    EXPECT_EQ(values(*both, "layers.0.cross_attention.kv.weight").rows(), 2 * 2 * 6);
  }
}

// A random d x d matrix that commutes with the rotation of a head: complex numbers where it turns, anything elsewhere.
Matrix commuting(const PositionSpec& position, int64_t d, uint64_t seed) {
  const CounterRng rng(seed, Stream::kTest, 3);
  uint64_t n = 0;
  const auto draw = [&] { return rng.normal(n++); };
  Matrix a = Matrix::Zero(d, d);
  int64_t rotated = 0;
  if (const auto* rope = std::get_if<RopePosition>(&position)) {
    rotated = rope->rotated(d);
    const bool halves = rope->pairing == RopePairing::kHalfSplit;
    for (int64_t i = 0; i < rotated / 2; ++i) {
      const int64_t first = halves ? i : 2 * i, second = halves ? i + rotated / 2 : 2 * i + 1;
      const std::complex<double> c = std::polar(1 + 0.3 * draw(), 3 * draw());
      a(first, first) = a(second, second) = c.real();
      a(second, first) = c.imag();
      a(first, second) = -c.imag();
    }
  }
  for (int64_t r = rotated; r < d; ++r) {
    for (int64_t c = rotated; c < d; ++c) a(r, c) = (r == c ? 1 : 0) + 0.4 * draw();
  }
  return a;
}

// The same model with a KV head for each query head: V and K of a head multiplied by random matrices, which output and
// queries undo.
void spread(const Model& from, Model& to, const std::string& prefix, const GqaSpec& spec, const PositionSpec& position,
            bool free_keys) {
  const bool cross = prefix.ends_with("cross_attention.");
  const int64_t d = spec.head_dim, heads = spec.num_attention_heads, m = heads / spec.num_key_value_heads;
  const auto joined = [&](const char* kind) {
    if (!cross) return values(from, prefix + "qkv." + kind);
    const Matrix q = values(from, prefix + "q." + kind), kv = values(from, prefix + "kv." + kind);
    Matrix all(q.rows() + kv.rows(), kv.cols());
    all << q, kv;
    return all;
  };
  Matrix output = values(from, prefix + "output.weight");
  for (const char* kind : {"weight", "bias"}) {
    const Matrix old = joined(kind);
    if (old.size() == 0) continue;
    Matrix q = old.topRows(heads * d), k(heads * d, old.cols()), v = k;
    for (int64_t h = 0; h < heads; ++h) {
      const auto seed = static_cast<uint64_t>(h);
      const Matrix of_key = free_keys ? commuting(position, d, 100 + seed) : Matrix::Identity(d, d);
      const Matrix of_value = commuting(NoPosition{}, d, 200 + seed);
      q.middleRows(h * d, d) = of_key.inverse().transpose() * old.middleRows(h * d, d);
      k.middleRows(h * d, d) = of_key * old.middleRows((heads + h / m) * d, d);
      v.middleRows(h * d, d) = of_value * old.middleRows((heads + heads / m + h / m) * d, d);
      if (kind[0] == 'w') output.middleCols(h * d, d) = (output.middleCols(h * d, d) * of_value.inverse()).eval();
    }
    Matrix kv(2 * heads * d, old.cols()), all(3 * heads * d, old.cols());
    kv << k, v;
    all << q, kv;
    if (cross) {
      set(to, prefix + "q." + kind, q);
      set(to, prefix + "kv." + kind, kv);
    } else {
      set(to, prefix + "qkv." + kind, all);
    }
  }
  set(to, prefix + "output.weight", output);
}

std::unique_ptr<Model> with_spread_heads(const Model& model, const ArchSpec& wide) {
  auto to = std::make_unique<Model>(wide);
  for (const auto& e : to->parameters().entries()) {
    const Param old = model.parameters().param(e.decl.name);
    if (old.out * old.in == e.size) std::copy_n(old.value, e.size, to->parameters().values(e).begin());
  }
  const auto layers = [&](const StackSpec& stack, const std::string& prefix) {
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      const LayerSpec& layer = stack.layers[i];
      const GqaSpec& spec = std::get<GqaSpec>(layer.attention);
      const std::string place = prefix + "layers." + std::to_string(i) + ".";
      const bool free_keys = spec.qk_norm == QkNorm::kNone;
      spread(model, *to, place + "attention.", spec, layer.position, free_keys);
      if (layer.cross_attention) spread(model, *to, place + "cross_attention.", spec, NoPosition{}, free_keys);
    }
  };
  layers(model.spec(), "");
  layers(model.spec().encoder, "encoder.");
  return to;
}

struct FreeCase {
  std::string name, topology;
  Json attention, position;
};
std::ostream& operator<<(std::ostream& out, const FreeCase& c) { return out << c.name; }

class EqualButForWhatIsFree : public ::testing::TestWithParam<FreeCase> {};

TEST_P(EqualButForWhatIsFree, IsFoundAgain) {
  const FreeCase& c = GetParam();
  const auto spec = [&](int64_t kv_heads) {
    return topology_spec(c.topology, {{"attention", gqa(4, kv_heads, c.attention)}, {"position", c.position}});
  };
  for (const int64_t heads : {1, 2}) {
    SCOPED_TRACE(heads);
    const auto narrow = random_model(spec(heads), false);
    const auto wide = with_spread_heads(*narrow, spec(4));
    const std::vector<float> right = logits_of(*narrow);
    ASSERT_TRUE(close(logits_of(*wide), right, tolerance::kLogits)) << "the test's own model";
    const KvCalibration calibration = calibrated(*wide);
    for (const KvCalibration* by : {static_cast<const KvCalibration*>(nullptr), &calibration}) {
      const auto aligned = convert_kv_heads(*wide, {.heads = heads, .merge = KvMerge::kAligned, .calibration = by});
      EXPECT_TRUE(close(logits_of(*aligned), right, tolerance::kLogits)) << (by ? "calibrated" : "not calibrated");
    }
    for (const KvMerge merge : {KvMerge::kMean, KvMerge::kFirst})
      EXPECT_FALSE(close(logits_of(*convert_kv_heads(*wide, {.heads = heads, .merge = merge})), right, 0.1));
  }
}

INSTANTIATE_TEST_SUITE_P(
    KvHeads, EqualButForWhatIsFree,
    ::testing::Values(
        FreeCase{"none", "decoder", Json::object(), {{"kind", "none"}}},
        FreeCase{"learned", "decoder", {{"qkv_bias", true}}, {{"kind", "learned"}}},
        FreeCase{"alibi", "decoder", {{"qkv_bias", true}}, {{"kind", "alibi"}}},
        FreeCase{"t5", "encoder_decoder", Json::object(), {{"kind", "t5"}}},
        FreeCase{"cross", "encoder_decoder", {{"qkv_bias", true}}, {{"kind", "learned"}}},
        FreeCase{"cross_rope", "encoder_decoder", {{"qkv_bias", true}}, {{"kind", "rope"}}},
        FreeCase{"encoder", "encoder", {{"qkv_bias", true}}, {{"kind", "rope"}}},
        FreeCase{"rope", "decoder", Json::object(), {{"kind", "rope"}}},
        FreeCase{"rope_biased", "decoder", {{"qkv_bias", true}, {"output_bias", true}}, {{"kind", "rope"}}},
        FreeCase{"interleaved", "decoder", {{"qkv_bias", true}}, {{"kind", "rope"}, {"pairing", "interleaved"}}},
        FreeCase{"partial",
                 "decoder",
                 {{"qkv_bias", true}, {"head_dim", 8}},
                 {{"kind", "rope"}, {"partial_rotary_factor", 0.5}}},
        FreeCase{"partial_interleaved",
                 "decoder",
                 {{"head_dim", 8}},
                 {{"kind", "rope"}, {"partial_rotary_factor", 0.25}, {"pairing", "interleaved"}}},
        FreeCase{"softcap_and_sinks",
                 "decoder",
                 {{"logit_softcap", 2}, {"sinks", true}, {"qkv_bias", true}},
                 {{"kind", "none"}}},
        FreeCase{"qk_norm", "decoder", {{"qk_norm", "rmsnorm"}}, {{"kind", "rope"}}},
        FreeCase{"qk_norm_of_each", "decoder", {{"qk_norm", "layernorm"}}, {{"kind", "learned"}}}),
    [](const auto& c) { return c.param.name; });

// The errors that kv_heads.cc names, from the weights of source and result.
class Losses : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr int64_t kHeads = 4, kDim = 6, kGroup = 2;
  using ComplexMatrix = Eigen::MatrixXcd;

  void convert(const Json& position, const Json& attention) {
    source_ = random_model(decoder(gqa(kHeads, kHeads, attention), position), false);
    const KvCalibration calibration = calibrated(*source_);
    const KvCalibration* const by = GetParam() ? &calibration : nullptr;
    second_ = Matrix::Identity(25, 25);
    if (by) {
      const auto* moment = by->find("attention_input", 1);
      ASSERT_EQ(moment->rows, 4 * 40);
      second_ = Eigen::Map<const Matrix>(moment->sum.data(), 25, 25) / moment->rows;
    }
    aligned_ = convert_kv_heads(*source_, {.heads = kHeads / kGroup, .merge = KvMerge::kAligned, .calibration = by});
    mean_ = convert_kv_heads(*source_, {.heads = kHeads / kGroup, .merge = KvMerge::kMean});
  }

  // Rows of head h of a part (0 queries, 1 keys, 2 values) with their bias, as query head h reads them.
  static Matrix rows(const Model& model, int part, int64_t h) {
    const std::string name = "layers.1.attention.qkv.";
    const Matrix w = values(model, name + "weight"), b = values(model, name + "bias");
    const int64_t kv_heads = (w.rows() / kDim - kHeads) / 2;
    const int64_t at = part == 0 ? h : kHeads + (part - 1) * kv_heads + h * kv_heads / kHeads;
    Matrix both = Matrix::Zero(kDim, w.cols() + 1);
    both.leftCols(w.cols()) = w.middleRows(at * kDim, kDim);
    if (b.size() > 0) both.rightCols(1) = b.middleRows(at * kDim, kDim);
    return both;
  }
  static Matrix value_product(const Model& model, int64_t h) {
    return values(model, "layers.1.attention.output.weight").middleCols(h * kDim, kDim) * rows(model, 2, h);
  }
  static Matrix key_product(const Model& model, int64_t h) { return rows(model, 0, h).transpose() * rows(model, 1, h); }
  static ComplexMatrix turning(const Model& model, int part, int64_t h, int64_t pair) {
    const Matrix r = rows(model, part, h);
    return r.row(pair).cast<std::complex<double>>() +
           std::complex<double>(0, 1) * r.row(pair + kDim / 2).cast<std::complex<double>>();
  }
  static ComplexMatrix turning_product(const Model& model, int64_t h, int64_t pair) {
    return turning(model, 0, h, pair).adjoint() * turning(model, 1, h, pair);
  }

  // sum over heads of || left^(1/2) (product of the source - of the model) right^(1/2) ||^2, and what of the source's
  // stack lies beyond its `rank` largest singular values, group by group.
  template <class Product>
  void expect_least(const Product& product, const Matrix& left, const Matrix& right, int64_t rank) {
    const auto root = [](const Matrix& m) { return Matrix(Eigen::SelfAdjointEigenSolver<Matrix>(m).operatorSqrt()); };
    const Matrix l = root(left), r = root(right);
    double least = 0, aligned = 0, mean = 0;
    for (int64_t g = 0; g < kHeads / kGroup; ++g) {
      auto first = product(*source_, 0);
      decltype(first) stack(kGroup * l.rows(), r.cols());
      for (int64_t k = 0; k < kGroup; ++k) {
        const int64_t h = g * kGroup + k;
        stack.middleRows(k * l.rows(), l.rows()) = l * product(*source_, h) * r;
        aligned += (l * (product(*source_, h) - product(*aligned_, h)) * r).squaredNorm();
        mean += (l * (product(*source_, h) - product(*mean_, h)) * r).squaredNorm();
      }
      const Eigen::VectorXd singular = Eigen::JacobiSVD<decltype(stack)>(stack).singularValues();
      least += singular.tail(singular.size() - rank).squaredNorm();
    }
    EXPECT_GT(least, 0);
    EXPECT_NEAR(aligned / least, 1, tolerance::kMergedError);
    EXPECT_GT(mean, 1.05 * aligned);
  }

  std::unique_ptr<Model> source_, aligned_, mean_;
  Matrix second_;
};

TEST_P(Losses, OfValuesAreTheLeast) {
  for (const bool bias : {true, false}) {
    convert({{"kind", "rope"}}, {{"qkv_bias", bias}});
    expect_least(value_product, Matrix::Identity(24, 24), second_, kDim);
  }
}

TEST_P(Losses, OfKeysThatDoNotTurnAreTheLeast) {
  const auto centered = [&] { return Matrix(second_ - second_.col(24) * second_.row(24)); };
  convert({{"kind", "alibi"}}, {{"qkv_bias", true}});
  expect_least(key_product, second_, centered(), kDim);
  convert({{"kind", "none"}}, {{"logit_softcap", 3}, {"qkv_bias", true}});
  expect_least(key_product, second_, second_, kDim);
}

TEST_P(Losses, OfKeysThatTurnAreTheLeast) {
  convert({{"kind", "rope"}}, {{"qkv_bias", true}});
  for (int64_t pair = 0; pair < kDim / 2; ++pair) {
    expect_least([&](const Model& m, int64_t h) { return turning_product(m, h, pair); }, second_, second_, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(KvHeads, Losses, ::testing::Bool(),
                         [](const auto& c) { return c.param ? "Calibrated" : "AllInputsAlike"; });

// Norms and clipping tie queries and keys to their sizes.
TEST(KvHeads, WhatIsTiedIsTheMean) {
  const auto rows_of = [](const Model& m, int64_t first, int64_t count) {
    return Matrix(values(m, "layers.0.attention.qkv.weight").middleRows(first, count));
  };
  for (const Json& tied : {Json{{"qk_norm", "rmsnorm"}}, Json{{"clip_qkv", 0.4}}}) {
    const auto model = random_model(decoder(gqa(4, 4, tied)), false);
    const auto mean = convert_kv_heads(*model, {.heads = 2, .merge = KvMerge::kMean});
    const auto aligned = convert_kv_heads(*model, {.heads = 2, .merge = KvMerge::kAligned});
    EXPECT_EQ(rows_of(*aligned, 0, 24 + 12), rows_of(*mean, 0, 24 + 12)) << "queries and keys";
    EXPECT_EQ(rows_of(*aligned, 36, 12) == rows_of(*mean, 36, 12), tied.contains("clip_qkv")) << "values";
  }
}

TEST(KvHeads, RefusesAllThatCannotBe) {
  const auto layer = [](int64_t kv_heads, int64_t repeat) {
    return Json{{"repeat", repeat}, {"attention", {{"num_key_value_heads", kv_heads}}}};
  };
  const ArchSpec spec = spec_from_json({{"vocab_size", 29},
                                        {"hidden_size", 48},
                                        {"max_position_embeddings", 40},
                                        {"attention", {{"num_attention_heads", 12}}},
                                        {"ffn", {{"kind", "gelu"}, {"intermediate_size", 20}}},
                                        {"layers", {layer(12, 3), layer(6, 1), layer(12, 1)}}},
                                       "mixed");
  const auto refusal = [](const ArchSpec& s, int64_t heads) { return input_error([&] { with_kv_heads(s, heads); }); };
  EXPECT_EQ(refusal(spec, 4), "layers[3].attention: has 6 KV heads, which can't become 4; allowed: 1, 2, 3, 6");
  EXPECT_THAT(refusal(spec, 5), HasSubstr("layers[0-2, 4].attention: has 12 KV heads, which can't become 5"));
  EXPECT_THAT(refusal(spec, 5), HasSubstr("layers[3].attention: has 6"));
  EXPECT_THAT(refusal(spec, 12), HasSubstr("layers[3].attention"));
  EXPECT_THAT(refusal(spec, 12), Not(HasSubstr("layers[0")));
  for (const int64_t heads : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX})
    EXPECT_THAT(refusal(spec, heads), HasSubstr("can't become"));
  EXPECT_EQ(refusal(spec, 3), "(no error)");
  const ArchSpec latent = topology_spec("decoder", {{"position", {{"kind", "rope"}}},
                                                    {"attention",
                                                     {{"kind", "mla"},
                                                      {"num_attention_heads", 4},
                                                      {"kv_lora_rank", 8},
                                                      {"qk_nope_head_dim", 4},
                                                      {"qk_rope_head_dim", 2},
                                                      {"v_head_dim", 4}}}});
  EXPECT_THAT(refusal(latent, 1), HasSubstr("layers[0-1].attention: is latent attention"));
  const ArchSpec both = topology_spec("encoder_decoder");
  EXPECT_THAT(refusal(both, 3), HasSubstr("\nencoder.layers[0-1].attention"));
  EXPECT_THAT(refusal(both, 3), ::testing::StartsWith("decoder.layers[0-1].attention"));
}

// What is observed is what attention reads: here rows that a norm has brought to a mean square of 1.
TEST(KvCalibration, HoldsTheNormedRows) {
  const Json norm{{"kind", "rmsnorm"}, {"eps", 1e-12}, {"elementwise_affine", false}};
  const auto model = random_model(topology_spec("decoder", {{"norm", norm}}), false);
  const KvCalibration calibration = calibrated(*model);
  const auto* moment = calibration.find("attention_input", 1);
  double squares = 0;
  for (int64_t i = 0; i < 24; ++i) squares += moment->sum[static_cast<size_t>(i * 25 + i)];
  EXPECT_NEAR(squares / (24.0 * 160), 1, tolerance::kKernel);
}

TEST(KvCalibration, HoldsTheInputsOfEachAttention) {
  const auto model = random_model(topology_spec("encoder_decoder"), false);
  const KvCalibration calibration = calibrated(*model);
  for (const int64_t layer : {0, 1}) {
    for (const char* part :
         {"attention_input", "cross_attention_input", "cross_attention_source", "encoder attention_input"}) {
      const auto* moment = calibration.find(part, layer);
      ASSERT_TRUE(moment) << part;
      EXPECT_EQ(
          moment->rows,
          std::string_view(part).starts_with("encoder") || std::string_view(part).ends_with("source") ? 240 : 160);
      EXPECT_EQ(moment->sum.back(), static_cast<double>(moment->rows)) << "the bias' one";
    }
  }
  EXPECT_EQ(calibration.find("cross_attention_source", 0)->sum, calibration.find("cross_attention_source", 1)->sum);
  EXPECT_NE(calibration.find("attention_input", 0)->sum, calibration.find("attention_input", 1)->sum);
  EXPECT_EQ(calibration.find("attention_input", 2), nullptr);
}

}  // namespace
}  // namespace transept
