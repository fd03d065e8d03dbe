// transept embed: texts as vectors.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/text_list.h"
#include "convert/sentence_transformer.h"
#include "infer/embed.h"

namespace transept {
namespace {

// As the flags say, else as sentence-transformers' files do, else as the spec does.
EmbedOptions options_of(const LoadedModel& loaded, const std::string& pooling, bool normalize) {
  EmbedOptions options = embed_options(loaded.model->spec());
  const std::optional<SentencePooling> sentence = pooling.empty() ? read_sentence_pooling(loaded.folder) : std::nullopt;
  if (sentence) options = {sentence->pooling, false, sentence->normalize};
  if (!pooling.empty()) {
    options.pooler = false;
    if (pooling != "mean" && pooling != "cls")
      throw InputError("--pooling", "\"" + pooling + "\" is unknown", "known are mean and cls");
    options.pooling = pooling == "mean" ? Pooling::kMean : Pooling::kCls;
  }
  options.normalize |= normalize;
  return options;
}

// The ids of a text, as the stack that reads it was trained on.
std::vector<int32_t> ids_of(const LoadedModel& loaded, const std::string& text, const std::string& where) {
  const ArchSpec& spec = loaded.model->spec();
  const std::vector<int32_t> ids =
      spec.encoder_decoder() ? encode_source(*loaded.tokenizer, text) : loaded.tokenizer->encode(text, Specials::kAdd);
  if (text.empty() || ids.empty()) throw InputError(where, "is empty", "give a text");
  if (static_cast<int64_t>(ids.size()) > spec.max_position_embeddings) {
    throw InputError(where,
                     fmt::format("has {} tokens, more than the model's longest context of {}", ids.size(),
                                 spec.max_position_embeddings),
                     "shorten it");
  }
  return ids;
}

}  // namespace

void register_embed(Registry& registry) {
  struct Options {
    std::string model, text, texts, pooling;
    int64_t batch = 32;
    bool normalize = false;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("embed", "texts as vectors: their hidden states, pooled", [o, &globals] {
    const bool many = !o->texts.empty();
    const std::vector<std::string> texts = many ? read_texts(o->texts) : std::vector{o->text};
    if (many && !o->text.empty()) throw InputError("--text", "and --texts cannot both be given", "leave one out");
    const LoadedModel loaded = load_model_argument(o->model);
    require_tokenizer(loaded, o->model);
    const EmbedOptions options = options_of(loaded, o->pooling, o->normalize);
    ThreadPool pool = globals.pool();
    std::vector<std::vector<float>> embeddings;
    std::vector<std::vector<int32_t>> tokens;
    const auto start = std::chrono::steady_clock::now();
    for (size_t at = 0; at < texts.size(); at += static_cast<size_t>(o->batch)) {
      const size_t first = tokens.size(), end = std::min(texts.size(), at + static_cast<size_t>(o->batch));
      for (size_t i = at; i < end; ++i)
        tokens.push_back(ids_of(loaded, texts[i], many ? fmt::format("{}[{}]", o->texts, i) : "--text"));
      for (auto& e : embed_sequences(*loaded.model, pool, std::span(tokens).subspan(first), options))
        embeddings.push_back(std::move(e));
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!globals.json) {
      for (const std::vector<float>& e : embeddings) fmt::print("{}\n", fmt::join(e, many ? " " : "\n"));
      return 0;
    }
    Json document = many ? Json{{"embeddings", embeddings}, {"tokens", tokens}}
                         : Json{{"embedding", embeddings[0]}, {"tokens", tokens[0]}};
    document["timings"] = {{"load_seconds", loaded.load_seconds},
                           {"texts_per_second", static_cast<double>(texts.size()) / seconds}};
    many ? print_json_line(document) : print_json(document);
    return 0;
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--text", o->text, "text to read");
  sub->add_option("--texts", o->texts, "file with a JSON array of texts: with --json embeddings[], else a line each");
  sub->add_option("--batch", o->batch, "texts of one pass")->capture_default_str()->check(at_least_one());
  sub->add_option("--pooling", o->pooling,
                  "mean of the hidden states, or cls, the first of them, without the model's pooler (default: as the "
                  "folder says)");
  sub->add_flag("--normalize", o->normalize, "vectors of length 1 (default: as the folder says)");
}

}  // namespace transept
