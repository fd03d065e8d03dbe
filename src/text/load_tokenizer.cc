// Which file of a folder is its tokenizer, and the files older than tokenizer.json, which say less of the same: they
// are turned into what Hugging Face's converters make of them (convert_slow_tokenizer.py of transformers).
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "text/formats.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

constexpr const char* kModelNames[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The file of the folder that counts; empty without any.
fs::path tokenizer_file(const fs::path& folder) {
  const bool json = is_there(folder / "tokenizer.json");
  if (json && !(is_there(folder / "tokenizer.model") && is_own_sentencepiece(folder / "tokenizer.model")))
    return folder / "tokenizer.json";
  for (const char* name : kModelNames) {
    if (is_there(folder / name)) return folder / name;
  }
  if (is_there(folder / "vocab.json") && is_there(folder / "merges.txt")) return folder / "vocab.json";
  if (is_there(folder / "vocab.txt")) return folder / "vocab.txt";
  return {};
}

Json special_token(const std::string& content, int32_t id, bool lstrip) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", lstrip},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

std::optional<int32_t> id_in(const PieceList& vocabulary, const std::string& piece) {
  std::optional<int32_t> id;
  for (const auto& entry : vocabulary) {
    if (entry.first == piece) id = entry.second;
  }
  return id;
}

// Those of the tokens that the vocabulary has, once each.
Json special_tokens(const PieceList& vocabulary, const std::vector<std::optional<std::string>>& tokens,
                    const std::optional<std::string>& mask, bool mask_takes_space) {
  Json added = Json::array();
  std::set<std::string> done;
  for (const std::optional<std::string>& token : tokens) {
    if (!token || !done.insert(*token).second) continue;
    if (const auto id = id_in(vocabulary, *token))
      added.push_back(special_token(*token, *id, token == mask && mask_takes_space));
  }
  return added;
}

// Those behind the vocabulary as well.
void add_behind(const TokenizerConfig& config, const TokenizerFile& file, const std::string& where, Json& added) {
  for (const AddedToken& token : config.added_behind(static_cast<int64_t>(file.vocabulary.size()), where)) {
    Json entry = special_token(token.content, token.id, token.lstrip);
    entry["single_word"] = token.single_word;
    entry["rstrip"] = token.rstrip;
    entry["normalized"] = token.normalized;
    entry["special"] = token.special;
    added.push_back(std::move(entry));
  }
}

// Calls each(line) without its end.
template <class Each>
void for_each_line(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    each(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// A configuration that Hugging Face's AutoTokenizer reads, where there was none.
void complete(TokenizerConfig& config, const char* tokenizer_class) {
  for (const auto& file : config.files) {
    if (file.first == "tokenizer_config.json") return;
  }
  config.files.emplace_back("tokenizer_config.json", Json{{"tokenizer_class", tokenizer_class}}.dump(1) + "\n");
}

}  // namespace

bool has_tokenizer(const fs::path& folder) { return !tokenizer_file(folder).empty(); }

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& folder_or_file) {
  std::error_code ignored;
  fs::path file = folder_or_file;
  if (fs::is_directory(folder_or_file, ignored)) {
    file = tokenizer_file(folder_or_file);
    if (file.empty()) {
      throw InputError(folder_or_file.string(),
                       "holds no tokenizer: neither tokenizer.json nor tokenizer.model, vocab.json with merges.txt, or "
                       "vocab.txt",
                       "name the folder of a model that has one");
    }
  }
  auto tokenizer = file.filename() == "vocab.json" ? load_byte_level_bpe(file)
                   : file.extension() == ".json"   ? load_tokenizer_json(file)
                   : file.extension() == ".txt"    ? load_word_pieces(file)
                                                   : load_sentencepiece(file);
  return with_added_tokens(std::move(tokenizer), file.parent_path());
}

std::unique_ptr<Tokenizer> load_tokenizer_json(const fs::path& path) {
  std::string bytes = read_file(path, kMostTokenizerBytes);
  TokenizerFile file = parse_tokenizer_file(bytes, path.string());
  if (is_byte_tokenizer(file)) return byte_tokenizer();
  TokenizerConfig config = read_tokenizer_config(path.parent_path());
  complete(config, "PreTrainedTokenizerFast");
  // The file's post-processor alone says what stands around a text, as in transformers 5.
  config.add_bos.reset();
  config.add_eos.reset();
  return hf_tokenizer(std::move(file), config, {{"tokenizer.json", std::move(bytes)}}, path.string());
}

std::unique_ptr<Tokenizer> load_word_pieces(const fs::path& path) {
  std::string bytes = read_file(path, kMostTokenizerBytes);
  TokenizerConfig config = read_tokenizer_config(path.parent_path());
  complete(config, "BertTokenizer");
  config.unk = config.unk.value_or("[UNK]");
  config.cls = config.cls.value_or("[CLS]");
  config.sep = config.sep.value_or("[SEP]");
  config.pad = config.pad.value_or("[PAD]");
  config.mask = config.mask.value_or("[MASK]");
  TokenizerFile file;
  for_each_line(bytes, [&](std::string_view line) {
    if (static_cast<int64_t>(file.vocabulary.size()) > kMostTokenId)
      throw InputError(path.string(), "has more than " + std::to_string(kMostTokenId) + " lines");
    file.vocabulary.emplace_back(line, static_cast<int32_t>(file.vocabulary.size()));
  });
  const auto id_of = [&](const std::string& token) {
    const auto id = id_in(file.vocabulary, token);
    if (!id)
      throw InputError(path.string(), "has no line " + token, "name its special tokens in tokenizer_config.json");
    return *id;
  };
  const Json strip_accents = config.strip_accents ? Json(*config.strip_accents) : Json();
  file.rest = {{"added_tokens",
                special_tokens(file.vocabulary,
                               {config.pad, config.unk, config.cls, config.sep, config.mask, config.bos, config.eos},
                               config.mask, false)},
               {"normalizer",
                {{"type", "BertNormalizer"},
                 {"clean_text", true},
                 {"handle_chinese_chars", config.tokenize_chinese_chars.value_or(true)},
                 {"strip_accents", strip_accents},
                 {"lowercase", config.do_lower_case.value_or(true)}}},
               {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
               {"post_processor",
                {{"type", "BertProcessing"},
                 {"sep", Json::array({*config.sep, id_of(*config.sep)})},
                 {"cls", Json::array({*config.cls, id_of(*config.cls)})}}},
               {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
               {"model", {{"type", "WordPiece"}, {"unk_token", *config.unk}}}};
  add_behind(config, file, path.string(), file.rest["added_tokens"]);
  return hf_tokenizer(std::move(file), config, {{"vocab.txt", std::move(bytes)}}, path.string());
}

std::unique_ptr<Tokenizer> load_byte_level_bpe(const fs::path& path) {
  const fs::path merges_path = path.parent_path() / "merges.txt";
  std::string bytes = read_file(path, kMostTokenizerBytes), merges = read_file(merges_path, kMostTokenizerBytes);
  TokenizerConfig config = read_tokenizer_config(path.parent_path());
  TokenizerFile file;
  file.vocabulary = parse_vocabulary(bytes, path.string());
  file.has_merges = true;
  for_each_line(merges, [&](std::string_view line) {
    if (line.empty() || line.starts_with("#version")) return;
    file.merges.push_back(split_merge(line, merges_path.string()));
  });
  const auto known = [&](const char* token) {
    return id_in(file.vocabulary, token) ? std::optional<std::string>(token) : std::nullopt;
  };
  const bool frames = known("<s>") && known("</s>") && known("<mask>");
  const auto otherwise = [](std::optional<std::string>& token, const std::optional<std::string>& value) {
    if (!token) token = value;
  };
  if (frames) {
    otherwise(config.bos, "<s>");
    otherwise(config.eos, "</s>");
    otherwise(config.pad, known("<pad>"));
    otherwise(config.unk, known("<unk>"));
    otherwise(config.mask, "<mask>");
  } else {
    otherwise(config.bos, known("<|endoftext|>"));
    otherwise(config.eos, known("<|endoftext|>"));
    otherwise(config.unk, known("<|endoftext|>"));
  }
  complete(config, frames ? "RobertaTokenizer" : "GPT2Tokenizer");
  const bool prefix_space = config.add_prefix_space.value_or(false);
  const auto byte_level = [&](bool trims) {
    return Json{
        {"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", trims}, {"use_regex", true}};
  };
  Json post_processor = byte_level(false);
  if (frames) {
    post_processor = {{"type", "RobertaProcessing"},
                      {"sep", Json::array({"</s>", *id_in(file.vocabulary, "</s>")})},
                      {"cls", Json::array({"<s>", *id_in(file.vocabulary, "<s>")})},
                      {"trim_offsets", true},
                      {"add_prefix_space", prefix_space}};
  }
  file.rest = {{"added_tokens",
                special_tokens(file.vocabulary,
                               {config.bos, config.eos, config.pad, config.unk, config.mask, config.cls, config.sep},
                               config.mask, true)},
               {"pre_tokenizer", byte_level(true)},
               {"post_processor", post_processor},
               {"decoder", byte_level(true)},
               {"model", {{"type", "BPE"}}}};
  add_behind(config, file, path.string(), file.rest["added_tokens"]);
  return hf_tokenizer(std::move(file), config, {{"vocab.json", std::move(bytes)}, {"merges.txt", std::move(merges)}},
                      path.string());
}

}  // namespace transept
