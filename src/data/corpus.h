// Text files as tokens: read, tokenized into a compact array, and split into a training and a held-out part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace transept {

struct TextFile {
  std::filesystem::path path;
  std::string text;
};
struct TextFiles {
  std::vector<TextFile> files;                 // in the order of the arguments; inside a folder, by path
  std::vector<std::filesystem::path> skipped;  // inside folders: empty and binary files
  uint64_t bytes() const;
  std::vector<std::string_view> views() const;
};

// Reads files, and folders with all below them (hidden entries are left out; symbolic links are followed, each file is
// read once). A named file that is missing, empty, binary (holds a NUL) or unreadable, and a folder without any text,
// is InputError with its path, as is more text than `max_bytes`; 0 takes a quarter of the memory that is available now.
TextFiles read_texts(std::span<const std::filesystem::path> paths, uint64_t max_bytes = 0);

// kStream: all text is one stream of tokens, cut into windows; each file is a document, closed by eos where another
// follows. kLines: each non-empty line is a document of its own, closed by eos. kPairs: a source and its target for
// each line (data/pairs.h), each a document closed by eos, one after the other.
enum class Unit { kStream, kLines, kPairs };

// Token ids, two bytes each where the vocabulary allows it.
class TokenArray {
 public:
  explicit TokenArray(int64_t vocab_size = 0) : narrow_(vocab_size <= 65536) {}
  void append(std::span<const int32_t> ids);
  int64_t size() const { return static_cast<int64_t>(narrow_ ? ids16_.size() : ids32_.size()); }
  int32_t operator[](int64_t i) const {
    return narrow_ ? static_cast<int32_t>(ids16_[static_cast<size_t>(i)]) : ids32_[static_cast<size_t>(i)];
  }
  int64_t bytes() const { return size() * (narrow_ ? 2 : 4); }
  void shrink_to_fit();

 private:
  bool narrow_;
  std::vector<uint16_t> ids16_;
  std::vector<int32_t> ids32_;
};

// A part of a corpus. A view: the corpus must outlive it.
class Split {
 public:
  // `documents`: the starts of its documents and the end of the last, in `tokens`; may be empty where nothing asks.
  Split(const TokenArray& tokens, int64_t begin, int64_t end, Unit unit, std::span<const int64_t> documents)
      : tokens_(&tokens), begin_(begin), end_(end), unit_(unit), documents_(documents) {}

  Unit unit() const { return unit_; }
  int64_t tokens() const { return end_ - begin_; }
  int32_t token(int64_t i) const { return (*tokens_)[begin_ + i]; }
  void copy(int64_t begin, int64_t count, int32_t* out) const;

  // Documents: [document_begin(d), document_begin(d) + document_tokens(d)), the closing eos counted. Where the stream
  // is cut into parts, a document may begin with the rest of another.
  int64_t documents() const { return documents_.empty() ? 0 : static_cast<int64_t>(documents_.size()) - 1; }
  int64_t document_begin(int64_t d) const { return documents_[static_cast<size_t>(d)] - begin_; }
  int64_t document_tokens(int64_t d) const {
    return documents_[static_cast<size_t>(d) + 1] - documents_[static_cast<size_t>(d)];
  }
  int64_t document_of(int64_t i) const;  // which one holds token i

 private:
  const TokenArray* tokens_;
  int64_t begin_, end_;
  Unit unit_;
  std::span<const int64_t> documents_;
};

// FNV-1a over the ids, as 16 hexadecimal digits: whether two runs read the same text.
std::string fingerprint(const Split& split);

struct CorpusOptions {
  Unit unit = Unit::kStream;
  int64_t context = 256;  // kPairs: no source and no target is longer
  double val_fraction =
      0.1;             // the last part of the one stream, as nanoGPT splits; unused when texts to validate on are given
  int64_t window = 0;  // tokens of an example, which each part of a stream must hold; 0: context + 1
};

class Corpus {
 public:
  // `val_texts` null: held out from `texts` by val_fraction, in (0, 1).
  Corpus(const TextFiles& texts, const TextFiles* val_texts, const Tokenizer& tokenizer, const CorpusOptions& options);
  // Undivided, for evaluation: all() is what it holds. `context` bounds pairs, as above.
  Corpus(const TextFiles& texts, const Tokenizer& tokenizer, Unit unit, int64_t context);
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;

  Split all() const;
  Split train() const;
  Split val() const;
  int64_t memory_bytes() const { return tokens_.bytes() + static_cast<int64_t>(documents_.size() * sizeof(int64_t)); }

 private:
  Corpus(const Tokenizer& tokenizer, Unit unit, int64_t context);  // empty
  void add(const TextFiles& texts, const Tokenizer& tokenizer);
  void add_document(std::span<const int32_t> ids);
  Unit unit_;
  int64_t context_;
  TokenArray tokens_;
  std::vector<int64_t> documents_;  // starts, and the end
  int64_t train_tokens_ = 0;
  int64_t train_documents_ = 0;
};

}  // namespace transept
