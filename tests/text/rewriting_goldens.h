// tests/goldens/text/rewriting/cases.json: what Hugging Face tokenizers make of texts by blocks of tokenizer.json.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/aligned_text.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/split_pattern.h"

namespace transept {

struct RewrittenPart {
  std::string text;
  size_t begin, end;  // of the source, in bytes
  bool operator==(const RewrittenPart&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const RewrittenPart& part) {
  return out << "[" << part.text << " " << part.begin << " " << part.end << "]";
}

inline std::vector<RewrittenPart> characters_of(const AlignedText& text) {
  std::vector<RewrittenPart> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = next_character(text.bytes(), at);
    const auto [from, to] = text.source(at, end);
    out.push_back({std::string(text.bytes().substr(at, end - at)), from, to});
    at = end;
  }
  return out;
}

inline std::vector<RewrittenPart> parts_of(const std::vector<AlignedText>& parts) {
  std::vector<RewrittenPart> out;
  for (const AlignedText& part : parts) {
    const auto [from, to] = part.source(0, part.size());
    out.push_back({std::string(part.bytes()), from, to});
  }
  return out;
}

inline Json rewriting_goldens() {
  return read_json(std::string(TRANSEPT_SOURCE_DIR) + "/tests/goldens/text/rewriting/cases.json");
}

// The block of the case as it stands in the goldens.
inline Json golden_block(const Json& goldens, const std::string& name, const char* key) {
  for (const Json& one : goldens["cases"]) {
    if (one["name"] == name) return one[key];
  }
  ADD_FAILURE() << name << ": no such case";
  return {};
}

inline std::unique_ptr<Normalizer> normalizer_of(const Json& block) {
  Problems problems;
  auto normalizer = read_normalizer(block, "normalizer", problems);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.to_string();
  return normalizer;
}

inline std::unique_ptr<PreTokenizer> pre_tokenizer_of(const Json& block,
                                                      ByteLevelText byte_level = ByteLevelText::kCharacters) {
  Problems problems;
  auto pre_tokenizer = read_pre_tokenizer(block, "pre_tokenizer", problems, byte_level);
  for (const Problem& problem : problems) ADD_FAILURE() << problem.to_string();
  return pre_tokenizer;
}

inline std::vector<AlignedText> split_text(const PreTokenizer& pre_tokenizer, const AlignedText& text) {
  std::vector<AlignedText> parts{text};
  pre_tokenizer.apply(parts);
  return parts;
}

// All cases that have a pre-tokenizer, or all that have none; returns how many there were.
inline size_t check_goldens(bool with_pre_tokenizer) {
  const Json goldens = rewriting_goldens();
  size_t cases = 0;
  for (const Json& one : goldens["cases"]) {
    if (one["pre_tokenizer"].is_null() == with_pre_tokenizer) continue;
    const auto normalizer = normalizer_of(one["normalizer"]);
    const auto pre_tokenizer = pre_tokenizer_of(one["pre_tokenizer"]);
    for (size_t i = 0; i < goldens["texts"].size(); ++i) {
      const std::string source = goldens["texts"][i].get<std::string>();
      AlignedText text(source);
      if (normalizer != nullptr) normalizer->apply(text);
      std::vector<RewrittenPart> expected;
      for (const Json& part : one["answers"][i]) expected.push_back({part[0], part[1], part[2]});
      EXPECT_EQ(pre_tokenizer == nullptr ? characters_of(text) : parts_of(split_text(*pre_tokenizer, text)), expected)
          << one["name"] << " of " << goldens["texts"][i];
    }
    ++cases;
  }
  return cases;
}

// A random JSON value made of the words of these blocks, for readers that must refuse without falling over.
template <class Draw>
Json random_block(const Draw& below, int depth) {
  static const char* const kKeys[] = {"type",
                                      "normalizers",
                                      "pretokenizers",
                                      "pattern",
                                      "String",
                                      "Regex",
                                      "behavior",
                                      "invert",
                                      "content",
                                      "prepend",
                                      "precompiled_charsmap",
                                      "replacement",
                                      "split",
                                      "strip_left",
                                      "strip_right",
                                      "prepend_scheme",
                                      "lowercase",
                                      "clean_text",
                                      "strip_accents",
                                      "handle_chinese_chars",
                                      "use_regex",
                                      "trim_offsets",
                                      "add_prefix_space",
                                      "delimiter",
                                      "individual_digits"};
  static const char* const kWords[] = {"NFC",
                                       "NFKD",
                                       "Lowercase",
                                       "Strip",
                                       "StripAccents",
                                       "Prepend",
                                       "Replace",
                                       "Precompiled",
                                       "BertNormalizer",
                                       "Nmt",
                                       "ByteLevel",
                                       "Sequence",
                                       "Split",
                                       "Whitespace",
                                       "Metaspace",
                                       "Punctuation",
                                       "Digits",
                                       "CharDelimiterSplit",
                                       "Isolated",
                                       "Removed",
                                       "always",
                                       "first",
                                       "[a-z]+",
                                       "(?:a|b)*",
                                       "",
                                       "AAAA",
                                       "BAAAAAAAAAA=",
                                       "\\p{L}",
                                       "x",
                                       "\u2581"};
  switch (depth > 4 ? below(3) : below(6)) {
    case 0:
      return below(2) == 0;
    case 1:
    case 2:
      return kWords[below(std::size(kWords))];
    case 3: {
      Json list = Json::array();
      for (uint64_t i = below(4); i > 0; --i) list.push_back(random_block(below, depth + 1));
      return list;
    }
    default: {
      Json object = Json::object();
      object["type"] = kWords[below(std::size(kWords))];
      for (uint64_t i = below(6); i > 0; --i) object[kKeys[below(std::size(kKeys))]] = random_block(below, depth + 1);
      return object;
    }
  }
}

}  // namespace transept
