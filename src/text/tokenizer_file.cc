#include "text/tokenizer_file.h"

#include <cmath>
#include <unordered_set>

#include "base/problem.h"
#include "text/piece_index.h"

namespace transept {
namespace {

constexpr size_t kMostDepth = 64;

class Reader : public nlohmann::json_sax<Json> {
 public:
  // `vocabulary_alone`: the document is what elsewhere is model.vocab.
  Reader(const std::string& where, bool vocabulary_alone) : where_(where), alone_(vocabulary_alone) {}

  TokenizerFile take() { return std::move(file_); }

  bool null() override { return value(Json()); }
  bool boolean(bool v) override { return value(Json(v)); }
  bool number_integer(number_integer_t v) override { return number(Json(v), static_cast<double>(v)); }
  bool number_unsigned(number_unsigned_t v) override { return number(Json(v), static_cast<double>(v)); }
  bool number_float(number_float_t v, const string_t&) override { return number(Json(v), v); }
  bool binary(binary_t&) override { return false; }

  bool string(string_t& v) override {
    if (part_ == Part::kMerges && levels_.size() == inside_) {
      file_.merges.push_back(split_merge(v, place()));
      return true;
    }
    if (levels_.size() == inside_ + 1 && (part_ == Part::kMerges || part_ == Part::kScored)) {
      pair_.push_back(std::move(v));
      return true;
    }
    return value(Json(std::move(v)));
  }

  bool start_object(size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(false); }
  bool end_array() override { return close(); }

  bool key(string_t& v) override {
    if (part_ == Part::kVocabulary) {
      key_ = std::move(v);
      if (!pieces_.insert(key_, static_cast<int32_t>(pieces_.size())))
        throw InputError(place(), "stands twice in the vocabulary", "remove one of them");
      return true;
    }
    if (!levels_.back().keys.insert(v).second)
      throw InputError(where_, "key \"" + v + "\" stands twice in one object", "remove one of them");
    key_ = std::move(v);
    return true;
  }

  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& e) override {
    if (dynamic_cast<const Json::out_of_range*>(&e) != nullptr)
      throw InputError(where_, "holds a number beyond the range of a double", "check it with a JSON validator");
    throw InputError(where_, "is not valid JSON (at byte " + std::to_string(byte) + ")",
                     "check it with a JSON validator");
  }

 private:
  enum class Part { kOther, kVocabulary, kScored, kMerges };
  struct Level {
    Json* value;  // null inside a vocabulary or merges
    bool object;
    std::unordered_set<std::string> keys;
  };

  std::string place() const {
    switch (part_) {
      case Part::kVocabulary:
        return where_ + (alone_ ? "" : ": model.vocab") + "[\"" + key_.substr(0, 100) + "\"]";
      case Part::kScored:
        return where_ + ": model.vocab[" + std::to_string(file_.scored.size()) + "]";
      case Part::kMerges:
        return where_ + ": model.merges[" + std::to_string(file_.merges.size()) + "]";
      default:
        return where_;
    }
  }
  [[noreturn]] void misshapen() const {
    switch (part_) {
      case Part::kVocabulary:
        throw InputError(place(), "is no id from 0 to " + std::to_string(kMostTokenId));
      case Part::kScored:
        throw InputError(place(), "is no pair of a piece and its score");
      default:
        throw InputError(place(), "is neither \"a b\" nor [\"a\", \"b\"]");
    }
  }

  bool number(Json v, double as_double) {
    if (part_ == Part::kVocabulary && levels_.size() == inside_) {
      if (!v.is_number_unsigned() || v.get<uint64_t>() > static_cast<uint64_t>(kMostTokenId)) misshapen();
      file_.vocabulary.emplace_back(std::move(key_), static_cast<int32_t>(v.get<uint64_t>()));
      return true;
    }
    if (part_ == Part::kScored && levels_.size() == inside_ + 1 && pair_.size() == 1 && !scored_) {
      if (!std::isfinite(as_double)) misshapen();
      score_ = as_double;
      scored_ = true;
      return true;
    }
    return value(std::move(v));
  }

  // A value of the JSON outside vocabulary and merges.
  bool value(Json v) {
    if (part_ != Part::kOther) misshapen();
    if (levels_.empty()) {
      if (alone_) throw InputError(where_, "is no vocabulary of pieces and ids");
      file_.rest = std::move(v);
    } else {
      place_for(*levels_.back().value) = std::move(v);
    }
    return true;
  }
  Json& place_for(Json& parent) {
    if (parent.is_array()) {
      parent.push_back(nullptr);
      return parent.back();
    }
    // Keys are known to be new, so the library's search through all of them is left out.
    auto& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(key_, Json());
    return members.back().second;
  }

  bool open(bool object) {
    if (levels_.size() >= kMostDepth)
      throw InputError(where_, "nests deeper than " + std::to_string(kMostDepth) + " levels");
    if (part_ != Part::kOther) {
      // Only pairs open inside the lists, one level deep.
      if (object || part_ == Part::kVocabulary || levels_.size() != inside_) misshapen();
      pair_.clear();
      scored_ = false;
      levels_.push_back({nullptr, false, {}});
      return true;
    }
    const bool in_model = levels_.size() == 2 && levels_[0].object && levels_[1].object && model_;
    if (alone_ || (in_model && key_ == "vocab")) {
      if (alone_ && !object) throw InputError(where_, "is no vocabulary of pieces and ids");
      part_ = object ? Part::kVocabulary : Part::kScored;
    } else if (in_model && key_ == "merges") {
      part_ = Part::kMerges;
      if (object) misshapen();
      file_.has_merges = true;
    }
    if (part_ != Part::kOther) {
      levels_.push_back({nullptr, object, {}});
      inside_ = levels_.size();
      return true;
    }
    if (levels_.size() == 1) model_ = levels_[0].object && key_ == "model";
    Json* made = &file_.rest;
    if (!levels_.empty()) made = &place_for(*levels_.back().value);
    *made = object ? Json::object() : Json::array();
    levels_.push_back({made, object, {}});
    return true;
  }

  bool close() {
    if (part_ != Part::kOther && levels_.size() == inside_ + 1) {
      if (part_ == Part::kScored) {
        if (pair_.size() != 1 || !scored_) misshapen();
        file_.scored.emplace_back(std::move(pair_[0]), score_);
        if (static_cast<int64_t>(file_.scored.size()) > kMostTokenId + 1)
          throw InputError(place(), "is one piece too many", "");
      } else {
        if (pair_.size() != 2) misshapen();
        file_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
      }
    } else if (part_ != Part::kOther) {
      part_ = Part::kOther;
    }
    levels_.pop_back();
    return true;
  }

  const std::string& where_;
  bool alone_, model_ = false, scored_ = false;
  TokenizerFile file_;
  PieceIndex pieces_;
  std::vector<Level> levels_;
  Part part_ = Part::kOther;
  size_t inside_ = 0;  // the number of levels right inside the vocabulary or the merges
  std::string key_;
  std::vector<std::string> pair_;
  double score_ = 0;
};

TokenizerFile parse(std::string_view text, const std::string& where, bool vocabulary_alone) {
  Reader reader(where, vocabulary_alone);
  Json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& where) {
  return parse(text, where, false);
}

PieceList parse_vocabulary(std::string_view text, const std::string& where) {
  return parse(text, where, true).vocabulary;
}

std::pair<std::string, std::string> split_merge(std::string_view line, const std::string& where) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string_view::npos) {
    throw InputError(where, "\"" + std::string(line.substr(0, 100)) + "\" is no merge of two pieces",
                     "write it as \"a b\"");
  }
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

}  // namespace transept
