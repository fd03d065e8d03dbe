#include "study/model_io.h"

#include <nlohmann/json.hpp>

#include "convert/model_folder.h"

namespace transept {
namespace {

// What a config.json says of the vocabulary's special tokens.
Json token_ids(const Tokenizer& tokenizer, const ArchSpec& spec) {
  Json ids = Json::object();
  const auto add = [&](const char* key, std::optional<int32_t> id) {
    if (id) ids[key] = *id;
  };
  add("bos_token_id", tokenizer.bos());
  add("eos_token_id", tokenizer.eos());
  add("pad_token_id", tokenizer.pad());
  if (spec.encoder_decoder()) add("decoder_start_token_id", decoder_start(tokenizer));
  return ids;
}

}  // namespace

ModelIo folder_io(const Tokenizer& tokenizer) {
  return {.save =
              [&tokenizer](const Model& model, const std::filesystem::path& folder) {
                save_model(model, folder, {.token_ids = token_ids(tokenizer, model.spec())});
                tokenizer.save(folder);
              },
          .load = [](Model& model, const std::filesystem::path& folder) { load_weights(model, folder); }};
}

}  // namespace transept
