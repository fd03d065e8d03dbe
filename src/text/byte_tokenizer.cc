// The byte-level tokenizer and its `tokenizer.json`: Hugging Face's byte-level BPE with no merges. Its vocabulary names
// each byte by a printable character (text/byte_level.h) and maps it to the byte's value.
#include <array>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/problem.h"
#include "text/byte_level.h"
#include "text/byte_piece.h"
#include "text/formats.h"
#include "text/special_text.h"

namespace transept {
namespace {

constexpr int32_t kBytes = 256;
constexpr std::array<std::string_view, 3> kSpecials{"<|bos|>", "<|eos|>", "<|pad|>"};

// The file as `save` writes it.
Json own_file() {
  Json vocab = Json::object();
  for (size_t b = 0; b < 256; ++b) vocab[to_byte_level(std::string(1, static_cast<char>(b)))] = b;
  Json added = Json::array();
  for (size_t i = 0; i < kSpecials.size(); ++i) {
    added.push_back({{"id", static_cast<size_t>(kBytes) + i},
                     {"content", kSpecials[i]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocab},
            {"merges", Json::array()}}}};
}

class ByteTokenizer : public Tokenizer {
 public:
  std::string_view kind() const override { return "byte"; }
  int64_t vocab_size() const override { return kBytes + static_cast<int64_t>(kSpecials.size()); }
  std::optional<int32_t> bos() const override { return kBytes; }
  std::optional<int32_t> eos() const override { return kBytes + 1; }
  std::optional<int32_t> pad() const override { return kBytes + 2; }
  bool is_special(int32_t id) const override {
    check_id(id);
    return id >= kBytes;
  }

  Encoding encode_with_offsets(std::string_view text, Specials read) const override {
    Encoding encoding;
    encoding.ids = encode(text, read);
    size_t at = 0;
    for (const int32_t id : encoding.ids) {
      const size_t length = id < kBytes ? 1 : kSpecials[static_cast<size_t>(id - kBytes)].size();
      encoding.offsets.push_back({at, at + length});
      at += length;
    }
    return encoding;
  }

  std::vector<int32_t> encode(std::string_view text, Specials read) const override {
    std::vector<int32_t> ids;
    ids.reserve(text.size());
    const auto plain = [&](std::string_view part) {
      for (const char c : part) ids.push_back(static_cast<unsigned char>(c));
    };
    if (read != Specials::kNone) {
      static const SpecialText specials = [] {
        std::vector<std::pair<std::string, int32_t>> named;
        for (size_t i = 0; i < kSpecials.size(); ++i)
          named.emplace_back(kSpecials[i], kBytes + static_cast<int32_t>(i));
        return SpecialText(std::move(named));
      }();
      specials.split(text, plain, [&](int32_t id, ByteRange) { ids.push_back(id); });
    } else {
      plain(text);
    }
    return ids;
  }

  std::string piece(int32_t id) const override {
    check_id(id);
    if (id >= kBytes) return std::string(kSpecials[static_cast<size_t>(id - kBytes)]);
    if (id >= 0x20 && id < 0x7F) return std::string(1, static_cast<char>(id));
    return byte_piece(static_cast<uint8_t>(id));
  }
  std::string bytes_of(int32_t id) const override {
    check_id(id);
    return id >= kBytes ? std::string() : std::string(1, static_cast<char>(id));
  }

  void save(const std::filesystem::path& folder) const override {
    const Json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"bos_token", kSpecials[0]},
                      {"eos_token", kSpecials[1]},
                      {"pad_token", kSpecials[2]},
                      {"clean_up_tokenization_spaces", false}};
    write_file_atomic(folder / "tokenizer.json", own_file().dump(1) + "\n");
    write_file_atomic(folder / "tokenizer_config.json", config.dump(1) + "\n");
  }

 private:
  void check_id(int32_t id) const {
    if (id < 0 || id >= vocab_size()) throw unknown_id(id, vocab_size());
  }
};

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

bool is_byte_tokenizer(const TokenizerFile& file) {
  static const TokenizerFile own = parse_tokenizer_file(own_file().dump(), "the byte tokenizer");
  return file.rest == own.rest && file.vocabulary == own.vocabulary && file.scored.empty() && file.merges.empty();
}

}  // namespace transept
