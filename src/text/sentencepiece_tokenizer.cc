// Tokenizers of sentencepiece models (Kudo and Richardson, 2018, arXiv 1808.06226), encoded as that library encodes:
// normalization (normalizer.cc of its source), pieces (bpe_model.cc, unigram_model.cc), unknown characters as bytes
// where the model has them, else neighbouring ones as one unknown piece.
//
// A vocabulary that keeps everything (SentencepieceModel::lossless) is made to return every string of bytes: ill-formed
// UTF-8 and the character U+2581, which would be taken for a space, are written as byte pieces.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/problem.h"
#include "text/bpe_model.h"
#include "text/byte_piece.h"
#include "text/charsmap.h"
#include "text/formats.h"
#include "text/piece_trie.h"
#include "text/repaired_text.h"
#include "text/scratch_pool.h"
#include "text/sentencepiece_model.h"
#include "text/space_mark.h"
#include "text/special_text.h"
#include "text/unicode.h"
#include "text/unigram_model.h"
#include "text/utf8.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

using PieceType = SentencepieceModel::PieceType;

std::unique_ptr<TokenModel> model_of(const SentencepieceModel& file) {
  if (file.type == SentencepieceModel::Type::kBpe) {
    ScoredBpeFile bpe{.pieces = {}, .bytes = file.byte_ids, .unknown = file.unknown};
    for (const SentencepieceModel::Piece& p : file.pieces) {
      const bool reached = p.type == PieceType::kNormal || p.type == PieceType::kUserDefined;
      bpe.pieces.emplace_back();
      if (reached) bpe.pieces.back() = ScoredPiece{p.text, p.score, p.type == PieceType::kUserDefined};
    }
    return scored_bpe_model(bpe);
  }
  UnigramFile unigram{.pieces = {}, .unknown = file.unknown, .bytes = file.byte_ids, .single_precision = true};
  // As the library starts them: with scores that are all negative, as logarithms are, the greatest is nearly 0.
  float least = std::numeric_limits<float>::max(), most = std::numeric_limits<float>::min();
  for (const SentencepieceModel::Piece& p : file.pieces) {
    if (p.type != PieceType::kNormal) continue;
    least = std::min(least, p.score);
    most = std::max(most, p.score);
  }
  unigram.unknown_score = least - 10.0f;
  for (const SentencepieceModel::Piece& p : file.pieces) {
    const bool reached = p.type == PieceType::kNormal || p.type == PieceType::kUserDefined;
    // A user-defined piece is worth more than any other way to write its bytes.
    const double score = p.type == PieceType::kUserDefined ? static_cast<double>(p.text.size()) * most - 0.1 : p.score;
    unigram.pieces.push_back({p.text, score, reached});
  }
  return unigram_model(unigram);
}

std::optional<Charsmap> read_charsmap(std::string_view bytes, const std::string& where) {
  Problems problems;
  auto map = bytes.empty() ? std::nullopt : Charsmap::read(bytes, where + ": precompiled_charsmap", problems);
  throw_if_any(std::move(problems));
  return map;
}

class SentencepieceTokenizer : public Tokenizer {
 public:
  SentencepieceTokenizer(std::string serialized, std::string name, const TokenizerConfig& config,
                         const std::string& where)
      : serialized_(std::move(serialized)),
        name_(std::move(name)),
        files_(config.files),
        file_(parse_sentencepiece(serialized_, where)),
        charsmap_(read_charsmap(file_.charsmap, where)),
        lossless_(file_.lossless()),
        prefix_always_(config.legacy.value_or(true)),
        model_(model_of(file_)),
        scratches_(*model_) {
    add_behind(config.added_behind(vocab_size(), where), where);
    std::vector<std::pair<std::string, int32_t>> specials;
    for (size_t id = 0; id < file_.pieces.size(); ++id) {
      const SentencepieceModel::Piece& p = file_.pieces[id];
      if (p.type == PieceType::kControl) specials.emplace_back(p.text, static_cast<int32_t>(id));
      if (p.type == PieceType::kUserDefined) user_defined_.insert(p.text, 0);
      const bool in_text = p.type == PieceType::kNormal || p.type == PieceType::kUserDefined;
      cut_at_words_ = cut_at_words_ && (!in_text || stands_in_one_word(p.text));
    }
    specials_ = SpecialText(std::move(specials));
    // The configuration may name other tokens than the model does, added ones too.
    const auto use = [&](const std::optional<std::string>& token, std::optional<int32_t>& id) {
      for (size_t i = 0; token && i < file_.pieces.size(); ++i) {
        if (file_.pieces[i].text == *token) id = static_cast<int32_t>(i);
      }
    };
    use(config.bos, file_.bos);
    use(config.eos, file_.eos);
    use(config.pad, file_.pad);
    // Where the configuration is silent a text begins with bos, as LLaMA's does; without one it ends with eos, as T5's.
    if (file_.bos && config.add_bos.value_or(true)) before_ = {*file_.bos};
    if (file_.eos && config.add_eos.value_or(!file_.bos)) after_ = {*file_.eos};
  }

  std::string_view kind() const override { return "sentencepiece"; }
  int64_t vocab_size() const override { return static_cast<int64_t>(file_.pieces.size()); }
  std::optional<int32_t> bos() const override { return file_.bos; }
  std::optional<int32_t> eos() const override { return file_.eos; }
  std::optional<int32_t> pad() const override { return file_.pad; }
  std::vector<int32_t> ids_before() const override { return before_; }
  std::vector<int32_t> ids_after() const override { return after_; }
  bool repairs_each_byte() const override { return true; }
  bool is_special(int32_t id) const override { return at(id).type == PieceType::kControl; }
  std::string piece(int32_t id) const override { return at(id).text; }

  std::string first_bytes_of(int32_t id) const override {
    std::string bytes = bytes_of(id);
    if (file_.dummy_prefix && bytes.starts_with(' ')) bytes.erase(0, 1);
    return bytes;
  }
  std::string bytes_of(int32_t id) const override {
    const SentencepieceModel::Piece& p = at(id);
    if (p.type == PieceType::kControl) return {};
    if (p.type == PieceType::kUnknown) return file_.unknown_surface;
    if (p.type == PieceType::kByte) return std::string(1, static_cast<char>(byte_of_piece(p.text).value_or(0)));
    std::string bytes;
    for (std::string_view rest = p.text; !rest.empty();) {
      const bool space = rest.starts_with(kSpaceMark);
      bytes += space ? ' ' : rest[0];
      rest.remove_prefix(space ? kSpaceMark.size() : 1);
    }
    return bytes;
  }

  std::vector<int32_t> encode(std::string_view text, Specials specials) const override {
    Encoding encoding;
    run(text, specials, false, encoding);
    return std::move(encoding.ids);
  }
  Encoding encode_with_offsets(std::string_view text, Specials specials) const override {
    Encoding encoding;
    run(text, specials, true, encoding);
    return encoding;
  }

  void save(const fs::path& folder) const override {
    write_file_atomic(folder / name_, serialized_);
    for (const auto& [name, bytes] : files_) write_file_atomic(folder / name, bytes);
    for (const auto& file : files_) {
      if (file.first == "tokenizer_config.json") return;
    }
    Json config{{"tokenizer_class", "LlamaTokenizer"},
                {"add_bos_token", !before_.empty()},
                {"add_eos_token", !after_.empty()},
                {"add_prefix_space", file_.dummy_prefix},
                {"legacy", file_.dummy_prefix && prefix_always_},
                {"clean_up_tokenization_spaces", false}};
    if (file_.bos) config["bos_token"] = piece(*file_.bos);
    if (file_.eos) config["eos_token"] = piece(*file_.eos);
    if (file_.pad) config["pad_token"] = piece(*file_.pad);
    config["unk_token"] = piece(file_.unknown);
    write_file_atomic(folder / "tokenizer_config.json", config.dump(1) + "\n");
  }

 private:
  // A normalized text, and where each of its bytes, and its end, was in the text before; nowhere when not asked for.
  struct Normalized {
    std::string bytes;
    std::vector<size_t> origins;
    bool aligned = false;

    void add(std::string_view text, size_t origin) {
      bytes += text;
      if (aligned) origins.resize(bytes.size(), origin);
    }
  };
  struct Run {
    ModelScratch& scratch;
    bool offsets;
    Encoding& out;
    std::vector<TokenSpan> tokens;
  };

  // Tokens behind the model's pieces: special ones as its control pieces, others found in any text.
  void add_behind(const std::vector<AddedToken>& tokens, const std::string& where) {
    std::vector<std::pair<std::string, int32_t>> others;
    for (const AddedToken& token : tokens) {
      if (token.lstrip || token.rstrip || token.single_word) {
        throw InputError(where,
                         "has beside it the added token \"" + token.content.substr(0, 100) +
                             "\" with lstrip, rstrip or single_word, which is not supported for such models",
                         "save its tokenizer as tokenizer.json");
      }
      if (!token.special) others.emplace_back(token.content, token.id);
      file_.pieces.push_back({token.content, 0, token.special ? PieceType::kControl : PieceType::kUnused});
    }
    added_ = SpecialText(std::move(others));
  }

  const SentencepieceModel::Piece& at(int32_t id) const {
    if (id < 0 || id >= vocab_size()) throw unknown_id(id, vocab_size());
    return file_.pieces[static_cast<size_t>(id)];
  }

  void run(std::string_view text, Specials specials, bool offsets, Encoding& out) const {
    const auto frame = [&](const std::vector<int32_t>& ids) {
      if (specials != Specials::kAdd) return;
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      if (offsets) out.offsets.resize(out.ids.size());
    };
    scratches_.lend([&](ModelScratch& scratch) {
      Run run{scratch, offsets, out, {}};
      frame(before_);
      if (specials == Specials::kNone) {
        encode_between(text, 0, run);
      } else {
        specials_.split(
            text,
            [&](std::string_view part) { encode_between(part, static_cast<size_t>(part.data() - text.data()), run); },
            [&](int32_t id, ByteRange range) { push(id, range, run); });
      }
      frame(after_);
    });
  }

  static void push(int32_t id, ByteRange range, Run& run) {
    run.out.ids.push_back(id);
    if (run.offsets) run.out.offsets.push_back(range);
  }

  // `place`: where in the whole text the part begins.
  void encode_between(std::string_view part, size_t place, Run& run) const {
    added_.split(
        part,
        [&](std::string_view plain) {
          encode_plain(plain, place + static_cast<size_t>(plain.data() - part.data()), run);
        },
        [&](int32_t id, ByteRange range) { push(id, {place + range.begin, place + range.end}, run); });
  }

  void encode_plain(std::string_view part, size_t place, Run& run) const {
    if (!lossless_) {
      const RepairedText repaired(part);
      const Normalized normalized = normalize(repaired.text(), place == 0, run.offsets);
      encode_normalized(normalized, run, [&](size_t at) { return place + repaired.source(at); });
      return;
    }
    size_t begin = 0, end = 0;
    const auto flush = [&] {
      if (end == begin) return;
      const Normalized normalized = normalize(part.substr(begin, end - begin), false, run.offsets);
      encode_normalized(normalized, run, [&](size_t at) { return place + begin + at; });
    };
    while (end < part.size()) {
      const Utf8Part next = utf8_part(part.substr(end));
      if (next.valid && part.substr(end, next.length) != kSpaceMark) {
        end += next.length;
        continue;
      }
      flush();
      for (size_t i = end; i < end + next.length; ++i) {
        const ByteRange range =
            next.valid ? ByteRange{place + end, place + end + next.length} : ByteRange{place + i, place + i + 1};
        push(file_.byte_ids[static_cast<unsigned char>(part[i])], range, run);
      }
      begin = end += next.length;
    }
    flush();
  }

  template <class Source>
  void encode_normalized(const Normalized& normalized, Run& run, const Source& source) const {
    const std::string_view bytes = normalized.bytes;
    if (bytes.size() > UINT32_MAX) throw InputError("the text", "is longer than 4 GiB", "cut it into smaller parts");
    const auto inside = [&](size_t at) { return at < bytes.size() && is_continuation(bytes[at]); };
    for (size_t begin = 0; begin < bytes.size();) {
      // A long text is cut in front of a word, where no piece can cross.
      const size_t end =
          cut_at_words_ && bytes.size() - begin > kChunkBytes ? next_word(bytes, begin + kChunkBytes) : bytes.size();
      run.tokens.clear();
      model_->encode(bytes.substr(begin, end - begin), run.scratch, run.tokens);
      for (const TokenSpan& token : run.tokens) {
        if (!run.offsets) {
          run.out.ids.push_back(token.id);
          continue;
        }
        size_t from = begin + token.begin, to = begin + token.end;
        while (from > 0 && inside(from)) --from;
        while (inside(to)) ++to;
        push(token.id, {source(normalized.origins[from]), source(normalized.origins[to])}, run);
      }
      begin = end;
    }
  }

  // What the rules make of the beginning of a text, and of how many of its bytes.
  std::pair<std::string_view, size_t> first_normalized(std::string_view text) const {
    if (const size_t length = user_defined_.longest(text).first; length > 0) return {text.substr(0, length), length};
    if (charsmap_) {
      if (const auto rule = charsmap_->longest(text)) return {rule->replacement, rule->length};
    }
    const size_t length = utf8_part(text).length;
    return {text.substr(0, length), length};
  }

  Normalized normalize(std::string_view text, bool begins_text, bool aligned) const {
    Normalized out;
    out.aligned = aligned;
    size_t at = 0;
    if (file_.remove_extra_spaces) {
      while (at < text.size()) {
        const auto [rewritten, length] = first_normalized(text.substr(at));
        if (rewritten != " ") break;
        at += length;
      }
    }
    if (at < text.size()) {
      out.bytes.reserve(text.size() + text.size() / 2);
      if (file_.dummy_prefix && (prefix_always_ || begins_text)) out.add(kSpaceMark, at);
      bool after_space = file_.remove_extra_spaces;
      while (at < text.size()) {
        auto [rewritten, length] = first_normalized(text.substr(at));
        while (after_space && rewritten.starts_with(' ')) rewritten.remove_prefix(1);
        if (!rewritten.empty()) {
          for (const char& c : rewritten) out.add(c == ' ' ? kSpaceMark : std::string_view(&c, 1), at);
          after_space = file_.remove_extra_spaces && rewritten.ends_with(' ');
        }
        at += length;
      }
      if (file_.remove_extra_spaces) {
        while (out.bytes.ends_with(kSpaceMark)) {
          out.bytes.resize(out.bytes.size() - kSpaceMark.size());
          if (aligned) {
            at = out.origins[out.bytes.size()];
            out.origins.resize(out.bytes.size());
          }
        }
      }
    }
    if (aligned) out.origins.push_back(at);
    return out;
  }

  static constexpr size_t kChunkBytes = 8192;

  std::string serialized_, name_;
  SavedFiles files_;
  SentencepieceModel file_;
  std::optional<Charsmap> charsmap_;
  bool lossless_, prefix_always_, cut_at_words_ = true;
  std::unique_ptr<TokenModel> model_;
  mutable ScratchPool scratches_;
  PieceTrie user_defined_;
  SpecialText specials_, added_;
  std::vector<int32_t> before_, after_;
};

}  // namespace

std::unique_ptr<Tokenizer> sentencepiece_tokenizer(std::string serialized, std::string name,
                                                   const TokenizerConfig& config, const std::string& where) {
  return std::make_unique<SentencepieceTokenizer>(std::move(serialized), std::move(name), config, where);
}

std::unique_ptr<Tokenizer> load_sentencepiece(const fs::path& path) {
  return sentencepiece_tokenizer(read_file(path, kMostModelBytes), path.filename().string(),
                                 read_tokenizer_config(path.parent_path()), path.string());
}

bool is_own_sentencepiece(const fs::path& path) {
  try {
    const SentencepieceModel model = parse_sentencepiece(read_file(path, kMostModelBytes), path.string());
    return model.lossless() && model.type == SentencepieceModel::Type::kBpe && model.unknown == 0 && model.bos == 1 &&
           model.eos == 2 && model.pad == 3 && model.byte_ids[0] == 4;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace transept
