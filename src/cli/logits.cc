// transept logits: raw logits of a token sequence, in one pass or token by token through the cache.
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
    std::string model, tokens, npy, dtype = "f32";
    bool incremental = false;
    int64_t chunk = 1;
  };
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add("logits", "raw logits of a token sequence, float32 [n, vocab]", [o, &globals] {
    if (o->dtype != "f32") throw InputError("--dtype", "\"" + o->dtype + "\" is not supported", "only f32 is");
    if (o->chunk < 1) throw InputError("--chunk", fmt::format("{} is out of range", o->chunk), "allowed is 1 or more");
    const std::vector<int32_t> tokens = parse_tokens(o->tokens, "--tokens");
    const LoadedModel loaded = load_model_argument(o->model);
    loaded.model->check_input(tokens, static_cast<int64_t>(tokens.size()) - 1, "--tokens");
    const int64_t n = static_cast<int64_t>(tokens.size()), vocab = loaded.model->spec().vocab_size;
    std::vector<float> logits(static_cast<size_t>(n * vocab));
    ThreadPool pool = globals.pool();
    if (o->incremental) {
      Decoder decoder(*loaded.model, pool, n);
      for (int64_t i = 0; i < n; i += o->chunk) {
        const size_t at = static_cast<size_t>(i), count = static_cast<size_t>(std::min(o->chunk, n - i));
        decoder.feed_all(
            std::span(tokens).subspan(at, count),
            std::span(logits).subspan(at * static_cast<size_t>(vocab), count * static_cast<size_t>(vocab)));
      }
    } else {
      forward_logits(*loaded.model, pool, tokens, logits);
    }
    const int64_t shape[] = {n, vocab};
    write_npy(o->npy, shape, logits);
    if (globals.json) {
      print_json({{"npy", o->npy}, {"shape", {n, vocab}}});
    } else {
      fmt::print("{}: float32 [{}, {}]\n", o->npy, n, vocab);
    }
    return 0;
  });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--tokens", o->tokens, "ids, as 1,2,3")->required();
  sub->add_option("--npy", o->npy, "file to write")->required();
  sub->add_flag("--incremental", o->incremental, "feed --chunk tokens at a time through the cache");
  sub->add_option("--chunk", o->chunk, "tokens at a time with --incremental")->capture_default_str();
  sub->add_option("--dtype", o->dtype, "type that the model computes in")->capture_default_str();
}

}  // namespace transept
