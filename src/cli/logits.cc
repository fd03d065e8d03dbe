// transept logits: raw logits of a token sequence, or its last hidden states, in one pass or piece by piece through the
// cache.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "ckpt/npy.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "infer/decoder.h"

namespace transept {

void register_logits(Registry& registry) {
  struct Options {
    std::string model, tokens, decoder_tokens, npy, dtype = "f32";
    bool incremental = false, hidden = false;
    int64_t chunk = 1;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("logits", "raw logits of a token sequence, float32 [n, vocab]", [o, &globals] {
    if (o->dtype != "f32") throw InputError("--dtype", "\"" + o->dtype + "\" is not supported", "only f32 is");
    if (o->chunk < 1) throw InputError("--chunk", fmt::format("{} is out of range", o->chunk), "allowed is 1 or more");
    std::vector<int32_t> tokens = parse_tokens(o->tokens, "--tokens"), source;
    const LoadedModel loaded = load_model_argument(o->model);
    const Model& model = *loaded.model;
    const Topology topology = model.spec().topology;
    const bool crosses = topology == Topology::kEncoderDecoder;
    if (crosses == o->decoder_tokens.empty()) {
      throw crosses
          ? InputError("--decoder-tokens", "are missing",
                       "an encoder-decoder reads --tokens, and gives the logits of these")
          : InputError("--decoder-tokens", "are given, and the model has no encoder beside it", "leave them out");
    }
    if (o->incremental && topology == Topology::kEncoder)
      throw InputError("--incremental", "needs a decoder, and an encoder reads a text at once", "leave it out");
    model.check_input(tokens, static_cast<int64_t>(tokens.size()) - 1, "--tokens");
    if (crosses) {
      source = std::exchange(tokens, parse_tokens(o->decoder_tokens, "--decoder-tokens"));
      model.check_input(tokens, static_cast<int64_t>(tokens.size()) - 1, "--decoder-tokens");
    }
    const int64_t n = static_cast<int64_t>(tokens.size());
    const int64_t width = o->hidden ? model.spec().hidden_size : model.spec().vocab_size;
    std::vector<float> rows(static_cast<size_t>(n * width));
    ThreadPool pool = globals.pool();
    if (o->incremental) {
      Decoder decoder(model, pool, n, static_cast<int64_t>(source.size()));
      if (crosses) decoder.read_source(source);
      for (int64_t i = 0; i < n; i += o->chunk) {
        const size_t at = static_cast<size_t>(i), count = static_cast<size_t>(std::min(o->chunk, n - i));
        const auto chunk = std::span(tokens).subspan(at, count);
        const auto out = std::span(rows).subspan(at * static_cast<size_t>(width), count * static_cast<size_t>(width));
        o->hidden ? decoder.feed_hidden(chunk, out) : decoder.feed_all(chunk, out);
      }
    } else {
      o->hidden ? forward_hidden(model, pool, tokens, rows, source) : forward_logits(model, pool, tokens, rows, source);
    }
    const int64_t shape[] = {n, width};
    write_npy(o->npy, shape, rows);
    if (globals.json) {
      print_json({{"npy", o->npy}, {"shape", {n, width}}});
    } else {
      fmt::print("{}: float32 [{}, {}]\n", o->npy, n, width);
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--tokens", o->tokens, "ids, as 1,2,3; for an encoder-decoder, those that the encoder reads")
      ->required();
  sub->add_option("--decoder-tokens", o->decoder_tokens, "encoder-decoder: ids that the decoder reads");
  sub->add_option("--npy", o->npy, "file to write")->required();
  sub->add_flag("--hidden", o->hidden, "the last hidden states instead, [n, hidden]");
  sub->add_flag("--incremental", o->incremental, "feed --chunk tokens at a time through the cache");
  sub->add_option("--chunk", o->chunk, "tokens at a time with --incremental")->capture_default_str();
  sub->add_option("--dtype", o->dtype, "type that the model computes in")->capture_default_str();
}

}  // namespace transept
