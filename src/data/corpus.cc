#include "data/corpus.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/problem.h"
#include "data/pairs.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

class TextReader {
 public:
  explicit TextReader(uint64_t max_bytes)
      : max_bytes_(max_bytes != 0 ? max_bytes : static_cast<uint64_t>(available_memory_bytes()) / 4) {}

  TextFiles take(std::span<const fs::path> paths) {
    for (const fs::path& path : paths) {
      std::error_code code;
      const fs::file_status status = fs::status(path, code);
      if (!fs::exists(status)) {
        throw InputError(path.string(),
                         code && code != std::errc::no_such_file_or_directory ? "cannot be read: " + code.message()
                                                                              : "no such file or folder",
                         "check the path");
      }
      if (fs::is_directory(status)) {
        const uint64_t before = met_;
        walk(path);
        if (met_ == before) {
          throw InputError(path.string(), "holds no text", "name a folder with text files in it");
        }
      } else if (first_visit(path)) {
        std::string text = read(path);
        if (text.empty()) throw InputError(path.string(), "is empty", "give a file with text in it");
        if (is_binary(text)) throw InputError(path.string(), "is not text: it holds a NUL byte", "give a text file");
        keep(path, std::move(text));
      }
    }
    if (texts_.files.empty()) throw InputError("data", "no text was given", "name at least one text file");
    return std::move(texts_);
  }

 private:
  static bool is_binary(const std::string& text) { return text.find('\0') != std::string::npos; }

  bool first_visit(const fs::path& path) {
    struct stat st;
    return ::stat(path.c_str(), &st) != 0 || seen_.insert({st.st_dev, st.st_ino}).second;
  }

  std::string read(const fs::path& path) {
    std::error_code code;
    const uint64_t size = fs::file_size(path, code), left = max_bytes_ - total_;
    if (!code && size > left) {
      throw InputError(path.string(),
                       "brings the text to more than the " + std::to_string(max_bytes_) + " bytes that fit here",
                       "give less text");
    }
    std::string text = read_file(path, left);
    return text;
  }
  void keep(const fs::path& path, std::string text) {
    ++met_;
    total_ += text.size();
    texts_.files.push_back({path, std::move(text)});
  }

  void walk(const fs::path& folder) {
    if (!first_visit(folder)) {  // a symbolic link back up, or a folder named twice
      ++met_;
      return;
    }
    std::error_code code;
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
      entries.push_back(it->path());
    if (code) throw InputError(folder.string(), "cannot be listed: " + code.message(), "check the permissions");
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) {
      if (entry.filename().native().starts_with('.')) continue;
      const fs::file_status status = fs::status(entry, code);
      if (fs::is_directory(status)) {
        walk(entry);
      } else if (fs::is_regular_file(status)) {
        if (!first_visit(entry)) {
          ++met_;
          continue;
        }
        std::string text = read(entry);
        if (text.empty() || is_binary(text)) {
          texts_.skipped.push_back(entry);
        } else {
          keep(entry, std::move(text));
        }
      }
    }
  }

  uint64_t max_bytes_, total_ = 0;
  uint64_t met_ = 0;  // texts kept, or met again
  TextFiles texts_;
  std::set<std::pair<dev_t, ino_t>> seen_;  // files and folders
};

// Non-empty lines, without their line ends.
template <class Body>
void for_each_line(std::string_view text, const Body& body) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != std::string_view::npos) body(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

uint64_t TextFiles::bytes() const {
  uint64_t total = 0;
  for (const TextFile& f : files) total += f.text.size();
  return total;
}

std::vector<std::string_view> TextFiles::views() const {
  std::vector<std::string_view> views;
  for (const TextFile& f : files) views.push_back(f.text);
  return views;
}

TextFiles read_texts(std::span<const fs::path> paths, uint64_t max_bytes) { return TextReader(max_bytes).take(paths); }

void TokenArray::append(std::span<const int32_t> ids) {
  if (narrow_) {
    for (const int32_t id : ids) ids16_.push_back(static_cast<uint16_t>(id));
  } else {
    ids32_.insert(ids32_.end(), ids.begin(), ids.end());
  }
}

void TokenArray::shrink_to_fit() {
  ids16_.shrink_to_fit();
  ids32_.shrink_to_fit();
}

void Split::copy(int64_t begin, int64_t count, int32_t* out) const {
  TRANSEPT_CHECK(begin >= 0 && count >= 0 && begin <= tokens() - count);
  for (int64_t i = 0; i < count; ++i) out[i] = token(begin + i);
}

int64_t Split::document_of(int64_t i) const {
  TRANSEPT_CHECK(i >= 0 && i < tokens() && documents() >= 1);
  return std::upper_bound(documents_.begin(), documents_.end() - 1, begin_ + i) - documents_.begin() - 1;
}

std::string fingerprint(const Split& split) {
  Fnv1a hash;
  for (int64_t i = 0; i < split.tokens(); ++i) hash.add(static_cast<uint64_t>(split.token(i)));
  return fmt::format("{:016x}", hash.value());
}

Corpus::Corpus(const Tokenizer& tokenizer, Unit unit, int64_t context)
    : unit_(unit), context_(context), tokens_(tokenizer.vocab_size()) {
  TRANSEPT_CHECK(context >= 1);
  if (unit_ == Unit::kLines && !tokenizer.eos()) {
    throw InputError("tokenizer", "has no end-of-text token, which closes a line that is a document of its own",
                     "use the stream of all text");
  }
}

Corpus::Corpus(const TextFiles& texts, const Tokenizer& tokenizer, Unit unit, int64_t context)
    : Corpus(tokenizer, unit, context) {
  add(texts, tokenizer);
  train_tokens_ = tokens_.size();
  train_documents_ = static_cast<int64_t>(documents_.size());
  documents_.push_back(tokens_.size());
}

Corpus::Corpus(const TextFiles& texts, const TextFiles* val_texts, const Tokenizer& tokenizer,
               const CorpusOptions& options)
    : Corpus(tokenizer, options.unit, options.context) {
  if (val_texts == nullptr && !(options.val_fraction > 0 && options.val_fraction < 1)) {
    throw InputError("validation fraction", "must lie between 0 and 1", "choose, for one, 0.1");
  }
  add(texts, tokenizer);
  if (val_texts != nullptr) {
    train_tokens_ = tokens_.size();
    train_documents_ = static_cast<int64_t>(documents_.size());
    add(*val_texts, tokenizer);
  } else {
    train_tokens_ = static_cast<int64_t>(static_cast<double>(tokens_.size()) * (1.0 - options.val_fraction));
    auto cut = std::lower_bound(documents_.begin(), documents_.end(), train_tokens_);
    if (unit_ == Unit::kStream) {
      if (cut == documents_.end() || *cut != train_tokens_) cut = documents_.insert(cut, train_tokens_);
    } else {
      // No document is cut: the part to validate on begins with the first one, or the first pair, at or behind that
      // place.
      if (unit_ == Unit::kPairs && (cut - documents_.begin()) % 2 != 0) ++cut;
      train_tokens_ = cut == documents_.end() ? tokens_.size() : *cut;
    }
    train_documents_ = cut - documents_.begin();
  }
  documents_.push_back(tokens_.size());
  tokens_.shrink_to_fit();

  Problems problems;
  const std::string mend = val_texts != nullptr ? "give more text, or choose a shorter context"
                                                : "give more text, another validation fraction, or a shorter context";
  const int64_t window = options.window > 0 ? options.window : options.context + 1;
  const auto check = [&](const char* part, const TextFiles& from, const Split& split) {
    std::string where = from.files.empty() ? part : from.files.front().path.string() + ": " + part;
    if (from.files.size() > 1)
      where = from.files.front().path.string() + " and " + std::to_string(from.files.size() - 1) + " more: " + part;
    if (unit_ != Unit::kStream) {
      if (split.documents() < 1)
        problems.push_back({where, "holds no line", "give more lines, or another validation fraction"});
    } else if (split.tokens() < window) {
      problems.push_back({where,
                          "holds " + std::to_string(split.tokens()) + " tokens, but a context of " +
                              std::to_string(options.context) + " needs at least " + std::to_string(window),
                          mend});
    }
  };
  check("training text", texts, train());
  check("validation text", val_texts != nullptr ? *val_texts : texts, val());
  throw_if_any(std::move(problems));
}

void Corpus::add_document(std::span<const int32_t> ids) {
  documents_.push_back(tokens_.size());
  tokens_.append(ids);
}

void Corpus::add(const TextFiles& texts, const Tokenizer& tokenizer) {
  const std::optional<int32_t> eos = tokenizer.eos();
  if (unit_ == Unit::kPairs) {
    Problems problems;
    for (const TextFile& file : texts.files) {
      for (const TextPair& pair : read_pairs(file)) {
        for (const std::string* text : {&pair.source, &pair.target}) {
          const std::vector<int32_t> ids = encode_source(tokenizer, *text);
          if (ids.empty()) problems.push_back({pair.where, "has a text without any token", "leave the line out"});
          if (static_cast<int64_t>(ids.size()) > context_) {
            problems.push_back({pair.where,
                                "holds a text of " + std::to_string(ids.size()) +
                                    " tokens, its end counted, more than the context of " + std::to_string(context_),
                                "use a longer context, or leave the line out"});
          }
          add_document(ids);
        }
        constexpr size_t kMostProblems = 5;
        if (problems.size() >= kMostProblems) throw_if_any(std::move(problems));
      }
    }
    return throw_if_any(std::move(problems));
  }
  bool first = true;
  for (const TextFile& file : texts.files) {
    if (unit_ == Unit::kStream) {
      const std::vector<int32_t> ids = tokenizer.encode(file.text, Specials::kNone);
      if (ids.empty()) continue;
      if (!first && eos) tokens_.append(std::span(&*eos, 1));  // closes the document before
      add_document(ids);
    } else {
      for_each_line(file.text, [&](std::string_view line) {
        std::vector<int32_t> ids = tokenizer.encode(line, Specials::kNone);
        if (ids.empty()) return;  // would be a document without anything to predict
        ids.push_back(*eos);
        add_document(ids);
      });
    }
    first = false;
  }
}

Split Corpus::all() const { return {tokens_, 0, tokens_.size(), unit_, documents_}; }

Split Corpus::train() const {
  const std::span<const int64_t> documents = documents_;
  return {tokens_, 0, train_tokens_, unit_, documents.first(static_cast<size_t>(train_documents_) + 1)};
}

Split Corpus::val() const {
  const std::span<const int64_t> documents = documents_;
  return {tokens_, train_tokens_, tokens_.size(), unit_, documents.subspan(static_cast<size_t>(train_documents_))};
}

}  // namespace transept
