// Objectives: what fits which stacks, what a vocabulary must have, pairs and their bad lines.
#include "data/objective.h"

#include <gmock/gmock.h>

#include "data/examples.h"
#include "data/pairs.h"
#include "data/synthetic.h"
#include "support/throws.h"

namespace transept {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr Stacks kDecoderOnly{false, true}, kEncoderOnly{true, false}, kBoth{true, true};

TEST(Objective, NamesComeBack) {
  for (const char* name : {"causal", "mlm", "span", "denoise", "seq2seq"})
    EXPECT_EQ(objective_name(*objective_from_name(name)), name);
  EXPECT_FALSE(objective_from_name("clm").has_value());
}

TEST(Objective, DefaultsAndRefusalsByStacks) {
  for (const bool pairs : {false, true}) {
    EXPECT_EQ(default_objective(kDecoderOnly, pairs), Objective::kCausal);
    EXPECT_EQ(default_objective(kEncoderOnly, pairs), Objective::kMlm);
    EXPECT_EQ(default_objective(kBoth, pairs), pairs ? Objective::kSeq2seq : Objective::kSpan);
  }
  const auto refusal = [](Objective o, Stacks s) { return input_error([&] { check_objective(o, s); }); };
  for (const Objective o :
       {Objective::kCausal, Objective::kMlm, Objective::kSpan, Objective::kDenoise, Objective::kSeq2seq}) {
    const bool seq = o != Objective::kCausal && o != Objective::kMlm;
    EXPECT_EQ(refusal(o, kDecoderOnly) == "(no error)", o == Objective::kCausal);
    EXPECT_EQ(refusal(o, kEncoderOnly) == "(no error)", o == Objective::kMlm);
    EXPECT_EQ(refusal(o, kBoth) == "(no error)", seq);
  }
  EXPECT_THAT(refusal(Objective::kMlm, kDecoderOnly),
              AllOf(HasSubstr("--objective"), HasSubstr("a decoder only"), HasSubstr("allowed is causal")));
  EXPECT_THAT(refusal(Objective::kCausal, kBoth), HasSubstr("span, denoise, seq2seq"));
}

TEST(CheckExamples, WhatAVocabularyOrAContextLacks) {
  const Vocabulary plain = vocabulary_of(*byte_tokenizer()),
                   few = vocabulary_of(*extend_tokenizer(byte_tokenizer(), 3));
  const auto refusal = [](Objective o, const Vocabulary& v, int64_t context, bool separate = false,
                          bool permute = false) {
    return input_error([&] { check_examples({o, separate, permute}, v, context); });
  };
  EXPECT_THAT(refusal(Objective::kMlm, plain, 16), HasSubstr("has no mask token"));
  EXPECT_THAT(refusal(Objective::kDenoise, plain, 16), HasSubstr("has no mask token"));
  EXPECT_EQ(refusal(Objective::kCausal, plain, 1), "(no error)");
  EXPECT_EQ(refusal(Objective::kSeq2seq, plain, 16), "(no error)");
  EXPECT_EQ(refusal(Objective::kSpan, few, 16), "(no error)");
  EXPECT_THAT(refusal(Objective::kSpan, few, 64), HasSubstr("has 3 sentinels, but a context of 64 needs 4"));
  EXPECT_THAT(refusal(Objective::kSpan, few, 2), HasSubstr("allowed is 3 or more"));
  EXPECT_THAT(refusal(Objective::kMlm, few, 3), HasSubstr("allowed is 4 or more"));
  EXPECT_EQ(refusal(Objective::kMlm, few, 4), "(no error)");
  EXPECT_THAT(refusal(Objective::kCausal, few, 1, true), HasSubstr("allowed is 2 or more"));
  EXPECT_THAT(refusal(Objective::kSeq2seq, few, 16, true), HasSubstr("--separate-documents"));
  EXPECT_THAT(refusal(Objective::kSpan, few, 16, false, true), HasSubstr("--permute-sentences"));
}

TEST(Framed, WithWhatTheVocabularyHasAndTheTextHasNot) {
  Vocabulary v = vocabulary_of(*byte_tokenizer());
  EXPECT_EQ(framed(Ids{5, 6}, v), (Ids{256, 5, 6, 257}));
  EXPECT_EQ(framed(Ids{}, v), (Ids{256, 257}));
  EXPECT_EQ(framed(Ids{256, 5}, v), (Ids{256, 5, 257}));
  EXPECT_EQ(framed(Ids{5, 257}, v), (Ids{256, 5, 257}));
  EXPECT_EQ(window_tokens(Objective::kMlm, 16, v), 14);
  v.bos = std::nullopt;
  EXPECT_EQ(framed(Ids{5, 6}, v), (Ids{5, 6, 257}));
  EXPECT_EQ(window_tokens(Objective::kMlm, 16, v), 15);
  v.eos = std::nullopt;
  EXPECT_EQ(framed(Ids{5, 6}, v), (Ids{5, 6}));
  EXPECT_EQ(window_tokens(Objective::kMlm, 16, v), 16);
}

TEST(AddExample, DenoisingAsksForTheText) {
  const Vocabulary v = vocabulary_of(*extend_tokenizer(byte_tokenizer(), 0));
  const Ids text{'a', '.', 'b', '.', 'c', '.', 'd', '.'};
  Draws draws(1, 0);
  Batch b;
  add_example(text, {.objective = Objective::kDenoise, .permute_sentences = true}, v, draws, b);
  Ids target = text, tokens = text;
  target.push_back(257);
  tokens.insert(tokens.begin(), 256);
  EXPECT_EQ(b.targets, target);
  EXPECT_EQ(b.tokens, tokens);
  EXPECT_EQ(b.source_tokens.back(), 257);
}

TextFile file(const char* name, std::string text) { return {name, std::move(text)}; }

TEST(Pairs, BothForms) {
  const auto tsv = read_pairs(file("a.tsv", "one\ttwo words\r\nx\ty"));
  ASSERT_EQ(tsv.size(), 2u);
  EXPECT_EQ(tsv[0].target, "two words");
  EXPECT_EQ(tsv[1].where, "a.tsv:2");
  const auto json = read_pairs(file("a.jsonl", R"({"id": 3, "target": "b\tc", "source": "a"})"
                                               "\n"
                                               R"({"source":"d","target":"e"})"));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0].source, "a");
  EXPECT_EQ(json[0].target, "b\tc");
  const std::filesystem::path paths[] = {"a.tsv", "b.jsonl", "c.txt"};
  EXPECT_TRUE(are_pairs(std::span(paths).first(2)));
  EXPECT_FALSE(are_pairs(paths));
  EXPECT_FALSE(are_pairs({}));
}

TEST(Pairs, BadLinesAreNamed) {
  const auto refusal = [](const char* name, const char* text) {
    return input_error([&] { read_pairs(file(name, text)); });
  };
  EXPECT_THAT(refusal("a.tsv", "a\tb\nno tab\nc\td\ne\tf\tg\n"),
              AllOf(HasSubstr("a.tsv:2: does not hold exactly one tab"), HasSubstr("a.tsv:4: ")));
  EXPECT_THAT(refusal("a.tsv", "a\tb\n\nc\td\n"), HasSubstr("a.tsv:2"));
  EXPECT_THAT(refusal("a.tsv", "a\t\n"), HasSubstr("a.tsv:1: has an empty source or target"));
  EXPECT_THAT(refusal("a.jsonl", "{\"source\":\"a\",\"target\":\"b\"}\n{\n"), HasSubstr("a.jsonl:2"));
  EXPECT_THAT(refusal("a.jsonl", "{\"source\":\"a\"}"), HasSubstr("\"target\""));
  EXPECT_THAT(refusal("a.jsonl", "{\"source\":1,\"target\":\"b\"}"), HasSubstr("\"source\""));
  EXPECT_THAT(refusal("a.jsonl", "[1]"), HasSubstr("a.jsonl:1"));
  EXPECT_THAT(refusal("a.txt", "a\tb"), HasSubstr("a.txt: is no file of pairs"));
}

TEST(Pairs, ACorpusOfThem) {
  const auto t = byte_tokenizer();
  TextFiles texts;
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "12\t345\n";
  texts.files.push_back(file("a.tsv", lines));
  const Corpus corpus(texts, nullptr, *t, {Unit::kPairs, 8, 0.25});
  EXPECT_EQ(corpus.train().documents(), 30);
  EXPECT_EQ(corpus.val().documents(), 10);
  EXPECT_EQ(corpus.val().token(0), '1');
  EXPECT_EQ(corpus.val().document_tokens(1), 4);
  EXPECT_THAT(input_error([&] { Corpus c(texts, nullptr, *t, {Unit::kPairs, 3, 0.25}); }),
              AllOf(HasSubstr("a.tsv:1: holds a text of 4 tokens"), HasSubstr("context of 3")));
}

TEST(SyntheticPairs, TasksLengthsAndSeeds) {
  const std::string reversed = synthetic_pairs(PairTask::kReverse, 500, 2, 5, 1);
  EXPECT_EQ(reversed, synthetic_pairs(PairTask::kReverse, 500, 2, 5, 1));
  EXPECT_NE(reversed, synthetic_pairs(PairTask::kReverse, 500, 2, 5, 2));
  std::array<int, 6> lengths{};
  std::array<int, 10> digits{};
  for (const TextPair& p : read_pairs(file("r.tsv", reversed))) {
    EXPECT_EQ(std::string(p.source.rbegin(), p.source.rend()), p.target);
    ASSERT_TRUE(p.source.size() >= 2 && p.source.size() <= 5);
    ++lengths[p.source.size()];
    for (const char c : p.source) ++digits.at(static_cast<size_t>(c - '0'));
  }
  for (size_t n = 2; n <= 5; ++n) EXPECT_GT(lengths[n], 90) << n;
  for (const int n : digits) EXPECT_GT(n, 100);
  for (const TextPair& p : read_pairs(file("c.tsv", synthetic_pairs(PairTask::kCopy, 50, 1, 12, 1))))
    EXPECT_EQ(p.source, p.target);
}

}  // namespace
}  // namespace transept
