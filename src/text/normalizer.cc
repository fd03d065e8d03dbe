#include "text/normalizer.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "text/base64.h"
#include "text/byte_level.h"
#include "text/charsmap.h"
#include "text/grapheme.h"
#include "text/normal_form.h"
#include "text/rewriting_step.h"
#include "text/split_pattern.h"
#include "text/unicode.h"

namespace transept {
namespace {

constexpr uint32_t kRemoved = UINT32_MAX;

// Every character becomes what `map` makes of it, or nothing (kRemoved).
template <class Map>
void map_characters(AlignedText& text, const Map& map) {
  Rewriter rewriter(text);
  const std::string_view old = rewriter.old();
  for (size_t at = 0; at < old.size();) {
    const Character character = character_at(old, at);
    const uint32_t mapped = map(character.point);
    if (mapped != character.point) {
      rewriter.copy_to(at);
      if (mapped == kRemoved) {
        rewriter.skip(character.length);
      } else {
        rewriter.put(mapped, 0);
      }
    }
    at += character.length;
  }
  rewriter.finish(text);
}

void to_lower_case(AlignedText& text) {
  constexpr uint32_t kDottedI = 0x130;
  Rewriter rewriter(text);
  const std::string_view old = rewriter.old();
  for (size_t at = 0; at < old.size();) {
    const auto byte = static_cast<unsigned char>(old[at]);
    if (byte < 0x80) {
      if (byte >= 'A' && byte <= 'Z') {
        rewriter.copy_to(at);
        rewriter.put(byte | 0x20, 0);
      }
      ++at;
      continue;
    }
    const Character character = character_at(old, at);
    const uint32_t lower = lower_case(character.point);
    if (character.point == kDottedI) {
      rewriter.copy_to(at);
      rewriter.put('i', 0);
      rewriter.put(0x307, 1);
    } else if (lower != character.point) {
      rewriter.copy_to(at);
      rewriter.put(lower, 0);
    }
    at += character.length;
  }
  rewriter.finish(text);
}

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  void apply(AlignedText& text) const override {
    for (const auto& step : steps_) step->apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

class Form : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  void apply(AlignedText& text) const override { to_normal_form(text, form_); }

 private:
  NormalForm form_;
};

class Lowercase : public Normalizer {
 public:
  void apply(AlignedText& text) const override { to_lower_case(text); }
};

class StripAccents : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    map_characters(text, [](uint32_t point) { return traits(point) & kAccent ? kRemoved : point; });
  }
};

// White space at the ends.
class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(AlignedText& text) const override {
    const std::string_view old = text.bytes();
    const auto space = [&](size_t at) { return (traits(character_at(old, at).point) & kSpace) != 0; };
    size_t begin = 0, end = old.size();
    while (left_ && begin < end && space(begin)) begin += character_at(old, begin).length;
    while (right_ && end > begin && space(character_before(old, end))) end = character_before(old, end);
    Rewriter rewriter(text);
    rewriter.skip(begin);
    rewriter.copy_to(end);
    rewriter.skip(old.size() - end);
    rewriter.finish(text);
  }

 private:
  bool left_, right_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(AlignedText& text) const override {
    if (text.empty()) return;
    Rewriter rewriter(text);
    rewriter.insert(prefix_, 0, character_at(text.bytes(), 0).length);
    rewriter.finish(text);
  }

 private:
  std::string prefix_;
};

// The content is aligned with the last character that it replaces, as in Hugging Face tokenizers.
class Replace : public Normalizer {
 public:
  Replace(std::unique_ptr<SplitPattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(AlignedText& text) const override {
    Rewriter rewriter(text);
    const std::string_view old = rewriter.old();
    for_each_stretch(*pattern_, old, [&](size_t begin, size_t end, bool matched) {
      if (!matched) return rewriter.copy(end - begin);
      rewriter.insert(content_, end == 0 ? 0 : character_before(old, end), end);
      rewriter.skip(end - begin);
    });
    rewriter.finish(text);
  }

 private:
  std::unique_ptr<SplitPattern> pattern_;
  std::string content_;
};

// Sentencepiece's own normalization, grapheme by grapheme: one of less than six bytes is looked up as a whole, and what
// is then not replaced character by character. (That is how Hugging Face's spm_precompiled reads the map, which
// sentencepiece itself reads by longest match.)
class Precompiled : public Normalizer {
 public:
  explicit Precompiled(Charsmap map) : map_(std::move(map)) {
    for (uint32_t c = 0; c < plain_.size(); ++c) plain_[c] = c != '\r' && !map_.replacement(Utf8Character(c).view());
  }

  void apply(AlignedText& text) const override {
    constexpr size_t kLongest = 6;
    Rewriter rewriter(text);
    const std::string_view old = rewriter.old();
    const auto ascii = [&](size_t at) { return at >= old.size() || static_cast<unsigned char>(old[at]) < 0x80; };
    for (size_t at = 0; at < old.size();) {
      if (ascii(at) && ascii(at + 1) && plain_[static_cast<unsigned char>(old[at])]) {
        ++at;
        continue;
      }
      const size_t end = grapheme_end(old, at);
      if (end - at < kLongest && replace(rewriter, at, end)) {
        at = end;
        continue;
      }
      while (at < end) {
        const size_t next = at + character_at(old, at).length;
        replace(rewriter, at, next);
        at = next;
      }
    }
    rewriter.finish(text);
  }

 private:
  bool replace(Rewriter& rewriter, size_t begin, size_t end) const {
    const std::string_view part = rewriter.old().substr(begin, end - begin);
    const std::optional<std::string_view> replacement = map_.replacement(part);
    if (!replacement) return false;
    rewriter.copy_to(begin);
    const int old_count = count(part), new_count = count(*replacement);
    int written = 0;
    for (size_t at = 0; at < replacement->size(); ++written) {
      const Character character = character_at(*replacement, at);
      at += character.length;
      // What is left over of the old characters vanishes with the last new one.
      const bool last = written + 1 == new_count;
      rewriter.put(character.point, written >= old_count ? 1 : last ? std::min(0, new_count - old_count) : 0);
    }
    rewriter.skip(end - rewriter.at());
    return true;
  }
  static int count(std::string_view text) {
    int characters = 0;
    for (const char c : text) characters += !is_continuation(c);
    return characters;
  }

  Charsmap map_;
  std::array<bool, 128> plain_{};  // ASCII characters that stay
};

// Characters of the blocks of CJK ideographs, as BERT's tokenizer lists them (google-research/bert, tokenization.py;
// Hugging Face tokenizers begin the seventh range at U+2B920, and so do we).
bool is_chinese(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

class BertNormalizer : public Normalizer {
 public:
  BertNormalizer(bool clean_text, bool handle_chinese_chars, bool strip_accents, bool lowercase)
      : clean_text_(clean_text),
        handle_chinese_chars_(handle_chinese_chars),
        strip_accents_(strip_accents),
        lowercase_(lowercase) {}

  void apply(AlignedText& text) const override {
    if (clean_text_) {
      map_characters(text, [](uint32_t point) -> uint32_t {
        const uint32_t t = traits(point);
        if ((t & kControl) || point == 0xFFFD) return kRemoved;
        return t & kSpace ? ' ' : point;
      });
    }
    if (handle_chinese_chars_) space_out_chinese(text);
    if (strip_accents_) {
      to_normal_form(text, NormalForm::kD);
      map_characters(text, [](uint32_t point) { return traits(point) & kNonspacing ? kRemoved : point; });
    }
    if (lowercase_) to_lower_case(text);
  }

 private:
  static void space_out_chinese(AlignedText& text) {
    Rewriter rewriter(text);
    const std::string_view old = rewriter.old();
    for (size_t at = 0; at < old.size();) {
      if (static_cast<unsigned char>(old[at]) < 0xE3) {  // below U+3000
        ++at;
        continue;
      }
      const Character character = character_at(old, at);
      if (is_chinese(character.point)) {
        rewriter.copy_to(at);
        rewriter.put(' ', 0);
        rewriter.put(character.point, 1);
        rewriter.put(' ', 1);
      }
      at += character.length;
    }
    rewriter.finish(text);
  }

  bool clean_text_, handle_chinese_chars_, strip_accents_, lowercase_;
};

// The part of sentencepiece's nmt rules that its charsmaps leave to the tokenizer.
class Nmt : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    map_characters(text, [](uint32_t c) -> uint32_t {
      if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) {
        return kRemoved;
      }
      const bool blank = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      return blank ? ' ' : c;
    });
  }
};

class ByteLevel : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    Rewriter rewriter(text);
    const std::string_view old = rewriter.old();
    for (const char byte : old) {
      rewriter.put(byte_level_code_point(static_cast<uint8_t>(byte)), is_continuation(byte) ? 1 : 0);
    }
    rewriter.finish(text);
  }
};

std::unique_ptr<Normalizer> read_step(const Json& block, const std::string& where, Problems& problems, int depth);

std::unique_ptr<Normalizer> read_sequence(const RewritingStep& step, Problems& problems, int depth) {
  step.only({"normalizers"});
  constexpr int kDeepest = 8;
  const Json* list = step.list("normalizers");
  if (list == nullptr) return nullptr;
  if (depth == kDeepest) {
    step.add({}, "nests sequences deeper than 8");
    return nullptr;
  }
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (size_t i = 0; i < list->size(); ++i) {
    steps.push_back(read_step((*list)[i], step.path("normalizers[" + std::to_string(i) + "]"), problems, depth + 1));
  }
  std::erase(steps, nullptr);  // an empty charsmap is no step
  return std::make_unique<Sequence>(std::move(steps));
}

std::unique_ptr<Normalizer> read_replace(const RewritingStep& step, Problems& problems) {
  step.only({"pattern", "content"});
  const Json* block = step.find("pattern");
  std::unique_ptr<SplitPattern> pattern;
  if (block == nullptr) {
    step.add("pattern", "is missing");
  } else {
    pattern = read_pattern(*block, step.path("pattern"), problems);
  }
  return std::make_unique<Replace>(std::move(pattern), step.required_text("content"));
}

std::unique_ptr<Normalizer> read_precompiled(const RewritingStep& step, Problems& problems) {
  step.only({"precompiled_charsmap"});
  const std::optional<std::string> bytes = from_base64(step.required_text("precompiled_charsmap"));
  if (!bytes) {
    step.add("precompiled_charsmap", "is no base64");
    return nullptr;
  }
  return precompiled_normalizer(*bytes, step.path("precompiled_charsmap"), problems);
}

std::unique_ptr<Normalizer> read_bert(const RewritingStep& step) {
  step.only({"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  const bool clean = step.required_boolean("clean_text"), chinese = step.required_boolean("handle_chinese_chars");
  const bool lowercase = step.required_boolean("lowercase"), accents = step.boolean("strip_accents", lowercase);
  return std::make_unique<BertNormalizer>(clean, chinese, accents, lowercase);
}

template <class Step, class... Settings>
std::unique_ptr<Normalizer> plain(const RewritingStep& step, Settings... settings) {
  step.only({});
  return std::make_unique<Step>(settings...);
}

std::unique_ptr<Normalizer> read_step(const Json& block, const std::string& where, Problems& problems, int depth) {
  const RewritingStep step(block, where, problems);
  const std::string_view type = step.type();
  std::unique_ptr<Normalizer> made;
  if (!step.sound()) return nullptr;
  if (type == "Sequence") {
    made = read_sequence(step, problems, depth);
  } else if (type == "NFC") {
    made = plain<Form>(step, NormalForm::kC);
  } else if (type == "NFD") {
    made = plain<Form>(step, NormalForm::kD);
  } else if (type == "NFKC") {
    made = plain<Form>(step, NormalForm::kKC);
  } else if (type == "NFKD") {
    made = plain<Form>(step, NormalForm::kKD);
  } else if (type == "Lowercase") {
    made = plain<Lowercase>(step);
  } else if (type == "StripAccents") {
    made = plain<StripAccents>(step);
  } else if (type == "Nmt") {
    made = plain<Nmt>(step);
  } else if (type == "ByteLevel") {
    made = plain<ByteLevel>(step);
  } else if (type == "Strip") {
    step.only({"strip_left", "strip_right"});
    const bool left = step.required_boolean("strip_left"), right = step.required_boolean("strip_right");
    made = std::make_unique<Strip>(left, right);
  } else if (type == "Prepend") {
    step.only({"prepend"});
    made = std::make_unique<Prepend>(step.required_text("prepend"));
  } else if (type == "Replace") {
    made = read_replace(step, problems);
  } else if (type == "Precompiled") {
    made = read_precompiled(step, problems);
  } else if (type == "BertNormalizer") {
    made = read_bert(step);
  } else {
    step.refuse_type("normalizer");
  }
  return step.sound() ? std::move(made) : nullptr;
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(const Json& block, const std::string& where, Problems& problems) {
  return block.is_null() ? nullptr : read_step(block, where, problems, 0);
}

std::unique_ptr<Normalizer> precompiled_normalizer(std::string_view charsmap, const std::string& where,
                                                   Problems& problems) {
  if (charsmap.empty()) return nullptr;
  std::optional<Charsmap> map = Charsmap::read(charsmap, where, problems);
  return map ? std::make_unique<Precompiled>(std::move(*map)) : nullptr;
}

}  // namespace transept
