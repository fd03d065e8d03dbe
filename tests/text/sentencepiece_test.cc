#include <gmock/gmock.h>
#include <sentencepiece_processor.h>

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "support/temp_folder.h"
#include "support/throws.h"
#include "text/random_text.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace transept {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::string training_text() {
  constexpr std::string_view kWords[] = {"king",         "queen", "crown",  "the",  "has",   "lost",   "found",
                                         "\xC3\xA9tude", "road",  "silver", "ring", "where", "winter", "rose"};
  const CounterRng rng(5, Stream::kTest);
  std::string text;
  for (uint64_t i = 0; i < 20000; ++i) {
    text += kWords[rng.below(2 * i, std::size(kWords))];
    const uint64_t end = rng.below(2 * i + 1, 20);
    text += end == 0 ? ".\n\n" : end == 1 ? ":\n" : end == 2 ? ", " : end == 3 ? "   " : end == 4 ? " 1984 " : " ";
  }
  return text;
}

std::unique_ptr<Tokenizer> train(int64_t vocab_size, const std::string& text, uint64_t max_bytes = 1 << 25) {
  const std::string_view view = text;
  return train_bpe(std::span(&view, 1), {vocab_size, max_bytes});
}
const Tokenizer& trained() {
  static const std::unique_ptr<Tokenizer> t = train(350, training_text());
  return *t;
}
std::string model_bytes(const Tokenizer& t) {
  const TempFolder folder;
  t.save(folder.path());
  return folder.get("tokenizer.model");
}

TEST(TrainBpe, SizeSpecialsAndPieces) {
  const Tokenizer& t = trained();
  EXPECT_EQ(t.kind(), "sentencepiece");
  EXPECT_EQ(t.vocab_size(), 350);
  EXPECT_EQ(*t.bos(), 1);
  EXPECT_EQ(*t.eos(), 2);
  EXPECT_EQ(*t.pad(), 3);
  EXPECT_FALSE(t.adds_bos());
  EXPECT_EQ(t.first_bytes_of(260), t.bytes_of(260));
  EXPECT_EQ(t.piece(1), "<s>");
  EXPECT_EQ(t.piece(4), "<0x00>");
  EXPECT_TRUE(t.is_special(1) && t.is_special(2) && t.is_special(3) && !t.is_special(4));
  EXPECT_EQ(t.encode(" crown", Specials::kNone).size(), 1u);  // a word of the text became one piece
  EXPECT_EQ(t.encode("1984", Specials::kNone).size(), 4u);    // digits stay apart
}

TEST(TrainBpe, EveryStringOfBytesComesBack) {
  const Tokenizer& t = trained();
  const CounterRng rng(1, Stream::kTest);
  uint64_t draw = 0;
  for (const std::string& text : awkward_texts()) EXPECT_EQ(t.decode(t.encode(text, Specials::kNone)), text);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = i % 2 == 0 ? random_utf8(rng, draw, 1 + rng.below(draw, 40)) : random_bytes(rng, draw, 30);
    ASSERT_EQ(t.decode(t.encode(text, Specials::kNone)), text) << i;
  }
  std::string all;
  for (uint32_t point = 0; point < 0x110000; ++point) {
    if (point < 0xD800 || point >= 0xE000) all += utf8_of(point);
  }
  EXPECT_TRUE(t.decode(t.encode(all, Specials::kNone)) == all);
  EXPECT_EQ(t.encode("\xE2\x96\x81", Specials::kNone), (Ids{4 + 0xE2, 4 + 0x96, 4 + 0x81}));  // not a space
}

TEST(TrainBpe, IdsOfALongTextAreThoseOfItsWords) {
  const Tokenizer& t = trained();
  const std::string text = training_text();  // far beyond the length that is encoded at once
  Ids by_word;
  for (size_t begin = 0; begin < text.size();) {
    // A word begins at a space after another character, and takes that space and its neighbours along.
    size_t end = begin + 1;
    while (end < text.size() && !(text[end] == ' ' && text[end - 1] != ' ')) ++end;
    const Ids ids = t.encode(std::string_view(text).substr(begin, end - begin), Specials::kNone);
    by_word.insert(by_word.end(), ids.begin(), ids.end());
    begin = end;
  }
  EXPECT_TRUE(t.encode(text, Specials::kNone) == by_word);
  // A run of spaces where the text is cut stays in one word.
  const Ids spaces = t.encode("   king", Specials::kNone);
  ASSERT_LT(spaces.size(), t.encode(" ", Specials::kNone).size() * 3 + t.encode("king", Specials::kNone).size());
  for (size_t at = 8188; at < 8196; ++at) {
    const std::string before(at, 'x');
    Ids apart = t.encode(before, Specials::kNone);
    apart.insert(apart.end(), spaces.begin(), spaces.end());
    EXPECT_EQ(t.encode(before + "   king", Specials::kNone), apart) << at;
  }
  const std::string endless(3'000'000, 'x');
  EXPECT_TRUE(t.decode(t.encode(endless, Specials::kNone)) == endless);
}

TEST(TrainBpe, Deterministic) {
  const std::string text = training_text();
  EXPECT_TRUE(model_bytes(*train(320, text)) == model_bytes(*train(320, text)));
  EXPECT_FALSE(model_bytes(*train(320, text)) == model_bytes(*train(321, text)));  // a control
}

TEST(TrainBpe, TheSampleSpreadsOverTheText) {
  // The word of the last tenth is learnt although only a fifth of the text is looked at.
  std::string text;
  for (int i = 0; i < 90'000; ++i) text += "common words here\n";
  for (int i = 0; i < 10'000; ++i) text += "zyzzyva\n";
  const auto t = train(295, text, text.size() / 5);
  EXPECT_LE(t->encode("zyzzyva", Specials::kNone).size(), 2u);
}

TEST(TrainBpe, ImpossibleSizesSayWhatToDo) {
  EXPECT_THAT(input_error([] { train(260, "some text"); }), HasSubstr("from 261 to"));
  EXPECT_THAT(input_error([] { train(-1, "some text"); }), HasSubstr("from 261 to"));
  EXPECT_THAT(input_error([] { train(int64_t{1} << 40, "some text"); }), HasSubstr("from 261 to"));
  EXPECT_THAT(input_error([] { train(5000, "some text"); }),
              AllOf(HasSubstr("5000 pieces cannot be learnt"), HasSubstr("too high"), HasSubstr("more text")));
  EXPECT_THAT(input_error([] { train(262, "more letters than places"); }), HasSubstr("smaller"));
  EXPECT_THAT(input_error([] { train(300, ""); }), HasSubstr("too little"));
  EXPECT_THAT(input_error([] { train(300, std::string(100, '\xFF')); }), HasSubstr("300 pieces cannot be learnt"));
}

TEST(Sentencepiece, SavedAndLoadedAgain) {
  const TempFolder folder;
  trained().save(folder.path());
  const auto t = load_tokenizer(folder.path());
  EXPECT_EQ(t->vocab_size(), 350);
  EXPECT_FALSE(t->adds_bos());
  const std::string text = training_text().substr(0, 5000);
  EXPECT_TRUE(t->encode(text, Specials::kAdd) == trained().encode(text, Specials::kAdd));
  t->save(folder.path());
  EXPECT_TRUE(folder.get("tokenizer.model") == model_bytes(trained()));
  EXPECT_EQ(read_json(folder / "tokenizer_config.json")["tokenizer_class"], "LlamaTokenizer");
}

TEST(ExtendedTokenizer, OfASentencepieceVocabulary) {
  const TempFolder folder;
  extend_tokenizer(train(350, training_text()), 2)->save(folder.path());
  EXPECT_TRUE(folder.get("tokenizer.model") == model_bytes(trained()));
  const auto t = load_tokenizer(folder.path());
  EXPECT_EQ(t->kind(), "sentencepiece");
  EXPECT_EQ(t->vocab_size(), 353);
  EXPECT_EQ(t->mask(), 350);
  EXPECT_EQ(t->first_sentinel(), 351);
  Ids wanted = trained().encode("the king", Specials::kNone);
  const size_t words = wanted.size();
  wanted.push_back(352);
  for (const int32_t id : trained().encode(" sees", Specials::kNone)) wanted.push_back(id);
  EXPECT_EQ(t->encode("the king<extra_id_1> sees", Specials::kAdd), wanted);
  // Where texts begin with bos, only the whole one does.
  folder.put("tokenizer.model", model_bytes(trained()));
  Json config = read_json(folder / "tokenizer_config.json");
  config["add_bos_token"] = true;
  folder.put("tokenizer_config.json", config.dump());
  const Ids with_bos = load_tokenizer(folder.path())->encode("the king<extra_id_1> sees", Specials::kAdd);
  EXPECT_EQ(with_bos.size(), wanted.size() + 1);
  EXPECT_EQ(with_bos[0], 1);
  EXPECT_EQ(with_bos[words + 1], 352);
}

TEST(Sentencepiece, BosIsAsTheConfigurationSays) {
  const TempFolder folder;
  folder.put("tokenizer.model", model_bytes(trained()));
  const Ids plain = trained().encode("the king", Specials::kNone);
  const auto with = [&](const char* config) {
    if (config != nullptr) folder.put("tokenizer_config.json", config);
    return load_tokenizer(folder.path())->encode("the king", Specials::kAdd);
  };
  Ids with_bos{1};
  with_bos.insert(with_bos.end(), plain.begin(), plain.end());
  EXPECT_EQ(with(nullptr), with_bos);
  EXPECT_EQ(with("{}"), with_bos);
  EXPECT_EQ(with(R"({"add_bos_token": true})"), with_bos);
  EXPECT_EQ(with(R"({"add_bos_token": false})"), plain);
  EXPECT_EQ(load_tokenizer(folder.path())->encode("the king", Specials::kNone), plain);
  EXPECT_THAT(input_error([&] { with(R"({"add_bos_token": 1})"); }), HasSubstr("tokenizer_config.json"));
  EXPECT_THAT(input_error([&] { with("[]"); }), HasSubstr("tokenizer_config.json"));
  EXPECT_THAT(input_error([&] { with("{"); }), HasSubstr("tokenizer_config.json"));
}

TEST(Sentencepiece, SpecialsInsideATextOnlyWhenAskedFor) {
  const Tokenizer& t = trained();
  const Ids with = t.encode("king</s><s>road", Specials::kAdd);
  const Ids king = t.encode("king", Specials::kNone), road = t.encode("road", Specials::kNone);
  Ids expected = king;
  expected.insert(expected.end(), {2, 1});
  expected.insert(expected.end(), road.begin(), road.end());
  EXPECT_EQ(with, expected);
  for (const int32_t id : t.encode("king</s><s>road", Specials::kNone)) EXPECT_FALSE(t.is_special(id));
  EXPECT_EQ(t.decode(with), "kingroad");
}

TEST(Sentencepiece, StreamsEqualTheWhole) {
  const Tokenizer& t = trained();
  const CounterRng rng(2, Stream::kTest);
  for (uint64_t i = 0; i < 300; ++i) {
    Ids ids;
    for (uint64_t k = 0; k < 30; ++k) ids.push_back(static_cast<int32_t>(rng.below(i * 30 + k, 350)));
    StreamDecoder stream(t);
    std::string joined;
    for (const int32_t id : ids) {
      const std::string out = stream.push(id);
      ASSERT_TRUE(is_utf8(out));
      joined += out;
    }
    ASSERT_EQ(joined + stream.finish(), t.decode_text(ids));
  }
}

TEST(Sentencepiece, IdsOutsideTheVocabularyAreRefused) {
  for (const int32_t id : {-1, 350, INT32_MAX, INT32_MIN}) {
    EXPECT_THAT(input_error([&] { trained().decode(Ids{id}); }), HasSubstr("outside the vocabulary of 350"));
    EXPECT_THAT(input_error([&] { trained().is_special(id); }), HasSubstr("outside the vocabulary of 350"));
  }
}

// A model file written by hand, to hold what no trainer would write.
std::string varint(uint64_t v) {
  std::string s;
  for (; v >= 0x80; v >>= 7) s += static_cast<char>(v | 0x80);
  return s + static_cast<char>(v);
}
std::string bytes_field(int field, const std::string& bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string number_field(int field, uint64_t number) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(number);
}
std::string piece(const std::string& text, float score, int type) {
  const uint32_t bits = std::bit_cast<uint32_t>(score);
  std::string fixed(4, '\0');
  std::memcpy(fixed.data(), &bits, 4);
  return bytes_field(1,
                     bytes_field(1, text) + varint(2 << 3 | 5) + fixed + number_field(3, static_cast<uint64_t>(type)));
}
const std::string kMark = "\xE2\x96\x81";

// LLaMA's manner: a dummy prefix, no byte pieces, an unknown piece.
std::string small_model(const std::string& more_pieces = "", const std::string& trainer = number_field(3, 2),
                        const std::string& normalizer = number_field(4, 0)) {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("ab", -1, 1) +
         piece(kMark + "ab", -2, 1) + piece(kMark, -3, 1) + piece("a", -4, 1) + piece("b", -5, 1) + more_pieces +
         bytes_field(2, trainer) + bytes_field(3, normalizer);
}
std::string load_refusal(const std::string& model) {
  const TempFolder folder;
  return input_error([&] { load_tokenizer(folder.put("tokenizer.model", model)); });
}

TEST(Sentencepiece, ADummyPrefixIsAddedAndTakenAway) {
  const TempFolder folder;
  const auto t = load_tokenizer(folder.put("tokenizer.model", small_model()));
  EXPECT_TRUE(t->adds_bos());
  EXPECT_EQ(t->encode("ab ab", Specials::kAdd), (Ids{1, 4, 4}));
  EXPECT_EQ(t->encode("ab", Specials::kNone), (Ids{4}));
  EXPECT_EQ(t->encode(" ab", Specials::kNone), (Ids{5, 4}));
  EXPECT_EQ(t->decode(Ids{1, 4, 4}), "ab ab");
  EXPECT_EQ(t->decode(Ids{5, 4}), " ab");
  EXPECT_EQ(StreamDecoder(*t).push(4), "ab");
  EXPECT_EQ(StreamDecoder(*t, false).push(4), " ab");  // in mid-text the space is the text's own
  EXPECT_EQ(t->encode("z", Specials::kNone), (Ids{5, 0}));
  EXPECT_EQ(t->decode(Ids{5, 0}), " \xE2\x81\x87 ");
  // A text longer than what is encoded at once.
  std::string text = "ab";
  Ids expected{4};
  for (int i = 0; i < 20'000; ++i) {
    text += i % 7 == 0 ? "  ab" : " ab";
    if (i % 7 == 0) expected.push_back(5);
    expected.push_back(4);
  }
  EXPECT_TRUE(t->encode(text, Specials::kNone) == expected);
  EXPECT_TRUE(t->decode(expected) == text);
}

TEST(Sentencepiece, HostileModelsAreRefused) {
  ASSERT_EQ(load_refusal(small_model()), "(no error)");
  EXPECT_THAT(load_refusal(""), HasSubstr("no pieces"));
  EXPECT_THAT(load_refusal("not a model at all"), HasSubstr("tokenizer.model"));
  EXPECT_THAT(load_refusal(small_model(piece("nan", NAN, 1))), HasSubstr("no finite number"));
  EXPECT_THAT(load_refusal(small_model(piece("inf", INFINITY, 1))), HasSubstr("no finite number"));
  EXPECT_THAT(load_refusal(small_model(piece("", 0, 1))), HasSubstr("empty"));
  EXPECT_THAT(load_refusal(small_model(piece("\xFF", 0, 1))), HasSubstr("no UTF-8"));
  EXPECT_THAT(load_refusal(small_model(piece("x", 0, 7))), HasSubstr("damaged"));
  EXPECT_THAT(load_refusal(small_model(piece("x", 0, 0))), HasSubstr("damaged"));
  EXPECT_THAT(load_refusal(small_model(piece("ab", 0, 1))), HasSubstr("\"ab\" twice"));
  EXPECT_THAT(load_refusal(small_model(piece("<0xZZ>", 0, 6))), HasSubstr("tokenizer.model"));
  EXPECT_THAT(load_refusal(small_model("", number_field(3, 2) + number_field(35, 1))),
              HasSubstr("0 byte pieces"));  // bytes promised
  EXPECT_THAT(load_refusal(small_model("", number_field(3, 4))), HasSubstr("neither a byte-pair nor a unigram"));
  EXPECT_THAT(load_refusal(small_model("", number_field(3, 2) + number_field(24, 1))), HasSubstr("in front of words"));
  EXPECT_THAT(load_refusal(small_model("", number_field(3, 2), number_field(5, 0))), HasSubstr("in front of words"));
  EXPECT_THAT(load_refusal(small_model("", number_field(3, 2), bytes_field(2, std::string(64, '\x7F')))),
              HasSubstr("precompiled_charsmap"));
  EXPECT_THAT(load_refusal(small_model(piece("more", 0, 2))), HasSubstr("2 unknown pieces"));
  EXPECT_THAT(load_refusal(small_model(piece("<0x41>", 0, 6))), HasSubstr("1 byte pieces"));
  EXPECT_THAT(load_refusal(small_model(piece("x", 0, 5))), HasSubstr("unused piece"));
  EXPECT_THAT(load_refusal(small_model() + varint(1 << 3 | 2) + varint(uint64_t{1} << 62)), HasSubstr("damaged"));
  EXPECT_THAT(load_refusal(small_model() + std::string(11, '\xFF')), HasSubstr("damaged"));
}

// The sentencepiece package on awkward texts, tools/goldens/tokenizer_kinds.py.
TEST(Sentencepiece, IdsAreThoseOfThePackage) {
  const std::filesystem::path goldens = std::filesystem::path(TRANSEPT_SOURCE_DIR) / "tests/goldens/text/tokenizers";
  const auto texts = read_json(goldens / "texts.json").get<std::vector<std::string>>();
  for (const char* kind : {"spm-bpe", "spm-unigram", "spm-unigram-bytes"}) {
    const auto t = load_tokenizer(goldens / kind);
    const auto answers = read_json(goldens / kind / "answers.json").get<std::vector<Ids>>();
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(t->encode(texts[i], Specials::kNone), answers[i]) << kind << ": " << texts[i];
      const Encoding encoding = t->encode_with_offsets(texts[i], Specials::kNone);
      ASSERT_EQ(encoding.ids, answers[i]);
      size_t before = 0;
      for (const ByteRange& range : encoding.offsets) {
        ASSERT_LE(range.begin, range.end);
        ASSERT_LE(range.end, texts[i].size());
        ASSERT_GE(range.end, before);
        before = range.end;
      }
    }
  }
}

// The library's own encoder on the vocabularies that it trained for us.
TEST(Sentencepiece, IdsAreThoseOfTheLibrary) {
  sentencepiece::SentencePieceProcessor library;
  ASSERT_TRUE(library.LoadFromSerializedProto(model_bytes(trained())).ok());
  const CounterRng rng(6, Stream::kTest);
  uint64_t draw = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = i % 2 == 0 ? random_utf8(rng, draw, 1 + rng.below(draw, 60))
                                  : training_text().substr(static_cast<size_t>(i) * 40, 1 + rng.below(draw, 90));
    if (text.find(kMark) != std::string::npos || !is_utf8(text)) continue;
    Ids expected;
    ASSERT_TRUE(library.Encode(text, &expected).ok());
    ASSERT_EQ(trained().encode(text, Specials::kNone), expected) << text;
  }
}

TEST(Sentencepiece, Offsets) {
  const TempFolder folder;
  const auto t = load_tokenizer(folder.put("tokenizer.model", small_model()));
  EXPECT_EQ(t->encode_with_offsets("ab ab", Specials::kAdd).offsets, (std::vector<ByteRange>{{0, 0}, {0, 2}, {2, 5}}));
  EXPECT_EQ(t->encode_with_offsets("a<s>z\xC3\xA9", Specials::kRead).offsets,
            (std::vector<ByteRange>{{0, 0}, {0, 1}, {1, 4}, {4, 4}, {4, 7}}));
  EXPECT_EQ(trained().encode_with_offsets("\xC3\xA9\xFF\xE2\x96\x81", Specials::kNone).offsets.back(),
            (ByteRange{3, 6}));
}

TEST(Sentencepiece, EosIsAsTheConfigurationSays) {
  const TempFolder folder;
  folder.put("tokenizer.model", small_model());
  folder.put("tokenizer_config.json", R"({"add_bos_token": false, "add_eos_token": true})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("ab", Specials::kAdd), (Ids{4, 2}));
  EXPECT_EQ(load_tokenizer(folder.path())->encode("ab", Specials::kRead), (Ids{4}));
  // A vocabulary without bos closes a text by eos, as T5's does.
  const std::string without = piece("<unk>", 0, 2) + piece("</s>", 0, 3) + piece("a", -1, 1);
  folder.put("tokenizer.model", without);
  folder.put("tokenizer_config.json", "{}");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("a", Specials::kAdd).back(), 1);
}

TEST(Sentencepiece, APrefixInFrontOfTheFirstWordAlone) {
  const TempFolder folder;
  folder.put("tokenizer.model", small_model());
  EXPECT_EQ(load_tokenizer(folder.path())->encode("ab<s>ab", Specials::kRead), (Ids{4, 1, 4}));
  folder.put("tokenizer_config.json", R"({"legacy": false})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("ab<s>ab", Specials::kRead), (Ids{4, 1, 3}));
}

TEST(Sentencepiece, TruncationsAndMutationsLoadOrAreRefused) {
  const TempFolder folder;
  const std::string good = small_model();
  const std::string text = "ab  ba\xE2\x96\x81 z\xFF ab";
  const auto use = [&](const std::string& bytes) {
    const auto t = load_tokenizer(folder.put("tokenizer.model", bytes));
    t->decode(t->encode(text, Specials::kAdd));
  };
  for (size_t n = 0; n < good.size(); ++n) ASSERT_TRUE(loads_or_refuses([&] { use(good.substr(0, n)); }));
  const CounterRng rng(4, Stream::kTest);
  const std::string trained_model = model_bytes(trained());
  int refused = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    std::string bytes = i % 10 == 0 ? trained_model : good;
    for (uint64_t k = 0; k <= i % 3; ++k)
      bytes[rng.below(8 * i + 2 * k, bytes.size())] = static_cast<char>(rng.below(8 * i + 2 * k + 1, 256));
    ASSERT_TRUE(loads_or_refuses([&] {
      ++refused;
      use(bytes);
      --refused;
    }));
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 3000);
}

}  // namespace
}  // namespace transept
