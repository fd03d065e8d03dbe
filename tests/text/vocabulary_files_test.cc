// The files older than tokenizer.json, and which file of a folder counts.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "support/temp_folder.h"
#include "support/throws.h"
#include "text/tokenizer.h"

namespace transept {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::vector<std::string> pieces_of(const Tokenizer& t, std::string_view text) {
  std::vector<std::string> pieces;
  for (const int32_t id : t.encode(text, Specials::kAdd)) pieces.push_back(t.piece(id));
  return pieces;
}

constexpr const char* kWordPieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nking\n##s\nKing\n\xC3\xA9t\xC3\xA9\nete\n.\n";

TEST(VocabTxt, IsBertsWordPiece) {
  const TempFolder folder;
  folder.put("vocab.txt", kWordPieces);
  ASSERT_TRUE(has_tokenizer(folder.path()));
  for (const auto& place : {folder.path(), folder / "vocab.txt"}) {
    const auto t = load_tokenizer(place);
    EXPECT_EQ(t->kind(), "wordpiece");
    EXPECT_EQ(t->vocab_size(), 11);
    EXPECT_EQ(t->encode("Kings [MASK] \xC3\xA9t\xC3\xA9.", Specials::kAdd), (Ids{2, 5, 6, 4, 9, 10, 3}));
    EXPECT_EQ(t->decode(Ids{2, 5, 6, 10, 3}), "kings.");
    EXPECT_EQ(t->pad(), 0);
    EXPECT_EQ(t->mask(), 4);
    EXPECT_FALSE(t->adds_bos());
  }
  folder.put("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_THAT(pieces_of(*load_tokenizer(folder.path()), "King \xC3\xA9t\xC3\xA9"),
              ElementsAre("[CLS]", "King", "\xC3\xA9t\xC3\xA9", "[SEP]"));
  folder.put("tokenizer_config.json", R"({"strip_accents": false})");
  EXPECT_THAT(pieces_of(*load_tokenizer(folder.path()), "King \xC3\xA9t\xC3\xA9"),
              ElementsAre("[CLS]", "king", "\xC3\xA9t\xC3\xA9", "[SEP]"));
  const TempFolder saved;
  load_tokenizer(folder.path())->save(saved.path());
  EXPECT_THAT(pieces_of(*load_tokenizer(saved.path()), "King \xC3\xA9t\xC3\xA9"),
              ElementsAre("[CLS]", "king", "\xC3\xA9t\xC3\xA9", "[SEP]"));
}

TEST(VocabTxt, LineEndsAndDamage) {
  const TempFolder folder;
  folder.put("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nking\r\n");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("king", Specials::kAdd), (Ids{2, 4, 3}));
  folder.put("vocab.txt", "king\nqueen\n");
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("has no line [SEP]"));
  folder.put("vocab.txt", "");
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("vocab.txt"));
  folder.put("vocab.txt", "[CLS]\n[SEP]\n");
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("[UNK]"));
  folder.put("vocab.txt", kWordPieces);
  folder.put("tokenizer_config.json", R"({"do_lower_case": 1, "bos_token": 7})");
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("do_lower_case"));
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("bos_token"));
}

// "\xC4\xA0" is U+0120, the byte-level space.
constexpr const char* kGpt2 =
    "{\"h\": 0, \"i\": 1, \"\xC4\xA0\": 2, \"hi\": 3, \"\xC4\xA0h\": 4, \"\xC4\xA0hi\": 5, \"<|endoftext|>\": 6}";
constexpr const char* kMerges = "#version: 0.2\nh i\n\xC4\xA0 h\n\xC4\xA0 hi\n";

TEST(VocabJsonAndMerges, AreGpt2s) {
  const TempFolder folder;
  folder.put("vocab.json", kGpt2);
  EXPECT_FALSE(has_tokenizer(folder.path()));  // the merges are missing
  folder.put("merges.txt", kMerges);
  ASSERT_TRUE(has_tokenizer(folder.path()));
  auto t = load_tokenizer(folder.path());
  EXPECT_EQ(t->kind(), "bpe");
  EXPECT_EQ(t->encode("hi hi<|endoftext|>", Specials::kAdd), (Ids{3, 5, 6}));
  EXPECT_EQ(t->decode(Ids{3, 5, 6}), "hi hi");
  EXPECT_EQ(t->bos(), 6);
  EXPECT_EQ(t->eos(), 6);
  folder.put("tokenizer_config.json", R"({"add_prefix_space": true})");
  t = load_tokenizer(folder / "vocab.json");
  EXPECT_EQ(t->encode("hi", Specials::kAdd), (Ids{5}));
  const TempFolder saved;
  t->save(saved.path());
  EXPECT_EQ(load_tokenizer(saved.path())->encode("hi", Specials::kAdd), (Ids{5}));
  folder.put("tokenizer_config.json", R"({"add_bos_token": true, "add_eos_token": true})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("hi", Specials::kAdd), (Ids{6, 3, 6}));
}

TEST(VocabJsonAndMerges, WithRobertasFrame) {
  const TempFolder folder;
  folder.put("vocab.json",
             "{\"<s>\": 0, \"<pad>\": 1, \"</s>\": 2, \"<unk>\": 3, \"h\": 4, \"i\": 5, \"\xC4\xA0\": 6, \"hi\": 7, "
             "\"<mask>\": 8}");
  folder.put("merges.txt", "#version: 0.2\nh i\n");
  const auto t = load_tokenizer(folder.path());
  EXPECT_EQ(t->encode("hi <mask>", Specials::kAdd), (Ids{0, 7, 8, 2}));  // the mask takes the space in front of it
  EXPECT_EQ(t->bos(), 0);
  EXPECT_EQ(t->eos(), 2);
  EXPECT_EQ(t->pad(), 1);
  EXPECT_EQ(t->mask(), 8);
  EXPECT_TRUE(t->adds_bos());
  EXPECT_EQ(encode_source(*t, "hi"), (Ids{0, 7, 2}));
}

TEST(VocabJsonAndMerges, Damage) {
  const TempFolder folder;
  const auto refusal = [&](const char* vocab, const char* merges) {
    folder.put("vocab.json", vocab);
    folder.put("merges.txt", merges);
    return input_error([&] { load_tokenizer(folder.path()); });
  };
  ASSERT_EQ(refusal(kGpt2, kMerges), "(no error)");
  EXPECT_THAT(refusal("[]", kMerges), HasSubstr("vocab.json"));
  EXPECT_THAT(refusal("7", kMerges), HasSubstr("vocab.json"));
  EXPECT_THAT(refusal("{\"a\": \"b\"}", kMerges), HasSubstr("vocab.json[\"a\"]"));
  EXPECT_THAT(refusal("{\"a\": 0, \"a\": 1}", kMerges), HasSubstr("stands twice"));
  EXPECT_THAT(refusal("{}", kMerges), HasSubstr("model.vocab"));
  EXPECT_THAT(refusal(kGpt2, "h i x\n"), HasSubstr("merges.txt"));
  EXPECT_THAT(refusal(kGpt2, "h z\n"), HasSubstr("merges[0]"));
}

// Tokens that were added behind a vocabulary stand in tokenizer_config.json, or in added_tokens.json.
TEST(AddedBehind, OldVocabularies) {
  const TempFolder folder;
  folder.put("vocab.txt", kWordPieces);
  folder.put("tokenizer_config.json",
             R"({"added_tokens_decoder": {"12": {"content": "<b>", "special": false}, "2": {"content": "[CLS]"},
                 "11": {"content": "<a>", "special": true, "lstrip": true}}})");
  const auto t = load_tokenizer(folder.path());
  EXPECT_EQ(t->vocab_size(), 13);
  EXPECT_EQ(t->encode("king <a><b>", Specials::kRead), (Ids{5, 11, 12}));
  EXPECT_TRUE(t->is_special(11) && !t->is_special(12));
  folder.put("tokenizer_config.json",
             R"({"added_tokens_decoder": {"12": {"content": "<b>"}, "x": {"content": "<c>"}}})");
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("added_tokens_decoder.x"));
  folder.put("tokenizer_config.json", R"({"added_tokens_decoder": {"12": {"content": "<b>"}}})");
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("\"<b>\" has the id 12"));
}

TEST(AddedBehind, SentencepieceModels) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the king and the queen\n";
  const std::string_view view = text;
  const auto plain = train_bpe(std::span(&view, 1), {275, 1 << 20});
  plain->save(folder.path());
  folder.put("tokenizer_config.json", R"({"add_bos_token": false, "pad_token": "<fill>"})");
  folder.put("added_tokens.json", R"({"<fill>": 275, "<tool>": 276})");
  const auto t = load_tokenizer(folder.path());
  EXPECT_EQ(t->vocab_size(), 277);
  EXPECT_TRUE(t->is_special(275) && !t->is_special(276));
  EXPECT_EQ(plain->pad(), 3);
  EXPECT_EQ(t->pad(), 275);
  EXPECT_EQ(t->eos(), 2);
  const auto around = [&](int32_t id) {
    Ids ids = plain->encode("the ", Specials::kNone);
    ids.push_back(id);
    for (const int32_t more : plain->encode("king", Specials::kNone)) ids.push_back(more);
    return ids;
  };
  EXPECT_EQ(t->encode("the <fill>king", Specials::kRead), around(275));
  EXPECT_EQ(t->encode("the <tool>king", Specials::kNone), around(276));
  EXPECT_EQ(t->encode("the <fill>king", Specials::kNone), plain->encode("the <fill>king", Specials::kNone));
  EXPECT_EQ(t->decode(around(275)), "the king");
  EXPECT_EQ(t->decode(around(276)), "the <tool>king");
  EXPECT_EQ(t->encode_with_offsets("a<tool>", Specials::kRead).offsets.back(), (ByteRange{1, 7}));
  const TempFolder saved;
  t->save(saved.path());
  EXPECT_EQ(load_tokenizer(saved.path())->vocab_size(), 277);
  folder.put("added_tokens.json", R"({"<tool>": 300})");
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("without a gap"));
}

TEST(LoadTokenizer, WhichFileCounts) {
  const TempFolder folder;
  folder.put("vocab.txt", kWordPieces);
  EXPECT_EQ(load_tokenizer(folder.path())->kind(), "wordpiece");
  folder.put("vocab.json", kGpt2);
  folder.put("merges.txt", kMerges);
  EXPECT_EQ(load_tokenizer(folder.path())->kind(), "bpe");
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the king and the queen\n";
  const std::string_view view = text;
  train_bpe(std::span(&view, 1), {275, 1 << 20})->save(folder.path());
  EXPECT_EQ(load_tokenizer(folder.path())->kind(), "sentencepiece");
  // A model of our own stays in front of what another library made of it.
  folder.put("tokenizer.json", R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}})");
  EXPECT_EQ(load_tokenizer(folder.path())->kind(), "sentencepiece");
  EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->kind(), "wordlevel");
  folder.put("tokenizer.model", "another's");
  EXPECT_EQ(load_tokenizer(folder.path())->kind(), "wordlevel");
}

}  // namespace
}  // namespace transept
