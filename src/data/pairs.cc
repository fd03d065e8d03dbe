#include "data/pairs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/problem.h"

namespace transept {
namespace {

constexpr size_t kMostProblems = 5;

TextPair from_tsv(std::string_view line, const std::string& where) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos)
    throw InputError(where, "does not hold exactly one tab", "write a source, a tab and a target on each line");
  return {std::string(line.substr(0, tab)), std::string(line.substr(tab + 1)), where};
}

TextPair from_json(std::string_view line, const std::string& where) {
  const Json object = parse_json(line, where);
  const auto text = [&](const char* key) {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string())
      throw InputError(where, "is no object with the string \"" + std::string(key) + "\"",
                       R"(write {"source": "...", "target": "..."} on each line)");
    return object[key].get<std::string>();
  };
  return {text("source"), text("target"), where};
}

}  // namespace

bool are_pairs(std::span<const std::filesystem::path> paths) {
  return !paths.empty() && std::all_of(paths.begin(), paths.end(), [](const std::filesystem::path& p) {
    return p.extension() == ".tsv" || p.extension() == ".jsonl";
  });
}

std::vector<TextPair> read_pairs(const TextFile& file) {
  if (!are_pairs({&file.path, 1}))
    throw InputError(file.path.string(), "is no file of pairs", "give .tsv or .jsonl files");
  const bool json = file.path.extension() == ".jsonl";
  std::vector<TextPair> pairs;
  Problems problems;
  size_t number = 0;
  for (std::string_view rest = file.text; !rest.empty() && problems.size() < kMostProblems;) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string where = file.path.string() + ":" + std::to_string(++number);
    try {
      TextPair pair = json ? from_json(line, where) : from_tsv(line, where);
      if (pair.source.empty() || pair.target.empty())
        throw InputError(where, "has an empty source or target", "leave the line out");
      pairs.push_back(std::move(pair));
    } catch (const InputError& e) {
      problems.insert(problems.end(), e.problems().begin(), e.problems().end());
    }
  }
  throw_if_any(std::move(problems));
  return pairs;
}

}  // namespace transept
