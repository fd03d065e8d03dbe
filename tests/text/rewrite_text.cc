// Rewrites texts as blocks of a tokenizer.json say, for tools/compare_rewriting.py. Reads one JSON value a line:
//   {"normalizer": ..., "pre_tokenizer": ..., "characters": false, "raw": false}   the blocks for the lines to come
//   "a text"                                                                        answered by one line:
// [["part", begin, end], ...] with source ranges in bytes; a part for every character with "characters". A block that
// cannot be read is answered by {"problems": [...]}.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/split_pattern.h"

namespace transept {
namespace {

struct Blocks {
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  bool characters = false;
};

Blocks read_blocks(const Json& line, Problems& problems) {
  const auto block = [&](const char* key) { return line.contains(key) ? line[key] : Json(); };
  const ByteLevelText byte_level = line.value("raw", false) ? ByteLevelText::kRawBytes : ByteLevelText::kCharacters;
  return {read_normalizer(block("normalizer"), "normalizer", problems),
          read_pre_tokenizer(block("pre_tokenizer"), "pre_tokenizer", problems, byte_level),
          line.value("characters", false)};
}

Json rewrite(const Blocks& blocks, const std::string& text) {
  AlignedText whole(text);
  if (blocks.normalizer != nullptr) blocks.normalizer->apply(whole);
  std::vector<AlignedText> parts{whole};
  if (blocks.pre_tokenizer != nullptr) blocks.pre_tokenizer->apply(parts);
  Json out = Json::array();
  const auto put = [&](const AlignedText& part, size_t from, size_t to) {
    const auto [begin, end] = part.source(from, to);
    out.push_back({std::string(part.bytes().substr(from, to - from)), begin, end});
  };
  for (const AlignedText& part : parts) {
    if (!blocks.characters) {
      put(part, 0, part.size());
      continue;
    }
    for (size_t at = 0; at < part.size();) {
      const size_t end = next_character(part.bytes(), at);
      put(part, at, end);
      at = end;
    }
  }
  return out;
}

int run() {
  Blocks blocks;
  for (std::string line; std::getline(std::cin, line);) {
    const Json value = Json::parse(line);
    if (value.is_string()) {
      std::cout << rewrite(blocks, value.get<std::string>()).dump() << "\n";
      continue;
    }
    Problems problems;
    blocks = read_blocks(value, problems);
    if (problems.empty()) continue;
    Json answer = {{"problems", Json::array()}};
    for (const Problem& problem : problems) answer["problems"].push_back(problem.to_string());
    std::cout << answer.dump() << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace transept

int main() { return transept::run(); }
