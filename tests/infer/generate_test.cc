// Generation: limits, stops that never leak, whole characters, seeds.
#include "infer/generate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "infer/beam_search.h"
#include "support/models.h"

namespace transept {
namespace {

// A model over bytes whose next byte follows from the last: the embedding of byte b points at the successor's row of
// the head. Built so that greedy decoding walks through `cycle` for ever.
std::unique_ptr<Model> parrot(const std::string& cycle) {
  const int64_t width = 64;
  const ArchSpec spec = spec_from_json(Json{{"vocab_size", 259},
                                            {"hidden_size", width},
                                            {"max_position_embeddings", 64},
                                            {"tie_word_embeddings", false},
                                            {"norm", {{"kind", "rmsnorm"}}},
                                            {"position", {{"kind", "none"}}},
                                            {"attention", {{"num_attention_heads", 1}}},
                                            {"ffn", {{"kind", "relu"}, {"intermediate_size", 4}}},
                                            {"num_hidden_layers", 1}},
                                       "parrot");
  auto model = std::make_unique<Model>(spec);
  auto& p = model->parameters();
  const auto fill_ones = [&](const char* name) {
    for (float& x : p.values(*p.find(name))) x = 1;
  };
  fill_ones("final_norm.weight");
  const auto embedding = p.values(*p.find("embedding.weight")), head = p.values(*p.find("head.weight"));
  for (size_t i = 0; i < cycle.size(); ++i) {
    embedding[static_cast<size_t>(static_cast<unsigned char>(cycle[i])) * width + i] = 1;
    head[static_cast<size_t>(static_cast<unsigned char>(cycle[(i + 1) % cycle.size()])) * width + i] = 1;
  }
  return model;
}

class Generate : public ::testing::Test {
 protected:
  Generation run(const std::string& cycle, const std::string& prompt, GenerateOptions options, int64_t context = 64) {
    const auto model = parrot(cycle);
    Decoder decoder(*model, pool_, context);
    options.sampling.temperature = 0;
    pieces_.clear();
    return generate(decoder, *tokenizer_, prompt, options, [&](std::string_view text) {
      pieces_.emplace_back(text);
      return true;
    });
  }
  ThreadPool pool_{1};
  std::unique_ptr<Tokenizer> tokenizer_ = byte_tokenizer();
  std::vector<std::string> pieces_;
};

TEST_F(Generate, ContinuesToTheLimit) {
  const Generation g = run("abcd", "xa", {.max_tokens = 6, .sampling = {}, .stop = {}});
  EXPECT_EQ(g.text, "bcdabc");
  EXPECT_EQ(g.finish_reason, "length");
  EXPECT_EQ(g.tokens.size(), 6u);
  EXPECT_EQ(g.prompt_tokens, 2);
  EXPECT_EQ(run("abcd", "a", {.max_tokens = 0, .sampling = {}, .stop = {}}).text, "");
}

TEST_F(Generate, StopsBeforeAStopStringHoweverItIsCut) {
  for (const char* stop : {"da", "dab", "cdabc", "bcdabcdabc"}) {
    const Generation g = run("abcd", "a", {.max_tokens = 30, .sampling = {}, .stop = {"zzz", stop}});
    EXPECT_EQ(g.finish_reason, "stop");
    const std::string endless = "bcdabcdabcdabcd";
    EXPECT_EQ(g.text, endless.substr(0, endless.find(stop))) << stop;
    std::string joined;
    for (const auto& piece : pieces_) joined += piece;
    EXPECT_EQ(joined, g.text);
  }
}

TEST_F(Generate, HeldBackTextComesOutAtTheEnd) {
  const Generation g = run("abcd", "a", {.max_tokens = 5, .sampling = {}, .stop = {"abX"}});
  EXPECT_EQ(g.text, "bcdab");
  EXPECT_EQ(g.finish_reason, "length");
}

TEST_F(Generate, CharactersAreNeverCut) {
  const Generation g = run("\xE2\x82\xAC!", "!", {.max_tokens = 4, .sampling = {}, .stop = {}});
  EXPECT_EQ(g.text, "\xE2\x82\xAC!");
  EXPECT_EQ(pieces_, (std::vector<std::string>{"\xE2\x82\xAC", "!"}));
}

// A character that never becomes whole is shown as U+FFFD at the end, and that may complete a stop string.
TEST_F(Generate, AStopStringMayBeCompletedByTheEnd) {
  const GenerateOptions options{
      .max_tokens = 2, .sampling = {.temperature = 0}, .stop = {"\xEF\xBF\xBD"}, .ignore_eos = false};
  const auto model = parrot("\xE2\x82\xAC!");
  Decoder decoder(*model, pool_, 64);
  for (const Generation& g :
       {generate(decoder, *tokenizer_, "!", options),
        beam_search(decoder, *tokenizer_, "!", options, {.beams = 1, .length_penalty = 1}).best}) {
    EXPECT_EQ(g.text, "");
    EXPECT_EQ(g.tokens.size(), 2u);
    EXPECT_EQ(g.finish_reason, "stop");
  }
}

TEST_F(Generate, TheContextBounds) {
  const Generation g = run("abcd", "abcd", {.max_tokens = 1000, .sampling = {}, .stop = {}}, 10);
  EXPECT_EQ(g.finish_reason, "length");
  EXPECT_EQ(g.tokens.size(), 7u);  // six more fit, and the last one needs no place
  EXPECT_THROW(run("abcd", "abcdabcdabc", {.max_tokens = 1, .sampling = {}, .stop = {}}, 10), InputError);
}

TEST_F(Generate, AnEmptyPromptBeginsWithTheFirstToken) {
  EXPECT_EQ(run("abcd", "", {.max_tokens = 3, .sampling = {}, .stop = {}}).tokens.size(), 3u);
}

TEST_F(Generate, TheReaderMayLeave) {
  const auto model = parrot("abcd");
  Decoder decoder(*model, pool_, 64);
  int calls = 0;
  const Generation g = generate(
      decoder, *tokenizer_, "a",
      {.max_tokens = 50, .sampling = {.temperature = 0, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 0}, .stop = {}},
      [&](std::string_view) { return ++calls < 3; });
  EXPECT_EQ(g.tokens.size(), 3u);
}

}  // namespace
}  // namespace transept
