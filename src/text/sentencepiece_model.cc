#include "text/sentencepiece_model.h"

#include <cmath>
#include <cstring>

#include "base/problem.h"
#include "text/byte_piece.h"
#include "text/piece_index.h"
#include "text/utf8.h"

namespace transept {
namespace {

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

struct NormalizerFields {
  bool dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true;
  std::string charsmap;
};

SentencepieceModel::Piece read_piece(std::string_view bytes, const std::string& where) {
  SentencepieceModel::Piece piece;
  for (ProtoReader r(bytes, where); r.next();) {
    if (r.field == 1) {
      r.want(2);
      piece.text = r.text;
    } else if (r.field == 2) {
      r.want(5);
      std::memcpy(&piece.score, &r.number, sizeof piece.score);
      if (!std::isfinite(piece.score))
        throw InputError(where, "has a piece whose score is no finite number", "get it again");
    } else if (r.field == 3) {
      r.want(0);
      if (r.number < 1 || r.number > 6) r.damaged();
      piece.type = static_cast<SentencepieceModel::PieceType>(r.number);
    }
  }
  if (piece.text.empty() || !is_utf8(piece.text))
    throw InputError(where, "has a piece that is empty or no UTF-8", "get it again");
  return piece;
}

NormalizerFields read_normalizer(std::string_view bytes, const std::string& where) {
  NormalizerFields fields;
  for (ProtoReader r(bytes, where); r.next();) {
    if (r.field == 2) {
      r.want(2);
      fields.charsmap = r.text;
    } else if (r.field >= 3 && r.field <= 5) {
      r.want(0);
      (r.field == 3   ? fields.dummy_prefix
       : r.field == 4 ? fields.remove_extra_spaces
                      : fields.escape_spaces) = r.number != 0;
    }
  }
  return fields;
}

}  // namespace

SentencepieceModel parse_sentencepiece(std::string_view bytes, const std::string& where) {
  using PieceType = SentencepieceModel::PieceType;
  SentencepieceModel model;
  NormalizerFields normalizer, denormalizer;
  uint64_t type = 1;
  bool space_is_suffix = false;
  std::string bos = "<s>", eos = "</s>", pad = "<pad>";
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
          space_is_suffix = t.number != 0;
        } else if (t.field == 35) {
          t.want(0);
          model.byte_fallback = t.number != 0;
        } else if (t.field == 44) {
          t.want(2);
          model.unknown_surface = t.text;
        } else if (t.field >= 46 && t.field <= 48) {
          t.want(2);
          if (!t.text.empty()) (t.field == 46 ? bos : t.field == 47 ? eos : pad) = t.text;
        }
      }
    } else if (r.field == 3) {
      r.want(2);
      normalizer = read_normalizer(r.text, where);
    } else if (r.field == 5) {
      r.want(2);
      denormalizer = read_normalizer(r.text, where);
    }
  }
  const auto refuse = [&](const std::string& what, const char* mend = "get it again") {
    throw InputError(where, what, mend);
  };
  if (model.pieces.empty()) refuse("has no pieces");
  if (type != 1 && type != 2) refuse("is neither a byte-pair nor a unigram model", "use one of these");
  if (!normalizer.escape_spaces || space_is_suffix)
    refuse("does not write spaces as U+2581 in front of words", "use a model that does");
  if (!denormalizer.charsmap.empty()) refuse("has rules for the way back from pieces to text", "use a model without");
  model.type = static_cast<SentencepieceModel::Type>(type);
  model.dummy_prefix = normalizer.dummy_prefix;
  model.remove_extra_spaces = normalizer.remove_extra_spaces;
  model.charsmap = std::move(normalizer.charsmap);

  PieceIndex ids(model.pieces.size());
  int unknowns = 0;
  std::vector<int32_t> byte_ids(256, -1);
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencepieceModel::Piece& piece = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    const std::string shown = '"' + piece.text.substr(0, 40) + '"';
    if (!ids.insert(piece.text, id)) refuse("has the piece " + shown + " twice");
    if (piece.type == PieceType::kUnknown) {
      ++unknowns;
      model.unknown = id;
    }
    if (piece.type == PieceType::kByte) {
      const auto byte = byte_of_piece(piece.text);
      if (!byte) refuse("has the byte piece " + shown + ", which names no byte");
      byte_ids[*byte] = id;
    }
    if (piece.type == PieceType::kUnused && model.type == SentencepieceModel::Type::kBpe)
      refuse("has the unused piece " + shown + ", which byte-pair models are not supported with", "use one without");
  }
  if (unknowns != 1) refuse("has " + std::to_string(unknowns) + " unknown pieces, not one");
  size_t bytes_there = 0;
  for (const int32_t id : byte_ids) bytes_there += id >= 0 ? 1 : 0;
  if (bytes_there != (model.byte_fallback ? 256u : 0u)) {
    refuse("has " + std::to_string(bytes_there) + " byte pieces, where byte_fallback asks for " +
           (model.byte_fallback ? "256" : "none"));
  }
  if (model.byte_fallback) model.byte_ids = std::move(byte_ids);
  const auto control = [&](const std::string& text) {
    const auto id = ids.find(text);
    return id && model.pieces[static_cast<size_t>(*id)].type == PieceType::kControl ? id : std::nullopt;
  };
  model.bos = control(bos);
  model.eos = control(eos);
  model.pad = control(pad);
  return model;
}

}  // namespace transept
