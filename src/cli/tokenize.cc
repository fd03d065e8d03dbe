// transept tokenize and detokenize: text to ids and back with a model's tokenizer.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/text_list.h"
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
  if (argument == "byte") return byte_tokenizer();
  auto tokenizer = load_tokenizer(path_of(argument));
  for (const std::string& note : tokenizer->notes()) fmt::print(stderr, "note: {}\n", note);
  return tokenizer;
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

constexpr const char* kModelHelp =
    "model folder; its tokenizer.json, tokenizer.model, vocab.json (with merges.txt) or vocab.txt; or \"byte\"";

// ids, pieces, and offsets where asked for.
Json tokens_of(const Tokenizer& tokenizer, std::string_view text, Specials specials, bool offsets) {
  Json tokens;
  Encoding encoding;
  if (offsets) {
    encoding = tokenizer.encode_with_offsets(text, specials);
  } else {
    encoding.ids = tokenizer.encode(text, specials);
  }
  tokens["ids"] = encoding.ids;
  Json pieces = Json::array();
  for (const int32_t id : encoding.ids) pieces.push_back(tokenizer.piece(id));
  tokens["pieces"] = std::move(pieces);
  if (offsets) {
    Json ranges = Json::array();
    for (const ByteRange& range : encoding.offsets) ranges.push_back({range.begin, range.end});
    tokens["offsets"] = std::move(ranges);
  }
  return tokens;
}

struct Counts {
  std::vector<size_t> tokens;  // of each text
  double seconds = 0;
};
Counts count_tokens(const Tokenizer& tokenizer, const std::vector<std::string>& texts, Specials specials) {
  Counts counts;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& text : texts) counts.tokens.push_back(tokenizer.encode(text, specials).size());
  counts.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return counts;
}

std::string line_of(const Json& tokens) {
  std::string line = fmt::format("{}", fmt::join(tokens["ids"].get<std::vector<int32_t>>(), ","));
  if (tokens.contains("offsets")) {
    line += '\t';
    const char* comma = "";
    for (const Json& range : tokens["offsets"]) {
      line += fmt::format("{}{}-{}", comma, range[0].get<size_t>(), range[1].get<size_t>());
      comma = ",";
    }
  }
  return line;
}

}  // namespace

void register_tokenize(Registry& registry) {
  struct Options {
    std::string model, text, file, texts;
    bool no_special = false, offsets = false, count = false;
    CLI::Option* text_given = nullptr;
    ChatArguments chat;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("tokenize", "token ids and pieces of a text", [o, &globals] {
    if (o->text_given->count() + !o->file.empty() + !o->texts.empty() + !o->chat.messages.empty() != 1)
      throw InputError("--text",
                       "or --file, or --texts, or with --chat --messages, must be given, and only one of them");
    o->chat.check();
    if (o->chat.chat && o->no_special) throw InputError("--no-special", "does not apply to --chat", "leave it out");
    const auto tokenizer = tokenizer_of(o->model);
    const Specials specials = o->chat.chat ? Specials::kRead : o->no_special ? Specials::kNone : Specials::kAdd;
    std::vector<std::string> texts = o->texts.empty()
                                         ? std::vector{o->file.empty() ? o->text : read_file(o->file, kMostTextBytes)}
                                         : read_texts(o->texts);
    if (o->chat.chat) {
      for (std::string& text : texts) text = o->chat.render(o->model, text);
    }
    if (o->chat.print && !globals.json) {
      for (const std::string& text : texts) fmt::print("{}", text);
      return 0;
    }
    if (o->count) {
      const Counts counts = count_tokens(*tokenizer, texts, specials);
      if (globals.json) {
        print_json_line({{"counts", counts.tokens}, {"timings", {{"encode_seconds", counts.seconds}}}});
      } else {
        fmt::print("{}\n", fmt::join(counts.tokens, "\n"));
      }
      return 0;
    }
    Json all = Json::array();
    for (const std::string& text : texts) {
      all.push_back(tokens_of(*tokenizer, text, specials, o->offsets));
      if (o->chat.chat) all.back()["text"] = text;
    }
    if (!globals.json) {
      for (const Json& tokens : all) fmt::print("{}\n", line_of(tokens));
    } else if (o->texts.empty()) {
      print_json(all[0]);
    } else {
      print_json_line({{"texts", all}});
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, kModelHelp)->required();
  o->text_given = sub->add_option("--text", o->text, "text to tokenize");
  sub->add_option("--file", o->file, "file to tokenize, as one text");
  sub->add_option("--texts", o->texts,
                  "file with a JSON array of texts; with --json the answer is texts[].{ids,pieces}");
  sub->add_flag("--no-special", o->no_special, "add no special tokens and read none from the text");
  sub->add_flag("--count", o->count, "only how many tokens each text has, and (--json) the time that it took");
  sub->add_flag("--offsets", o->offsets, "also where each token stands in the text, in bytes: begin, end");
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
    const std::string text = tokenizer->decode_text(parse_tokens(o->tokens, "--tokens"));
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
