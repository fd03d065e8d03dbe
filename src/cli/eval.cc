// transept eval: loss and perplexity of a model on text.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "data/pairs.h"
#include "train/evaluate.h"

namespace transept {

void register_eval(Registry& registry) {
  struct Options {
    std::string model;
    std::vector<std::string> data;
    std::string tokens;
    std::optional<Objective> objective;
    bool separate_documents = false, permute_sentences = false;
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
    const std::vector<std::filesystem::path> paths(o->data.begin(), o->data.end());
    const Stacks stacks = stacks_of(loaded.model->spec().topology);
    ExampleOptions& examples = options.examples;
    examples = {o->objective.value_or(default_objective(stacks, are_pairs(paths))), o->separate_documents,
                o->permute_sentences};
    check_objective(examples.objective, stacks);
    const Unit unit = unit_of(examples, o->lines);
    ThreadPool pool = globals.pool();
    Arena arena;
    const OpContext op{pool, arena, nullptr};
    EvalResult r;
    if (!o->tokens.empty()) {
      const std::vector<int32_t> ids = parse_tokens(o->tokens, "--tokens");
      loaded.model->check_input(ids, 0, "--tokens");
      if (examples.objective != Objective::kCausal || examples.separate_documents)
        throw InputError("--tokens", "can be scored by the objective causal only", "give --data");
      TokenArray array(loaded.model->spec().vocab_size);
      array.append(ids);
      r = evaluate(*loaded.model, op, Split(array, 0, array.size(), Unit::kStream, {}), loaded.tokenizer.get(),
                   options);
    } else {
      const Tokenizer& tokenizer = require_tokenizer(loaded, o->model);
      const Vocabulary vocabulary = vocabulary_of(tokenizer);
      options.vocabulary = &vocabulary;
      const Corpus corpus(read_texts(paths), tokenizer, unit, options.context);
      r = evaluate(*loaded.model, op, corpus.all(), &tokenizer, options);
    }
    const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
    if (globals.json) {
      Json out{{"loss", number(r.loss)},
               {"perplexity", number(r.perplexity())},
               {"bits_per_byte", number(r.bits_per_byte())},
               {"tokens_scored", r.tokens_scored},
               {"objective", objective_name(examples.objective)},
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
      const std::string bits =
          std::isfinite(r.bits_per_byte()) ? fmt::format("{:.4f} bits a byte, ", r.bits_per_byte()) : "";
      fmt::print("loss {:.4f} nats a token, perplexity {:.3f}, {}{} tokens scored\n", r.loss, r.perplexity(), bits,
                 r.tokens_scored);
      if (o->by_position) {
        for (size_t i = 0; i < r.loss_by_position.size(); ++i)
          fmt::print("{:>7} {:.4f} ({} tokens)\n", i, r.loss_by_position[i], r.tokens_by_position[i]);
      }
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option_function<std::string>(
      "--objective", [o](const std::string& text) { o->objective = parse_objective(text); },
      "causal, mlm, span, denoise or seq2seq (default: as in training)");
  sub->add_flag("--separate-documents", o->separate_documents, "files that share a window do not see each other");
  sub->add_flag("--permute-sentences", o->permute_sentences, "denoise: sentences come in random order as well");
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
