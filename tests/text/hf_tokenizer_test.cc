// Tokenizers of tokenizer.json against what Hugging Face's package tokenizers gives (tools/goldens/tokenizer_kinds.py),
// and the cases of public bug reports, by hand-made files.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "support/temp_folder.h"
#include "support/throws.h"
#include "text/random_text.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace transept {
namespace {
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

const std::string kMark = "\xE2\x96\x81";
const std::filesystem::path kGoldens = std::filesystem::path(TRANSEPT_SOURCE_DIR) / "tests/goldens/text/tokenizers";
constexpr const char* kKinds[] = {"bpe-gpt2",  "bpe-roberta", "bpe-llama3",    "bpe-qwen2",          "bpe-deepseek",
                                  "bpe-gpt4o", "bpe-llama2",  "bpe-gemma",     "bpe-suffix",         "unigram",
                                  "wordpiece", "wordlevel",   "unigram-bytes", "unigram-precompiled"};

const Strings& texts() {
  static const Strings all = read_json(kGoldens / "texts.json").get<Strings>();
  return all;
}

class GoldenTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  const std::filesystem::path folder_ = kGoldens / GetParam();
  const std::unique_ptr<Tokenizer> tokenizer_ = load_tokenizer(folder_);
};

TEST_P(GoldenTokenizer, IdsOffsetsAndTextsAreThoseOfThePackage) {
  const Json answers = read_json(folder_ / "answers.json");
  int specials = 0, tokens = 0;
  for (size_t i = 0; i < texts().size(); ++i) {
    const Json& encoded = answers["encoded"][i];
    const Encoding encoding = tokenizer_->encode_with_offsets(texts()[i], Specials::kAdd);
    ASSERT_EQ(encoding.ids, encoded[0].get<Ids>()) << texts()[i];
    ASSERT_EQ(tokenizer_->encode(texts()[i], Specials::kAdd), encoding.ids);
    std::vector<size_t> offsets;
    for (const ByteRange& range : encoding.offsets) {
      offsets.push_back(range.begin);
      offsets.push_back(range.end);
    }
    ASSERT_EQ(offsets, encoded[1].get<std::vector<size_t>>()) << texts()[i];
    ASSERT_EQ(tokenizer_->decode_text(encoding.ids), answers["decoded"][i].get<std::string>()) << texts()[i];
    // A text that is only text: the package's Unigram still finds special tokens in it, since they are pieces.
    const Ids plain = tokenizer_->encode(texts()[i], Specials::kNone), theirs = encoded[2].get<Ids>();
    const auto special = [&](int32_t id) {
      return tokenizer_->is_special(id) && tokenizer_->piece(id) != "<unk>" && tokenizer_->piece(id) != "[UNK]";
    };
    const bool they_have_specials = std::any_of(theirs.begin(), theirs.end(), special);
    ASSERT_FALSE(std::any_of(plain.begin(), plain.end(), special)) << texts()[i];
    if (!they_have_specials && texts()[i].find("<unk>") == std::string::npos) {
      ASSERT_EQ(plain, theirs) << texts()[i];
    }
    for (const int32_t id : encoding.ids) {
      ++tokens;
      specials += tokenizer_->is_special(id) ? 1 : 0;
    }
  }
  EXPECT_GT(tokens, 1000);
  EXPECT_GT(specials, 0);
}

TEST_P(GoldenTokenizer, OffsetsAreWholeCharactersInOrder) {
  const CounterRng rng(5, Stream::kTest);
  uint64_t draw = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = i % 2 == 0 ? random_bytes(rng, draw, 40) : random_utf8(rng, draw, 30);
    const Encoding encoding = tokenizer_->encode_with_offsets(text, Specials::kRead);
    ASSERT_EQ(encoding.ids, tokenizer_->encode(text, Specials::kRead));
    ASSERT_EQ(encoding.ids.size(), encoding.offsets.size());
    std::vector<bool> border(text.size() + 1, true);
    for (size_t at = 0; at < text.size();) {
      const size_t length = utf8_part(std::string_view(text).substr(at)).length;
      for (size_t k = 1; k < length; ++k) border[at + k] = false;
      at += length;
    }
    for (const ByteRange& range : encoding.offsets) {
      ASSERT_LE(range.begin, range.end);
      ASSERT_LE(range.end, text.size());
      ASSERT_TRUE(border[range.begin] && border[range.end]);
    }
  }
}

TEST_P(GoldenTokenizer, IllFormedTextIsReadAsItsRepair) {
  const CounterRng rng(6, Stream::kTest);
  uint64_t draw = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = random_bytes(rng, draw, 30);
    ASSERT_EQ(tokenizer_->encode(bytes, Specials::kAdd), tokenizer_->encode(repair_utf8(bytes), Specials::kAdd));
  }
}

TEST_P(GoldenTokenizer, StreamsEqualTheWhole) {
  const CounterRng rng(7, Stream::kTest);
  const auto size = static_cast<uint64_t>(tokenizer_->vocab_size());
  for (uint64_t i = 0; i < 300; ++i) {
    Ids ids;
    for (uint64_t k = 0; k < 20; ++k) ids.push_back(static_cast<int32_t>(rng.below(i * 20 + k, size)));
    StreamDecoder stream(*tokenizer_);
    std::string joined;
    for (const int32_t id : ids) {
      const std::string out = stream.push(id);
      ASSERT_TRUE(is_utf8(out));
      joined += out;
    }
    ASSERT_EQ(joined + stream.finish(), tokenizer_->decode_text(ids));
  }
}

TEST_P(GoldenTokenizer, IdsOutsideTheVocabularyAreRefused) {
  for (const int32_t id : {-1, static_cast<int32_t>(tokenizer_->vocab_size()), INT32_MAX, INT32_MIN}) {
    EXPECT_THAT(input_error([&] { tokenizer_->decode(Ids{id}); }), HasSubstr("outside the vocabulary"));
    EXPECT_THAT(input_error([&] { tokenizer_->piece(id); }), HasSubstr("outside the vocabulary"));
    EXPECT_THAT(input_error([&] { StreamDecoder(*tokenizer_).push(id); }), HasSubstr("outside the vocabulary"));
  }
}

TEST_P(GoldenTokenizer, SavedAndLoadedAgain) {
  const TempFolder folder;
  tokenizer_->save(folder.path());
  const auto again = load_tokenizer(folder.path());
  EXPECT_EQ(again->kind(), tokenizer_->kind());
  for (const std::string& text : texts())
    ASSERT_EQ(again->encode(text, Specials::kAdd), tokenizer_->encode(text, Specials::kAdd));
  // With a mask and sentinels behind it, too.
  extend_tokenizer(load_tokenizer(folder_), 2)->save(folder.path());
  const auto extended = load_tokenizer(folder.path());
  EXPECT_EQ(extended->vocab_size(), tokenizer_->vocab_size() + 3);
  EXPECT_EQ(extended->encode("<extra_id_1>", Specials::kRead), (Ids{static_cast<int32_t>(extended->vocab_size()) - 1}));
}

TEST_P(GoldenTokenizer, ThreadsShareOneTokenizer) {
  std::vector<std::vector<Ids>> results(4);
  std::vector<std::thread> threads;
  for (std::vector<Ids>& result : results) {
    threads.emplace_back([&] {
      for (const std::string& text : texts()) result.push_back(tokenizer_->encode(text, Specials::kAdd));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenTokenizer, ::testing::ValuesIn(kKinds), [](const auto& kind) {
  std::string name = kind.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// What byte-level vocabularies promise: nothing of a valid text is lost.
TEST(HfTokenizer, ByteLevelVocabulariesGiveTheTextBack) {
  const CounterRng rng(8, Stream::kTest);
  uint64_t draw = 0;
  for (const char* kind : {"bpe-gpt2", "bpe-llama3", "bpe-deepseek", "bpe-gpt4o"}) {
    const auto t = load_tokenizer(kGoldens / kind);
    for (const std::string& text : awkward_texts())
      EXPECT_EQ(t->decode(t->encode(text, Specials::kNone)), text) << kind;
    for (int i = 0; i < 300; ++i) {
      const std::string text = random_utf8(rng, draw, 1 + rng.below(draw, 40));
      ASSERT_EQ(t->decode(t->encode(text, Specials::kNone)), text) << kind;
    }
  }
}

// ---- Files by hand ----

Json vocabulary(const Strings& pieces) {
  Json vocab = Json::object();
  for (const std::string& piece : pieces) vocab[piece] = vocab.size();
  return vocab;
}
Json added(int id, const std::string& content, const Json& more = Json::object()) {
  Json token{{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
             {"rstrip", false}, {"normalized", false}, {"special", true}};
  token.update(more);
  return token;
}
Json word_level(const Strings& pieces) {
  return {{"type", "WordLevel"}, {"vocab", vocabulary(pieces)}, {"unk_token", "[UNK]"}};
}
std::unique_ptr<Tokenizer> load(const Json& file, const TempFolder& folder) {
  folder.put("tokenizer.json", file.dump());
  return load_tokenizer(folder.path());
}
std::unique_ptr<Tokenizer> load(const Json& file) {
  const TempFolder folder;
  return load(file, folder);
}
Strings pieces_of(const Tokenizer& t, std::string_view text, Specials specials = Specials::kAdd) {
  Strings pieces;
  for (const int32_t id : t.encode(text, specials)) pieces.push_back(t.piece(id));
  return pieces;
}
// The words of a text, by a vocabulary in which every word is unknown.
Strings words_of(const Json& pre_tokenizer, const std::string& text) {
  const auto t = load({{"pre_tokenizer", pre_tokenizer}, {"model", word_level({"[UNK]"})}});
  Strings words;
  for (const ByteRange& range : t->encode_with_offsets(text, Specials::kNone).offsets)
    words.push_back(text.substr(range.begin, range.end - range.begin));
  return words;
}
Json split_by(const std::string& numbers) {
  return {{"type", "Split"},
          {"pattern",
           {{"Regex", R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + numbers +
                          R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

// One bos where the post-processor adds one; a text that begins with the token itself has two, as in the package.
TEST(HfTokenizer, ExactlyOneBos) {
  Json file{{"added_tokens", {added(1, "<s>"), added(2, "</s>")}},
            {"pre_tokenizer", {{"type", "Whitespace"}}},
            {"post_processor",
             {{"type", "TemplateProcessing"},
              {"single",
               {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
              {"pair", Json::array()},
              {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
            {"model", word_level({"[UNK]", "<s>", "</s>", "king"})}};
  const TempFolder folder;
  folder.put("tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  auto t = load(file, folder);
  EXPECT_EQ(t->bos(), 1);
  EXPECT_EQ(t->eos(), 2);
  EXPECT_TRUE(t->adds_bos());
  EXPECT_EQ(t->encode("king", Specials::kAdd), (Ids{1, 3}));
  EXPECT_EQ(t->encode("king", Specials::kRead), (Ids{3}));
  EXPECT_EQ(t->encode("<s>king", Specials::kRead), (Ids{1, 3}));  // how a chat template that writes bos is read
  EXPECT_EQ(t->encode("<s>king", Specials::kAdd), (Ids{1, 1, 3}));
  EXPECT_EQ(t->encode("", Specials::kAdd), (Ids{1}));
  EXPECT_EQ(encode_source(*t, "king"), (Ids{1, 3, 2}));
  // The post-processor decides, whatever the configuration says beside it (as in transformers 5.24).
  folder.put("tokenizer_config.json",
             R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": false, "add_eos_token": true})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("king", Specials::kAdd), (Ids{1, 3}));
  // A model without bos has none.
  file["post_processor"] = nullptr;
  folder.put("tokenizer_config.json", R"({"eos_token": "</s>", "bos_token": null})");
  t = load(file, folder);
  EXPECT_FALSE(t->bos());
  EXPECT_EQ(t->encode("king", Specials::kAdd), (Ids{3}));
}

// llama.cpp 6920, 7193, 7063.
TEST(HfTokenizer, DigitsAndSpacesAreSplitAsThePatternsSay) {
  const Json llama3 = split_by(R"(\p{N}{1,3})"), qwen2 = split_by(R"(\p{N})");
  EXPECT_THAT(words_of(llama3, "1234567 12"), ElementsAre("123", "456", "7", " ", "12"));
  EXPECT_THAT(words_of(qwen2, "1234567 12"), ElementsAre("1", "2", "3", "4", "5", "6", "7", " ", "1", "2"));
  EXPECT_THAT(words_of(llama3, "१२३४"), ElementsAre("१२३", "४"));
  EXPECT_THAT(words_of(llama3, "a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(words_of(llama3, "a \n\n  b "), ElementsAre("a", " \n\n", " ", " b", " "));
  EXPECT_THAT(words_of(llama3, "I'LL we've"), ElementsAre("I", "'LL", " we", "'ve"));
}

TEST(HfTokenizer, RankOrderAndWholeWords) {
  Json file{{"model",
             {{"type", "BPE"},
              {"vocab", vocabulary({"a", "b", "c", "d", "ab", "bc", "abc", "cd", "bcd"})},
              {"merges", {"a b", "c d"}}}}};
  EXPECT_THAT(pieces_of(*load(file), "abc"), ElementsAre("ab", "c"));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(pieces_of(*load(file), "abc"), ElementsAre("abc"));
  EXPECT_THAT(pieces_of(*load(file), "abcd"), ElementsAre("ab", "cd"));
  file["model"]["ignore_merges"] = false;
  file["model"]["merges"] = Json::parse(R"([["b", "c"], ["a", "b"], ["c", "d"]])");  // the newer spelling
  EXPECT_THAT(pieces_of(*load(file), "abcd"), ElementsAre("a", "bc", "d"));
}

// huggingface/tokenizers 1613, 1183; llama.cpp 167.
TEST(HfTokenizer, ByteFallbackOfUnigram) {
  Json vocab = Json::parse(R"([["<unk>", 0], ["\u2581", -1], ["a", -2], ["\u2581a", -1.5]])");
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    vocab.push_back(Json::array({name, -10}));
  }
  Json file{
      {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", "always"}, {"split", true}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "ByteFallback"}},
          {{"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", "always"}, {"split", true}}}}}},
      {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", vocab}}}};
  const std::string face = "\xF0\x9F\x99\x82", bad = "\xEF\xBF\xBD";
  auto t = load(file);
  EXPECT_THAT(pieces_of(*t, "a " + face), ElementsAre(kMark + "a", kMark, "<0xF0>", "<0x9F>", "<0x99>", "<0x82>"));
  EXPECT_EQ(t->decode_text(t->encode("a " + face, Specials::kAdd)), "a " + face);
  EXPECT_EQ(t->decode_text(Ids{4 + 0xF0, 4 + 0x9F, 4 + 0x99, 4 + 0x82}), face);
  EXPECT_EQ(t->decode_text(Ids{4 + 0xF0, 4 + 0x9F, 4 + 0x99}), bad + bad + bad);
  file["model"]["byte_fallback"] = false;
  EXPECT_THAT(pieces_of(*load(file), "a " + face + face), ElementsAre(kMark + "a", kMark, "<unk>"));
}

TEST(HfTokenizer, TheSpacePrefixStandsOnlyWhereItIsDeclared) {
  Json file{
      {"added_tokens", {added(4, "<s>")}},
      {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", "always"}, {"split", true}}},
      {"model",
       {{"type", "BPE"},
        {"vocab", vocabulary({"a", "b", kMark, kMark + "a", "<s>", kMark + "b"})},
        {"merges", {kMark + " a", kMark + " b"}}}}};
  const auto pieces = [&](const char* scheme) {
    file["pre_tokenizer"]["prepend_scheme"] = scheme;
    return pieces_of(*load(file), "a<s>b");
  };
  EXPECT_THAT(pieces("always"), ElementsAre(kMark + "a", "<s>", kMark + "b"));
  EXPECT_THAT(pieces("first"), ElementsAre(kMark + "a", "<s>", "b"));
  EXPECT_THAT(pieces("never"), ElementsAre("a", "<s>", "b"));
}

// llama.cpp 5496, 24371, 23899.
TEST(HfTokenizer, TheWordPieceNormalizerObeysItsFlags) {
  const Strings pieces{"[UNK]", "kan",          "##to",         "##t\xC5\x8D",
                       "a",     "##b",          "Kan",          "KANTO",
                       "kanto", "\xE4\xB8\xAD", "\xE6\x96\x87", "\xE4\xB8\xAD\xE6\x96\x87",
                       "c"};
  Json file{{"normalizer",
             {{"type", "BertNormalizer"},
              {"clean_text", true},
              {"handle_chinese_chars", true},
              {"strip_accents", nullptr},
              {"lowercase", true}}},
            {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
            {"model",
             {{"type", "WordPiece"},
              {"unk_token", "[UNK]"},
              {"continuing_subword_prefix", "##"},
              {"max_input_chars_per_word", 5},
              {"vocab", vocabulary(pieces)}}}};
  const std::string kanto = "Kant\xC5\x8D";
  const auto with = [&](const Json& strip, bool lower, const std::string& text) {
    file["normalizer"]["strip_accents"] = strip;
    file["normalizer"]["lowercase"] = lower;
    return pieces_of(*load(file), text);
  };
  EXPECT_THAT(with(nullptr, true, kanto + " ab kanto! kantoo"),
              ElementsAre("kanto", "a", "##b", "kanto", "[UNK]", "[UNK]"));
  EXPECT_THAT(with(false, true, kanto), ElementsAre("kan", "##t\xC5\x8D"));
  EXPECT_THAT(with(nullptr, false, kanto), ElementsAre("Kan", "##t\xC5\x8D"));
  EXPECT_THAT(with(true, false, kanto), ElementsAre("Kan", "##to"));
  EXPECT_THAT(with(nullptr, true,
                   std::string("\xE4\xB8\xAD\xE6\x96\x87 a\0b\xC2\xA0"
                               "c",
                               13)),
              ElementsAre("\xE4\xB8\xAD", "\xE6\x96\x87", "a", "##b", "c"));
  file["normalizer"]["handle_chinese_chars"] = false;
  EXPECT_THAT(with(nullptr, true, "\xE4\xB8\xAD\xE6\x96\x87"), ElementsAre("\xE4\xB8\xAD\xE6\x96\x87"));
}

// antonellof/ferrox 64, exo-explore/exo 1691: a character in several tokens.
TEST(HfTokenizer, ACharacterSplitOverTokensSurvivesStreaming) {
  // "ð", "Ł" ... are the byte-level characters of F0 9F, 99 82, C3, A9.
  const Json file{{"pre_tokenizer",
                   {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}},
                  {"decoder", {{"type", "ByteLevel"}}},
                  {"model",
                   {{"type", "BPE"},
                    {"vocab", vocabulary({"\xC3\xB0\xC5\x81", "\xC4\xBB\xC4\xA4", "\xC3\x83", "\xC2\xA9", "x"})},
                    {"merges", Json::array()}}}};
  const auto t = load(file);
  StreamDecoder stream(*t);
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.push(1), "\xF0\x9F\x99\x82");
  EXPECT_EQ(stream.push(2), "");
  EXPECT_EQ(stream.push(3), "\xC3\xA9");
  EXPECT_EQ(stream.push(0), "");
  EXPECT_EQ(stream.push(4), "\xEF\xBF\xBDx");
  EXPECT_EQ(t->decode_text(Ids{0, 1, 2, 3}), "\xF0\x9F\x99\x82\xC3\xA9");
}

TEST(HfTokenizer, AddedTokens) {
  const Json normalized{{"normalized", true}, {"special", false}}, plain{{"special", false}};
  const auto with = [](Json token, const char* key) {
    token[key] = true;
    return token;
  };
  const Json file{{"added_tokens",
                   {with(added(2, "<l>", plain), "lstrip"), with(added(3, "<r>", plain), "rstrip"),
                    with(added(4, "word", plain), "single_word"), added(5, "Day", normalized), added(6, "<s>"),
                    added(7, "<s>x", plain)}},
                  {"normalizer", {{"type", "Lowercase"}}},
                  {"model", word_level({"[UNK]", "day"})}};
  const auto t = load(file);
  const auto parts = [&](const std::string& text, Specials specials = Specials::kRead) {
    std::vector<std::pair<int32_t, std::string>> out;
    const Encoding encoding = t->encode_with_offsets(text, specials);
    for (size_t i = 0; i < encoding.ids.size(); ++i) {
      const ByteRange range = encoding.offsets[i];
      out.emplace_back(encoding.ids[i], text.substr(range.begin, range.end - range.begin));
    }
    return out;
  };
  using ::testing::Pair;
  EXPECT_THAT(parts("a \xE3\x80\x80<l> b"), ElementsAre(Pair(0, "a"), Pair(2, " \xE3\x80\x80<l>"), Pair(0, " b")));
  EXPECT_THAT(parts("a <r>\n b"), ElementsAre(Pair(0, "a "), Pair(3, "<r>\n "), Pair(0, "b")));
  EXPECT_THAT(parts("<r>  <l>"), ElementsAre(Pair(3, "<r>  "), Pair(2, "<l>")));
  EXPECT_THAT(parts("a word, words sword _word"),
              ElementsAre(Pair(0, "a "), Pair(4, "word"), Pair(0, ", words sword _word")));
  EXPECT_THAT(parts("DAY<s>dAyx"), ElementsAre(Pair(5, "DAY"), Pair(6, "<s>"), Pair(5, "dAy"), Pair(0, "x")));
  EXPECT_THAT(parts("<s>x<s>y"), ElementsAre(Pair(7, "<s>x"), Pair(6, "<s>"), Pair(0, "y")));  // the longest
  // As mere text special tokens are none; others stay.
  EXPECT_THAT(parts("<s>y<r>", Specials::kNone), ElementsAre(Pair(0, "<s>y"), Pair(3, "<r>")));
  EXPECT_EQ(t->piece(7), "<s>x");
  EXPECT_TRUE(t->is_special(6) && !t->is_special(7));
}

TEST(HfTokenizer, DecodersOfEveryKind) {
  const Strings pieces{"[UNK]", "a", "##b", ".", "c</w>", "d</w>", kMark + "e", kMark + kMark + "f", "n't", "<0xE2>"};
  const auto decode = [&](const Json& decoder, const Ids& ids) {
    return load({{"decoder", decoder}, {"model", word_level(pieces)}})->decode(ids);
  };
  EXPECT_EQ(decode(nullptr, {1, 1, 3}), "a a .");
  const Json words{{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  EXPECT_EQ(decode(words, {1, 2, 3, 1, 8}), "ab. an't");
  EXPECT_EQ(decode(words, {2, 1}), "##b a");  // a first token is left as it is
  EXPECT_EQ(decode({{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}, {1, 3}), "a .");
  const Json suffix{{"type", "BPEDecoder"}, {"suffix", "</w>"}};
  EXPECT_EQ(decode(suffix, {1, 4, 5}), "ac d");
  EXPECT_EQ(decode(suffix, {4, 1}), "c a");
  const auto metaspace = [](const char* scheme) {
    return Json{{"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", scheme}, {"split", true}};
  };
  EXPECT_EQ(decode(metaspace("always"), {7, 6}), "f e");
  EXPECT_EQ(decode(metaspace("never"), {7, 6}), "  f e");
  const Json replace{{"type", "Replace"}, {"pattern", {{"String", kMark}}}, {"content", " "}};
  const Json strip{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  EXPECT_EQ(
      decode({{"type", "Sequence"}, {"decoders", {replace, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}, strip}}},
             {7, 6, 9}),
      " f e\xE2");
  EXPECT_EQ(decode({{"type", "Sequence"}, {"decoders", {replace, strip}}}, {7, 6}), " fe");  // of every token
  const auto refusal = [&](const Json& decoder) { return input_error([&] { decode(decoder, {}); }); };
  EXPECT_THAT(refusal({{"type", "CTC"}}), AllOf(HasSubstr("decoder.type"), HasSubstr("CTC")));
  EXPECT_THAT(refusal({{"type", "Sequence"}, {"decoders", {{{"type", "Fuse"}}, replace}}}),
              AllOf(HasSubstr("decoder.decoders[1].type"), HasSubstr("joins tokens")));
  EXPECT_THAT(
      refusal({{"type", "Sequence"},
               {"decoders", {{{"type", "Fuse"}}, {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}}}}),
      HasSubstr("strips more"));
  EXPECT_THAT(refusal({{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", ""}}),
              HasSubstr("decoder.pattern"));
  EXPECT_THAT(refusal({{"type", "Metaspace"}, {"replacement", "ab"}, {"prepend_scheme", "x"}}),
              AllOf(HasSubstr("decoder.replacement"), HasSubstr("decoder.prepend_scheme")));
}

TEST(HfTokenizer, WhatIsNotAppliedIsSaid) {
  const auto t = load({{"truncation", {{"max_length", 128}}}, {"padding", nullptr}, {"model", word_level({"[UNK]"})}});
  ASSERT_EQ(t->notes().size(), 1u);
  EXPECT_THAT(t->notes()[0], AllOf(HasSubstr("tokenizer.json"), HasSubstr("truncation"), HasSubstr("not applied")));
}

TEST(HfTokenizer, EveryProblemAtOnceWithItsPath) {
  const Json file{
      {"version", "2.0"},
      {"added_tokens", {added(0, "king"), added(9, "<far>"), added(1, "king"), {{"id", -1}, {"content", "x"}}, 7}},
      {"normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, {{"type", "Upper"}}}}}},
      {"pre_tokenizer", {{"type", "Magic"}}},
      {"post_processor",
       {{"type", "Sequence"},
        {"processors", {{{"type", "Odd"}}, {{"type", "BertProcessing"}, {"sep", {"[SEP]", 70}}, {"cls", {"[CLS]"}}}}}}},
      {"decoder", {{"type", "Nothing"}}},
      {"model", {{"type", "WordLevel"}, {"vocab", {{"[UNK]", 0}, {"queen", 1}}}, {"unk_token", 5}}}};
  EXPECT_THAT(input_error([&] { load(file); }),
              AllOf(HasSubstr("version"), HasSubstr("added_tokens"), HasSubstr("\"<far>\" the id 9"),
                    HasSubstr("added_tokens[2].content"), HasSubstr("added_tokens[3].id"), HasSubstr("added_tokens[4]"),
                    HasSubstr("normalizer.normalizers[1].type"), HasSubstr("pre_tokenizer.type"),
                    HasSubstr("post_processor.processors[0].type")));
  EXPECT_THAT(input_error([&] { load(file); }),
              AllOf(HasSubstr("post_processor.processors[1].cls"), HasSubstr("adds the token 70"),
                    HasSubstr("decoder.type"), HasSubstr("model.unk_token")));
}

TEST(HfTokenizer, HostileVocabularies) {
  const auto refusal = [](const std::string& model) {
    const TempFolder folder;
    folder.put("tokenizer.json", R"({"version": "1.0", "model": )" + model + "}");
    return input_error([&] { load_tokenizer(folder.path()); });
  };
  ASSERT_EQ(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": []})"), "(no error)");
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []})"), HasSubstr("stands twice"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})"), HasSubstr("id 0 to two pieces"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 4294967296}, "merges": []})"), HasSubstr("model.vocab[\"a\"]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 2097153}, "merges": []})"),
              HasSubstr("no id from 0 to 2097152"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"), HasSubstr("model.vocab[\"a\"]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 1.5}, "merges": []})"), HasSubstr("model.vocab[\"a\"]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": {"b": 1}}, "merges": []})"), HasSubstr("model.vocab[\"a\"]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": [["a", -1]], "merges": []})"), HasSubstr("model.vocab"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}})"), HasSubstr("model.merges"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": {"a": 1}})"), HasSubstr("model.merges"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]})"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]})"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b", "c"]]})"),
              HasSubstr("model.merges[0]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a", 1]]})"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [[["a"]]]})"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]})"), HasSubstr("model.merges[0]"));
  EXPECT_THAT(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1})"),
              HasSubstr("model.dropout"));
  EXPECT_EQ(refusal(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.0})"), "(no error)");
  EXPECT_THAT(refusal(R"({"type": "Unigram", "vocab": {"a": 0}})"), HasSubstr("model.vocab"));
  EXPECT_THAT(refusal(R"({"type": "Unigram", "vocab": [["a"]]})"), HasSubstr("model.vocab[0]"));
  EXPECT_THAT(refusal(R"({"type": "Unigram", "vocab": [["a", 1, 2]]})"), HasSubstr("model.vocab[0]"));
  EXPECT_THAT(refusal(R"({"type": "Unigram", "vocab": [["a", -1]], "unk_id": 1})"), HasSubstr("model.unk_id"));
  EXPECT_THAT(refusal(R"({"type": "Unigram", "vocab": [["a", 1e999]]})"), HasSubstr("tokenizer.json"));
  EXPECT_THAT(refusal(R"({"type": "WordPiece", "vocab": {"a": 0}})"), HasSubstr("model.unk_token"));
  EXPECT_THAT(refusal(R"({"type": "Mystery", "vocab": {"a": 0}})"), HasSubstr("model.type"));
  EXPECT_THAT(refusal("7"), HasSubstr("model"));
  EXPECT_THAT(refusal("null"), HasSubstr("model"));
  std::string deep = "0";
  for (int i = 0; i < 100; ++i) deep = "[" + deep + "]";
  EXPECT_THAT(refusal(deep), HasSubstr("nests deeper"));
}

TEST(HfTokenizer, IdsThatAFileLeavesOutGiveNothing) {
  const auto t =
      load({{"model", {{"type", "WordLevel"}, {"vocab", {{"[UNK]", 0}, {"a", 5}}}, {"unk_token", "[UNK]"}}}});
  EXPECT_EQ(t->vocab_size(), 6);
  EXPECT_EQ(t->piece(3), "");
  EXPECT_EQ(t->decode(Ids{3, 5, 4}), "a");
}

TEST(HfTokenizer, TruncationsAndMutationsLoadOrAreRefused) {
  const TempFolder folder;
  const CounterRng rng(9, Stream::kTest);
  uint64_t draw = 0;
  int refused = 0, tried = 0;
  for (const char* kind : {"bpe-qwen2", "unigram-bytes", "wordpiece", "bpe-suffix"}) {
    std::ifstream in(kGoldens / kind / "tokenizer.json", std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(in), {}};
    const auto use = [&](const std::string& bytes) {
      folder.put("tokenizer.json", bytes);
      ++tried;
      ASSERT_TRUE(loads_or_refuses([&] {
        ++refused;
        const auto t = load_tokenizer(folder.path());
        t->decode(t->encode_with_offsets("Hello <s> the king's\n\xC3\xA9 \xE5\x86\xAC 12", Specials::kAdd).ids);
        --refused;
      }));
    };
    for (int i = 0; i < 60; ++i) use(good.substr(0, rng.below(draw++, good.size())));
    for (int i = 0; i < 250; ++i) {
      std::string bytes = good;
      // Half of the changes fall on the settings, which stand in front of the vocabulary.
      const size_t range = i % 2 == 0 ? std::min<size_t>(good.size(), 2500) : good.size();
      for (uint64_t k = rng.below(draw++, 3); k != UINT64_MAX; --k) {
        const auto at = rng.below(draw++, range);
        bytes[at] = i % 3 == 0 ? good[rng.below(draw++, good.size())] : static_cast<char>(rng.below(draw++, 256));
      }
      use(bytes);
    }
  }
  EXPECT_GT(refused, tried / 3);
  EXPECT_LT(refused, tried);
}

}  // namespace
}  // namespace transept
