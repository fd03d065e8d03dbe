// LLaMA and Mistral: pre-norm RMSNorm, rotary positions in half-split pairing, grouped-query attention, SwiGLU. Mistral
// adds a sliding window on every layer. Key names and defaults are those of the classes LlamaConfig and MistralConfig
// of Hugging Face transformers.
#include <nlohmann/json.hpp>

#include "convert/family.h"

namespace transept {
namespace {

// Theta of any spelling: "rope_parameters" (transformers 5), "rope_theta" with "rope_scaling" (4), "type" for
// "rope_type" (older).
double read_theta(ConfigReader& in) {
  double theta = in.number("rope_theta", 10000.0);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json& block = in.value(key);
    if (block.is_null()) continue;
    if (!block.is_object()) {
      in.problem(key, "is " + block.dump() + ", not an object");
      continue;
    }
    for (const auto& [name, v] : block.items()) {
      if (name == "rope_theta" && v.is_number()) {
        theta = v.get<double>();
      } else if (name == "rope_type" || name == "type") {
        if (v != "default")
          in.problem(std::string(key) + "." + name, "is " + v.dump() + ": scaled rotary positions are not supported",
                     "only \"default\" is supported");
      } else if (!v.is_null()) {
        in.problem(std::string(key) + "." + name, "is not understood and might change the numbers");
      }
    }
  }
  return theta;
}

ArchSpec read(const Json& config, const std::string& where, Problems& problems, bool mistral) {
  ConfigReader in(config, where, problems);
  ArchSpec spec;
  spec.name = mistral ? "mistral" : "llama";
  spec.vocab_size = in.integer("vocab_size");
  spec.hidden_size = in.integer("hidden_size");
  spec.max_position_embeddings = in.integer("max_position_embeddings", mistral ? 131072 : 2048);
  spec.tie_word_embeddings = in.boolean("tie_word_embeddings", false);
  spec.initializer_range = in.number("initializer_range", 0.02);
  spec.position = RopePosition{.theta = read_theta(in)};
  LayerSpec layer;
  layer.norm = RmsNormSpec{in.number("rms_norm_eps", 1e-6)};
  GqaSpec attention;
  attention.num_attention_heads = in.integer("num_attention_heads");
  attention.num_key_value_heads = in.integer("num_key_value_heads", mistral ? 8 : attention.num_attention_heads);
  attention.head_dim = in.integer("head_dim", 0);
  if (mistral) {
    attention.sliding_window = in.integer("sliding_window", 0);
  } else {
    attention.qkv_bias = attention.output_bias = in.boolean("attention_bias", false);
    layer.ffn.bias = in.boolean("mlp_bias", false);
    in.ignore({"pretraining_tp"});  // a way to compute the same products
  }
  layer.attention = attention;
  layer.ffn.intermediate_size = in.integer("intermediate_size");
  const std::string act = in.text("hidden_act", "silu");
  if (act == "gelu_pytorch_tanh" || act == "gelu_new") {
    layer.ffn.kind = FfnKind::kGeglu;
  } else if (act != "silu" && act != "swish") {
    in.problem("hidden_act", "\"" + act + "\" is not supported", "supported are silu and gelu_pytorch_tanh");
  }
  in.ignore({"attention_dropout"});  // acts in training only
  const int64_t layers = in.integer("num_hidden_layers");
  if (layers < 1 || layers > kMaxLayers)
    in.problem("num_hidden_layers", std::to_string(layers) + " is out of range",
               "allowed are 1 to " + std::to_string(kMaxLayers));
  in.finish();
  spec.final_norm = layer.norm;
  layer.position = spec.position;
  if (problems.empty()) spec.layers.assign(static_cast<size_t>(layers), layer);
  return spec;
}

ArchSpec read_llama(const Json& config, const std::string& where, Problems& problems) {
  return read(config, where, problems, false);
}
ArchSpec read_mistral(const Json& config, const std::string& where, Problems& problems) {
  return read(config, where, problems, true);
}

std::optional<Json> write(const ArchSpec& spec, std::string& reason, bool mistral) {
  const LayerSpec& layer = spec.layers.front();
  const auto no = [&](const char* why) {
    reason = why;
    return std::nullopt;
  };
  if (!uniform_layers(spec)) return no("layers differ");
  const auto* rope = std::get_if<RopePosition>(&spec.position);
  const auto* norm = std::get_if<RmsNormSpec>(&layer.norm);
  const auto* attention = std::get_if<GqaSpec>(&layer.attention);
  if (!rope) return no("position is not rope");
  if (!norm) return no("norm is not rmsnorm");
  if (!attention) return no("attention is not gqa");
  Json config = {
      {"architectures", {mistral ? "MistralForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", mistral ? "mistral" : "llama"},
      {"vocab_size", spec.vocab_size},
      {"hidden_size", spec.hidden_size},
      {"intermediate_size", layer.ffn.intermediate_size},
      {"num_hidden_layers", spec.layers.size()},
      {"num_attention_heads", attention->num_attention_heads},
      {"num_key_value_heads", attention->num_key_value_heads},
      {"head_dim", attention->head_dim},
      {"hidden_act", layer.ffn.kind == FfnKind::kSwiglu ? "silu" : "gelu_pytorch_tanh"},
      {"max_position_embeddings", spec.max_position_embeddings},
      {"rms_norm_eps", norm->eps},
      {"rope_theta", rope->theta},
      {"rope_parameters", {{"rope_theta", rope->theta}, {"rope_type", "default"}}},
      {"initializer_range", spec.initializer_range},
      {"tie_word_embeddings", spec.tie_word_embeddings},
      {"torch_dtype", "float32"},
  };
  if (mistral) {
    config["sliding_window"] = attention->sliding_window;
  } else {
    config["attention_bias"] = attention->qkv_bias;
    config["mlp_bias"] = layer.ffn.bias;
  }
  return config;
}

std::optional<Json> write_llama(const ArchSpec& spec, std::string& reason) { return write(spec, reason, false); }
std::optional<Json> write_mistral(const ArchSpec& spec, std::string& reason) { return write(spec, reason, true); }

std::vector<Piece> pieces(const ArchSpec& spec, const ParamDecl& decl) {
  const int64_t rows = decl.shape[0];
  if (decl.name == "embedding.weight") return {{"model.embed_tokens.weight", 0, rows}};
  if (decl.name == "final_norm.weight") return {{"model.norm.weight", 0, rows}};
  if (decl.name == "head.weight") return {{"lm_head.weight", 0, rows}};
  const std::string layer = "layers." + std::to_string(decl.layer) + ".", part = decl.name.substr(layer.size());
  const std::string to = "model." + layer, kind = part.substr(part.rfind('.'));  // ".weight" or ".bias"
  if (part.starts_with("attention.qkv")) {
    const auto& a = std::get<GqaSpec>(spec.layers[static_cast<size_t>(decl.layer)].attention);
    const int64_t q = a.query_width(), kv = a.kv_width();
    return {{to + "self_attn.q_proj" + kind, 0, q},
            {to + "self_attn.k_proj" + kind, q, kv},
            {to + "self_attn.v_proj" + kind, q + kv, kv}};
  }
  if (part.starts_with("ffn.gate_up"))
    return {{to + "mlp.gate_proj" + kind, 0, rows / 2}, {to + "mlp.up_proj" + kind, rows / 2, rows / 2}};
  if (part.starts_with("attention.output")) return {{to + "self_attn.o_proj" + kind, 0, rows}};
  if (part.starts_with("ffn.down")) return {{to + "mlp.down_proj" + kind, 0, rows}};
  if (part.starts_with("attention_norm")) return {{to + "input_layernorm" + kind, 0, rows}};
  return {{to + "post_attention_layernorm" + kind, 0, rows}};
}

bool ignorable(const std::string& name) { return name.ends_with("rotary_emb.inv_freq"); }

}  // namespace

const Family kLlamaFamily{"llama", read_llama, write_llama, pieces, ignorable, ""};
const Family kMistralFamily{"mistral", read_mistral, write_mistral, pieces, ignorable, ""};

}  // namespace transept
