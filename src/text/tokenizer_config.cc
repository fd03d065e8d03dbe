// tokenizer_config.json and special_tokens_map.json, which stand beside the files of a tokenizer.
#include <algorithm>
#include <charconv>
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

// {"32000": {"content": "<pad>", ...}, ...}
void read_added_decoder(const JsonBlock& config, const char* key, std::vector<AddedToken>& added, Problems& problems) {
  const Json* entries = config.find(key);
  if (entries == nullptr) return;
  if (!entries->is_object()) return config.add(key, "is no object");
  Json list = Json::array();
  for (const auto& entry : entries->items()) {
    int64_t id = -1;
    const std::string& text = entry.key();
    if (std::from_chars(text.data(), text.data() + text.size(), id).ptr != text.data() + text.size() || text.empty()) {
      config.add(std::string(key) + "." + text, "is no id");
      continue;
    }
    Json token = entry.value();
    if (token.is_object()) token["id"] = id;
    list.push_back(std::move(token));
  }
  added = read_added_tokens(list, config.path(key), problems);
}

// {"<pad>": 32000, ...}: special where other files name them so.
void read_added_file(const fs::path& path, TokenizerConfig& config) {
  const std::string bytes = read_file(path, kMostConfigBytes);
  for (auto& [content, id] : parse_vocabulary(bytes, path.string())) {
    const auto known = [&](const AddedToken& token) { return token.content == content || token.id == id; };
    if (std::any_of(config.added.begin(), config.added.end(), known)) continue;
    AddedToken token;
    token.id = id;
    token.content = content;
    for (const auto* named :
         {&config.bos, &config.eos, &config.pad, &config.unk, &config.mask, &config.cls, &config.sep})
      token.special = token.special || *named == content;
    config.added.push_back(std::move(token));
  }
  config.files.emplace_back(path.filename().string(), bytes);
}

}  // namespace

std::vector<AddedToken> TokenizerConfig::added_behind(int64_t size, const std::string& where) const {
  std::vector<AddedToken> behind;
  for (const AddedToken& token : added) {
    if (token.id >= size) behind.push_back(token);
  }
  std::sort(behind.begin(), behind.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  if (!behind.empty() && behind[0].id == size && behind[0].content == "<mask>") return {};
  for (size_t i = 0; i < behind.size(); ++i) {
    if (behind[i].id != size + static_cast<int64_t>(i)) {
      throw InputError(where,
                       "has " + std::to_string(size) + " pieces, and beside it the added token \"" +
                           behind[i].content.substr(0, 100) + "\" has the id " + std::to_string(behind[i].id),
                       "number added tokens on from the vocabulary's size, without a gap");
    }
  }
  return behind;
}

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
    read_added_decoder(block, "added_tokens_decoder", config.added, problems);
  }
  if (fs::exists(folder / "added_tokens.json", ignored)) read_added_file(folder / "added_tokens.json", config);
  throw_if_any(std::move(problems));
  return config;
}

}  // namespace transept
