// transept tokenize and detokenize: text to ids and back with a model's tokenizer.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"

namespace transept {
namespace {

std::unique_ptr<Tokenizer> tokenizer_of(const std::string& argument) {
  namespace fs = std::filesystem;
  if (argument == "byte") return byte_tokenizer();
  return load_tokenizer(has_tokenizer(fs::path(argument) / "checkpoint") ? fs::path(argument) / "checkpoint"
                                                                         : fs::path(argument));
}

constexpr const char* kModelHelp = "model folder, tokenizer file, or \"byte\"";

}  // namespace

void register_tokenize(Registry& registry) {
  struct Options {
    std::string model, text, file;
    bool no_special = false;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("tokenize", "token ids and pieces of a text", [o, &globals] {
    if (o->text.empty() == o->file.empty()) throw InputError("--text", "or --file must be given, and not both");
    const auto tokenizer = tokenizer_of(o->model);
    const std::string text = o->file.empty() ? o->text : read_file(o->file, uint64_t{1} << 30);
    const std::vector<int32_t> ids = tokenizer->encode(text, o->no_special ? Specials::kNone : Specials::kAdd);
    Json pieces = Json::array();
    for (const int32_t id : ids) pieces.push_back(tokenizer->piece(id));
    if (globals.json) {
      print_json({{"ids", ids}, {"pieces", pieces}});
    } else {
      fmt::print("{}\n", fmt::join(ids, ","));
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, kModelHelp)->required();
  sub->add_option("--text", o->text, "text to tokenize");
  sub->add_option("--file", o->file, "file to tokenize");
  sub->add_flag("--no-special", o->no_special, "add no special tokens and read none from the text");
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
