// transept eval: loss and perplexity of a model on text.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "data/corpus.h"
#include "train/evaluate.h"

namespace transept {

void register_eval(Registry& registry) {
  struct Options {
    std::string model;
    std::vector<std::string> data;
    std::string tokens;
    int64_t context = 0, stride = 0;
    bool by_position = false, lines = false;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("eval", "perplexity on text; each token is scored once", [o, &globals] {
    Problems problems;
    if (o->data.empty() == o->tokens.empty())
      problems.push_back({"--data", "or --tokens must be given, and not both", ""});
    throw_if_any(std::move(problems));
    const LoadedModel loaded = load_model_argument(o->model);
    EvalOptions options;
    options.context = o->context > 0 ? o->context : loaded.model->spec().max_position_embeddings;
    options.stride = o->stride;
    const Unit unit = o->lines ? Unit::kLines : Unit::kStream;
    ThreadPool pool = globals.pool();
    Arena arena;
    const OpContext op{pool, arena, nullptr};
    EvalResult r;
    if (!o->tokens.empty()) {
      const std::vector<int32_t> ids = parse_tokens(o->tokens, "--tokens");
      loaded.model->check_input(ids, 0, "--tokens");
      TokenArray array(loaded.model->spec().vocab_size);
      array.append(ids);
      r = evaluate(*loaded.model, op, Split(array, 0, array.size(), Unit::kStream, {}, 0), loaded.tokenizer.get(),
                   options);
    } else {
      const Tokenizer& tokenizer = require_tokenizer(loaded, o->model);
      const std::vector<std::filesystem::path> paths(o->data.begin(), o->data.end());
      const Corpus corpus(read_texts(paths), tokenizer, unit);
      r = evaluate(*loaded.model, op, corpus.all(), &tokenizer, options);
    }
    const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
    if (globals.json) {
      Json out{{"loss", number(r.loss)},
               {"perplexity", number(r.perplexity())},
               {"bits_per_byte", number(r.bits_per_byte())},
               {"tokens_scored", r.tokens_scored},
               {"context", options.context},
               {"stride", o->stride > 0 ? o->stride : options.context}};
      if (o->by_position) {
        Json losses = Json::array();
        for (const double x : r.loss_by_position) losses.push_back(number(x));
        out["loss_by_position"] = losses;
        out["tokens_by_position"] = r.tokens_by_position;
      }
      print_json(out);
    } else {
      fmt::print("loss {:.4f} nats a token, perplexity {:.3f}, {:.4f} bits a byte, {} tokens scored\n", r.loss,
                 r.perplexity(), r.bits_per_byte(), r.tokens_scored);
      if (o->by_position) {
        for (size_t i = 0; i < r.loss_by_position.size(); ++i)
          fmt::print("{:>7} {:.4f} ({} tokens)\n", i, r.loss_by_position[i], r.tokens_by_position[i]);
      }
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--data", o->data, "text files and folders");
  sub->add_option("--tokens", o->tokens, "ids to score instead of text, as 1,2,3");
  sub->add_option("--context", o->context, "tokens of a window (default: the model's longest)")->check(at_least_one());
  sub->add_option(
         "--stride", o->stride,
         "tokens between windows: less than the context slides, the context itself (default) gives disjoint windows")
      ->check(at_least_one());
  sub->add_flag("--by-position", o->by_position, "the loss at each position of the window as well");
  sub->add_flag("--lines", o->lines, "every line is a document of its own");
}

}  // namespace transept
