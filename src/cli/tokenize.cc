// transept tokenize and detokenize: text to ids and back with a model's tokenizer.
#include <fmt/format.h>

#include <utility>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "text/chat_template.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

// The folder of a run stands for its checkpoint.
fs::path path_of(const std::string& argument) {
  const fs::path checkpoint = fs::path(argument) / "checkpoint";
  return has_tokenizer(checkpoint) ? checkpoint : fs::path(argument);
}

std::unique_ptr<Tokenizer> tokenizer_of(const std::string& argument) {
  return argument == "byte" ? byte_tokenizer() : load_tokenizer(path_of(argument));
}

// --chat: a conversation, by the model's own template.
struct ChatArguments {
  bool chat = false, no_generation_prompt = false, print = false;
  std::string messages, template_file, variables;

  void check() const {
    if (chat) return;
    for (const auto& [given, flag] : {std::pair(no_generation_prompt, "--no-generation-prompt"),
                                      {print, "--print"},
                                      {!messages.empty(), "--messages"},
                                      {!template_file.empty(), "--template"},
                                      {!variables.empty(), "--variables"}}) {
      if (given) throw InputError(flag, "applies to --chat only", "leave it out");
    }
  }

  std::string render(const std::string& model, const std::string& user_text) const {
    std::error_code ignored;
    const fs::path path = path_of(model), folder = fs::is_directory(path, ignored) ? path : path.parent_path();
    std::optional<ChatTemplate> t;
    if (template_file.empty())
      t = ChatTemplate::of_folder(folder);
    else
      t = ChatTemplate::of_file(template_file, folder);
    if (!t) throw InputError(model, "has no chat template", "give one with --template FILE");
    const Json conversation =
        messages.empty() ? Json::array({{{"role", "user"}, {"content", user_text}}}) : read_json(messages);
    return t->render(conversation, !no_generation_prompt,
                     variables.empty() ? Json::object() : parse_json(variables, "--variables"));
  }
};

constexpr const char* kModelHelp = "model folder, tokenizer file, or \"byte\"";

}  // namespace

void register_tokenize(Registry& registry) {
  struct Options {
    std::string model, text, file;
    bool no_special = false;
    ChatArguments chat;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("tokenize", "token ids and pieces of a text", [o, &globals] {
    if (!o->text.empty() + !o->file.empty() + !o->chat.messages.empty() != 1)
      throw InputError("--text", "or --file, or with --chat --messages, must be given, and one of them only");
    o->chat.check();
    if (o->chat.chat && o->no_special) throw InputError("--no-special", "does not apply to --chat", "leave it out");
    const auto tokenizer = tokenizer_of(o->model);
    std::string text = o->file.empty() ? o->text : read_file(o->file, uint64_t{1} << 30);
    if (o->chat.chat) text = o->chat.render(o->model, text);
    if (o->chat.print && !globals.json) {
      fmt::print("{}", text);
      return 0;
    }
    const Specials specials = o->chat.chat ? Specials::kRead : o->no_special ? Specials::kNone : Specials::kAdd;
    const std::vector<int32_t> ids = tokenizer->encode(text, specials);
    Json pieces = Json::array();
    for (const int32_t id : ids) pieces.push_back(tokenizer->piece(id));
    if (globals.json) {
      Json document = {{"ids", ids}, {"pieces", pieces}};
      if (o->chat.chat) document["text"] = text;
      print_json(document);
    } else {
      fmt::print("{}\n", fmt::join(ids, ","));
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, kModelHelp)->required();
  sub->add_option("--text", o->text, "text to tokenize");
  sub->add_option("--file", o->file, "file to tokenize");
  sub->add_flag("--no-special", o->no_special, "add no special tokens and read none from the text");
  sub->add_flag("--chat", o->chat.chat, "a conversation by the model's chat template; the text is what a user says");
  sub->add_option("--messages", o->chat.messages, "with --chat: JSON file of a list of {\"role\", \"content\"}");
  sub->add_flag("--no-generation-prompt", o->chat.no_generation_prompt, "with --chat: do not begin an answer");
  sub->add_flag("--print", o->chat.print, "with --chat: the rendered text instead of its ids");
  sub->add_option("--template", o->chat.template_file, "with --chat: template to use instead of the model's own");
  sub->add_option("--variables", o->chat.variables,
                  "with --chat: JSON object of what else the template may know, such as tools");
}

void register_detokenize(Registry& registry) {
  struct Options {
    std::string model, tokens;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("detokenize", "text of token ids", [o, &globals] {
    const auto tokenizer = tokenizer_of(o->model);
    const std::string text = tokenizer->decode(parse_tokens(o->tokens, "--tokens"));
    if (globals.json) {
      print_json({{"text", text}});
    } else {
      fmt::print("{}\n", text);
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, kModelHelp)->required();
  sub->add_option("--tokens", o->tokens, "ids, as 1,2,3")->required();
}

}  // namespace transept
