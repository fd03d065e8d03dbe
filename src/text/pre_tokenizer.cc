#include "text/pre_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/byte_level.h"
#include "text/known_patterns.h"
#include "text/rewriting_step.h"
#include "text/split_pattern.h"
#include "text/unicode.h"

namespace transept {
namespace {

using Parts = std::vector<AlignedText>;

// What becomes of the stretches that a pattern matches. (Hugging Face: SplitDelimiterBehavior.)
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Turns stretches, which come in order, into parts.
class Splitter {
 public:
  Splitter(const AlignedText& text, Behavior behavior, Parts& out) : text_(text), behavior_(behavior), out_(out) {}

  void add(size_t begin, size_t end, bool matched) {
    switch (behavior_) {
      case Behavior::kRemoved:
        if (!matched) put(begin, end);
        return;
      case Behavior::kIsolated:
        return put(begin, end);
      case Behavior::kContiguous:
        return begin_or_join(begin, end, matched, matched == matched_before_);
      case Behavior::kMergedWithPrevious:
        return begin_or_join(begin, end, matched, matched && !matched_before_);
      case Behavior::kMergedWithNext:
        return begin_or_join(begin, end, matched, !matched && matched_before_);
    }
  }
  void finish() { put(begin_, end_); }

 private:
  void put(size_t begin, size_t end) {
    if (begin < end) out_.push_back(text_.part(begin, end));
  }
  void begin_or_join(size_t begin, size_t end, bool matched, bool join) {
    if (!join) {
      put(begin_, end_);
      begin_ = begin;
    }
    end_ = end;
    matched_before_ = matched;
  }

  const AlignedText& text_;
  const Behavior behavior_;
  Parts& out_;
  size_t begin_ = 0, end_ = 0;  // what is still open
  bool matched_before_ = false;
};

// Every part becomes what `split(part, out)` adds to `out`.
template <class Split>
void split_each(Parts& parts, const Split& split) {
  Parts out;
  // A word every three bytes is more than real texts have; memory that is not used is never touched.
  size_t bytes = 0;
  for (const AlignedText& part : parts) bytes += part.size();
  out.reserve(parts.size() + bytes / 3);
  for (const AlignedText& part : parts) split(part, out);
  parts = std::move(out);
}

// Each character that `is` holds for is a stretch of its own, as are those between.
template <class Predicate>
void split_at_characters(const AlignedText& text, Behavior behavior, const Predicate& is, Parts& out) {
  const std::string_view bytes = text.bytes();
  Splitter splitter(text, behavior, out);
  size_t done = 0;
  for (size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    const size_t end = at + character.length;
    if (is(character.point)) {
      if (at > done) splitter.add(done, at, false);
      splitter.add(at, end, true);
      done = end;
    }
    at = end;
  }
  if (done < bytes.size()) splitter.add(done, bytes.size(), false);
  splitter.finish();
}

// Maximal runs of characters of one kind are parts; kind 0 is dropped, and characters of kind `alone` stay single.
template <class Kind>
void split_into_runs(const AlignedText& text, const Kind& kind_of, int alone, Parts& out) {
  const std::string_view bytes = text.bytes();
  size_t begin = 0;
  int open = 0;
  for (size_t at = 0; at < bytes.size();) {
    const Character character = character_at(bytes, at);
    const int kind = kind_of(traits(character.point));
    if (kind != open || kind == alone) {
      if (open != 0) out.push_back(text.part(begin, at));
      begin = at;
      open = kind;
    }
    at += character.length;
  }
  if (open != 0) out.push_back(text.part(begin, bytes.size()));
}

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  void apply(Parts& parts) const override {
    for (const auto& step : steps_) step->apply(parts);
  }
  bool raw_bytes() const override { return !steps_.empty() && steps_.back()->raw_bytes(); }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex, bool raw)
      : add_prefix_space_(add_prefix_space), raw_(raw), pattern_(use_regex ? gpt2_pattern() : nullptr) {}

  void apply(Parts& parts) const override {
    std::erase_if(parts, [](const AlignedText& part) { return part.empty(); });
    if (add_prefix_space_) {
      for (AlignedText& part : parts) {
        if (part.bytes().front() == ' ') continue;
        Rewriter rewriter(part);
        rewriter.insert(" ", 0, character_at(part.bytes(), 0).length);
        rewriter.finish(part);
      }
    }
    if (pattern_ != nullptr) {
      split_each(parts, [&](const AlignedText& part, Parts& out) {
        for_each_stretch(*pattern_, part.bytes(),
                         [&](size_t begin, size_t end, bool) { out.push_back(part.part(begin, end)); });
      });
    }
    if (raw_) return;
    for (AlignedText& part : parts) to_characters(part);
  }
  bool raw_bytes() const override { return raw_; }

 private:
  static void to_characters(AlignedText& part) {
    Rewriter rewriter(part);
    const std::string_view old = rewriter.old();
    for (size_t at = 0; at < old.size(); ++at) {
      rewriter.put(byte_level_code_point(static_cast<uint8_t>(old[at])), is_continuation(old[at]) ? 1 : 0);
    }
    rewriter.finish(part);
  }

  bool add_prefix_space_, raw_;
  std::unique_ptr<SplitPattern> pattern_;
};

class Split : public PreTokenizer {
 public:
  Split(std::unique_ptr<SplitPattern> pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void apply(Parts& parts) const override {
    split_each(parts, [&](const AlignedText& part, Parts& out) {
      Splitter splitter(part, behavior_, out);
      for_each_stretch(*pattern_, part.bytes(),
                       [&](size_t begin, size_t end, bool matched) { splitter.add(begin, end, matched != invert_); });
      splitter.finish();
    });
  }

 private:
  std::unique_ptr<SplitPattern> pattern_;
  Behavior behavior_;
  bool invert_;
};

// \w+|[^\w\s]+
class Whitespace : public PreTokenizer {
 public:
  void apply(Parts& parts) const override {
    const auto kind = [](uint32_t t) { return t & kWord ? 1 : t & kSpace ? 0 : 2; };
    split_each(parts, [&](const AlignedText& part, Parts& out) { split_into_runs(part, kind, -1, out); });
  }
};

class WhitespaceSplit : public PreTokenizer {
 public:
  void apply(Parts& parts) const override {
    const auto kind = [](uint32_t t) { return t & kSpace ? 0 : 1; };
    split_each(parts, [&](const AlignedText& part, Parts& out) { split_into_runs(part, kind, -1, out); });
  }
};

// Words between white space, every character of punctuation alone.
class BertPreTokenizer : public PreTokenizer {
 public:
  void apply(Parts& parts) const override {
    const auto kind = [](uint32_t t) { return t & kSpace ? 0 : t & kBertPunctuation ? 2 : 1; };
    split_each(parts, [&](const AlignedText& part, Parts& out) { split_into_runs(part, kind, 2, out); });
  }
};

// Characters with a trait are split off, whatever stands between them stays whole.
class TraitSplit : public PreTokenizer {
 public:
  TraitSplit(Trait trait, Behavior behavior) : trait_(trait), behavior_(behavior) {}
  void apply(Parts& parts) const override {
    const auto is = [&](uint32_t point) { return (traits(point) & trait_) != 0; };
    split_each(parts, [&](const AlignedText& part, Parts& out) { split_at_characters(part, behavior_, is, out); });
  }

 private:
  Trait trait_;
  Behavior behavior_;
};

class CharDelimiterSplit : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(uint32_t delimiter) : delimiter_(delimiter) {}
  void apply(Parts& parts) const override {
    const auto is = [&](uint32_t point) { return point == delimiter_; };
    split_each(parts,
               [&](const AlignedText& part, Parts& out) { split_at_characters(part, Behavior::kRemoved, is, out); });
  }

 private:
  uint32_t delimiter_;
};

enum class PrependScheme { kAlways, kFirst, kNever };

// Spaces become the replacement, one is put before a part that has none, and each word begins with its own.
class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string replacement, PrependScheme prepend, bool split)
      : replacement_(std::move(replacement)), prepend_(prepend), split_(split) {}

  void apply(Parts& parts) const override {
    std::erase_if(parts, [](const AlignedText& part) { return part.empty(); });
    for (AlignedText& part : parts) replace(part);
    if (!split_) return;
    split_each(parts, [&](const AlignedText& part, Parts& out) {
      const std::string_view bytes = part.bytes();
      for (size_t begin = 0; begin < bytes.size();) {
        const size_t end = std::min(bytes.find(replacement_, begin + 1), bytes.size());
        out.push_back(part.part(begin, end));
        begin = end;
      }
    });
  }

 private:
  void replace(AlignedText& part) const {
    Rewriter rewriter(part);
    const std::string_view old = rewriter.old();
    const bool wanted = prepend_ == PrependScheme::kAlways || (prepend_ == PrependScheme::kFirst && part.offset() == 0);
    if (wanted && old.front() != ' ' && !old.starts_with(replacement_)) {
      rewriter.insert(replacement_, 0, character_at(old, 0).length);
    }
    const uint32_t point = character_at(replacement_, 0).point;
    for (size_t at = old.find(' '); at != old.npos; at = old.find(' ', at + 1)) {
      rewriter.copy_to(at);
      rewriter.put(point, 0);
    }
    rewriter.finish(part);
  }

  std::string replacement_;
  PrependScheme prepend_;
  bool split_;
};

Behavior read_behavior(const RewritingStep& step, Behavior otherwise) {
  constexpr std::pair<std::string_view, Behavior> kBehaviors[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous},
  };
  if (step.find("behavior") == nullptr) return otherwise;
  const std::string name = step.text("behavior").value_or("");
  for (const auto& [known, behavior] : kBehaviors) {
    if (name == known) return behavior;
  }
  step.add("behavior", "is none of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
  return otherwise;
}

// A text of one character.
std::string read_character_text(const RewritingStep& step, const char* key) {
  const std::string text = step.required_text(key);
  if (step.find(key) != nullptr && (text.empty() || next_character(text, 0) != text.size())) {
    step.add(key, "is no single character");
    return " ";
  }
  return text.empty() ? " " : text;
}

std::unique_ptr<PreTokenizer> read_metaspace(const RewritingStep& step) {
  step.only({"replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
  const std::string replacement = read_character_text(step, "replacement");
  const std::string scheme = step.text("prepend_scheme").value_or("");
  PrependScheme prepend = PrependScheme::kAlways;
  if (scheme == "first") {
    prepend = PrependScheme::kFirst;
  } else if (scheme == "never") {
    prepend = PrependScheme::kNever;
  } else if (scheme != "always" && step.find("prepend_scheme") != nullptr) {
    step.add("prepend_scheme", "is none of always, first, never");
  }
  // What files before the scheme say instead of it.
  if (!step.boolean("add_prefix_space", true)) {
    if (!scheme.empty() && prepend != PrependScheme::kNever) {
      step.add("add_prefix_space", "contradicts prepend_scheme", "write one of the two");
    }
    prepend = PrependScheme::kNever;
  }
  return std::make_unique<Metaspace>(replacement, prepend, step.boolean("split", true));
}

std::unique_ptr<PreTokenizer> read_step(const Json& block, const std::string& where, Problems& problems,
                                        ByteLevelText byte_level, int depth);

std::unique_ptr<PreTokenizer> read_sequence(const RewritingStep& step, Problems& problems, ByteLevelText byte_level,
                                            int depth) {
  step.only({"pretokenizers"});
  constexpr int kDeepest = 8;
  const Json* list = step.list("pretokenizers");
  if (list == nullptr) return nullptr;
  if (depth == kDeepest) {
    step.add({}, "nests sequences deeper than 8");
    return nullptr;
  }
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (size_t i = 0; i < list->size(); ++i) {
    const ByteLevelText here = i + 1 == list->size() ? byte_level : ByteLevelText::kCharacters;
    steps.push_back(
        read_step((*list)[i], step.path("pretokenizers[" + std::to_string(i) + "]"), problems, here, depth + 1));
  }
  if (!step.sound()) return nullptr;
  return std::make_unique<Sequence>(std::move(steps));
}

std::unique_ptr<PreTokenizer> read_step(const Json& block, const std::string& where, Problems& problems,
                                        ByteLevelText byte_level, int depth) {
  const RewritingStep step(block, where, problems);
  const std::string_view type = step.type();
  std::unique_ptr<PreTokenizer> made;
  if (!step.sound()) return nullptr;
  if (type == "Sequence") {
    made = read_sequence(step, problems, byte_level, depth);
  } else if (type == "ByteLevel") {
    step.only({"add_prefix_space", "trim_offsets", "use_regex"});
    const bool prefix = step.required_boolean("add_prefix_space"), regex = step.boolean("use_regex", true);
    made = std::make_unique<ByteLevel>(prefix, regex, byte_level == ByteLevelText::kRawBytes);
  } else if (type == "Split") {
    step.only({"pattern", "behavior", "invert"});
    const Json* pattern_block = step.find("pattern");
    std::unique_ptr<SplitPattern> pattern;
    if (pattern_block == nullptr) {
      step.add("pattern", "is missing");
    } else {
      pattern = read_pattern(*pattern_block, step.path("pattern"), problems);
    }
    if (step.find("behavior") == nullptr) step.add("behavior", "is missing");
    const Behavior behavior = read_behavior(step, Behavior::kIsolated);
    const bool invert = step.required_boolean("invert");
    made = std::make_unique<Split>(std::move(pattern), behavior, invert);
  } else if (type == "Whitespace") {
    step.only({});
    made = std::make_unique<Whitespace>();
  } else if (type == "WhitespaceSplit") {
    step.only({});
    made = std::make_unique<WhitespaceSplit>();
  } else if (type == "BertPreTokenizer") {
    step.only({});
    made = std::make_unique<BertPreTokenizer>();
  } else if (type == "Metaspace") {
    made = read_metaspace(step);
  } else if (type == "Punctuation") {
    step.only({"behavior"});
    made = std::make_unique<TraitSplit>(kBertPunctuation, read_behavior(step, Behavior::kIsolated));
  } else if (type == "Digits") {
    step.only({"individual_digits"});
    const bool single = step.required_boolean("individual_digits");
    made = std::make_unique<TraitSplit>(kNumeric, single ? Behavior::kIsolated : Behavior::kContiguous);
  } else if (type == "CharDelimiterSplit") {
    step.only({"delimiter"});
    made = std::make_unique<CharDelimiterSplit>(character_at(read_character_text(step, "delimiter"), 0).point);
  } else {
    step.refuse_type("pre-tokenizer");
  }
  return step.sound() ? std::move(made) : nullptr;
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& block, const std::string& where, Problems& problems,
                                                 ByteLevelText byte_level) {
  return block.is_null() ? nullptr : read_step(block, where, problems, byte_level, 0);
}

}  // namespace transept
