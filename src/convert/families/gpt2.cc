// GPT-2: pre-norm LayerNorm, learned positions, multi-head attention and tanh-GELU, biases everywhere. Its Conv1D
// layers store matrices as [in, out]. Key names and defaults are those of the class GPT2Config of Hugging Face
// transformers.
#include <nlohmann/json.hpp>

#include "convert/family.h"

namespace transept {
namespace {

struct Act {
  const char* name;
  FfnKind kind;
};
constexpr Act kActs[] = {{"gelu_new", FfnKind::kGeluTanh},
                         {"gelu_pytorch_tanh", FfnKind::kGeluTanh},
                         {"gelu", FfnKind::kGelu},
                         {"relu", FfnKind::kRelu}};

ArchSpec read(const Json& config, const std::string& where, Problems& problems) {
  ConfigReader in(config, where, problems);
  ArchSpec spec;
  spec.name = "gpt2";
  spec.vocab_size = in.integer("vocab_size", 50257);
  spec.hidden_size = in.integer("n_embd", 768);
  spec.max_position_embeddings = in.integer("n_positions", 1024);
  spec.tie_word_embeddings = in.boolean("tie_word_embeddings", true);
  spec.initializer_range = in.number("initializer_range", 0.02);
  spec.dropout = in.number("resid_pdrop", 0.1);
  spec.position = LearnedPosition{};
  LayerSpec layer;
  layer.norm = LayerNormSpec{in.number("layer_norm_epsilon", 1e-5), true};
  GqaSpec attention;
  attention.num_attention_heads = in.integer("n_head", 12);
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.qkv_bias = attention.output_bias = true;
  if (!in.boolean("scale_attn_weights", true)) attention.scale = 1;
  in.require("scale_attn_by_inverse_layer_idx", false, "scores are scaled by the layer's index");
  in.require("add_cross_attention", false, "layers attend to an encoder");
  layer.attention = attention;
  layer.ffn.bias = true;
  layer.ffn.intermediate_size =
      in.integer("n_inner", spec.hidden_size > 0 && spec.hidden_size < (int64_t{1} << 40) ? 4 * spec.hidden_size : 0);
  const std::string act = in.text("activation_function", "gelu_new");
  bool found = false;
  for (const Act& a : kActs) {
    if (act == a.name) layer.ffn.kind = a.kind, found = true;
  }
  if (!found)
    in.problem("activation_function", "\"" + act + "\" is not supported",
               "supported are gelu_new, gelu_pytorch_tanh, gelu and relu");
  // Dropout elsewhere and task heads act in training or outside the language model; upcasting does not change float32.
  in.ignore({"attn_pdrop", "embd_pdrop", "n_ctx", "reorder_and_upcast_attn", "summary_activation",
             "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
             "task_specific_params"});
  const int64_t layers = in.integer("n_layer", 12);
  if (layers < 1 || layers > kMaxLayers)
    in.problem("n_layer", std::to_string(layers) + " is out of range",
               "allowed are 1 to " + std::to_string(kMaxLayers));
  in.finish();
  spec.final_norm = layer.norm;
  layer.position = spec.position;
  if (problems.empty()) spec.layers.assign(static_cast<size_t>(layers), layer);
  return spec;
}

std::optional<Json> write(const ArchSpec& spec, std::string& reason) {
  const LayerSpec& layer = spec.layers.front();
  const auto no = [&](const char* why) {
    reason = why;
    return std::nullopt;
  };
  if (!uniform_layers(spec)) return no("layers differ");
  const auto* norm = std::get_if<LayerNormSpec>(&layer.norm);
  const auto* attention = std::get_if<GqaSpec>(&layer.attention);
  if (!norm) return no("norm is not layernorm");
  if (!attention) return no("attention is not gqa");
  const char* act = nullptr;
  for (const Act& a : kActs) {
    if (!act && a.kind == layer.ffn.kind) act = a.name;
  }
  if (!act) return no("ffn is of another kind");
  return Json{
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"vocab_size", spec.vocab_size},
      {"n_embd", spec.hidden_size},
      {"n_inner", layer.ffn.intermediate_size},
      {"n_layer", spec.layers.size()},
      {"n_head", attention->num_attention_heads},
      {"n_positions", spec.max_position_embeddings},
      {"activation_function", act},
      {"layer_norm_epsilon", norm->eps},
      {"scale_attn_weights", attention->scale == 0},
      {"initializer_range", spec.initializer_range},
      {"resid_pdrop", spec.dropout},
      {"embd_pdrop", spec.dropout},
      {"attn_pdrop", 0.0},
      {"tie_word_embeddings", spec.tie_word_embeddings},
      {"torch_dtype", "float32"},
  };
}

std::vector<Piece> pieces(const ArchSpec&, const ParamDecl& decl) {
  const int64_t rows = decl.shape[0];
  if (decl.name == "embedding.weight") return {{"transformer.wte.weight", 0, rows}};
  if (decl.name == "position.weight") return {{"transformer.wpe.weight", 0, rows}};
  if (decl.name == "head.weight") return {{"lm_head.weight", 0, rows}};
  if (decl.layer < 0) return {{"transformer.ln_f" + decl.name.substr(decl.name.rfind('.')), 0, rows}};
  const std::string layer = "layers." + std::to_string(decl.layer) + ".", part = decl.name.substr(layer.size());
  const std::string to = "transformer.h." + std::to_string(decl.layer) + ".", kind = part.substr(part.rfind('.'));
  const bool matrix = decl.shape.size() == 2;
  if (part.starts_with("attention.qkv")) return {{to + "attn.c_attn" + kind, 0, rows, matrix}};
  if (part.starts_with("attention.output")) return {{to + "attn.c_proj" + kind, 0, rows, matrix}};
  if (part.starts_with("ffn.up")) return {{to + "mlp.c_fc" + kind, 0, rows, matrix}};
  if (part.starts_with("ffn.down")) return {{to + "mlp.c_proj" + kind, 0, rows, matrix}};
  return {{to + (part.starts_with("attention_norm") ? "ln_1" : "ln_2") + kind, 0, rows}};
}

// The causal mask, which old checkpoints store beside the weights.
bool ignorable(const std::string& name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

}  // namespace

const Family kGpt2Family{"gpt2", read, write, pieces, ignorable, "transformer."};

}  // namespace transept
