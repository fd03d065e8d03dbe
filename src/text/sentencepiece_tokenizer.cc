// sentencepiece models (Kudo and Richardson, 2018, arXiv 1808.06226): loading, encoding, and training byte-pair
// vocabularies.
//
// The library trusts a model file, so the file's protocol-buffer framing, and each field that the library would run on
// unchecked, is looked at first (sentencepiece_model.proto). Models with a table of normalization rules are refused:
// that table is an unchecked trie.
//
// A vocabulary that keeps everything (identity normalization, all spaces kept, no dummy prefix, bytes as fallback) is
// made to return every string of bytes: ill-formed UTF-8 and the character U+2581, which the library would take for a
// space, are written as byte pieces.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/file.h"
#include "base/json.h"
#include "base/problem.h"
#include "text/formats.h"
#include "text/special_text.h"
#include "text/utf8.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMaxModelBytes = uint64_t{64} << 20;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, how pieces write a space
constexpr size_t kChunkBytes = 8192;                     // the library takes some hundred bytes of memory a character
constexpr size_t kHardChunkBytes = size_t{1} << 20;      // where a text offers no place to cut

enum class PieceType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

struct ModelFile {
  struct Piece {
    std::string text;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;
  bool byte_fallback = false, space_is_suffix = false;
  bool dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true, charsmap = false;
  std::string unknown_surface = " \xE2\x81\x87 ";
};

// One field after another of a protocol-buffer message.
class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  uint64_t field = 0, number = 0;  // `number`: varints, and the bits of fixed 32- and 64-bit fields
  std::string_view text;           // length-delimited fields
  int wire = 0;

  bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = tag >> 3;
    wire = static_cast<int>(tag & 7);
    number = 0;
    text = {};
    if (field == 0 || field > 0x1FFFFFFF) damaged();
    switch (wire) {
      case 0:
        number = varint();
        return true;
      case 1:
        fixed(8);
        return true;
      case 2: {
        const uint64_t length = varint();
        if (length > rest_.size()) damaged();
        text = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return true;
      }
      case 5:
        fixed(4);
        return true;
      default:
        damaged();
    }
  }
  void want(int wanted) const {
    if (wire != wanted) damaged();
  }
  [[noreturn]] void damaged() const {
    throw InputError(where_, "is damaged or no sentencepiece model", "get it again");
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) damaged();
      const unsigned char byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    damaged();
  }
  void fixed(size_t bytes) {
    if (rest_.size() < bytes) damaged();
    std::memcpy(&number, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
  }
  std::string_view rest_;
  const std::string& where_;
};

ModelFile::Piece read_piece(std::string_view bytes, const std::string& where) {
  ModelFile::Piece piece;
  for (ProtoReader r(bytes, where); r.next();) {
    if (r.field == 1) {
      r.want(2);
      piece.text = r.text;
    } else if (r.field == 2) {
      r.want(5);
      float score;
      std::memcpy(&score, &r.number, sizeof score);
      if (!std::isfinite(score)) throw InputError(where, "has a piece whose score is no finite number", "get it again");
    } else if (r.field == 3) {
      r.want(0);
      if (r.number < 1 || r.number > 6) r.damaged();
      piece.type = static_cast<PieceType>(r.number);
    }
  }
  if (piece.text.empty() || !is_utf8(piece.text))
    throw InputError(where, "has a piece that is empty or no UTF-8", "get it again");
  return piece;
}

void read_normalizer(std::string_view bytes, const std::string& where, ModelFile& model) {
  for (ProtoReader r(bytes, where); r.next();) {
    if (r.field == 2) {
      r.want(2);
      model.charsmap = !r.text.empty();
    } else if (r.field >= 3 && r.field <= 5) {
      r.want(0);
      (r.field == 3   ? model.dummy_prefix
       : r.field == 4 ? model.remove_extra_spaces
                      : model.escape_spaces) = r.number != 0;
    }
  }
}

ModelFile read_model(std::string_view bytes, const std::string& where) {
  ModelFile model;
  uint64_t type = 1;
  for (ProtoReader r(bytes, where); r.next();) {
    if (r.field == 1) {
      r.want(2);
      model.pieces.push_back(read_piece(r.text, where));
    } else if (r.field == 2) {
      r.want(2);
      for (ProtoReader t(r.text, where); t.next();) {
        if (t.field == 3) {
          t.want(0);
          type = t.number;
        } else if (t.field == 24) {
          t.want(0);
          model.space_is_suffix = t.number != 0;
        } else if (t.field == 35) {
          t.want(0);
          model.byte_fallback = t.number != 0;
        } else if (t.field == 44) {
          t.want(2);
          model.unknown_surface = t.text;
        }
      }
    } else if (r.field == 3) {
      r.want(2);
      read_normalizer(r.text, where, model);
    } else if (r.field == 5) {
      r.want(2);
      ModelFile denormalizer;
      read_normalizer(r.text, where, denormalizer);
      model.charsmap |= denormalizer.charsmap;
    }
  }
  const auto refuse = [&](const char* what) {
    throw InputError(where, what, "use a byte-pair or unigram model with identity normalization");
  };
  if (model.pieces.empty()) refuse("has no pieces");
  if (type != 1 && type != 2) refuse("is neither a byte-pair nor a unigram model");
  if (model.charsmap) refuse("has a table of normalization rules, which is not supported");
  if (!model.escape_spaces || model.space_is_suffix) refuse("does not write spaces as U+2581 in front of words");
  return model;
}

// The byte of "<0x0A>", or -1.
int byte_of(std::string_view piece) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const size_t high = digits.find(piece[3]), low = digits.find(piece[4]);
  return high == std::string_view::npos || low == std::string_view::npos ? -1 : static_cast<int>(high * 16 + low);
}

// Whether no piece holds a space after another character, so that a text may be cut in front of any word.
bool words_stand_alone(const std::vector<ModelFile::Piece>& pieces) {
  for (const ModelFile::Piece& p : pieces) {
    if (p.type != PieceType::kNormal && p.type != PieceType::kUserDefined && p.type != PieceType::kUnused) continue;
    std::string_view rest = p.text;
    while (rest.starts_with(kSpaceMark)) rest.remove_prefix(kSpaceMark.size());
    if (rest.find(kSpaceMark) != std::string_view::npos || rest.find(' ') != std::string_view::npos) return false;
  }
  return true;
}

class SentencepieceTokenizer : public Tokenizer {
 public:
  SentencepieceTokenizer(std::string serialized, const std::string& where, std::optional<bool> adds_bos)
      : serialized_(std::move(serialized)), where_(where), model_(read_model(serialized_, where)) {
    const auto status = processor_.LoadFromSerializedProto(serialized_);
    if (!status.ok())
      throw InputError(where, std::string("is refused by sentencepiece: ") + status.message(), "get it again");
    if (processor_.GetPieceSize() != static_cast<int>(model_.pieces.size()))
      throw InputError(where, "is inconsistent", "get it again");
    byte_ids_.fill(-1);
    std::vector<std::pair<std::string, int32_t>> specials;
    for (size_t id = 0; id < model_.pieces.size(); ++id) {
      const ModelFile::Piece& p = model_.pieces[id];
      if (p.type == PieceType::kControl) specials.emplace_back(p.text, static_cast<int32_t>(id));
      if (p.type == PieceType::kByte) {
        const int byte = byte_of(p.text);
        if (byte < 0)
          throw InputError(where, "has the byte piece \"" + p.text.substr(0, 40) + "\", which names no byte",
                           "get it again");
        byte_ids_[static_cast<size_t>(byte)] = static_cast<int32_t>(id);
      }
    }
    specials_ = SpecialText(std::move(specials));
    const bool all_bytes = model_.byte_fallback && std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end();
    lossless_ = all_bytes && !model_.dummy_prefix && !model_.remove_extra_spaces;
    cut_at_words_ = words_stand_alone(model_.pieces);
    bos_ = known(processor_.bos_id());
    eos_ = known(processor_.eos_id());
    pad_ = known(processor_.pad_id());
    adds_bos_ = bos_.has_value() && adds_bos.value_or(true);
  }

  std::string_view kind() const override { return "sentencepiece"; }
  int64_t vocab_size() const override { return static_cast<int64_t>(model_.pieces.size()); }
  std::optional<int32_t> bos() const override { return bos_; }
  std::optional<int32_t> eos() const override { return eos_; }
  std::optional<int32_t> pad() const override { return pad_; }
  bool adds_bos() const override { return adds_bos_; }
  bool strips_first_space() const override { return model_.dummy_prefix; }
  bool is_special(int32_t id) const override { return at(id).type == PieceType::kControl; }
  std::string piece(int32_t id) const override { return at(id).text; }

  std::string bytes_of(int32_t id) const override {
    const ModelFile::Piece& p = at(id);
    switch (p.type) {
      case PieceType::kControl:
        return {};
      case PieceType::kUnknown:
        return model_.unknown_surface;
      case PieceType::kByte:
        return std::string(1, static_cast<char>(byte_of(p.text)));
      default:
        break;
    }
    std::string bytes;
    for (std::string_view rest = p.text; !rest.empty();) {
      if (rest.starts_with(kSpaceMark)) {
        bytes += ' ';
        rest.remove_prefix(kSpaceMark.size());
      } else {
        bytes += rest[0];
        rest.remove_prefix(1);
      }
    }
    return bytes;
  }

  std::vector<int32_t> encode(std::string_view text, Specials specials) const override {
    std::vector<int32_t> ids;
    if (specials == Specials::kNone) {
      encode_plain(text, ids);
      return ids;
    }
    if (specials == Specials::kAdd && adds_bos_) ids.push_back(*bos_);
    specials_.split(
        text, [&](std::string_view part) { encode_plain(part, ids); }, [&](int32_t id) { ids.push_back(id); });
    return ids;
  }

  void save(const fs::path& folder) const override {
    Json config{{"tokenizer_class", "LlamaTokenizer"},
                {"add_bos_token", adds_bos_},
                {"add_eos_token", false},
                {"add_prefix_space", model_.dummy_prefix},
                {"legacy", false},
                {"clean_up_tokenization_spaces", false}};
    if (bos_) config["bos_token"] = piece(*bos_);
    if (eos_) config["eos_token"] = piece(*eos_);
    if (pad_) config["pad_token"] = piece(*pad_);
    if (const auto unk = known(processor_.unk_id())) config["unk_token"] = piece(*unk);
    write_file_atomic(folder / "tokenizer.model", serialized_);
    write_file_atomic(folder / "tokenizer_config.json", config.dump(1) + "\n");
  }

 private:
  static std::optional<int32_t> known(int id) { return id < 0 ? std::nullopt : std::optional<int32_t>(id); }

  const ModelFile::Piece& at(int32_t id) const {
    if (id < 0 || id >= vocab_size()) throw unknown_id(id, vocab_size());
    return model_.pieces[static_cast<size_t>(id)];
  }

  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const {
    if (!lossless_) return encode_words(text, ids);
    size_t begin = 0, end = 0;
    const auto flush = [&] {
      if (end > begin) encode_words(text.substr(begin, end - begin), ids);
    };
    while (end < text.size()) {
      const Utf8Part part = utf8_part(text.substr(end));
      if (part.valid && text.substr(end, part.length) != kSpaceMark) {
        end += part.length;
        continue;
      }
      flush();
      for (const char c : text.substr(end, part.length)) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
      begin = end += part.length;
    }
    flush();
  }

  // Cuts a long text in front of a word, where no piece can cross; the ids are those of the whole.
  void encode_words(std::string_view text, std::vector<int32_t>& ids) const {
    while (text.size() > kChunkBytes) {
      size_t cut = std::string_view::npos;
      if (cut_at_words_) {
        cut = text.find(' ', kChunkBytes);
        while (cut != std::string_view::npos && text[cut - 1] == ' ') cut = text.find(' ', cut + 1);
      }
      if (!model_.dummy_prefix && text.size() > kHardChunkBytes && cut > kHardChunkBytes) {
        cut = kHardChunkBytes;
        while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
      }
      if (cut == std::string_view::npos || cut == 0) break;
      encode_chunk(text.substr(0, cut), ids);
      text.remove_prefix(cut);
      if (model_.dummy_prefix) text.remove_prefix(1);  // the prefix that the library adds is this very space
    }
    encode_chunk(text, ids);
  }

  void encode_chunk(std::string_view text, std::vector<int32_t>& ids) const {
    std::vector<int> chunk;
    const auto status = processor_.Encode(text, &chunk);
    if (!status.ok()) throw InputError(where_, std::string("cannot encode this text: ") + status.message());
    ids.insert(ids.end(), chunk.begin(), chunk.end());
  }

  std::string serialized_, where_;
  ModelFile model_;
  sentencepiece::SentencePieceProcessor processor_;
  std::array<int32_t, 256> byte_ids_;
  SpecialText specials_;
  bool lossless_ = false, cut_at_words_ = false, adds_bos_ = false;
  std::optional<int32_t> bos_, eos_, pad_;
};

// Parts of the training text of about kPartBytes, cut after a line where there is one; ill-formed bytes are left out.
class Parts : public sentencepiece::SentenceIterator {
 public:
  Parts(std::span<const std::string_view> texts, uint64_t max_bytes) {
    uint64_t bytes = 0;
    for (std::string_view rest : texts) {
      bytes += rest.size();
      while (!rest.empty()) {
        size_t cut = std::min(rest.size(), kPartBytes);
        if (const size_t line = rest.substr(0, cut).rfind('\n'); cut < rest.size() && line != std::string_view::npos)
          cut = line + 1;
        parts_.push_back(rest.substr(0, cut));
        rest.remove_prefix(cut);
      }
    }
    if (bytes > max_bytes) {
      // Every n-th part, so that all of the text has its share.
      const double share = static_cast<double>(max_bytes) / static_cast<double>(bytes);
      std::vector<std::string_view> kept;
      for (size_t i = 0; i < parts_.size(); ++i) {
        if (std::floor(static_cast<double>(i + 1) * share) > std::floor(static_cast<double>(i) * share))
          kept.push_back(parts_[i]);
      }
      parts_ = std::move(kept);
    }
    load();
  }
  bool done() const override { return at_ >= parts_.size(); }
  void Next() override {
    ++at_;
    load();
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  static constexpr size_t kPartBytes = 4096;

  void load() {
    value_.clear();
    if (done()) return;
    for (std::string_view rest = parts_[at_]; !rest.empty();) {
      const Utf8Part part = utf8_part(rest);
      if (part.valid && rest[0] != '\0') value_ += rest.substr(0, part.length);
      rest.remove_prefix(part.length);
    }
  }
  std::vector<std::string_view> parts_;
  size_t at_ = 0;
  std::string value_;
};

}  // namespace

std::unique_ptr<Tokenizer> train_bpe(std::span<const std::string_view> texts, const BpeOptions& options) {
  constexpr int64_t kLeast = 4 + 256 + 1, kMost = int64_t{1} << 20;
  if (options.vocab_size < kLeast || options.vocab_size > kMost) {
    throw InputError("vocabulary", "a size of " + std::to_string(options.vocab_size) + " is not possible",
                     "choose one from " + std::to_string(kLeast) + " to " + std::to_string(kMost));
  }
  const std::unordered_map<std::string, std::string> arguments{
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(options.vocab_size)},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"allow_whitespace_only_pieces", "true"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"max_sentence_length", "65536"},
      {"num_threads", "1"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "3"},
      {"minloglevel", "3"},
  };
  Parts parts(texts, options.max_bytes);
  std::string serialized;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &parts, &serialized);
  if (!status.ok()) {
    // "file(line) [condition] explanation": only the last part is for people.
    std::string why = status.message();
    if (const size_t bracket = why.rfind("] "); bracket != std::string::npos) why.erase(0, bracket + 2);
    // Its advice names options of the library, which nobody here can give.
    why.erase(std::min(why.size(), why.find(" Increase vocab_size")));
    if (why.ends_with('.')) why.pop_back();
    if (why.empty()) why = "there is too little of it";
    throw InputError("vocabulary",
                     std::to_string(options.vocab_size) + " pieces cannot be learnt from this text: " + why,
                     "choose another size, give more text, or use the byte-level tokenizer");
  }
  return std::make_unique<SentencepieceTokenizer>(std::move(serialized), "the trained vocabulary", false);
}

std::unique_ptr<Tokenizer> load_sentencepiece(const fs::path& path) {
  // What LLaMA does when its configuration is silent: a text begins with bos.
  std::optional<bool> adds_bos;
  const fs::path config_path = path.parent_path() / "tokenizer_config.json";
  std::error_code ignored;
  if (fs::exists(config_path, ignored)) {
    const Json config = read_json(config_path);
    if (!config.is_object()) throw InputError(config_path.string(), "is no JSON object");
    if (const auto at = config.find("add_bos_token"); at != config.end() && !at->is_null()) {
      if (!at->is_boolean()) throw InputError(config_path.string(), "add_bos_token is neither true nor false");
      adds_bos = at->get<bool>();
    }
  }
  return std::make_unique<SentencepieceTokenizer>(read_file(path, kMaxModelBytes), path.string(), adds_bos);
}

}  // namespace transept
