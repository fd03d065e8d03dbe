#include "text/chat_template.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/problem.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

constexpr const char* kKey = "chat_template";
constexpr uint64_t kMaxTemplateBytes = uint64_t{4} << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// An object, empty when there is no such file.
Json read_object(const fs::path& path) {
  if (!is_there(path)) return Json::object();
  Json document = read_json(path);
  if (!document.is_object()) throw InputError(path.string(), "is no JSON object");
  return document;
}

// A token is named by its text, or by an object that holds it.
std::optional<std::string> token_text(const Json& document, const std::string& key, const fs::path& path) {
  const auto entry = document.find(key);
  if (entry == document.end() || entry->is_null()) return std::nullopt;
  const Json* text = &*entry;
  if (entry->is_object() && entry->contains("content")) text = &entry->at("content");
  if (!text->is_string()) throw InputError(path.string() + ": " + key, "names no token", "write its text");
  return text->get<std::string>();
}

struct Sources {
  std::optional<std::string> plain, with_tools;
};

// The value of "chat_template".
Sources sources_of(const Json& value, const std::string& where) {
  if (value.is_string()) return {value.get<std::string>(), std::nullopt};
  if (!value.is_array()) throw InputError(where, "is neither a template nor a list of them");
  Sources sources;
  for (const Json& entry : value) {
    const bool named = entry.is_object() && entry.contains("name") && entry.at("name").is_string() &&
                       entry.contains("template") && entry.at("template").is_string();
    if (!named) throw InputError(where, "holds an entry that is not {\"name\": ..., \"template\": ...}");
    const std::string& name = entry.at("name").get_ref<const std::string&>();
    if (name == "default") sources.plain = entry.at("template").get<std::string>();
    if (name == "tool_use") sources.with_tools = entry.at("template").get<std::string>();
  }
  if (!sources.plain) throw InputError(where, "holds no template with the name \"default\"");
  return sources;
}

void check_messages(const Json& messages) {
  Problems problems;
  if (!messages.is_array())
    throw InputError("messages", "are no list", "write [{\"role\": ..., \"content\": ...}, ...]");
  if (messages.empty()) throw InputError("messages", "are empty", "give at least one");
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string where = "messages[" + std::to_string(i) + "]";
    const Json& message = messages[i];
    if (!message.is_object()) {
      problems.push_back({where, "is no object", "write {\"role\": ..., \"content\": ...}"});
      continue;
    }
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string())
      problems.push_back({where + ".role", "is no text", "write system, user, assistant or tool"});
    const auto content = message.find("content");
    if (content != message.end() && !content->is_string() && !content->is_array() && !content->is_null())
      problems.push_back({where + ".content", "is neither a text nor a list of parts", ""});
  }
  throw_if_any(std::move(problems));
}

// What transformers does before it renders: keys without a value are left out, and what a model thought goes by every
// name that templates know it by.
Json prepared(const Json& messages) {
  Json out = Json::array();
  for (const Json& message : messages) {
    Json kept = Json::object();
    for (const auto& [key, value] : message.items()) {
      if (!value.is_null()) kept[key] = value;
    }
    for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
      if (!kept.contains(key)) continue;
      const Json thought = kept[key];
      Json named = {{"thinking", thought}};
      named.update(kept);
      named["reasoning_content"] = thought;
      kept = std::move(named);
      break;
    }
    out.push_back(std::move(kept));
  }
  return out;
}

}  // namespace

ChatTemplate::ChatTemplate(JinjaTemplate plain, std::optional<JinjaTemplate> with_tools, SpecialTokens special_tokens)
    : plain_(std::move(plain)), with_tools_(std::move(with_tools)), special_tokens_(std::move(special_tokens)) {}

ChatTemplate::SpecialTokens ChatTemplate::special_tokens_of(const fs::path& folder) {
  SpecialTokens tokens;
  const fs::path files[] = {folder / "tokenizer_config.json", folder / "special_tokens_map.json"};
  const Json documents[] = {read_object(files[0]), read_object(files[1])};
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    std::optional<std::string> text = token_text(documents[0], key, files[0]);
    if (!text) text = token_text(documents[1], key, files[1]);
    if (text) tokens.emplace_back(key, *text);
  }
  return tokens;
}

ChatTemplate ChatTemplate::of_file(const fs::path& file, const fs::path& folder) {
  JinjaTemplate parsed = JinjaTemplate::parse(read_file(file, kMaxTemplateBytes), file.string());
  return ChatTemplate(std::move(parsed), std::nullopt, special_tokens_of(folder));
}

std::optional<ChatTemplate> ChatTemplate::of_folder(const fs::path& folder) {
  if (is_there(folder / "chat_template.jinja")) return of_file(folder / "chat_template.jinja", folder);
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    const Json document = read_object(folder / name);
    const auto value = document.find(kKey);
    if (value == document.end() || value->is_null()) continue;
    const std::string where = (folder / name).string() + ": " + kKey;
    const Sources sources = sources_of(*value, where);
    std::optional<JinjaTemplate> with_tools;
    if (sources.with_tools) with_tools = JinjaTemplate::parse(*sources.with_tools, where + " \"tool_use\"");
    return ChatTemplate(JinjaTemplate::parse(*sources.plain, where), std::move(with_tools), special_tokens_of(folder));
  }
  return std::nullopt;
}

std::string ChatTemplate::render(const Json& messages, bool add_generation_prompt, const Json& more) const {
  check_messages(messages);
  if (!more.is_object()) throw InputError("variables", "of a chat template are no JSON object");
  Json variables = Json::object();
  for (const auto& [name, token] : special_tokens_) variables[name] = token;
  variables["tools"] = nullptr;
  variables["documents"] = nullptr;
  for (const auto& [key, value] : more.items()) variables[key] = value;
  const bool tools = !variables["tools"].is_null();
  variables["messages"] = prepared(messages);
  variables["add_generation_prompt"] = add_generation_prompt;
  return (tools && with_tools_ ? *with_tools_ : plain_).render(variables);
}

}  // namespace transept
