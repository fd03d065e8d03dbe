// The chat template of a model folder: a conversation as the text that the model was trained to answer. As Hugging
// Face's transformers 5 renders it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/jinja/template.h"

namespace transept {

class ChatTemplate {
 public:
  // From chat_template.jinja, else "chat_template" of tokenizer_config.json (a template, or a list of {name, template}
  // of which "default" is meant, and "tool_use" where there are tools), else chat_template.json. Nothing when the
  // folder has none of them; InputError when it is malformed.
  static std::optional<ChatTemplate> of_folder(const std::filesystem::path& folder);
  // From a file, with the special tokens of the folder, where it has any.
  static ChatTemplate of_file(const std::filesystem::path& file, const std::filesystem::path& folder);

  // `messages`: a list of objects with a role. `add_generation_prompt`: the text ends where the answer begins. `more`:
  // an object of what else the template may know, such as tools; it goes before bos_token and the other special tokens.
  // The text holds the special tokens: encode it with Specials::kRead, which adds none. InputError lists what is wrong
  // with the messages, or says why the template refuses them.
  std::string render(const Json& messages, bool add_generation_prompt, const Json& more) const;

 private:
  using SpecialTokens = std::vector<std::pair<std::string, std::string>>;  // bos_token and so on, and their texts
  static SpecialTokens special_tokens_of(const std::filesystem::path& folder);
  ChatTemplate(JinjaTemplate plain, std::optional<JinjaTemplate> with_tools, SpecialTokens special_tokens);
  JinjaTemplate plain_;
  std::optional<JinjaTemplate> with_tools_;
  SpecialTokens special_tokens_;
};

}  // namespace transept
