#include "study/attention_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "base/problem.h"
#include "base/rng.h"
#include "nn/attention/attention.h"
#include "ops/attention.h"
#include "study/plain_attention.h"

namespace transept {
namespace {

using plain::Mask;
using plain::Matrix;

struct Form {
  std::string_view name;
  Mask mask = Mask::kCausal;
  bool several = true, projected = false, grouped = false;
};
constexpr std::array kForms{
    Form{.name = "dot_product", .mask = Mask::kNone, .several = false},
    Form{.name = "causal", .several = false},
    Form{.name = "multi_head"},
    Form{.name = "projected", .projected = true},
    Form{.name = "grouped", .projected = true, .grouped = true},
};
constexpr auto kNames = [] {
  std::array<std::string_view, kForms.size()> names;
  std::ranges::transform(kForms, names.begin(), &Form::name);
  return names;
}();

const Form& form_named(std::string_view name) {
  const auto form = std::ranges::find(kForms, name, &Form::name);
  if (form == kForms.end()) {
    throw InputError("form", fmt::format("there is no form of attention \"{}\"", name),
                     fmt::format("the forms are {}", fmt::join(kNames, ", ")));
  }
  return *form;
}

void check_sizes(int64_t tokens, int64_t heads, int64_t head_dim) {
  Problems problems;
  const auto at_least = [&](const char* where, int64_t value, int64_t least) {
    if (value < least) problems.push_back({where, fmt::format("is {}", value), fmt::format("give {} or more", least)});
  };
  at_least("tokens", tokens, 2);
  at_least("heads", heads, 1);
  at_least("head_dim", head_dim, 1);
  throw_if_any(std::move(problems));
}

// Normal numbers that are the same in float and in double.
Matrix drawn(int64_t rows, int64_t columns, double spread, uint64_t seed, uint32_t operand) {
  const CounterRng rng(seed, Stream::kData, operand);
  Matrix m{rows, columns};
  for (size_t i = 0; i < m.elements.size(); ++i)
    m.elements[i] = static_cast<double>(static_cast<float>(spread * rng.normal(i)));
  return m;
}

void write(const Matrix& from, Rows to, int64_t first_column = 0) {
  for (int64_t i = 0; i < from.rows; ++i) {
    for (int64_t j = 0; j < from.columns; ++j) to.row(i)[first_column + j] = static_cast<float>(from.at(i, j));
  }
}
void write_transposed(const Matrix& from, float* to) {  // [from.columns, from.rows]
  for (int64_t j = 0; j < from.columns; ++j) {
    for (int64_t i = 0; i < from.rows; ++i) *to++ = static_cast<float>(from.at(i, j));
  }
}

// `actual` gives the float of a row and column.
double relative_error(const Matrix& expected, const auto& actual) {
  double error = 0, largest = 0;
  for (int64_t i = 0; i < expected.rows; ++i) {
    for (int64_t j = 0; j < expected.columns; ++j) {
      const double off = std::abs(static_cast<double>(actual(i, j)) - expected.at(i, j));
      if (off > error || std::isnan(off)) error = off;
      largest = std::max(largest, std::abs(expected.at(i, j)));
    }
  }
  return error / largest;
}
double error_of_columns(const Matrix& expected, ConstRows actual, int64_t first_column) {
  return relative_error(expected, [&](int64_t i, int64_t j) { return actual.row(i)[first_column + j]; });
}
double error_of_transposed(const Matrix& expected, const float* actual) {
  return relative_error(expected, [&](int64_t i, int64_t j) { return actual[j * expected.rows + i]; });
}

Var filled(const OpContext& op, const Matrix& from) {
  const Var x = op.make(from.rows, from.columns);
  write(from, x.view());
  return x;
}

// From the gradient of y back to those of everything before it.
void run_back(const OpContext& op, const Var& y, const Matrix& d_output) {
  y.gradient->buffer = filled(op, d_output).value;
  op.tape->backward();
}

struct Sizes {
  int64_t tokens, heads, kv_heads, head_dim;
  int64_t width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  plain::HeadCounts counts() const { return {heads, kv_heads}; }
};

AttentionErrors operation_errors(const OpContext& op, const Sizes& n, Mask mask, uint64_t seed) {
  const int64_t width = n.width();
  const auto draw = [&](uint32_t operand) { return drawn(n.tokens, width, 1, seed, operand); };
  const Matrix q = draw(0), k = draw(1), v = draw(2), d_output = draw(3);
  const Matrix output = plain::multi_head_attention(q, k, v, n.counts(), mask);
  const plain::InputGradients d = plain::multi_head_attention_gradients(q, k, v, n.counts(), mask, d_output);

  const Var qkv = op.make(n.tokens, 3 * width);
  write(q, qkv.view(), 0);
  write(k, qkv.view(), width);
  write(v, qkv.view(), 2 * width);
  const AttentionShape shape{.heads = n.heads,
                             .kv_heads = n.kv_heads,
                             .head_dim = n.head_dim,
                             .scale = 1 / std::sqrt(static_cast<float>(n.head_dim)),
                             .causal = mask == Mask::kCausal};
  const BatchLayout layout = equal_sequences(1, n.tokens);
  const Var y = attention(op, {qkv, 0, qkv, width, 2 * width}, shape, {}, {}, layout, layout);
  run_back(op, y, d_output);
  const ConstRows gradient{qkv.gradient->buffer.data(), n.tokens, 3 * width, 3 * width};
  return {error_of_columns(output, y.view(), 0),
          error_of_columns(d.q, gradient, 0),
          error_of_columns(d.k, gradient, width),
          error_of_columns(d.v, gradient, 2 * width),
          {}};
}

// A model of one layer, of which only the attention runs.
ArchSpec layer_spec(const Sizes& n) {
  const Json document{
      {"topology", "decoder"},
      {"vocab_size", 2},
      {"hidden_size", n.width()},
      {"max_position_embeddings", n.tokens},
      {"num_hidden_layers", 1},
      {"position", {{"kind", "none"}}},
      {"attention", {{"num_attention_heads", n.heads}, {"num_key_value_heads", n.kv_heads}, {"head_dim", n.head_dim}}},
      {"ffn", {{"kind", "gelu"}, {"intermediate_size", 1}}}};
  return spec_from_json(document, "form");
}

AttentionErrors layer_errors(const OpContext& op, const Sizes& n, Mask mask, uint64_t seed) {
  const int64_t width = n.width();
  // Projections that keep the spread of what they read.
  const auto weight = [&](int64_t columns, uint32_t operand) {
    return drawn(width, columns, 1 / std::sqrt(static_cast<double>(width)), seed, operand);
  };
  const plain::Projections w{weight(width, 0), weight(n.kv_width(), 1), weight(n.kv_width(), 2), weight(width, 3)};
  const Matrix x = drawn(n.tokens, width, 1, seed, 4), d_output = drawn(n.tokens, width, 1, seed, 5);
  const Matrix output = plain::attention_layer(x, w, n.counts(), mask);
  const plain::Projections d = plain::attention_layer_gradients(x, w, n.counts(), mask, d_output);

  const ArchSpec spec = layer_spec(n);
  Parameters parameters(spec);
  parameters.enable_gradients();
  const std::string prefix = "layers.0.attention.";
  const Parameters::Entry &qkv = *parameters.find(prefix + "qkv.weight"),
                          &out = *parameters.find(prefix + "output.weight");
  const int64_t k_at = width * width, v_at = k_at + n.kv_width() * width;  // rows of qkv: queries, keys, values
  float* const weights = parameters.values(qkv).data();
  write_transposed(w.w_q, weights);
  write_transposed(w.w_k, weights + k_at);
  write_transposed(w.w_v, weights + v_at);
  write_transposed(w.w_o, parameters.values(out).data());

  const LayerSpec& layer = spec.layers.front();
  const auto position = build_position(layer.position, spec, parameters, "position.");
  const auto module = build_attention({layer, parameters, prefix, 0, *position});
  const BatchLayout layout = equal_sequences(1, n.tokens);
  const ForwardContext context{
      .op = op, .layout = layout, .lengths = {&n.tokens, 1}, .positions = n.tokens, .dropout = {}, .observe = {}};
  const Var y = module->forward(context, filled(op, x), {});
  run_back(op, y, d_output);
  const float* const gradient = parameters.gradients(qkv).data();
  return {error_of_columns(output, y.view(), 0), error_of_transposed(d.w_q, gradient),
          error_of_transposed(d.w_k, gradient + k_at), error_of_transposed(d.w_v, gradient + v_at),
          error_of_transposed(d.w_o, parameters.gradients(out).data())};
}

}  // namespace

std::span<const std::string_view> attention_forms() { return kNames; }

AttentionErrors attention_errors(ThreadPool& pool, std::string_view name, int64_t tokens, int64_t heads,
                                 int64_t head_dim, uint64_t seed) {
  const Form& form = form_named(name);
  check_sizes(tokens, heads, head_dim);
  Sizes n{tokens, form.several ? heads : 1, form.several ? heads : 1, head_dim};
  if (form.grouped) n.kv_heads = heads % 2 == 0 ? heads / 2 : 1;
  Arena arena;
  Tape tape;
  const OpContext op{pool, arena, &tape};
  return form.projected ? layer_errors(op, n, form.mask, seed) : operation_errors(op, n, form.mask, seed);
}

}  // namespace transept
