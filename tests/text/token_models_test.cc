#include <gmock/gmock.h>

#include <limits>

#include "base/rng.h"
#include "support/throws.h"
#include "text/bpe_merges.h"
#include "text/bpe_model.h"
#include "text/piece_index.h"
#include "text/piece_trie.h"
#include "text/random_text.h"
#include "text/unigram_model.h"
#include "text/word_cache.h"
#include "text/word_level_model.h"
#include "text/word_piece_model.h"

namespace transept {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Ids = std::vector<int32_t>;
using Spans = std::vector<TokenSpan>;

const std::string kMark = "\xE2\x96\x81";

// Pieces with their places as ids.
PieceList listed(const std::vector<std::string>& pieces) {
  PieceList list;
  for (size_t i = 0; i < pieces.size(); ++i) list.emplace_back(pieces[i], static_cast<int32_t>(i));
  return list;
}
std::unique_ptr<TokenModel> bpe(const BpeFile& file) {
  Problems problems;
  auto model = bpe_model(file, "model", problems);
  throw_if_any(problems);
  return model;
}
Spans spans_of(const TokenModel& model, std::string_view word) {
  Spans tokens;
  model.encode(word, *model.make_scratch(), tokens);
  return tokens;
}
Ids ids_of(const TokenModel& model, std::string_view word) {
  Ids ids;
  for (const TokenSpan& token : spans_of(model, word)) ids.push_back(token.id);
  return ids;
}
std::vector<std::string> pieces_of(const BpeFile& file, std::string_view word) {
  std::vector<std::string> pieces;
  for (const int32_t id : ids_of(*bpe(file), word)) pieces.push_back(file.vocabulary[static_cast<size_t>(id)].first);
  return pieces;
}

TEST(PieceIndex, FindsWhatWasInserted) {
  PieceIndex index;
  EXPECT_EQ(index.find("a"), std::nullopt);
  for (int32_t i = 0; i < 5000; ++i) EXPECT_TRUE(index.insert("piece" + std::to_string(i), i));
  for (int32_t i = 0; i < 5000; ++i) ASSERT_EQ(index.find("piece" + std::to_string(i)), i);
  EXPECT_EQ(index.find("piece"), std::nullopt);
  EXPECT_EQ(index.find(""), std::nullopt);
  EXPECT_TRUE(index.insert("", 7));
  EXPECT_EQ(index.find(""), 7);
  EXPECT_FALSE(index.insert("piece3", 9));  // the later counts
  EXPECT_EQ(index.find("piece3"), 9);
  EXPECT_TRUE(index.insert("piece3", 9));
}

TEST(PieceTrie, PrefixesShortestFirst) {
  PieceTrie trie;
  trie.insert("a", 0);
  trie.insert("abc", 1);
  trie.insert("abcd", 2);
  trie.insert(std::string("\0\xFF", 2), 3);
  std::vector<std::pair<size_t, int32_t>> found;
  trie.prefixes("abcx", [&](size_t length, int32_t value) { found.emplace_back(length, value); });
  EXPECT_THAT(found, ElementsAre(Pair(1, 0), Pair(3, 1)));
  EXPECT_THAT(trie.longest("abcde"), Pair(4, 2));
  EXPECT_THAT(trie.longest("b"), Pair(0, -1));
  EXPECT_THAT(trie.longest(std::string("\0\xFF", 2)), Pair(2, 3));
  EXPECT_TRUE(trie.starts('a') && trie.starts(0) && !trie.starts('b'));
}

TEST(PieceTrie, AgreesWithAListOfWords) {
  const CounterRng rng(1, Stream::kTest);
  uint64_t draw = 0;
  PieceTrie trie;
  std::vector<std::string> words;
  for (int32_t i = 0; i < 3000; ++i) {
    words.push_back(random_utf8(rng, draw, 1 + rng.below(draw, 4)));
    trie.insert(words.back(), i);
  }
  for (int i = 0; i < 500; ++i) {
    const std::string text = words[rng.below(draw++, words.size())] + random_utf8(rng, draw, 3);
    size_t longest = 0;
    for (const std::string& word : words) {
      if (text.starts_with(word)) longest = std::max(longest, word.size());
    }
    ASSERT_EQ(trie.longest(text).first, longest);
  }
}

TEST(WordCache, GivesBackWhatItWasGivenAndStaysBounded) {
  WordCache cache;
  Spans tokens;
  EXPECT_FALSE(cache.find("a", tokens));
  const Spans two{{1, 0, 1}, {2, 1, 2}};
  cache.insert("ab", two);
  EXPECT_TRUE(cache.find("ab", tokens));
  EXPECT_EQ(tokens, two);
  EXPECT_TRUE(cache.find("ab", tokens));  // appends
  EXPECT_EQ(tokens.size(), 4u);
  const std::string long_word(WordCache::kLongestWord + 1, 'x');
  cache.insert(long_word, two);
  EXPECT_FALSE(cache.find(long_word, tokens));
  for (int32_t i = 0; i < 100'000; ++i) {
    const std::string word = std::to_string(i);
    cache.insert(word, Spans{{i, 0, static_cast<uint32_t>(word.size())}});
    tokens.clear();
    ASSERT_TRUE(cache.find(word, tokens));
    ASSERT_EQ(tokens[0].id, i);
  }
  EXPECT_FALSE(cache.find("ab", tokens));  // emptied on the way
}

// The rule, as slowly as it is written: the lowest rank, the leftmost of its pairs.
std::vector<BpeMerges::Symbol> merged_slowly(std::vector<BpeMerges::Symbol> symbols,
                                             const std::vector<std::array<int32_t, 4>>& merges) {
  while (true) {
    size_t best = symbols.size();
    const std::array<int32_t, 4>* best_merge = nullptr;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (const auto& merge : merges) {
        if (merge[0] == symbols[i].id && merge[1] == symbols[i + 1].id &&
            (!best_merge || merge[2] < (*best_merge)[2])) {
          best = i;
          best_merge = &merge;
        }
      }
    }
    if (!best_merge) return symbols;
    symbols[best] = {(*best_merge)[3], symbols[best].bytes + symbols[best + 1].bytes};
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BpeMerges, TheHeapTheScanAndTheRuleAgree) {
  const CounterRng rng(2, Stream::kTest);
  uint64_t draw = 0;
  const auto same = [](const std::vector<BpeMerges::Symbol>& a, const std::vector<BpeMerges::Symbol>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return x.id == y.id && x.bytes == y.bytes; });
  };
  for (int round = 0; round < 300; ++round) {
    const int32_t letters = 1 + static_cast<int32_t>(rng.below(draw++, 4));
    std::vector<std::array<int32_t, 4>> merges;  // left, right, rank, id
    BpeMerges table;
    int32_t next = letters;
    for (int32_t i = 0; i < 25; ++i) {
      const auto any = [&] { return static_cast<int32_t>(rng.below(draw++, static_cast<uint64_t>(next))); };
      // Half of the rounds have ranks in common, as sentencepiece's scores may be.
      const std::array<int32_t, 4> merge{any(), any(), round % 2 == 0 ? i : i / 3, next};
      if (std::any_of(merges.begin(), merges.end(),
                      [&](const auto& m) { return m[0] == merge[0] && m[1] == merge[1]; }))
        continue;
      merges.push_back(merge);
      table.insert(merge[0], merge[1], static_cast<uint32_t>(merge[2]), merge[3]);
      ++next;
    }
    std::vector<BpeMerges::Symbol> symbols;
    for (uint64_t i = rng.below(draw++, 120); i > 0; --i)
      symbols.push_back({static_cast<int32_t>(rng.below(draw++, static_cast<uint64_t>(letters))), 1});
    const auto expected = merged_slowly(symbols, merges);
    BpeMerges::Scratch scratch;
    auto by_scan = symbols, by_heap = symbols, by_either = symbols;
    table.apply_by_scanning(by_scan, scratch);
    table.apply_by_heap(by_heap, scratch);
    table.apply(by_either, scratch);
    ASSERT_TRUE(same(by_scan, expected)) << round;
    ASSERT_TRUE(same(by_heap, expected)) << round;
    ASSERT_TRUE(same(by_either, expected)) << round;
  }
}

TEST(BpeMerges, ALongWordTakesNoSquareOfTime) {
  BpeMerges table;
  for (int32_t i = 0; i < 10; ++i) table.insert(i, i, static_cast<uint32_t>(i), i + 1);
  std::vector<BpeMerges::Symbol> symbols(2'000'000, {0, 1});
  BpeMerges::Scratch scratch;
  table.apply(symbols, scratch);  // minutes, were every merge to move what is behind it
  EXPECT_EQ(symbols.size(), 1954u);
  EXPECT_EQ(symbols[0].bytes, 1024u);
}

// The cases of llama.cpp's issues 6920 and 7193: ranks decide, not the order of the text; whole words may skip merges.
TEST(BpeModel, RankOrderAndWholeWords) {
  BpeFile file{.vocabulary = listed({"a", "b", "c", "d", "ab", "bc", "abc", "cd", "bcd"}), .merges = {}};
  file.merges = {{"a", "b"}, {"c", "d"}};
  EXPECT_THAT(pieces_of(file, "abc"), ElementsAre("ab", "c"));
  EXPECT_THAT(pieces_of(file, "abcd"), ElementsAre("ab", "cd"));
  file.whole_words = true;
  EXPECT_THAT(pieces_of(file, "abc"), ElementsAre("abc"));
  EXPECT_THAT(pieces_of(file, "abcd"), ElementsAre("ab", "cd"));
  file.never = {6};
  EXPECT_THAT(pieces_of(file, "abc"), ElementsAre("ab", "c"));  // a special token is no word of a text
  file.whole_words = false;
  file.merges = {{"b", "c"}, {"a", "b"}, {"c", "d"}};
  EXPECT_THAT(pieces_of(file, "abcd"), ElementsAre("a", "bc", "d"));
}

TEST(BpeModel, WhatTheVocabularyLacks) {
  BpeFile file{.vocabulary = listed({"<unk>", "a", "<0xC3>", "<0xA9>"}), .merges = {}};
  const std::string e = "\xC3\xA9", u = "\xC3\xBC";
  EXPECT_THAT(pieces_of(file, "a" + u + "a"), ElementsAre("a", "a"));  // no token for it: left out
  file.unknown = "<unk>";
  EXPECT_EQ(spans_of(*bpe(file), "a" + u + e), (Spans{{1, 0, 1}, {0, 1, 3}, {0, 3, 5}}));
  file.fuse_unknown = true;
  EXPECT_EQ(spans_of(*bpe(file), "a" + u + e), (Spans{{1, 0, 1}, {0, 1, 5}}));
  file.byte_fallback = true;
  EXPECT_THAT(pieces_of(file, e + "a"), ElementsAre("<0xC3>", "<0xA9>", "a"));
  EXPECT_THAT(pieces_of(file, u + "a"), ElementsAre("<unk>", "a"));               // one of its bytes has no token
  EXPECT_THAT(pieces_of(file, u + e), ElementsAre("<0xC3>", "<0xA9>", "<unk>"));  // as Hugging Face's, see bpe_model.cc
  file.unknown = "<none>";
  EXPECT_THAT(input_error([&] { bpe(file); }), HasSubstr("model.unk_token: \"<none>\" is not in the vocabulary"));
}

TEST(BpeModel, PrefixesAndSuffixes) {
  BpeFile file{.vocabulary = listed({"a", "b", "##a", "##b", "b</w>", "##b</w>", "ab", "ab</w>"}), .merges = {}};
  file.word_suffix = "</w>";
  file.merges = {{"a", "b</w>"}};
  EXPECT_THAT(pieces_of(file, "ab"), ElementsAre("ab</w>"));
  EXPECT_THAT(pieces_of(file, "bab"), ElementsAre("b", "ab</w>"));
  file.word_suffix = "";
  file.continuing_prefix = "##";
  file.merges = {{"a", "##b"}};
  EXPECT_THAT(pieces_of(file, "aba"), ElementsAre("ab", "##a"));
  file.merges = {{"a", "b"}};
  EXPECT_THAT(input_error([&] { bpe(file); }), HasSubstr("model.merges[0]"));
}

TEST(BpeModel, MergesOfMissingPiecesAreRefused) {
  BpeFile file{.vocabulary = listed({"a", "b", "ab"}), .merges = {{"a", "b"}, {"ab", "x"}}};
  EXPECT_THAT(input_error([&] { bpe(file); }), HasSubstr("model.merges[1]"));
  file.merges = {{"b", "a"}};
  EXPECT_THAT(input_error([&] { bpe(file); }), HasSubstr("model.merges[0]"));
}

// A vocabulary of marks and letters whose pieces do, or do not, reach over the beginning of a word.
TEST(BpeModel, WordsThatStandAloneAreCutWithoutADifference) {
  const std::string m = kMark;
  const CounterRng rng(3, Stream::kTest);
  uint64_t draw = 0;
  for (const bool reaches_over : {false, true}) {
    BpeFile file{.vocabulary = listed({m, "a", "b", m + "a", m + m, "ab", m + "ab", "a" + m}), .merges = {}};
    if (reaches_over) file.merges.emplace_back("a", m);
    file.merges.insert(file.merges.end(), {{m, m}, {m, "a"}, {"a", "b"}, {m, "ab"}});
    std::vector<std::array<int32_t, 4>> merges;
    PieceIndex ids;
    for (const auto& [piece, id] : file.vocabulary) ids.insert(piece, id);
    for (size_t rank = 0; rank < file.merges.size(); ++rank) {
      const auto& [left, right] = file.merges[rank];
      merges.push_back({*ids.find(left), *ids.find(right), static_cast<int32_t>(rank), *ids.find(left + right)});
    }
    const auto model = bpe(file);
    const auto scratch = model->make_scratch();  // with all that it remembers
    for (int i = 0; i < 500; ++i) {
      std::string text;
      std::vector<BpeMerges::Symbol> symbols;
      for (uint64_t k = rng.below(draw++, 30); k > 0; --k) {
        const int32_t id = static_cast<int32_t>(rng.below(draw++, 3));
        const std::string& piece = file.vocabulary[static_cast<size_t>(id)].first;
        text += piece;
        symbols.push_back({id, static_cast<uint32_t>(piece.size())});
      }
      Spans expected, tokens;
      uint32_t at = 0;
      for (const auto& s : merged_slowly(symbols, merges)) {
        expected.push_back({s.id, at, at + s.bytes});
        at += s.bytes;
      }
      model->encode(text, *scratch, tokens);
      ASSERT_EQ(tokens, expected) << text;
    }
  }
}

TEST(ScoredBpeModel, CharactersMergeThoughTheyAreNoPieces) {
  ScoredBpeFile file;
  file.pieces = {std::nullopt, ScoredPiece{"ab", -1}, ScoredPiece{"c", -3}, ScoredPiece{"abc", -2}};
  const auto model = scored_bpe_model(file);
  EXPECT_EQ(ids_of(*model, "abc"), (Ids{3}));
  EXPECT_EQ(spans_of(*model, "xabac"), (Spans{{0, 0, 1}, {1, 1, 3}, {0, 3, 4}, {2, 4, 5}}));
  EXPECT_EQ(spans_of(*model, "xbac"), (Spans{{0, 0, 3}, {2, 3, 4}}));  // unknown ones are one
  // User-defined pieces come out first, and nothing merges with them.
  file.pieces.push_back(ScoredPiece{"b", 0, true});
  EXPECT_EQ(ids_of(*scored_bpe_model(file), "abc"), (Ids{0, 4, 2}));
  for (int32_t byte = 0; byte < 256; ++byte) file.bytes.push_back(100 + byte);
  EXPECT_EQ(ids_of(*scored_bpe_model(file), "a\xC3\xA9"), (Ids{100 + 'a', 100 + 0xC3, 100 + 0xA9}));
}

UnigramFile small_unigram() {
  UnigramFile file;
  file.pieces = {{"<unk>", 0, false}, {kMark, -1}, {"a", -2}, {kMark + "a", -1.5}};
  file.unknown = 0;
  file.unknown_score = -12;
  return file;
}

// The case of huggingface/tokenizers 1613.
TEST(UnigramModel, ByteFallback) {
  UnigramFile file = small_unigram();
  const std::string face = "\xF0\x9F\x99\x82";
  const std::string text = kMark + "a" + kMark + face;
  EXPECT_EQ(spans_of(*unigram_model(file), text), (Spans{{3, 0, 4}, {1, 4, 7}, {0, 7, 11}}));
  EXPECT_EQ(spans_of(*unigram_model(file), face + face + "a"), (Spans{{0, 0, 8}, {2, 8, 9}}));
  file.bytes.assign(256, -1);
  for (int byte = 0; byte < 256; ++byte) file.bytes[static_cast<size_t>(byte)] = 10 + byte;
  EXPECT_EQ(
      spans_of(*unigram_model(file), text),
      (Spans{{3, 0, 4}, {1, 4, 7}, {10 + 0xF0, 7, 11}, {10 + 0x9F, 7, 11}, {10 + 0x99, 7, 11}, {10 + 0x82, 7, 11}}));
  file.bytes[0x99] = -1;  // not all of its bytes: unknown
  EXPECT_EQ(ids_of(*unigram_model(file), face), (Ids{0}));
  file.unknown.reset();
  EXPECT_THAT(input_error([&] { spans_of(*unigram_model(file), face); }), HasSubstr("not in the vocabulary"));
}

// Against all ways to cut a short word.
TEST(UnigramModel, TheBestOfAllWays) {
  const CounterRng rng(4, Stream::kTest);
  uint64_t draw = 0;
  for (int round = 0; round < 200; ++round) {
    UnigramFile file;
    file.pieces.push_back({"<unk>", 0, false});
    file.unknown = 0;
    double least = 0;
    for (int i = 0; i < 12; ++i) {
      std::string piece;
      for (uint64_t k = 1 + rng.below(draw++, 4); k > 0; --k) piece += static_cast<char>('a' + rng.below(draw++, 3));
      const double score = -static_cast<double>(1 + rng.below(draw++, 4000)) / 256.0;
      least = std::min(least, score);
      file.pieces.push_back({piece, score, true});
    }
    file.unknown_score = least - 10;
    std::string word;
    for (uint64_t k = 1 + rng.below(draw++, 11); k > 0; --k) word += static_cast<char>('a' + rng.below(draw++, 4));
    const auto score_of = [&](const std::string& part) {
      double best = -std::numeric_limits<double>::infinity();
      for (const UnigramPiece& piece : file.pieces) {
        if (piece.reached && piece.text == part) best = piece.score;  // the later counts
      }
      return part.size() == 1 && std::isinf(best) ? file.unknown_score : best;
    };
    double best = -std::numeric_limits<double>::infinity();
    for (uint64_t cuts = 0; cuts < (uint64_t{1} << (word.size() - 1)); ++cuts) {
      double sum = 0;
      std::string part;
      for (size_t i = 0; i < word.size(); ++i) {
        part += word[i];
        if (i + 1 == word.size() || (cuts >> i & 1) != 0) {
          sum += score_of(part);
          part.clear();
        }
      }
      best = std::max(best, sum);
    }
    const auto model = unigram_model(file);
    double got = 0;
    uint32_t at = 0;
    for (const TokenSpan& token : spans_of(*model, word)) {
      ASSERT_EQ(token.begin, at);
      at = token.end;
      got += token.id == 0 ? file.unknown_score * (token.end - token.begin)
                           : file.pieces[static_cast<size_t>(token.id)].score;
    }
    ASSERT_EQ(at, word.size());
    ASSERT_EQ(got, best) << word;  // scores are multiples of 1/256: every sum is exact
  }
}

// The case of llama.cpp's issue 5496.
TEST(WordPieceModel, LongestPiecesFirst) {
  WordPieceFile file{.vocabulary = listed({"[UNK]", "kan", "##to", "a", "##b"})};
  file.most_characters = 5;
  Problems problems;
  const auto model = word_piece_model(file, "model", problems);
  EXPECT_EQ(ids_of(*model, "kanto"), (Ids{1, 2}));
  EXPECT_EQ(ids_of(*model, "ab"), (Ids{3, 4}));
  EXPECT_EQ(spans_of(*model, "!"), (Spans{{0, 0, 1}}));
  EXPECT_EQ(spans_of(*model, "kantoo"), (Spans{{0, 0, 6}}));  // six characters
  EXPECT_EQ(spans_of(*model, "akan"), (Spans{{0, 0, 4}}));    // no "##kan"
  EXPECT_THAT(spans_of(*model, ""), IsEmpty());
  file.unknown = "?";
  EXPECT_EQ(word_piece_model(file, "model", problems), nullptr);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "model.unk_token");
}

TEST(WordLevelModel, KnownOrUnknown) {
  WordLevelFile file{.vocabulary = listed({"<unk>", "king"}), .never = {}};
  EXPECT_EQ(spans_of(*word_level_model(file), "king"), (Spans{{1, 0, 4}}));
  EXPECT_EQ(ids_of(*word_level_model(file), "queen"), (Ids{0}));
  file.unknown = "?";
  EXPECT_THAT(input_error([&] { ids_of(*word_level_model(file), "queen"); }),
              HasSubstr("\"queen\": is not in the voc"));
}

}  // namespace
}  // namespace transept
