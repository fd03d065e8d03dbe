// The byte-level tokenizer and its `tokenizer.json`: Hugging Face's byte-level BPE with no merges. Its vocabulary names
// each byte by a printable character (GPT-2's alphabet: encoder.py of the GPT-2 release, bytes_to_unicode) and maps it
// to the byte's value.
#include <array>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/problem.h"
#include "text/formats.h"
#include "text/special_text.h"

namespace transept {
namespace {

constexpr int32_t kBytes = 256;
constexpr std::array<std::string_view, 3> kSpecials{"<|bos|>", "<|eos|>", "<|pad|>"};

// Bytes that are printable in Latin-1 stand for themselves; the others take U+0100, U+0101, ... in order.
std::array<std::string, 256> gpt2_alphabet() {
  std::array<std::string, 256> names;
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    const uint32_t point = printable ? b : next++;
    std::string& name = names[b];
    if (point < 0x80) {
      name = static_cast<char>(point);
    } else {
      name = {static_cast<char>(0xC0 | (point >> 6)), static_cast<char>(0x80 | (point & 0x3F))};
    }
  }
  return names;
}

class ByteTokenizer : public Tokenizer {
 public:
  std::string_view kind() const override { return "byte"; }
  int64_t vocab_size() const override { return kBytes + static_cast<int64_t>(kSpecials.size()); }
  std::optional<int32_t> bos() const override { return kBytes; }
  std::optional<int32_t> eos() const override { return kBytes + 1; }
  std::optional<int32_t> pad() const override { return kBytes + 2; }
  bool adds_bos() const override { return false; }
  bool strips_first_space() const override { return false; }
  bool is_special(int32_t id) const override { return id >= kBytes; }

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
      specials.split(text, plain, [&](int32_t id) { ids.push_back(id); });
    } else {
      plain(text);
    }
    return ids;
  }

  std::string piece(int32_t id) const override {
    check_id(id);
    if (id >= kBytes) return std::string(kSpecials[static_cast<size_t>(id - kBytes)]);
    if (id >= 0x20 && id < 0x7F) return std::string(1, static_cast<char>(id));
    constexpr std::string_view digits = "0123456789ABCDEF";
    return {'<', '0', 'x', digits[static_cast<size_t>(id) / 16], digits[static_cast<size_t>(id) % 16], '>'};
  }
  std::string bytes_of(int32_t id) const override {
    check_id(id);
    return id >= kBytes ? std::string() : std::string(1, static_cast<char>(id));
  }

  void save(const std::filesystem::path& folder) const override {
    Json vocab = Json::object();
    const auto alphabet = gpt2_alphabet();
    for (size_t b = 0; b < 256; ++b) vocab[alphabet[b]] = b;
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
    const Json file{{"version", "1.0"},
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
    const Json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                      {"bos_token", kSpecials[0]},
                      {"eos_token", kSpecials[1]},
                      {"pad_token", kSpecials[2]},
                      {"clean_up_tokenization_spaces", false}};
    write_file_atomic(folder / "tokenizer.json", file.dump(1) + "\n");
    write_file_atomic(folder / "tokenizer_config.json", config.dump(1) + "\n");
  }

 private:
  void check_id(int32_t id) const {
    if (id < 0 || id >= vocab_size()) throw unknown_id(id, vocab_size());
  }
};

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

// Absent and null mean the same in these files.
bool unset(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value == nullptr || value->is_null();
}
bool is(const Json* value, const Json& wanted) { return value != nullptr && *value == wanted; }
bool off(const Json& object, const char* key) { return unset(object, key) || is(member(object, key), false); }

}  // namespace

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(path.string(), what,
                     "only byte-level tokenizer.json files without merges and tokenizer.model files are read");
  };
  constexpr uint64_t kMostBytes = uint64_t{1}
                                  << 20;  // the 259 entries take 12 KB; a file far above that holds another vocabulary
  std::error_code ignored;
  if (const uint64_t size = std::filesystem::file_size(path, ignored); !ignored && size > kMostBytes)
    refuse("has more entries than bytes");
  const Json file = read_json(path, kMostBytes);
  const Json* model = member(file, "model");
  if (model == nullptr || !is(member(*model, "type"), "BPE")) refuse("is no tokenizer of type BPE");
  const Json* merges = member(*model, "merges");
  if (merges == nullptr || !merges->is_array() || !merges->empty()) refuse("has merges, or no list of them");
  const Json* before = member(file, "pre_tokenizer");
  const Json* after = member(file, "decoder");
  if (before == nullptr || !is(member(*before, "type"), "ByteLevel") ||
      !is(member(*before, "add_prefix_space"), false)) {
    refuse("has a pre-tokenizer that is not ByteLevel without a prefix space");
  }
  if (after == nullptr || !is(member(*after, "type"), "ByteLevel")) refuse("has a decoder that is not ByteLevel");
  for (const char* key : {"normalizer", "post_processor", "truncation", "padding"}) {
    if (!unset(file, key)) refuse("has the part \"" + std::string(key) + "\"");
  }
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!unset(*model, key)) refuse("has the model option \"" + std::string(key) + "\"");
  }
  for (const char* key : {"byte_fallback", "fuse_unk"}) {
    if (!off(*model, key)) refuse("has the model option \"" + std::string(key) + "\"");
  }
  const Json* vocab = member(*model, "vocab");
  if (vocab == nullptr || !vocab->is_object() || vocab->size() != 256)
    refuse("has a vocabulary that is not the 256 bytes");
  const auto alphabet = gpt2_alphabet();
  for (size_t b = 0; b < 256; ++b) {
    if (!is(member(*vocab, alphabet[b].c_str()), b))
      refuse("does not map the byte " + std::to_string(b) + " to its value");
  }
  const Json* added = member(file, "added_tokens");
  if (added == nullptr || !added->is_array() || added->size() != kSpecials.size())
    refuse("has other added tokens than <|bos|>, <|eos|>, <|pad|>");
  for (size_t i = 0; i < kSpecials.size(); ++i) {
    const Json& token = (*added)[i];
    if (!is(member(token, "content"), kSpecials[i]) || !is(member(token, "id"), static_cast<size_t>(kBytes) + i) ||
        !is(member(token, "special"), true)) {
      refuse("has an added token " + std::to_string(i) + " that is not " + std::string(kSpecials[i]));
    }
  }
  return byte_tokenizer();
}

}  // namespace transept
