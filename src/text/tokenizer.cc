#include "text/tokenizer.h"

#include "text/formats.h"
#include "text/utf8.h"

namespace transept {

InputError unknown_id(int64_t id, int64_t vocab_size) {
  return {"token " + std::to_string(id), "is outside the vocabulary of " + std::to_string(vocab_size),
          "use ids from 0 on, below that"};
}

bool Tokenizer::adds_bos() const {
  const std::vector<int32_t> before = ids_before();
  return !before.empty() && bos() == before[0];
}

std::string Tokenizer::repair(std::string_view bytes) const {
  if (!repairs_each_byte()) return repair_utf8(bytes);
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Part part = utf8_part(bytes);
    if (part.valid) {
      out += bytes.substr(0, part.length);
    } else {
      for (size_t i = 0; i < part.length; ++i) out += "\xEF\xBF\xBD";
    }
    bytes.remove_prefix(part.length);
  }
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  bool first = true;
  for (const int32_t id : ids) {
    if (is_special(id)) continue;
    text += first ? first_bytes_of(id) : bytes_of(id);
    first = false;
  }
  if (drops_last_space() && text.ends_with(' ')) text.pop_back();
  return text;
}

std::string StreamDecoder::push(int32_t id) {
  if (tokenizer_->is_special(id)) return {};
  waiting_ += at_start_ ? tokenizer_->first_bytes_of(id) : tokenizer_->bytes_of(id);
  at_start_ = false;
  // Only the last part can be a character whose rest is still to come.
  size_t whole = 0;
  while (whole < waiting_.size()) {
    const Utf8Part part = utf8_part(std::string_view(waiting_).substr(whole));
    if (part.cut) break;
    whole += part.length;
  }
  if (whole > 0 && whole == waiting_.size() && tokenizer_->drops_last_space() && waiting_.back() == ' ') --whole;
  std::string out = tokenizer_->repair(std::string_view(waiting_).substr(0, whole));
  waiting_.erase(0, whole);
  return out;
}

std::string StreamDecoder::finish() {
  if (tokenizer_->drops_last_space() && waiting_.ends_with(' ')) waiting_.pop_back();
  std::string out = tokenizer_->repair(waiting_);
  waiting_.clear();
  at_start_ = false;
  return out;
}

std::optional<int32_t> decoder_start(const Tokenizer& tokenizer) {
  for (const std::optional<int32_t> id : {tokenizer.bos(), tokenizer.pad(), tokenizer.eos()}) {
    if (id) return id;
  }
  return std::nullopt;
}

std::vector<int32_t> encode_source(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids = tokenizer.ids_before();
  for (const std::vector<int32_t>& part : {tokenizer.encode(text, Specials::kNone), tokenizer.ids_after()})
    ids.insert(ids.end(), part.begin(), part.end());
  if (const std::optional<int32_t> eos = tokenizer.eos(); eos && (ids.empty() || ids.back() != *eos))
    ids.push_back(*eos);
  return ids;
}

}  // namespace transept
