// Beam search: with a beam as wide as the tree, the best of all answers there are; with a beam of one, greedy decoding;
// between them, what a plain search that runs every prefix anew finds.
#include "infer/beam_search.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/compare.h"
#include "support/models.h"
#include "support/tolerances.h"

namespace transept {
namespace {

// Letters from 'a' on, and behind them the end token, which is also what answers begin with.
class Letters final : public Tokenizer {
 public:
  explicit Letters(int64_t size) : size_(size) {}
  std::string_view kind() const override { return "letters"; }
  int64_t vocab_size() const override { return size_; }
  std::optional<int32_t> bos() const override { return std::nullopt; }
  std::optional<int32_t> eos() const override { return static_cast<int32_t>(size_ - 1); }
  std::optional<int32_t> pad() const override { return std::nullopt; }
  Encoding encode_with_offsets(std::string_view text, Specials) const override {
    Encoding encoding;
    for (size_t i = 0; i < text.size(); ++i) {
      encoding.ids.push_back(text[i] - 'a');
      encoding.offsets.push_back({i, i + 1});
    }
    return encoding;
  }
  std::string piece(int32_t id) const override { return bytes_of(id); }
  std::string bytes_of(int32_t id) const override {
    return is_special(id) ? "" : std::string(1, static_cast<char>('a' + id));
  }
  bool is_special(int32_t id) const override { return id == *eos(); }
  void save(const std::filesystem::path&) const override {}

 private:
  int64_t size_;
};

constexpr int64_t kLetters = 4, kVocab = 5;  // the model's vocabulary is padded

ArchSpec small_spec(bool encoder_decoder, int64_t window = 0) {
  Json document{{"vocab_size", kVocab},
                {"hidden_size", 16},
                {"max_position_embeddings", 32},
                {"initializer_range", 0.6},
                {"norm", {{"kind", "layernorm"}}},
                {"position", {{"kind", "rope"}}},
                {"attention", {{"num_attention_heads", 2}}},
                {"ffn", {{"kind", "gelu"}, {"intermediate_size", 16}}}};
  if (window > 0) document["attention"]["sliding_window"] = window;
  const Json stack{{"num_hidden_layers", 2}};
  if (encoder_decoder) {
    document["topology"] = "encoder_decoder";
    document["encoder"] = document["decoder"] = stack;
  } else {
    document.update(stack);
  }
  return spec_from_json(document, "small");
}

class BeamSearch : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr int64_t kContext = 20;

  std::unique_ptr<Model> model(uint64_t seed, int64_t window = 0) {
    return random_model(small_spec(GetParam(), window), false, seed);
  }
  BeamGeneration search(const Model& m, const GenerateOptions& options, const BeamOptions& beam) {
    Decoder decoder(m, pool_, kContext, kContext, beam.beams);
    return beam_search(decoder, letters_, kPrompt, options, beam);
  }
  // log P of each token that may follow an answer so far, from a pass over the whole of it.
  std::vector<double> log_probabilities(const Model& m, const std::vector<int32_t>& answer) {
    const Prompt prompt = encode_prompt(m.spec(), letters_, kPrompt, kContext);
    std::vector<int32_t> ids = prompt.tokens;
    ids.insert(ids.end(), answer.begin(), answer.end());
    std::vector<float> logits(ids.size() * kVocab);
    forward_logits(m, pool_, ids, logits, prompt.source);
    const auto last = std::span(logits).last(kVocab).first(kLetters);
    double total = 0;
    for (const float z : last) total += std::exp(static_cast<double>(z));
    std::vector<double> out;
    for (const float z : last) out.push_back(static_cast<double>(z) - std::log(total));
    return out;
  }
  // Every answer of at most `longest` tokens, scored by the formula.
  void every_answer(const Model& m, int64_t longest, double alpha, std::vector<int32_t>& answer, double log_probability,
                    std::vector<Hypothesis>& out) {
    const auto score = [&](double log_p, size_t length) {
      return log_p / std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
    };
    if (static_cast<int64_t>(answer.size()) == longest) {
      out.push_back({"", answer, "length", score(log_probability, answer.size())});
      return;
    }
    const auto next = log_probabilities(m, answer);
    for (int32_t token = 0; token < kLetters; ++token) {
      const double log_p = log_probability + next[static_cast<size_t>(token)];
      if (token == *letters_.eos()) {
        out.push_back({"", answer, "stop", score(log_p, answer.size() + 1)});
        continue;
      }
      answer.push_back(token);
      every_answer(m, longest, alpha, answer, log_p, out);
      answer.pop_back();
    }
  }

  const std::string kPrompt = "abca";
  ThreadPool pool_{1};
  Letters letters_{kLetters};
};

TEST_P(BeamSearch, AsWideAsTheTreeFindsTheBestOfAllAnswers) {
  constexpr int64_t kLongest = 4, kBeams = 81;  // 3^4: never more live ones
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto m = model(seed);
    for (const double alpha : {0.0, 0.6, 1.0, 3.0}) {
      std::vector<Hypothesis> wanted;
      std::vector<int32_t> answer;
      every_answer(*m, kLongest, alpha, answer, 0, wanted);
      std::sort(wanted.begin(), wanted.end(),
                [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
      ASSERT_EQ(wanted.size(), 1u + 3 + 9 + 27 + 81);
      const BeamGeneration got =
          search(*m, {.max_tokens = kLongest, .sampling = {}}, {.beams = kBeams, .length_penalty = alpha});
      ASSERT_EQ(got.beams.size(), static_cast<size_t>(kBeams));
      // Neighbours closer than rounding may change places.
      std::vector<double> scores, wanted_scores;
      for (size_t i = 0; i < got.beams.size(); ++i) {
        const auto same = std::find_if(wanted.begin(), wanted.end(), [&](const Hypothesis& h) {
          return h.tokens == got.beams[i].tokens && h.finish_reason == got.beams[i].finish_reason;
        });
        ASSERT_NE(same, wanted.end());
        EXPECT_NEAR(same->score, got.beams[i].score, tolerance::kKernel * (1 + std::abs(same->score)));
        EXPECT_NEAR(wanted[i].score, got.beams[i].score, tolerance::kKernel * (1 + std::abs(same->score)));
        EXPECT_EQ(got.beams[i].text, letters_.decode(got.beams[i].tokens));
      }
      EXPECT_EQ(got.best.tokens, wanted.front().tokens);
      EXPECT_EQ(got.best.tokens, got.beams.front().tokens);
      EXPECT_EQ(got.best.finish_reason, got.beams.front().finish_reason);
    }
  }
}

// A narrow beam against a plain one that runs every prefix anew: branches, rings that wrap around, and shared sources
// give what whole passes give.
TEST_P(BeamSearch, IsThePlainSearch) {
  for (const int64_t window : {0, 3}) {
    for (const uint64_t seed : {4u, 5u, 6u, 7u}) {
      const auto m = model(seed, window);
      for (const size_t beams : {2u, 3u, 5u}) {
        const int64_t longest = 12;
        std::vector<std::pair<double, std::vector<int32_t>>> live{{0, {}}}, finished;
        for (int64_t length = 1; length <= longest; ++length) {
          decltype(live) all;
          for (const auto& [log_p, tokens] : live) {
            const auto next = log_probabilities(*m, tokens);
            for (int32_t token = 0; token < kLetters; ++token) {
              all.push_back({log_p + next[static_cast<size_t>(token)], tokens});
              all.back().second.push_back(token);
            }
          }
          std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
          all.resize(std::min(all.size(), beams));
          live.clear();
          for (auto& h : all) {
            const bool over = h.second.back() == *letters_.eos() || length == longest;
            if (over) h.first /= (5.0 + static_cast<double>(length)) / 6.0;
            (over ? finished : live).push_back(std::move(h));
          }
        }
        std::sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        const BeamGeneration got = search(*m, {.max_tokens = longest, .sampling = {}},
                                          {.beams = static_cast<int64_t>(beams), .length_penalty = 1});
        ASSERT_EQ(got.beams.size(), beams);
        for (size_t i = 0; i < beams; ++i) {
          std::vector<int32_t> tokens = finished[i].second;
          if (tokens.back() == *letters_.eos()) tokens.pop_back();
          EXPECT_EQ(got.beams[i].tokens, tokens) << "place " << i << " of " << beams << ", seed " << seed;
          EXPECT_NEAR(got.beams[i].score, finished[i].first, 10 * tolerance::kKernel);
        }
      }
    }
  }
}

TEST_P(BeamSearch, ABeamOfOneIsGreedy) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto m = model(seed);
    const GenerateOptions options{.max_tokens = 12, .sampling = {.temperature = 0}, .ignore_eos = seed > 4};
    Decoder decoder(*m, pool_, kContext, kContext);
    const Generation greedy = generate(decoder, letters_, kPrompt, options);
    const BeamGeneration beam = beam_search(decoder, letters_, kPrompt, options, {.beams = 1, .length_penalty = 1});
    EXPECT_EQ(beam.best.tokens, greedy.tokens);
    EXPECT_EQ(beam.best.text, greedy.text);
    EXPECT_EQ(beam.best.finish_reason, greedy.finish_reason);
    EXPECT_EQ(beam.best.prompt_tokens, greedy.prompt_tokens);
    EXPECT_EQ(beam.beams.size(), 1u);
  }
}

TEST_P(BeamSearch, StopsEndHypotheses) {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    const auto m = model(seed);
    const BeamGeneration got = search(*m, {.max_tokens = 8, .sampling = {}, .stop = {"b"}, .ignore_eos = true},
                                      {.beams = 81, .length_penalty = 0});
    ASSERT_FALSE(got.beams.empty());
    for (const Hypothesis& h : got.beams) {
      EXPECT_EQ(h.text.find('b'), std::string::npos);
      EXPECT_EQ(h.finish_reason == "stop", !h.tokens.empty() && h.tokens.back() == 1);
    }
  }
}

TEST_P(BeamSearch, Limits) {
  const auto m = model(1);
  const BeamGeneration none = search(*m, {.max_tokens = 0, .sampling = {}}, {.beams = 3, .length_penalty = 1});
  ASSERT_EQ(none.beams.size(), 1u);
  EXPECT_EQ(none.best.finish_reason, "length");
  EXPECT_EQ(none.best.text, "");
  // The last token needs no place in the context.
  const int64_t room = kContext - (GetParam() ? 1 : static_cast<int64_t>(kPrompt.size())) + 1;
  const BeamGeneration full =
      search(*m, {.max_tokens = 1000, .sampling = {}, .ignore_eos = true}, {.beams = 3, .length_penalty = 1});
  for (const Hypothesis& h : full.beams) EXPECT_EQ(static_cast<int64_t>(h.tokens.size()), room);
  // Whoever says no gets what there is.
  Decoder decoder(*m, pool_, kContext, kContext, 3);
  int asked = 0;
  const BeamGeneration cut =
      beam_search(decoder, letters_, kPrompt, {.max_tokens = 10, .sampling = {}, .ignore_eos = true},
                  {.beams = 3, .length_penalty = 1}, [&] { return ++asked < 4; });
  EXPECT_EQ(cut.best.tokens.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Topologies, BeamSearch, ::testing::Bool(),
                         [](const auto& c) { return c.param ? "EncoderDecoder" : "Decoder"; });

TEST(BeamSearchErrors, LogitsMustBeFinite) {
  const auto m = random_model(small_spec(false), false);
  for (float& x : m->parameters().values(*m->parameters().find("final_norm.weight")))
    x = std::numeric_limits<float>::infinity();
  ThreadPool pool(1);
  const Letters letters(kLetters);
  Decoder decoder(*m, pool, 20, 0, 2);
  EXPECT_THROW(
      beam_search(decoder, letters, "ab", {.max_tokens = 3, .sampling = {}}, {.beams = 2, .length_penalty = 1}),
      EnvironmentError);
}

TEST(BeamSearchErrors, OptionsOutOfRangeAreReportedTogether) {
  EXPECT_EQ((BeamOptions{.beams = 0, .length_penalty = -0.5}).check().size(), 2u);
  EXPECT_EQ((BeamOptions{.beams = 5000, .length_penalty = NAN}).check().size(), 2u);
  EXPECT_TRUE(BeamOptions{}.check().empty());
}

}  // namespace
}  // namespace transept
