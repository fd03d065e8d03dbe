// transept tokenize and detokenize: text to ids and back with a model's tokenizer.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"

namespace transept {
namespace {

constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;

std::unique_ptr<Tokenizer> tokenizer_of(const std::string& argument) {
  namespace fs = std::filesystem;
  if (argument == "byte") return byte_tokenizer();
  auto tokenizer = load_tokenizer(has_tokenizer(fs::path(argument) / "checkpoint") ? fs::path(argument) / "checkpoint"
                                                                                   : fs::path(argument));
  for (const std::string& note : tokenizer->notes()) fmt::print(stderr, "note: {}\n", note);
  return tokenizer;
}

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

// A file that holds a JSON array of strings.
std::vector<std::string> read_texts(const std::string& path) {
  const Json json = read_json(path, kMostTextBytes);
  std::vector<std::string> texts;
  if (json.is_array()) {
    for (const Json& text : json) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
  }
  if (!json.is_array() || texts.size() != json.size())
    throw InputError(path, "is no JSON array of texts", "write it as [\"first\", \"second\"]");
  return texts;
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
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("tokenize", "token ids and pieces of a text", [o, &globals] {
    if (o->text_given->count() + !o->file.empty() + !o->texts.empty() != 1)
      throw InputError("--text", "or --file, or --texts must be given, and only one of them");
    const auto tokenizer = tokenizer_of(o->model);
    const Specials specials = o->no_special ? Specials::kNone : Specials::kAdd;
    const std::vector<std::string> texts =
        o->texts.empty() ? std::vector{o->file.empty() ? o->text : read_file(o->file, kMostTextBytes)}
                         : read_texts(o->texts);
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
    for (const std::string& text : texts) all.push_back(tokens_of(*tokenizer, text, specials, o->offsets));
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
