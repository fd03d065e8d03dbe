// transept embed: a text as one vector.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "infer/decoder.h"

namespace transept {

void register_embed(Registry& registry) {
  struct Options {
    std::string model, text;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("embed", "a text as one vector: its hidden states, pooled", [o, &globals] {
    const LoadedModel loaded = load_model_argument(o->model);
    const Tokenizer& tokenizer = require_tokenizer(loaded, o->model);
    // As the stack that reads it was trained on.
    const std::vector<int32_t> tokens = loaded.model->spec().encoder_decoder()
                                            ? encode_source(tokenizer, o->text)
                                            : tokenizer.encode(o->text, Specials::kAdd);
    if (tokens.empty()) throw InputError("--text", "is empty", "give a text");
    const int64_t count = static_cast<int64_t>(tokens.size()), longest = loaded.model->spec().max_position_embeddings;
    if (count > longest) {
      throw InputError("--text",
                       fmt::format("has {} tokens, more than the model's longest context of {}", count, longest),
                       "shorten it");
    }
    ThreadPool pool = globals.pool();
    const std::vector<float> embedding = embed_sequence(*loaded.model, pool, tokens);
    if (globals.json) {
      print_json({{"embedding", embedding}, {"tokens", tokens}});
    } else {
      for (const float x : embedding) fmt::print("{}\n", x);
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--text", o->text, "text to read")->required();
}

}  // namespace transept
