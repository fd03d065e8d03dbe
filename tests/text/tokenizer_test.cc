#include "text/tokenizer.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "support/temp_folder.h"
#include "support/throws.h"
#include "text/random_text.h"
#include "text/utf8.h"

namespace transept {
namespace {
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

TEST(ByteTokenizer, IdsAreTheBytes) {
  const auto t = byte_tokenizer();
  EXPECT_EQ(t->kind(), "byte");
  EXPECT_EQ(t->vocab_size(), 259);
  EXPECT_EQ(t->encode(std::string("a\0\xFF", 3), Specials::kNone), (Ids{'a', 0, 255}));
  EXPECT_EQ(*t->bos(), 256);
  EXPECT_EQ(*t->eos(), 257);
  EXPECT_EQ(*t->pad(), 258);
  EXPECT_FALSE(t->adds_bos());
  EXPECT_EQ(t->piece('a'), "a");
  EXPECT_EQ(t->piece(10), "<0x0A>");
  EXPECT_EQ(t->piece(257), "<|eos|>");
  EXPECT_TRUE(t->is_special(256) && t->is_special(258) && !t->is_special(255));
}

TEST(ByteTokenizer, SpecialsInsideATextOnlyWhenAskedFor) {
  const auto t = byte_tokenizer();
  EXPECT_EQ(t->encode("a<|eos|><|bos|>b<|eos|", Specials::kAdd),
            (Ids{'a', 257, 256, 'b', '<', '|', 'e', 'o', 's', '|'}));
  EXPECT_EQ(t->encode("<|pad|>", Specials::kAdd), (Ids{258}));
  EXPECT_EQ(t->encode("<|eos|>", Specials::kNone), (Ids{'<', '|', 'e', 'o', 's', '|', '>'}));
  EXPECT_EQ(t->decode(Ids{'a', 257, 'b', 256, 258}), "ab");
}

TEST(ByteTokenizer, EveryStringOfBytesComesBack) {
  const auto t = byte_tokenizer();
  const CounterRng rng(1, Stream::kTest);
  uint64_t draw = 0;
  for (const std::string& text : awkward_texts()) EXPECT_EQ(t->decode(t->encode(text, Specials::kNone)), text);
  for (int i = 0; i < 500; ++i) {
    const std::string text = random_bytes(rng, draw, 50);
    ASSERT_EQ(t->decode(t->encode(text, Specials::kNone)), text);
  }
}

TEST(ByteTokenizer, IdsOutsideTheVocabularyAreRefused) {
  const auto t = byte_tokenizer();
  for (const int32_t id : {-1, 259, INT32_MAX, INT32_MIN}) {
    EXPECT_THAT(input_error([&] { t->decode(Ids{id}); }), HasSubstr("outside the vocabulary of 259")) << id;
    EXPECT_THAT(input_error([&] { t->piece(id); }), HasSubstr("outside the vocabulary")) << id;
    EXPECT_THAT(input_error([&] { StreamDecoder(*t).push(id); }), HasSubstr("outside the vocabulary")) << id;
  }
}

TEST(StreamDecoder, NeverHandsOutACutCharacter) {
  const auto t = byte_tokenizer();
  StreamDecoder stream(*t);
  EXPECT_EQ(stream.push(0xE6), "");
  EXPECT_EQ(stream.push(0x97), "");
  EXPECT_EQ(stream.push(0xA5), "\xE6\x97\xA5");
  EXPECT_EQ(stream.push('x'), "x");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push('y'), "\xEF\xBF\xBDy");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(257), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, JoinedOutputsAreTheRepairedWhole) {
  const auto t = byte_tokenizer();
  const CounterRng rng(2, Stream::kTest);
  uint64_t draw = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = i % 2 == 0 ? random_utf8(rng, draw, 20) : random_bytes(rng, draw, 40);
    StreamDecoder stream(*t);
    std::string joined;
    for (const int32_t id : t->encode(text, Specials::kNone)) {
      const std::string out = stream.push(id);
      ASSERT_TRUE(is_utf8(out));
      joined += out;
    }
    joined += stream.finish();
    ASSERT_EQ(joined, repair_utf8(text));
  }
}

TEST(LoadTokenizer, ASavedByteTokenizerIsRecognised) {
  const TempFolder folder;
  EXPECT_FALSE(has_tokenizer(folder.path()));
  byte_tokenizer()->save(folder.path());
  EXPECT_TRUE(has_tokenizer(folder.path()));
  EXPECT_EQ(load_tokenizer(folder.path())->kind(), "byte");
  EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->vocab_size(), 259);
  // The form that Hugging Face's library reads.
  const Json file = read_json(folder / "tokenizer.json");
  EXPECT_EQ(file["model"]["vocab"]["A"], 65);
  EXPECT_EQ(file["model"]["vocab"]["\xC4\xA0"], 32);  // U+0120 stands for the space, as in GPT-2
  EXPECT_EQ(file["model"]["vocab"]["\xC4\x8A"], 10);  // U+010A for the line end
  EXPECT_EQ(file["model"]["vocab"]["\xC4\x80"], 0);
  EXPECT_EQ(file["model"]["vocab"]["\xC5\x83"], 0xAD);
  EXPECT_EQ(read_json(folder / "tokenizer_config.json")["eos_token"], "<|eos|>");
}

TEST(LoadTokenizer, NothingThereOrNotOurs) {
  const TempFolder folder;
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("holds no tokenizer"));
  EXPECT_THAT(input_error([&] { load_tokenizer(folder / "tokenizer.json"); }), HasSubstr("no such file"));
  EXPECT_THAT(input_error([&] { load_tokenizer(folder / "tokenizer.model"); }), HasSubstr("no such file"));
}

// A file that is nearly the byte tokenizer's is another tokenizer's: with the same bytes it gives the same ids.
TEST(LoadTokenizer, NearlyTheByteTokenizer) {
  const TempFolder folder;
  byte_tokenizer()->save(folder.path());
  const Json good = read_json(folder / "tokenizer.json");
  const auto changed = [&](const char* pointer, const Json& value) {
    Json file = good;
    file[Json::json_pointer(pointer)] = value;
    folder.put("tokenizer.json", file.dump());
    return load_tokenizer(folder.path());
  };
  EXPECT_EQ(changed("/version", "1.0")->kind(), "byte");
  const auto t = changed("/added_tokens/0/content", "<s>");
  EXPECT_EQ(t->kind(), "bpe");
  EXPECT_EQ(t->encode("a\xC3\xA9<s><|eos|>", Specials::kAdd), (Ids{'a', 0xC3, 0xA9, 256, 257}));
  EXPECT_EQ(t->eos(), 257);
  EXPECT_EQ(changed("/model/vocab/A", 300)->encode("A", Specials::kNone), (Ids{300}));
}

TEST(LoadTokenizer, TruncatedAndMutatedJson) {
  const TempFolder folder;
  byte_tokenizer()->save(folder.path());
  const std::string good = folder.get("tokenizer.json");
  const auto load = [&](const std::string& bytes) {
    folder.put("tokenizer.json", bytes);
    load_tokenizer(folder.path());
  };
  for (size_t n = 0; n + 2 < good.size(); n += 7)
    ASSERT_THAT(input_error([&] { load(good.substr(0, n)); }), HasSubstr("tokenizer.json")) << n;
  const CounterRng rng(3, Stream::kTest);
  for (uint64_t i = 0; i < 1000; ++i) {
    std::string bytes = good;
    bytes[rng.below(2 * i, bytes.size())] = static_cast<char>(rng.below(2 * i + 1, 256));
    ASSERT_TRUE(loads_or_refuses([&] { load(bytes); }));
  }
}

TEST(ExtendedTokenizer, NewIdsStandBehindTheOldOnes) {
  const auto plain = byte_tokenizer(), t = extend_tokenizer(byte_tokenizer(), 3);
  EXPECT_EQ(plain->vocab_size(), 259);
  EXPECT_FALSE(plain->mask() || plain->first_sentinel() || plain->sentinels());
  EXPECT_EQ(t->kind(), "byte");
  EXPECT_EQ(t->vocab_size(), 263);
  EXPECT_EQ(t->mask(), 259);
  EXPECT_EQ(t->first_sentinel(), 260);
  EXPECT_EQ(t->sentinels(), 3);
  for (int32_t id = 0; id < 259; ++id) {
    EXPECT_EQ(t->piece(id), plain->piece(id));
    EXPECT_EQ(t->bytes_of(id), plain->bytes_of(id));
    EXPECT_EQ(t->is_special(id), plain->is_special(id));
  }
  EXPECT_EQ(t->piece(259), "<mask>");
  EXPECT_EQ(t->piece(262), "<extra_id_2>");
  EXPECT_TRUE(t->is_special(259) && t->is_special(262));
  EXPECT_EQ(t->decode(Ids{'a', 259, 261, 'b'}), "ab");
  EXPECT_EQ(t->encode("a<mask>b<extra_id_1><|eos|>", Specials::kAdd), (Ids{'a', 259, 'b', 261, 257}));
  EXPECT_EQ(t->encode("<mask>", Specials::kNone), (Ids{'<', 'm', 'a', 's', 'k', '>'}));
  for (const int32_t id : {-1, 263}) {
    EXPECT_THAT(input_error([&] { t->piece(id); }), HasSubstr("outside the vocabulary of 263"));
    EXPECT_THAT(input_error([&] { t->decode(Ids{id}); }), HasSubstr("outside the vocabulary of 263"));
  }
  EXPECT_EQ(extend_tokenizer(byte_tokenizer(), 0)->first_sentinel(), std::nullopt);
}

TEST(ExtendedTokenizer, ExtendedAgain) {
  EXPECT_EQ(extend_tokenizer(extend_tokenizer(byte_tokenizer(), 0), 5)->vocab_size(), 265);
  EXPECT_EQ(extend_tokenizer(extend_tokenizer(byte_tokenizer(), 5), 0)->vocab_size(), 265);
}

TEST(ExtendedTokenizer, SavedAndLoaded) {
  const TempFolder folder;
  extend_tokenizer(byte_tokenizer(), 2)->save(folder.path());
  for (const auto& place : {folder.path(), folder / "tokenizer.json"}) {
    const auto t = load_tokenizer(place);
    EXPECT_EQ(t->vocab_size(), 262);
    EXPECT_EQ(t->sentinels(), 2);
  }
  const Json good = read_json(folder / "tokenizer_config.json");
  EXPECT_EQ(good["eos_token"], "<|eos|>");
  EXPECT_EQ(good["mask_token"], "<mask>");
  EXPECT_EQ(good["added_tokens_decoder"]["261"]["content"], "<extra_id_1>");
  // What is not ours is as if it were not there.
  const auto size = [&](const char* pointer, const Json& value) {
    Json changed = good;
    changed[Json::json_pointer(pointer)] = value;
    folder.put("tokenizer_config.json", changed.dump());
    return load_tokenizer(folder.path())->vocab_size();
  };
  EXPECT_EQ(size("/added_tokens_decoder/261/content", "<other>"), 261);
  EXPECT_EQ(size("/added_tokens_decoder/259/content", "<other>"), 259);
  EXPECT_EQ(size("/added_tokens_decoder/259", 1), 259);
  EXPECT_EQ(size("/added_tokens_decoder", nullptr), 259);
  folder.put("tokenizer_config.json", "[]");
  EXPECT_THAT(input_error([&] { load_tokenizer(folder.path()); }), HasSubstr("tokenizer_config.json"));
}

TEST(DecoderStart, BosComesFirst) {
  EXPECT_EQ(decoder_start(*byte_tokenizer()), 256);
  EXPECT_EQ(encode_source(*byte_tokenizer(), "a<|eos|>").back(), 257);
  EXPECT_EQ(encode_source(*byte_tokenizer(), "a").size(), 2u);
}

TEST(Save, AFolderThatIsNotThere) {
  const TempFolder folder;
  EXPECT_THAT(environment_error([&] { byte_tokenizer()->save(folder / "none"); }), HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace transept
