// tokenizer_config.json and special_tokens_map.json, which stand beside the files of a tokenizer.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "text/formats.h"
#include "text/json_block.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMostConfigBytes = uint64_t{16} << 20;

// "<s>", or {"content": "<s>", ...}.
std::optional<std::string> token_of(const JsonBlock& block, const char* key) {
  const Json* value = block.find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_object()) {
    const auto content = value->find("content");
    if (content != value->end() && content->is_string()) return content->get<std::string>();
  }
  block.add(key, "is neither a token nor an object with its content");
  return std::nullopt;
}

std::optional<bool> flag_of(const JsonBlock& block, const char* key) {
  if (block.find(key) == nullptr) return std::nullopt;
  return block.boolean(key, false);
}

}  // namespace

TokenizerConfig read_tokenizer_config(const fs::path& folder) {
  TokenizerConfig config;
  Problems problems;
  const auto read_tokens = [&](const JsonBlock& block) {
    const std::pair<const char*, std::optional<std::string>*> tokens[] = {
        {"bos_token", &config.bos}, {"eos_token", &config.eos},   {"pad_token", &config.pad},
        {"unk_token", &config.unk}, {"mask_token", &config.mask}, {"cls_token", &config.cls},
        {"sep_token", &config.sep}};
    for (const auto& [key, token] : tokens) {
      const std::optional<std::string> read = token_of(block, key);
      if (!*token) *token = read;
    }
  };
  std::error_code ignored;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const fs::path path = folder / name;
    if (!fs::exists(path, ignored)) continue;
    const std::string bytes = read_file(path, kMostConfigBytes);
    const Json json = parse_json(bytes, path.string());
    config.files.emplace_back(name, bytes);
    const JsonBlock block(json, path.string(), problems);
    read_tokens(block);
    if (name != std::string_view("tokenizer_config.json")) continue;
    config.add_bos = flag_of(block, "add_bos_token");
    config.add_eos = flag_of(block, "add_eos_token");
    config.add_prefix_space = flag_of(block, "add_prefix_space");
    config.legacy = flag_of(block, "legacy");
    config.do_lower_case = flag_of(block, "do_lower_case");
    config.tokenize_chinese_chars = flag_of(block, "tokenize_chinese_chars");
    config.strip_accents = flag_of(block, "strip_accents");
    config.tokenizer_class = block.text("tokenizer_class").value_or("");
  }
  throw_if_any(std::move(problems));
  return config;
}

}  // namespace transept
