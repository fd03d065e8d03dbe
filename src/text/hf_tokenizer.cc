// A tokenizer of what Hugging Face's tokenizer.json says, run as the Python package tokenizers 0.23 runs it: added
// tokens are taken out, the normalizer rewrites what lies between, the pre-tokenizer splits it into words, the model
// cuts words into tokens, the post-processor puts its own around them.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/byte_level.h"
#include "text/byte_piece.h"
#include "text/formats.h"
#include "text/json_block.h"
#include "text/normalizer.h"
#include "text/piece_index.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/repaired_text.h"
#include "text/scratch_pool.h"
#include "text/token_decoder.h"
#include "text/unicode.h"
#include "text/unigram_model.h"
#include "text/word_level_model.h"
#include "text/word_piece_model.h"

namespace transept {
namespace {

struct Parts {
  std::string kind;
  std::vector<std::optional<std::string>> pieces;  // by id, added tokens too; none: the file leaves the id out
  std::map<int32_t, std::string> decoded_as;       // added tokens: what the decoder sees
  std::set<int32_t> specials;
  AddedTokens added;
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<TokenModel> model;
  PostProcessor post_processor;
  TokenDecoder decoder;
  std::optional<int32_t> bos, eos, pad, mask;
  std::vector<std::string> notes;
  SavedFiles files;
};

class HfTokenizer : public Tokenizer {
 public:
  explicit HfTokenizer(Parts parts) : parts_(std::move(parts)), scratches_(*parts_.model) {}

  std::string_view kind() const override { return parts_.kind; }
  int64_t vocab_size() const override { return static_cast<int64_t>(parts_.pieces.size()); }
  std::optional<int32_t> bos() const override { return parts_.bos; }
  std::optional<int32_t> eos() const override { return parts_.eos; }
  std::optional<int32_t> pad() const override { return parts_.pad; }
  std::optional<int32_t> mask() const override { return parts_.mask; }
  std::vector<int32_t> ids_before() const override { return parts_.post_processor.before; }
  std::vector<int32_t> ids_after() const override { return parts_.post_processor.after; }
  std::vector<std::string> notes() const override { return parts_.notes; }
  bool drops_last_space() const override { return parts_.decoder.drops_last_space(); }
  bool repairs_each_byte() const override { return parts_.decoder.repairs_each_byte(); }

  // Ids that the file leaves out give nothing either.
  bool is_special(int32_t id) const override { return !at(id) || parts_.specials.contains(id); }
  std::string piece(int32_t id) const override { return at(id).value_or(""); }
  std::string bytes_of(int32_t id) const override { return decoded(id, false); }
  std::string first_bytes_of(int32_t id) const override { return decoded(id, true); }

  std::vector<int32_t> encode(std::string_view text, Specials specials) const override {
    Encoding encoding;
    run(text, specials, nullptr, encoding.ids);
    return std::move(encoding.ids);
  }
  Encoding encode_with_offsets(std::string_view text, Specials specials) const override {
    Encoding encoding;
    run(text, specials, &encoding.offsets, encoding.ids);
    return encoding;
  }

  void save(const std::filesystem::path& folder) const override {
    for (const auto& [name, bytes] : parts_.files) write_file_atomic(folder / name, bytes);
  }

 private:
  const std::optional<std::string>& at(int32_t id) const {
    if (id < 0 || id >= vocab_size()) throw unknown_id(id, vocab_size());
    return parts_.pieces[static_cast<size_t>(id)];
  }

  std::string decoded(int32_t id, bool first) const {
    if (is_special(id)) return {};
    const auto added = parts_.decoded_as.find(id);
    if (added == parts_.decoded_as.end()) {
      return first ? parts_.decoder.first_bytes(*at(id)) : parts_.decoder.bytes(*at(id));
    }
    // An added token stands for itself: its characters are no byte-level ones.
    if (parts_.decoder.byte_level()) return added->second;
    return first ? parts_.decoder.first_bytes(added->second) : parts_.decoder.bytes(added->second);
  }

  void run(std::string_view text, Specials specials, std::vector<ByteRange>* offsets, std::vector<int32_t>& ids) const {
    const RepairedText repaired(text);
    if (specials == Specials::kAdd) ids = parts_.post_processor.before;
    const size_t first = ids.size();
    if (offsets != nullptr) offsets->resize(first);
    scratches_.lend([&](ModelScratch& scratch) {
      const auto add = [&](const AlignedText& word, const TokenSpan& token, bool added) {
        ids.push_back(token.id);
        if (offsets == nullptr) return;
        const auto [begin, end] = word.source(token.begin, token.end);
        ByteRange range{begin, end};
        if (parts_.post_processor.trims_offsets)
          trim(repaired.text(), word, token, added, ids.size() == first + 1, range);
        offsets->push_back({repaired.source(range.begin), repaired.source(range.end)});
      };
      std::vector<AlignedText> words;
      std::vector<TokenSpan> tokens;
      for (TextStretch& stretch :
           parts_.added.split(repaired.text(), parts_.normalizer.get(), specials != Specials::kNone)) {
        if (stretch.id >= 0) {
          add(stretch.text, {stretch.id, 0, static_cast<uint32_t>(stretch.text.size())}, true);
          continue;
        }
        words.clear();
        words.push_back(std::move(stretch.text));
        if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(words);
        for (const AlignedText& word : words) {
          if (word.size() > UINT32_MAX)
            throw InputError("the text", "has a word of more than 4 GiB", "cut it into smaller parts");
          tokens.clear();
          parts_.model->encode(word.bytes(), scratch, tokens);
          for (const TokenSpan& token : tokens) add(word, token, false);
        }
      }
    });
    if (specials == Specials::kAdd) {
      const std::vector<int32_t>& after = parts_.post_processor.after;
      ids.insert(ids.end(), after.begin(), after.end());
      if (offsets != nullptr) offsets->resize(ids.size());
    }
  }

  // Leaves the spaces at the ends of a token out of its range, character by character (process_offsets of Hugging
  // Face's pre_tokenizers/byte_level.rs).
  void trim(std::string_view text, const AlignedText& word, const TokenSpan& token, bool added, bool is_first,
            ByteRange& range) const {
    const bool raw = parts_.pre_tokenizer && parts_.pre_tokenizer->raw_bytes();
    const std::string_view shown = word.bytes().substr(token.begin, token.end - token.begin);
    const std::string value = raw || added ? std::string(shown) : *at(token.id);
    size_t leading = 0, trailing = 0;
    bool only_spaces = true;
    for (size_t i = 0; i < value.size(); ++i) {
      if (is_continuation(value[i]) && (added || !raw)) continue;
      bool space = false;
      if (raw && !added) {
        space = value[i] == ' ';
      } else {
        const uint32_t point = character_at(value, i).point;
        space = (traits(point) & kSpace) != 0 || point == byte_level_code_point(' ');
      }
      only_spaces = only_spaces && space;
      if (only_spaces) ++leading;
      trailing = space ? trailing + 1 : 0;
    }
    if ((is_first || range.begin == 0) && parts_.post_processor.keeps_prefix_space && leading == 1) leading = 0;
    for (; leading > 0 && range.begin < range.end; --leading) range.begin += character_at(text, range.begin).length;
    for (; trailing > 0 && range.end > range.begin; --trailing) range.end = character_before(text, range.end);
  }

  Parts parts_;
  mutable ScratchPool scratches_;
};

// Makes the parts of a file; what is wrong goes into a list.
class PartsReader {
 public:
  PartsReader(TokenizerFile file, const std::string& where, Problems& problems)
      : file_(std::move(file)), where_(where), problems_(problems) {}

  Parts read(const TokenizerConfig& config) {
    const JsonBlock root(file_.rest, where_, problems_);
    if (!file_.rest.is_object()) return {};
    if (const auto version = root.text("version"); version && *version != "1.0")
      root.add("version", "\"" + *version + "\" is not known", "the known one is 1.0");
    for (const char* unused : {"truncation", "padding"}) {
      if (root.find(unused) != nullptr) parts_.notes.push_back(root.path(unused) + " is not applied: texts stay whole");
    }
    read_pieces(root);
    parts_.normalizer = read_normalizer(part("normalizer"), root.path("normalizer"), problems_);
    read_added(root);
    const Json* model = root.find("model");
    if (model == nullptr) {
      root.add("model", "is absent");
    } else {
      read_model(*model, root.path("model"));
    }
    parts_.post_processor = read_post_processor(part("post_processor"), root.path("post_processor"), problems_);
    check_ids(parts_.post_processor.before, root);
    check_ids(parts_.post_processor.after, root);
    parts_.decoder = read_token_decoder(part("decoder"), root.path("decoder"), problems_);
    use(config);
    return std::move(parts_);
  }

 private:
  const Json& part(const char* key) const {
    static const Json none;
    const auto at = file_.rest.find(key);
    return at == file_.rest.end() ? none : *at;
  }

  void read_pieces(const JsonBlock& root) {
    std::vector<std::optional<std::string>>& pieces = parts_.pieces;
    for (const auto& [piece, id] : file_.vocabulary) {
      if (static_cast<size_t>(id) >= pieces.size()) pieces.resize(static_cast<size_t>(id) + 1);
      if (pieces[static_cast<size_t>(id)]) {
        root.add("model.vocab", "gives the id " + std::to_string(id) + " to two pieces", "");
        return;
      }
      pieces[static_cast<size_t>(id)] = piece;
    }
    for (const auto& [piece, score] : file_.scored) pieces.emplace_back(piece);
    for (size_t id = 0; id < pieces.size(); ++id) {
      if (pieces[id]) ids_.insert(*pieces[id], static_cast<int32_t>(id));  // of two with one text the later counts
    }
  }

  // The ids are those that Hugging Face's library gives out, whatever the file says: a token that the vocabulary has
  // keeps its id, others are counted on from the number of pieces.
  void read_added(const JsonBlock& root) {
    std::vector<AddedToken> tokens = read_added_tokens(part("added_tokens"), root.path("added_tokens"), problems_);
    auto next = static_cast<int32_t>(std::max(file_.vocabulary.size(), file_.scored.size()));
    for (const AddedToken& token : tokens) {
      const std::optional<int32_t> in_vocabulary = ids_.find(token.content);
      const int32_t id = in_vocabulary ? *in_vocabulary : next++;
      if (token.id != id) {
        root.add("added_tokens",
                 "gives \"" + token.content.substr(0, 100) + "\" the id " + std::to_string(token.id) +
                     ", where the vocabulary makes it " + std::to_string(id),
                 "number added tokens on from the vocabulary's size, without a gap");
        continue;
      }
      if (static_cast<size_t>(id) >= parts_.pieces.size()) parts_.pieces.resize(static_cast<size_t>(id) + 1);
      std::optional<std::string>& piece = parts_.pieces[static_cast<size_t>(id)];
      if (!in_vocabulary && piece) {
        root.add("added_tokens", "gives \"" + token.content.substr(0, 100) + "\" the id of another piece", "");
        continue;
      }
      piece = token.content;
      ids_.insert(token.content, id);
      if (token.special) parts_.specials.insert(id);
      AlignedText content(token.content);
      if (token.normalized && parts_.normalizer) parts_.normalizer->apply(content);
      parts_.decoded_as[id] = std::string(content.bytes());
    }
    parts_.added = AddedTokens(std::move(tokens), parts_.normalizer.get());
  }

  void read_model(const Json& block, const std::string& where) {
    const JsonBlock model(block, where, problems_);
    if (!block.is_object()) return;
    std::string type = model.text("type").value_or("");
    if (type.empty()) {  // files from before the type was written
      type = file_.has_merges                                     ? "BPE"
             : !file_.scored.empty()                              ? "Unigram"
             : model.find("continuing_subword_prefix") != nullptr ? "WordPiece"
                                                                  : "WordLevel";
    }
    if (type == "Unigram" ? file_.scored.empty() : file_.vocabulary.empty())
      model.add("vocab", "is empty, absent, or of another form than that of a " + type + " model");
    if (type != "BPE") {
      parts_.pre_tokenizer = read_pre_tokenizer(part("pre_tokenizer"), where_ + ".pre_tokenizer", problems_);
    }
    if (type == "BPE") {
      parts_.kind = "bpe";
      read_bpe(model);
    } else if (type == "Unigram") {
      parts_.kind = "unigram";
      read_unigram(model);
    } else if (type == "WordPiece") {
      parts_.kind = "wordpiece";
      WordPieceFile words{.vocabulary = std::move(file_.vocabulary), .never = parts_.specials};
      words.unknown = model.text("unk_token").value_or(words.unknown);
      words.continuing_prefix = model.text("continuing_subword_prefix").value_or(words.continuing_prefix);
      words.most_characters = model.count("max_input_chars_per_word").value_or(words.most_characters);
      parts_.model = word_piece_model(words, where, problems_);
    } else if (type == "WordLevel") {
      parts_.kind = "wordlevel";
      WordLevelFile words{.vocabulary = std::move(file_.vocabulary), .never = parts_.specials};
      words.unknown = model.text("unk_token").value_or(words.unknown);
      parts_.model = word_level_model(words);
    } else {
      model.add("type", "\"" + type + "\" is no model that is known", "known ones: BPE, Unigram, WordPiece, WordLevel");
    }
  }

  void read_bpe(const JsonBlock& model) {
    BpeFile bpe;
    if (!file_.has_merges) model.add("merges", "is no list");
    if (const Json* dropout = model.find("dropout"); dropout != nullptr && *dropout != Json(0) && *dropout != Json(0.0))
      model.add("dropout", "makes tokens random, which is not supported", "set it to null");
    bpe.byte_fallback = model.boolean("byte_fallback", false);
    bpe.fuse_unknown = model.boolean("fuse_unk", false);
    bpe.whole_words = model.boolean("ignore_merges", false);
    bpe.unknown = model.text("unk_token");
    bpe.continuing_prefix = model.text("continuing_subword_prefix").value_or("");
    bpe.word_suffix = model.text("end_of_word_suffix").value_or("");
    bpe.never = parts_.specials;
    const bool plain = bpe.continuing_prefix.empty() && bpe.word_suffix.empty() && !bpe.byte_fallback;
    parts_.pre_tokenizer = read_pre_tokenizer(part("pre_tokenizer"), where_ + ".pre_tokenizer", problems_,
                                              plain ? ByteLevelText::kRawBytes : ByteLevelText::kCharacters);
    bpe.raw_bytes = parts_.pre_tokenizer && parts_.pre_tokenizer->raw_bytes();
    if (!bpe.raw_bytes) {
      bpe.vocabulary = std::move(file_.vocabulary);
      bpe.merges = std::move(file_.merges);
    } else {
      // Pieces with a character that stands for no byte are reached by no text.
      for (auto& [piece, id] : file_.vocabulary) {
        if (auto bytes = from_byte_level(piece)) bpe.vocabulary.emplace_back(std::move(*bytes), id);
      }
      for (auto& [left, right] : file_.merges) {
        auto left_bytes = from_byte_level(left), right_bytes = from_byte_level(right);
        if (left_bytes && right_bytes) bpe.merges.emplace_back(std::move(*left_bytes), std::move(*right_bytes));
      }
    }
    parts_.model = bpe_model(bpe, model.path(""), problems_);
  }

  void read_unigram(const JsonBlock& model) {
    UnigramFile unigram;
    double least = 0;
    for (size_t id = 0; id < file_.scored.size(); ++id) {
      auto& [piece, score] = file_.scored[id];
      least = id == 0 ? score : std::min(least, score);
      const bool last = ids_.find(piece) == static_cast<int32_t>(id);
      unigram.pieces.push_back({std::move(piece), score, last && !parts_.specials.contains(static_cast<int32_t>(id))});
    }
    unigram.unknown_score = least - 10;
    if (const auto unknown = model.count("unk_id")) {
      if (*unknown >= unigram.pieces.size()) {
        model.add("unk_id", std::to_string(*unknown) + " is outside the vocabulary");
      } else {
        unigram.unknown = static_cast<int32_t>(*unknown);
      }
    }
    if (model.boolean("byte_fallback", false)) {
      for (int byte = 0; byte < 256; ++byte)
        unigram.bytes.push_back(ids_.find(byte_piece(static_cast<uint8_t>(byte))).value_or(-1));
    }
    parts_.model = unigram_model(unigram);
  }

  void check_ids(const std::vector<int32_t>& ids, const JsonBlock& root) {
    for (const int32_t id : ids) {
      if (static_cast<size_t>(id) >= parts_.pieces.size())
        root.add("post_processor", "adds the token " + std::to_string(id) + ", which is outside the vocabulary");
    }
  }

  // The tokens that the folder's configuration names, and whether it puts them around a text.
  void use(const TokenizerConfig& config) {
    const auto id_of = [&](const std::optional<std::string>& token) {
      return token ? ids_.find(*token) : std::optional<int32_t>();
    };
    parts_.bos = id_of(config.bos);
    parts_.eos = id_of(config.eos);
    parts_.pad = id_of(config.pad);
    parts_.mask = id_of(config.mask);
    PostProcessor& post = parts_.post_processor;
    if (config.add_bos && parts_.bos) {
      const bool there = !post.before.empty() && post.before.front() == *parts_.bos;
      if (*config.add_bos && !there) post.before.insert(post.before.begin(), *parts_.bos);
      if (!*config.add_bos && there) post.before.erase(post.before.begin());
    }
    if (config.add_eos && parts_.eos) {
      const bool there = !post.after.empty() && post.after.back() == *parts_.eos;
      if (*config.add_eos && !there) post.after.push_back(*parts_.eos);
      if (!*config.add_eos && there) post.after.pop_back();
    }
  }

  TokenizerFile file_;
  const std::string& where_;
  Problems& problems_;
  Parts parts_;
  PieceIndex ids_;  // of every piece and added token
};

}  // namespace

std::unique_ptr<Tokenizer> hf_tokenizer(TokenizerFile file, const TokenizerConfig& config, SavedFiles files,
                                        const std::string& where) {
  Problems problems;
  Parts parts = PartsReader(std::move(file), where, problems).read(config);
  throw_if_any(std::move(problems));
  parts.files = std::move(files);
  parts.files.insert(parts.files.end(), config.files.begin(), config.files.end());
  return std::make_unique<HfTokenizer>(std::move(parts));
}

}  // namespace transept
