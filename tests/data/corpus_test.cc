#include "data/corpus.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

#include "support/temp_folder.h"
#include "support/throws.h"

namespace transept {
namespace {
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

TextFiles read(std::vector<fs::path> paths, uint64_t max_bytes = 0) { return read_texts(paths, max_bytes); }
std::vector<std::string> texts_of(const TextFiles& t) {
  std::vector<std::string> out;
  for (const TextFile& f : t.files) out.push_back(f.text);
  return out;
}
TextFiles as_texts(std::vector<std::string> texts) {
  TextFiles t;
  for (std::string& s : texts) t.files.push_back({"memory", std::move(s)});
  return t;
}
Ids all(const Split& s) {
  Ids ids(static_cast<size_t>(s.tokens()));
  s.copy(0, s.tokens(), ids.data());
  return ids;
}

TEST(ReadTexts, FilesInTheOrderGivenAndFoldersByPath) {
  const TempFolder folder;
  folder.put("d/b.txt", "b");
  folder.put("d/a.md", "a");
  folder.put("d/sub/deep/c", "c");
  folder.put("d/.hidden/x.txt", "hidden");
  folder.put("d/.git", "hidden");
  folder.put("d/empty.txt", "");
  folder.put("d/picture.png", std::string("\x89PNG\0\0", 6));
  folder.put("z.txt", "z");
  ASSERT_EQ(::mkfifo((folder / "d/pipe").c_str(), 0600), 0);
  const TextFiles t = read({folder / "z.txt", folder / "d"});
  EXPECT_THAT(texts_of(t), ElementsAre("z", "a", "b", "c"));
  EXPECT_THAT(t.skipped, ElementsAre(folder / "d/empty.txt", folder / "d/picture.png"));
  EXPECT_EQ(t.bytes(), 4u);
  EXPECT_EQ(t.files[1].path, folder / "d/a.md");
}

TEST(ReadTexts, LinksAreFollowedAndLoopsEnd) {
  const TempFolder folder;
  folder.put("outside/o.txt", "outside");
  folder.put("d/a.txt", "a");
  fs::create_directory_symlink("..", folder / "d/up");
  fs::create_directory_symlink(".", folder / "d/self");
  fs::create_symlink("a.txt", folder / "d/same.txt");
  fs::create_symlink("nowhere", folder / "d/dangling");
  fs::create_directory_symlink(folder / "outside", folder / "d/there");
  EXPECT_THAT(texts_of(read({folder / "d"})), ElementsAre("a", "outside"));
  EXPECT_THAT(texts_of(read({folder / "d/a.txt", folder / "d", folder / "d/same.txt"})), ElementsAre("a", "outside"));
}

TEST(ReadTexts, WhatIsNoTextIsRefusedWithItsPath) {
  const TempFolder folder;
  const auto refusal = [&](const fs::path& path) { return input_error([&] { read({path}); }); };
  EXPECT_THAT(refusal(folder / "none.txt"), AllOf(HasSubstr("none.txt"), HasSubstr("no such file")));
  EXPECT_THAT(refusal(folder.put("empty.txt", "")), AllOf(HasSubstr("empty.txt"), HasSubstr("is empty")));
  EXPECT_THAT(refusal(folder.put("binary", std::string("a\0b", 3))), AllOf(HasSubstr("binary"), HasSubstr("NUL")));
  EXPECT_THAT(refusal("/dev/null"), AllOf(HasSubstr("/dev/null"), HasSubstr("not a regular file")));
  fs::create_directories(folder / "hollow/sub");
  EXPECT_THAT(refusal(folder / "hollow"), AllOf(HasSubstr("hollow"), HasSubstr("holds no text")));
  folder.put("hollow/binary", std::string(1, '\0'));
  EXPECT_THAT(refusal(folder / "hollow"), HasSubstr("holds no text"));
  EXPECT_THAT(input_error([&] { read({folder.put("a.txt", "a"), folder / "hollow"}); }), HasSubstr("holds no text"));
  EXPECT_THAT(input_error([&] { read({}); }), HasSubstr("no text was given"));
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THAT(refusal(folder / "loop"), HasSubstr("loop: "));
  if (::geteuid() != 0) {
    const fs::path locked = folder.put("locked.txt", "x");
    ::chmod(locked.c_str(), 0);
    EXPECT_THAT(refusal(locked), AllOf(HasSubstr("locked.txt"), HasSubstr("cannot be opened")));
  }
}

TEST(ReadTexts, TheTotalIsBounded) {
  const TempFolder folder;
  folder.put("d/a.txt", std::string(60, 'a'));
  folder.put("d/b.txt", std::string(60, 'b'));
  EXPECT_EQ(read({folder / "d"}, 120).bytes(), 120u);
  EXPECT_THAT(input_error([&] { read({folder / "d"}, 119); }),
              AllOf(HasSubstr("b.txt"), HasSubstr("119 bytes"), HasSubstr("less text")));
  // Sparse, so that it is the size that is refused, not the reading.
  const fs::path huge = folder.put("huge.txt", "x");
  fs::resize_file(huge, uint64_t{1} << 44);
  EXPECT_THAT(input_error([&] { read({huge}); }), HasSubstr("huge.txt"));
}

TEST(TokenArray, BothWidthsKeepTheIds) {
  for (const int64_t vocab : {259, 65536, 65537, 200000}) {
    TokenArray a(vocab);
    const Ids ids{0, 1, static_cast<int32_t>(vocab - 1)};
    a.append(ids);
    a.append(ids);
    ASSERT_EQ(a.size(), 6);
    EXPECT_EQ(a[5], vocab - 1);
    EXPECT_EQ(a.bytes(), 6 * (vocab <= 65536 ? 2 : 4));
  }
}

TEST(Corpus, StreamIsSplitWhereNanoGptSplits) {
  const auto t = byte_tokenizer();
  std::string text;
  for (int i = 0; i < 1003; ++i) text += static_cast<char>('a' + i % 26);
  const Corpus corpus(as_texts({text}), nullptr, *t, {Unit::kStream, 50, 0.1});
  EXPECT_EQ(corpus.train().tokens(), 902);  // int(1003 * 0.9)
  EXPECT_EQ(corpus.val().tokens(), 101);
  EXPECT_EQ(all(corpus.train()), t->encode(text.substr(0, 902), Specials::kNone));
  EXPECT_EQ(all(corpus.val()), t->encode(text.substr(902), Specials::kNone));
  EXPECT_EQ(corpus.val().token(3), text[905]);
  EXPECT_EQ(corpus.train().documents(), 1);
  EXPECT_EQ(corpus.val().document_begin(0), 0);  // the rest of the text
}

TEST(Corpus, FilesOfAStreamAreSeparatedByEos) {
  const auto t = byte_tokenizer();
  const TextFiles val = as_texts({"xyz"});
  const Corpus corpus(as_texts({"ab", "cd"}), &val, *t, {Unit::kStream, 2, 0});
  EXPECT_EQ(all(corpus.train()), (Ids{'a', 'b', 257, 'c', 'd'}));
  EXPECT_EQ(all(corpus.val()), (Ids{'x', 'y', 'z'}));
  const Split s = corpus.train();
  ASSERT_EQ(s.documents(), 2);
  EXPECT_EQ(s.document_tokens(0), 3);
  EXPECT_EQ(s.document_begin(1), 3);
  EXPECT_EQ(s.document_of(2), 0);
  EXPECT_EQ(s.document_of(3), 1);
  EXPECT_EQ(corpus.val().documents(), 1);
}

TEST(Corpus, AStreamCutInsideADocument) {
  const auto t = byte_tokenizer();
  const Corpus corpus(as_texts({"abcdef", "ghijklmno", "pqr"}), nullptr, *t, {Unit::kStream, 2, 0.5});
  const Split train = corpus.train(), val = corpus.val();
  EXPECT_EQ(train.tokens(), 10);
  ASSERT_EQ(train.documents(), 2);
  EXPECT_EQ(train.document_tokens(1), 3);
  ASSERT_EQ(val.documents(), 2);
  EXPECT_EQ(val.token(0), 'j');
  EXPECT_EQ(val.document_tokens(0), 7);
  EXPECT_EQ(val.document_begin(1), 7);
  EXPECT_EQ(val.document_tokens(1), 3);
}

TEST(Corpus, SpecialTokensWrittenInATextAreOnlyText) {
  const auto t = byte_tokenizer();
  const TextFiles val = as_texts({"xyz"});
  const Corpus corpus(as_texts({"a<|eos|>"}), &val, *t, {Unit::kStream, 2, 0});
  EXPECT_EQ(corpus.train().tokens(), 8);
}

TEST(Corpus, LinesAreDocumentsClosedByEos) {
  const auto t = byte_tokenizer();
  const TextFiles val = as_texts({"v\n"});
  const Corpus corpus(as_texts({"ab\n\n  \ncde\r\n", "f"}), &val, *t, {Unit::kLines, 8, 0});
  const Split s = corpus.train();
  EXPECT_EQ(all(s), (Ids{'a', 'b', 257, 'c', 'd', 'e', 257, 'f', 257}));
  ASSERT_EQ(s.documents(), 3);
  EXPECT_EQ(s.document_begin(1), 3);
  EXPECT_EQ(s.document_tokens(1), 4);
  EXPECT_EQ(s.document_tokens(2), 2);
  EXPECT_EQ(corpus.val().documents(), 1);
  EXPECT_EQ(corpus.val().document_begin(0), 0);
  EXPECT_EQ(all(corpus.val()), (Ids{'v', 257}));
}

TEST(Corpus, LinesAreSplitBetweenDocuments) {
  const auto t = byte_tokenizer();
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::string(1 + i % 7, static_cast<char>('a' + i % 26)) + "\n";
  const Corpus corpus(as_texts({text}), nullptr, *t, {Unit::kLines, 8, 0.2});
  const Split train = corpus.train(), val = corpus.val();
  EXPECT_EQ(train.documents() + val.documents(), 100);
  EXPECT_NEAR(static_cast<double>(val.tokens()), 0.2 * static_cast<double>(train.tokens() + val.tokens()), 8);
  for (const Split& s : {train, val}) {
    for (int64_t d = 0; d < s.documents(); ++d) {
      EXPECT_EQ(s.token(s.document_begin(d) + s.document_tokens(d) - 1), 257);
      for (int64_t i = 0; i + 1 < s.document_tokens(d); ++i) EXPECT_NE(s.token(s.document_begin(d) + i), 257);
    }
    EXPECT_EQ(s.document_begin(s.documents() - 1) + s.document_tokens(s.documents() - 1), s.tokens());
  }
}

TEST(Corpus, BothPartsMustHoldMoreThanOneContext) {
  const auto t = byte_tokenizer();
  const auto refusal = [&](size_t bytes, double fraction) {
    return input_error(
        [&] { Corpus c(as_texts({std::string(bytes, 'x')}), nullptr, *t, {Unit::kStream, 10, fraction}); });
  };
  EXPECT_EQ(refusal(110, 0.1), "(no error)");
  EXPECT_THAT(refusal(100, 0.1),
              AllOf(HasSubstr("validation text: holds 10 tokens"), HasSubstr("at least 11"), HasSubstr("more text")));
  EXPECT_THAT(refusal(100, 0.9), HasSubstr("training text: holds 9 tokens"));
}

TEST(Corpus, TooLittleTextNamesBothParts) {
  const auto t = byte_tokenizer();
  EXPECT_THAT(input_error([&] { Corpus c(as_texts({"short"}), nullptr, *t, {Unit::kStream, 64, 0.1}); }),
              AllOf(HasSubstr("training text: holds 4 tokens"), HasSubstr("validation text: holds 1 tokens"),
                    HasSubstr("at least 65"), HasSubstr("shorter context")));
  EXPECT_THAT(input_error([&] { Corpus c(as_texts({"one line"}), nullptr, *t, {Unit::kLines, 64, 0.1}); }),
              HasSubstr("holds no line"));
  EXPECT_THAT(input_error([&] { Corpus c(as_texts({"\n \n"}), nullptr, *t, {Unit::kLines, 64, 0.1}); }),
              HasSubstr("training text: holds no line"));
  for (const double fraction : {0.0, 1.0, -0.1, 2.0, static_cast<double>(NAN)}) {
    EXPECT_THAT(input_error([&] { Corpus c(as_texts({"short"}), nullptr, *t, {Unit::kStream, 2, fraction}); }),
                HasSubstr("between 0 and 1"));
  }
}

}  // namespace
}  // namespace transept
