// Tokenizers: text to ids and back. Three kinds: bytes (ids 0-255 are the bytes themselves), sentencepiece models, ours
// or foreign, and Hugging Face's tokenizer.json with the older files that say the same (vocab.txt, vocab.json with
// merges.txt). For bytes and for the vocabularies that we train, decode(encode(x)) == x for every string of bytes.
// Other tokenizers read valid UTF-8: of other strings they see each maximal ill-formed part as U+FFFD (repair_utf8).
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

// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};
// Ids and the part of the text that each stands for: whole characters, so that the tokens of one character share its
// range. What the tokenizer adds has an empty range at 0.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<ByteRange> offsets;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // "byte", "sentencepiece", or the model of a tokenizer.json: "bpe", "unigram", "wordpiece", "wordlevel".
  virtual std::string_view kind() const = 0;
  // One more than the largest id. Ids below it may stand for nothing where a file leaves them out.
  virtual int64_t vocab_size() const = 0;
  virtual std::optional<int32_t> bos() const = 0;
  virtual std::optional<int32_t> eos() const = 0;
  virtual std::optional<int32_t> pad() const = 0;
  // What stands for a masked token (BERT's vocabulary has one), and the run of ids that stand for dropped spans:
  // extend_tokenizer adds them.
  virtual std::optional<int32_t> mask() const { return std::nullopt; }
  virtual std::optional<int32_t> first_sentinel() const { return std::nullopt; }
  virtual int64_t sentinels() const { return 0; }
  // What Specials::kAdd puts in front of a text and behind it, as the model's own files say; vocabularies made here add
  // nothing.
  virtual std::vector<int32_t> ids_before() const { return {}; }
  virtual std::vector<int32_t> ids_after() const { return {}; }
  // Whether encode(text, Specials::kAdd) begins with bos.
  bool adds_bos() const;

  virtual Encoding encode_with_offsets(std::string_view text, Specials specials) const = 0;
  virtual std::vector<int32_t> encode(std::string_view text, Specials specials) const {
    return encode_with_offsets(text, specials).ids;
  }

  // Raw bytes; may be ill-formed UTF-8 when ids cut a character. Specials give nothing. InputError for an id outside
  // the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;
  // Valid UTF-8: ill-formed bytes as U+FFFD.
  std::string decode_text(std::span<const int32_t> ids) const { return repair(decode(ids)); }
  std::string repair(std::string_view bytes) const;

  // The id's name as a person reads it: "a", "<0x0A>", "<s>", with U+2581 for a space in sentencepiece vocabularies.
  virtual std::string piece(int32_t id) const = 0;
  // The bytes that the id stands for inside a text; empty for specials.
  virtual std::string bytes_of(int32_t id) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  // The bytes of the first token of a text: a space that encoding put there is gone (LLaMA's "dummy prefix").
  virtual std::string first_bytes_of(int32_t id) const { return bytes_of(id); }
  // Whether a space at the end of the last token is gone as well.
  virtual bool drops_last_space() const { return false; }
  // Where tokens of single bytes make no character, each byte becomes U+FFFD (as sentencepiece has it); else each
  // maximal ill-formed part does.
  virtual bool repairs_each_byte() const { return false; }
  // What its files ask for and this program does not do, one line each.
  virtual std::vector<std::string> notes() const { return {}; }

  // Writes the files that load_tokenizer and Hugging Face's AutoTokenizer read into an existing folder; each file is
  // synced.
  virtual void save(const std::filesystem::path& folder) const = 0;
};

// Decodes a stream of ids. What it hands out is always whole, valid UTF-8: a character that is cut waits for its rest,
// ill-formed bytes become U+FFFD. All outputs joined equal decode_text(ids).
class StreamDecoder {
 public:
  // `at_start`: the ids begin a text (not the continuation of a prompt), so a dummy prefix is removed. The tokenizer
  // must outlive it.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool at_start = true)
      : tokenizer_(&tokenizer), at_start_(at_start) {}
  std::string push(int32_t id);
  std::string finish();  // what still waits; the decoder is then as new, in mid-text

 private:
  const Tokenizer* tokenizer_;
  bool at_start_;
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
// What an encoder reads of a text that a decoder answers: its ids between those that the tokenizer adds, closed by eos
// where the vocabulary has one.
std::vector<int32_t> encode_source(const Tokenizer& tokenizer, std::string_view text);

// From a folder or one of its files: `tokenizer.json`; a sentencepiece model (`tokenizer.model`, `spiece.model`,
// `sentencepiece.bpe.model`; any file named .model); `vocab.json` with `merges.txt`; `vocab.txt`. Of a folder with
// several the first counts, but a model of our own training before its rendering as tokenizer.json. What
// tokenizer_config.json says beside them holds as well, but a tokenizer.json alone says what is added around a text.
// InputError when there is none or it is malformed.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder_or_file);
// Whether the folder holds a file that load_tokenizer would try.
bool has_tokenizer(const std::filesystem::path& folder);

}  // namespace transept
