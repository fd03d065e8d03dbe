#include "equivalence/hashed_model.h"

#include <array>
#include <cmath>
#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace transept {
namespace {

// How the rows of one of our parameters lie in theirs.
enum class Layout {
  kStacked,     // one tensor after another; three are queries, keys and values, others of equal height
  kTransposed,  // [in, out] (the Conv1D of GPT-2)
  kByHead,      // for each head its query, key and value rows (BLOOM, GPT-NeoX)
  kFromRow2,    // two rows stand before that no token reads (BART's positions)
  kMatrix,      // a vector of ours is a matrix of theirs, head by head, so it isn't filled about 1 (Cohere)
};

// '#' is the layer and '*' is "weight" or "bias"; names with '@' are repeated for every expert; a parameter takes the
// first row that matches.
struct Row {
  std::string_view ours, theirs;
  Layout layout = Layout::kStacked;
};
using Table = std::vector<Row>;

Table operator+(Table a, const Table& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Table kLlama = {
    {"embedding.weight", "model.embed_tokens.weight"},
    {"layers.#.attention.qkv.*",
     "model.layers.#.self_attn.q_proj.* model.layers.#.self_attn.k_proj.* model.layers.#.self_attn.v_proj.*"},
    {"layers.#.attention.q_norm.weight", "model.layers.#.self_attn.q_norm.weight"},
    {"layers.#.attention.k_norm.weight", "model.layers.#.self_attn.k_norm.weight"},
    {"layers.#.attention.output.*", "model.layers.#.self_attn.o_proj.*"},
    {"layers.#.attention_norm.weight", "model.layers.#.input_layernorm.weight"},
    {"layers.#.ffn_norm.weight", "model.layers.#.post_attention_layernorm.weight"},
    {"layers.#.ffn.gate_up.weight", "model.layers.#.mlp.gate_proj.weight model.layers.#.mlp.up_proj.weight"},
    {"layers.#.ffn.down.weight", "model.layers.#.mlp.down_proj.weight"},
    {"final_norm.weight", "model.norm.weight"},
    {"head.weight", "lm_head.weight"},
};

const Table kSandwich = Table{{"layers.#.attention_post_norm.weight", "model.layers.#.post_attention_layernorm.weight"},
                              {"layers.#.ffn_norm.weight", "model.layers.#.pre_feedforward_layernorm.weight"},
                              {"layers.#.ffn_post_norm.weight", "model.layers.#.post_feedforward_layernorm.weight"}} +
                        kLlama;

const Table kOlmo2 = Table{{"layers.#.attention_norm.weight", "model.layers.#.post_attention_layernorm.weight"},
                           {"layers.#.ffn_norm.weight", "model.layers.#.post_feedforward_layernorm.weight"}} +
                     kLlama;

// Experts named as in Qwen's and DeepSeek's checkpoints.
const Table kExperts =
    Table{{"layers.#.ffn.router.weight", "model.layers.#.mlp.gate.weight"},
          {"layers.#.ffn.router.selection_bias", "model.layers.#.mlp.gate.e_score_correction_bias"},
          {"layers.#.ffn.experts.gate_up.weight",
           "model.layers.#.mlp.experts.@.gate_proj.weight model.layers.#.mlp.experts.@.up_proj.weight"},
          {"layers.#.ffn.experts.down.weight", "model.layers.#.mlp.experts.@.down_proj.weight"}} +
    kLlama;

const Table kQwen2Moe =
    Table{{"layers.#.ffn.shared_expert.gate_up.weight",
           "model.layers.#.mlp.shared_expert.gate_proj.weight model.layers.#.mlp.shared_expert.up_proj.weight"},
          {"layers.#.ffn.shared_expert.down.weight", "model.layers.#.mlp.shared_expert.down_proj.weight"},
          {"layers.#.ffn.shared_expert_gate.weight", "model.layers.#.mlp.shared_expert_gate.weight"}} +
    kExperts;

// DeepSeek's shared experts are saved as one, of their features together.
const Table kSharedExperts =
    Table{{"layers.#.ffn.shared_expert.gate_up.weight",
           "model.layers.#.mlp.shared_experts.gate_proj.weight model.layers.#.mlp.shared_experts.up_proj.weight"},
          {"layers.#.ffn.shared_expert.down.weight", "model.layers.#.mlp.shared_experts.down_proj.weight"}} +
    kExperts;

const Table kMixtral =
    Table{{"layers.#.ffn.router.weight", "model.layers.#.block_sparse_moe.gate.weight"},
          {"layers.#.ffn.experts.gate_up.weight",
           "model.layers.#.block_sparse_moe.experts.@.w1.weight model.layers.#.block_sparse_moe.experts.@.w3.weight"},
          {"layers.#.ffn.experts.down.weight", "model.layers.#.block_sparse_moe.experts.@.w2.weight"}} +
    kLlama;

const Table kCohere =
    Table{{"layers.#.attention.q_norm.weight", "model.layers.#.self_attn.q_norm.weight", Layout::kMatrix},
          {"layers.#.attention.k_norm.weight", "model.layers.#.self_attn.k_norm.weight", Layout::kMatrix}} +
    kLlama;

const Table kGpt2 = {
    {"embedding.weight", "transformer.wte.weight"},
    {"position.weight", "transformer.wpe.weight"},
    {"layers.#.attention.qkv.*", "transformer.h.#.attn.c_attn.*", Layout::kTransposed},
    {"layers.#.attention.output.*", "transformer.h.#.attn.c_proj.*", Layout::kTransposed},
    {"layers.#.attention_norm.*", "transformer.h.#.ln_1.*"},
    {"layers.#.ffn_norm.*", "transformer.h.#.ln_2.*"},
    {"layers.#.ffn.up.*", "transformer.h.#.mlp.c_fc.*", Layout::kTransposed},
    {"layers.#.ffn.down.*", "transformer.h.#.mlp.c_proj.*", Layout::kTransposed},
    {"final_norm.*", "transformer.ln_f.*"},
};

const Table kGptJ = {
    {"embedding.weight", "transformer.wte.weight"},
    {"layers.#.attention.qkv.weight",
     "transformer.h.#.attn.q_proj.weight transformer.h.#.attn.k_proj.weight transformer.h.#.attn.v_proj.weight"},
    {"layers.#.attention.output.weight", "transformer.h.#.attn.out_proj.weight"},
    {"layers.#.attention_norm.*", "transformer.h.#.ln_1.*"},
    {"layers.#.ffn.up.*", "transformer.h.#.mlp.fc_in.*"},
    {"layers.#.ffn.down.*", "transformer.h.#.mlp.fc_out.*"},
    {"final_norm.*", "transformer.ln_f.*"},
    {"head.*", "lm_head.*"},
};

const Table kGptNeoX = {
    {"embedding.weight", "gpt_neox.embed_in.weight"},
    {"layers.#.attention.qkv.*", "gpt_neox.layers.#.attention.query_key_value.*", Layout::kByHead},
    {"layers.#.attention.output.*", "gpt_neox.layers.#.attention.dense.*"},
    {"layers.#.attention_norm.*", "gpt_neox.layers.#.input_layernorm.*"},
    {"layers.#.ffn_norm.*", "gpt_neox.layers.#.post_attention_layernorm.*"},
    {"layers.#.ffn.up.*", "gpt_neox.layers.#.mlp.dense_h_to_4h.*"},
    {"layers.#.ffn.down.*", "gpt_neox.layers.#.mlp.dense_4h_to_h.*"},
    {"final_norm.*", "gpt_neox.final_layer_norm.*"},
    {"head.weight", "embed_out.weight"},
};

const Table kBloom = {
    {"embedding.weight", "transformer.word_embeddings.weight"},
    {"embedding_norm.*", "transformer.word_embeddings_layernorm.*"},
    {"layers.#.attention.qkv.*", "transformer.h.#.self_attention.query_key_value.*", Layout::kByHead},
    {"layers.#.attention.output.*", "transformer.h.#.self_attention.dense.*"},
    {"layers.#.attention_norm.*", "transformer.h.#.input_layernorm.*"},
    {"layers.#.ffn_norm.*", "transformer.h.#.post_attention_layernorm.*"},
    {"layers.#.ffn.up.*", "transformer.h.#.mlp.dense_h_to_4h.*"},
    {"layers.#.ffn.down.*", "transformer.h.#.mlp.dense_4h_to_h.*"},
    {"final_norm.*", "transformer.ln_f.*"},
};

const Table kMpt = {
    {"embedding.weight", "transformer.wte.weight"},
    {"layers.#.attention.qkv.weight", "transformer.blocks.#.attn.Wqkv.weight"},
    {"layers.#.attention.output.weight", "transformer.blocks.#.attn.out_proj.weight"},
    {"layers.#.attention_norm.weight", "transformer.blocks.#.norm_1.weight"},
    {"layers.#.ffn_norm.weight", "transformer.blocks.#.norm_2.weight"},
    {"layers.#.ffn.up.weight", "transformer.blocks.#.ffn.up_proj.weight"},
    {"layers.#.ffn.down.weight", "transformer.blocks.#.ffn.down_proj.weight"},
    {"final_norm.weight", "transformer.norm_f.weight"},
};

const Table kBert = {
    {"embedding.weight", "bert.embeddings.word_embeddings.weight"},
    {"position.weight", "bert.embeddings.position_embeddings.weight"},
    {"token_type.weight", "bert.embeddings.token_type_embeddings.weight"},
    {"embedding_norm.*", "bert.embeddings.LayerNorm.*"},
    {"layers.#.attention.qkv.*",
     "bert.encoder.layer.#.attention.self.query.* bert.encoder.layer.#.attention.self.key.* "
     "bert.encoder.layer.#.attention.self.value.*"},
    {"layers.#.attention.output.*", "bert.encoder.layer.#.attention.output.dense.*"},
    {"layers.#.attention_norm.*", "bert.encoder.layer.#.attention.output.LayerNorm.*"},
    {"layers.#.ffn.up.*", "bert.encoder.layer.#.intermediate.dense.*"},
    {"layers.#.ffn.down.*", "bert.encoder.layer.#.output.dense.*"},
    {"layers.#.ffn_norm.*", "bert.encoder.layer.#.output.LayerNorm.*"},
    {"head_transform.*", "cls.predictions.transform.dense.*"},
    {"head_norm.*", "cls.predictions.transform.LayerNorm.*"},
    {"head.bias", "cls.predictions.bias"},
};

const Table kT5 = {
    {"embedding.weight", "shared.weight"},
    {"encoder.position.bias", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"encoder.layers.#.attention.qkv.weight",
     "encoder.block.#.layer.0.SelfAttention.q.weight encoder.block.#.layer.0.SelfAttention.k.weight "
     "encoder.block.#.layer.0.SelfAttention.v.weight"},
    {"encoder.layers.#.attention.output.weight", "encoder.block.#.layer.0.SelfAttention.o.weight"},
    {"encoder.layers.#.attention_norm.weight", "encoder.block.#.layer.0.layer_norm.weight"},
    {"encoder.layers.#.ffn_norm.weight", "encoder.block.#.layer.1.layer_norm.weight"},
    {"encoder.layers.#.ffn.up.weight", "encoder.block.#.layer.1.DenseReluDense.wi.weight"},
    {"encoder.layers.#.ffn.gate_up.weight",
     "encoder.block.#.layer.1.DenseReluDense.wi_0.weight encoder.block.#.layer.1.DenseReluDense.wi_1.weight"},
    {"encoder.layers.#.ffn.down.weight", "encoder.block.#.layer.1.DenseReluDense.wo.weight"},
    {"encoder.final_norm.weight", "encoder.final_layer_norm.weight"},
    {"position.bias", "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"},
    {"layers.#.attention.qkv.weight",
     "decoder.block.#.layer.0.SelfAttention.q.weight decoder.block.#.layer.0.SelfAttention.k.weight "
     "decoder.block.#.layer.0.SelfAttention.v.weight"},
    {"layers.#.attention.output.weight", "decoder.block.#.layer.0.SelfAttention.o.weight"},
    {"layers.#.attention_norm.weight", "decoder.block.#.layer.0.layer_norm.weight"},
    {"layers.#.cross_attention.q.weight", "decoder.block.#.layer.1.EncDecAttention.q.weight"},
    {"layers.#.cross_attention.kv.weight",
     "decoder.block.#.layer.1.EncDecAttention.k.weight decoder.block.#.layer.1.EncDecAttention.v.weight"},
    {"layers.#.cross_attention.output.weight", "decoder.block.#.layer.1.EncDecAttention.o.weight"},
    {"layers.#.cross_attention_norm.weight", "decoder.block.#.layer.1.layer_norm.weight"},
    {"layers.#.ffn_norm.weight", "decoder.block.#.layer.2.layer_norm.weight"},
    {"layers.#.ffn.up.weight", "decoder.block.#.layer.2.DenseReluDense.wi.weight"},
    {"layers.#.ffn.gate_up.weight",
     "decoder.block.#.layer.2.DenseReluDense.wi_0.weight decoder.block.#.layer.2.DenseReluDense.wi_1.weight"},
    {"layers.#.ffn.down.weight", "decoder.block.#.layer.2.DenseReluDense.wo.weight"},
    {"final_norm.weight", "decoder.final_layer_norm.weight"},
};

const Table kBart = {
    {"embedding.weight", "model.shared.weight"},
    {"encoder.position.weight", "model.encoder.embed_positions.weight", Layout::kFromRow2},
    {"encoder.embedding_norm.*", "model.encoder.layernorm_embedding.*"},
    {"encoder.layers.#.attention.qkv.*",
     "model.encoder.layers.#.self_attn.q_proj.* model.encoder.layers.#.self_attn.k_proj.* "
     "model.encoder.layers.#.self_attn.v_proj.*"},
    {"encoder.layers.#.attention.output.*", "model.encoder.layers.#.self_attn.out_proj.*"},
    {"encoder.layers.#.attention_norm.*", "model.encoder.layers.#.self_attn_layer_norm.*"},
    {"encoder.layers.#.ffn.up.*", "model.encoder.layers.#.fc1.*"},
    {"encoder.layers.#.ffn.down.*", "model.encoder.layers.#.fc2.*"},
    {"encoder.layers.#.ffn_norm.*", "model.encoder.layers.#.final_layer_norm.*"},
    {"position.weight", "model.decoder.embed_positions.weight", Layout::kFromRow2},
    {"embedding_norm.*", "model.decoder.layernorm_embedding.*"},
    {"layers.#.attention.qkv.*",
     "model.decoder.layers.#.self_attn.q_proj.* model.decoder.layers.#.self_attn.k_proj.* "
     "model.decoder.layers.#.self_attn.v_proj.*"},
    {"layers.#.attention.output.*", "model.decoder.layers.#.self_attn.out_proj.*"},
    {"layers.#.attention_norm.*", "model.decoder.layers.#.self_attn_layer_norm.*"},
    {"layers.#.cross_attention.q.*", "model.decoder.layers.#.encoder_attn.q_proj.*"},
    {"layers.#.cross_attention.kv.*",
     "model.decoder.layers.#.encoder_attn.k_proj.* model.decoder.layers.#.encoder_attn.v_proj.*"},
    {"layers.#.cross_attention.output.*", "model.decoder.layers.#.encoder_attn.out_proj.*"},
    {"layers.#.cross_attention_norm.*", "model.decoder.layers.#.encoder_attn_layer_norm.*"},
    {"layers.#.ffn.up.*", "model.decoder.layers.#.fc1.*"},
    {"layers.#.ffn.down.*", "model.decoder.layers.#.fc2.*"},
    {"layers.#.ffn_norm.*", "model.decoder.layers.#.final_layer_norm.*"},
};

const Table kDeepSeek = Table{{"layers.#.attention.q.weight", "model.layers.#.self_attn.q_proj.weight"},
                              {"layers.#.attention.q_down.*", "model.layers.#.self_attn.q_a_proj.*"},
                              {"layers.#.attention.q_norm.weight", "model.layers.#.self_attn.q_a_layernorm.weight"},
                              {"layers.#.attention.q_up.weight", "model.layers.#.self_attn.q_b_proj.weight"},
                              {"layers.#.attention.kv_down.*", "model.layers.#.self_attn.kv_a_proj_with_mqa.*"},
                              {"layers.#.attention.kv_norm.weight", "model.layers.#.self_attn.kv_a_layernorm.weight"},
                              {"layers.#.attention.kv_up.weight", "model.layers.#.self_attn.kv_b_proj.weight"}} +
                        kSharedExperts;

struct Family {
  Table names;
  bool unit_offset = false;  // norm weights lie about 0
};

const std::map<std::string, Family>& families() {
  static const std::map<std::string, Family> all = {{"llama", {kLlama}},
                                                    {"qwen3", {kLlama}},
                                                    {"mixtral", {kMixtral}},
                                                    {"qwen3_moe", {kExperts}},
                                                    {"qwen2_moe", {kQwen2Moe}},
                                                    {"olmoe", {kExperts}},
                                                    {"glm4_moe", {kSharedExperts}},
                                                    {"mistral", {kLlama}},
                                                    {"gemma", {kLlama, true}},
                                                    {"gemma2", {kSandwich, true}},
                                                    {"gemma3", {kSandwich, true}},
                                                    {"olmo2", {kOlmo2}},
                                                    {"cohere", {kCohere}},
                                                    {"gpt2", {kGpt2}},
                                                    {"gptj", {kGptJ}},
                                                    {"deepseek_v2", {kDeepSeek}},
                                                    {"deepseek_v3", {kDeepSeek}},
                                                    {"gpt_neox", {kGptNeoX}},
                                                    {"bloom", {kBloom}},
                                                    {"mpt", {kMpt}},
                                                    {"bert", {kBert}},
                                                    {"t5", {kT5}},
                                                    {"bart", {kBart}}};
  return all;
}

std::string replaced(std::string_view pattern, const std::string& layer, const std::string& suffix) {
  std::string name;
  for (const char c : pattern) name += c == '#' ? layer : c == '*' ? suffix : std::string(1, c);
  return name;
}

// Rows of each of the `count` tensors that are stacked to ours.
std::vector<int64_t> stacked_rows(const ArchSpec& spec, const ParamDecl& decl, size_t count) {
  if (count != 3 || decl.experts > 1) return std::vector<int64_t>(count, decl.shape[0] / static_cast<int64_t>(count));
  const auto& layers = decl.encoder ? spec.encoder.layers : spec.layers;
  const auto& attention = std::get<GqaSpec>(layers[static_cast<size_t>(decl.layer)].attention);
  return {attention.query_width(), attention.kv_width(), attention.kv_width()};
}

// Names of a row of the table, in order.
std::vector<std::string> tensor_names(const Row& row, const ParamDecl& decl, const std::string& layer,
                                      const std::string& suffix) {
  std::vector<std::string> names;
  for (int64_t e = 0; e < decl.experts; ++e) {
    std::istringstream pattern(replaced(row.theirs, layer, suffix));
    for (std::string name; pattern >> name;) {
      if (const size_t at = name.find('@'); at != std::string::npos) name.replace(at, 1, std::to_string(e));
      names.push_back(name);
    }
  }
  return names;
}

// Where the elements of one of our parameters lie in their checkpoint.
struct Places {
  struct Element {
    size_t tensor;
    uint32_t index;
  };
  std::vector<std::string> names;
  double offset = 0;              // that the tensors are filled about
  std::vector<Element> elements;  // in our order
};

Places places(const ArchSpec& spec, const ParamDecl& decl, const Family& family) {
  const std::string layer = std::to_string(decl.layer), suffix = decl.name.substr(decl.name.rfind('.') + 1);
  const Row* row = nullptr;
  for (const Row& r : family.names) {
    if (!row && replaced(r.ours, layer, suffix) == decl.name) row = &r;
  }
  if (!row) throw std::logic_error("the family has no tensor for " + decl.name);
  Places found{.names = tensor_names(*row, decl, layer, suffix), .elements = {}};
  if (decl.shape.size() == 1 && suffix == "weight" && row->layout != Layout::kMatrix && !family.unit_offset)
    found.offset = 1;

  const int64_t rows = decl.shape[0], width = decl.shape.size() > 1 ? decl.shape[1] : 1;
  const std::vector<int64_t> of_each = stacked_rows(spec, decl, found.names.size());
  size_t tensor = 0;
  int64_t before = 0;  // rows of the tensors so far
  for (int64_t r = 0; r < rows; ++r) {
    if (r == before + of_each[tensor]) before += of_each[tensor++];
    int64_t theirs = r - before;
    if (row->layout == Layout::kFromRow2) theirs += 2;
    if (row->layout == Layout::kByHead) {
      const auto& attention = std::get<GqaSpec>(spec.layers[static_cast<size_t>(decl.layer)].attention);
      const int64_t part = r / attention.query_width(), in_part = r % attention.query_width();
      const int64_t head = in_part / attention.head_dim;
      theirs = (3 * head + part) * attention.head_dim + in_part % attention.head_dim;
    }
    for (int64_t c = 0; c < width; ++c) {
      const bool transposed = row->layout == Layout::kTransposed && decl.shape.size() > 1;
      found.elements.push_back({tensor, static_cast<uint32_t>(transposed ? c * rows + r : theirs * width + c)});
    }
  }
  return found;
}

}  // namespace

HashedTensor::HashedTensor(std::string_view name, double offset) : crc_(~0u), offset_(offset) {
  // CRC-32 of IEEE 802.3, bit by bit.
  for (const char c : name) {
    crc_ ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc_ = (crc_ >> 1) ^ (crc_ & 1 ? 0xEDB88320u : 0u);
  }
  crc_ = ~crc_;
}

float HashedTensor::operator[](uint32_t i) const {
  uint32_t x = i * 2654435761u + crc_;
  x ^= x >> 16;
  x *= 2246822519u;
  x ^= x >> 13;
  return static_cast<float>(0.5 * (2.0 * x / 4294967296.0 - 1) + offset_);
}

std::unique_ptr<Model> hashed_model(const ArchSpec& spec, const std::string& family, bool trainable) {
  auto model = std::make_unique<Model>(spec, trainable);
  Parameters& parameters = model->parameters();
  for (const auto& e : parameters.entries()) {
    const Places from = places(spec, e.decl, families().at(family));
    std::vector<HashedTensor> tensors;
    for (const std::string& name : from.names) tensors.emplace_back(name, from.offset);
    const std::span<float> to = parameters.values(e);
    for (size_t i = 0; i < to.size(); ++i) to[i] = tensors[from.elements[i].tensor][from.elements[i].index];
  }
  return model;
}

std::map<std::string, GradientSums> gradient_sums(Model& model, const std::string& family) {
  std::map<std::string, GradientSums> sums;
  Parameters& parameters = model.parameters();
  for (const auto& e : parameters.entries()) {
    const Places at = places(model.spec(), e.decl, families().at(family));
    std::vector<HashedTensor> directions;
    for (const std::string& name : at.names) directions.emplace_back(name + ".gradient", 0);
    const std::span<const float> gradient = parameters.gradients(e);
    for (size_t i = 0; i < gradient.size(); ++i) {
      const auto& [tensor, index] = at.elements[i];
      const double g = static_cast<double>(gradient[i]);
      GradientSums& sum = sums[at.names[tensor]];
      sum.norm += g * g;
      sum.product += g * static_cast<double>(directions[tensor][index]);
    }
  }
  for (auto& [name, sum] : sums) sum.norm = std::sqrt(sum.norm);
  return sums;
}

}  // namespace transept
