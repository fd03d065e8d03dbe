#include "text/tokenizer.h"

#include "text/formats.h"
#include "text/utf8.h"

namespace transept {
namespace fs = std::filesystem;

InputError unknown_id(int64_t id, int64_t vocab_size) {
  return {"token " + std::to_string(id), "is outside the vocabulary of " + std::to_string(vocab_size),
          "use ids from 0 on, below that"};
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  bool strip = strips_first_space();
  for (const int32_t id : ids) {
    std::string bytes = bytes_of(id);
    if (bytes.empty()) continue;
    if (strip && bytes[0] == ' ') bytes.erase(0, 1);
    strip = false;
    text += bytes;
  }
  return text;
}

std::string StreamDecoder::push(int32_t id) {
  std::string bytes = tokenizer_->bytes_of(id);
  if (bytes.empty()) return {};
  if (strip_space_ && bytes[0] == ' ') bytes.erase(0, 1);
  strip_space_ = false;
  waiting_ += bytes;
  // Only the last part can be a character whose rest is still to come.
  size_t whole = 0;
  while (whole < waiting_.size()) {
    const Utf8Part part = utf8_part(std::string_view(waiting_).substr(whole));
    if (part.cut) break;
    whole += part.length;
  }
  std::string out = repair_utf8(std::string_view(waiting_).substr(0, whole));
  waiting_.erase(0, whole);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out = repair_utf8(waiting_);
  waiting_.clear();
  strip_space_ = false;
  return out;
}

bool has_tokenizer(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "tokenizer.model", ignored) || fs::exists(folder / "tokenizer.json", ignored);
}

std::optional<int32_t> decoder_start(const Tokenizer& tokenizer) {
  for (const std::optional<int32_t> id : {tokenizer.bos(), tokenizer.pad(), tokenizer.eos()}) {
    if (id) return id;
  }
  return std::nullopt;
}

std::vector<int32_t> encode_source(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids = tokenizer.encode(text, Specials::kNone);
  if (const std::optional<int32_t> eos = tokenizer.eos()) ids.push_back(*eos);
  return ids;
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& folder_or_file) {
  std::error_code ignored;
  if (!fs::is_directory(folder_or_file, ignored)) {
    return with_added_tokens(folder_or_file.extension() == ".json" ? load_tokenizer_json(folder_or_file)
                                                                   : load_sentencepiece(folder_or_file),
                             folder_or_file.parent_path());
  }
  if (fs::exists(folder_or_file / "tokenizer.model", ignored))
    return with_added_tokens(load_sentencepiece(folder_or_file / "tokenizer.model"), folder_or_file);
  if (fs::exists(folder_or_file / "tokenizer.json", ignored))
    return with_added_tokens(load_tokenizer_json(folder_or_file / "tokenizer.json"), folder_or_file);
  throw InputError(folder_or_file.string(), "holds neither tokenizer.model nor tokenizer.json",
                   "name the folder of a model that has one");
}

}  // namespace transept
