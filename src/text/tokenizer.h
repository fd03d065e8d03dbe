// Tokenizers: text to ids and back. Two kinds: bytes (ids 0-255 are the bytes themselves), and sentencepiece models,
// ours or foreign. For bytes and for the vocabularies that we train, decode(encode(x)) == x for every string of bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace transept {

// What encoding does about special tokens.
enum class Specials {
  kNone,  // the text is only text
  kRead,  // special tokens written inside the text become their ids
  kAdd,   // that, and the tokenizer adds its own around the text
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string_view kind() const = 0;  // "byte" or "sentencepiece"
  virtual int64_t vocab_size() const = 0;
  virtual std::optional<int32_t> bos() const = 0;
  virtual std::optional<int32_t> eos() const = 0;
  virtual std::optional<int32_t> pad() const = 0;
  // What stands for a masked token, and the run of ids that stand for dropped spans: extend_tokenizer adds them.
  virtual std::optional<int32_t> mask() const { return std::nullopt; }
  virtual std::optional<int32_t> first_sentinel() const { return std::nullopt; }
  virtual int64_t sentinels() const { return 0; }
  // Whether encode(text, Specials::kAdd) begins with bos: what the model's own configuration says; vocabularies made
  // here say no.
  virtual bool adds_bos() const = 0;

  virtual std::vector<int32_t> encode(std::string_view text, Specials specials) const = 0;

  // Raw bytes; may be ill-formed UTF-8 when ids cut a character (see repair_utf8). Specials give nothing. InputError
  // for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;

  // The id's name as a person reads it: "a", "<0x0A>", "<s>", with U+2581 for a space in sentencepiece vocabularies.
  virtual std::string piece(int32_t id) const = 0;
  // The bytes that the id stands for inside a text; empty for specials.
  virtual std::string bytes_of(int32_t id) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  // Whether a text's first space is an artefact that decoding removes (LLaMA's "dummy prefix").
  virtual bool strips_first_space() const = 0;

  // Writes the files that load_tokenizer and Hugging Face's AutoTokenizer read into an existing folder; each file is
  // synced.
  virtual void save(const std::filesystem::path& folder) const = 0;
};

// Decodes a stream of ids. What it hands out is always whole, valid UTF-8: a character that is cut waits for its rest,
// ill-formed bytes become U+FFFD. All outputs joined equal repair_utf8(decode(ids)).
class StreamDecoder {
 public:
  // `at_start`: the ids begin a text (not the continuation of a prompt), so a dummy prefix is removed. The tokenizer
  // must outlive it.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool at_start = true)
      : tokenizer_(&tokenizer), strip_space_(at_start && tokenizer.strips_first_space()) {}
  std::string push(int32_t id);
  std::string finish();  // what still waits; the decoder is then as new, in mid-text

 private:
  const Tokenizer* tokenizer_;
  bool strip_space_;
  std::string waiting_;
};

// ids 0-255 are the bytes; 256 <|bos|>, 257 <|eos|>, 258 <|pad|>; vocab_size 259. Saved as `tokenizer.json`.
std::unique_ptr<Tokenizer> byte_tokenizer();

struct BpeOptions {
  int64_t vocab_size = 4096;
  uint64_t max_bytes = uint64_t{32} << 20;  // trained on an evenly spread sample of at most this much text
};
// Byte-pair vocabulary trained with sentencepiece: identity normalization, every space kept, digits split, bytes as
// fallback; unk 0, bos 1, eos 2, pad 3, then the 256 bytes. Deterministic. InputError when the text cannot support that
// many pieces. Saved as `tokenizer.model`.
std::unique_ptr<Tokenizer> train_bpe(std::span<const std::string_view> texts, const BpeOptions& options);

// The same vocabulary with <mask> and <extra_id_0> ... <extra_id_N-1> behind its last id; no other id changes. Of a
// tokenizer that has them already, the one with as many sentinels at least. Saved as `added_tokens_decoder` of
// `tokenizer_config.json`, which Hugging Face's libraries read as well.
std::unique_ptr<Tokenizer> extend_tokenizer(std::unique_ptr<Tokenizer> tokenizer, int64_t sentinels);

// What a decoder behind an encoder reads first: bos, else pad (as T5 does), else eos.
std::optional<int32_t> decoder_start(const Tokenizer& tokenizer);
// What an encoder reads of a text that a decoder answers: its ids, closed by eos where the vocabulary has one.
std::vector<int32_t> encode_source(const Tokenizer& tokenizer, std::string_view text);

// From a folder (`tokenizer.model`, else `tokenizer.json`) or one of these files. InputError when there is none or it
// is malformed.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder_or_file);
// Whether the folder holds a file that load_tokenizer would try.
bool has_tokenizer(const std::filesystem::path& folder);

}  // namespace transept
