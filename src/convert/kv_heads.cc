// The old heads k of a group are m neighbours; query head h reads one of them. "Aligned" uses what attention leaves
// free. Let z = [x, 1] be an input with its bias' one, and C = E[z z^T] its second moment.
//
// Values. What head h adds to the output is W_o,h sum_j a_hj W_v,k z_j: only W_o,h W_v,k counts. A shared V and blocks
// O_h that replace W_o,h are chosen so that
//   sum_h E || (W_o,h W_v,k(h) - O_h V) z ||^2,
// which bounds the error of the weighted means, is least: the shared factor (shared_factor.h) of R_k = W_v,k and G_k =
// sum of W_o,h^T W_o,h over the query heads of k; then O_h = W_o,h P_k.
//
// Keys that do not turn. Scores z_i^T W_q,h^T W_k,k z_j depend on W_q,h^T W_k,k alone. With i and j independent,
//   sum_h E (z_i^T (W_q,h^T W_k,k(h) - Q_h^T K) z_j)^2
// is least for the shared factor of R_k = W_k,k and G_k = sum of W_q,h C W_q,h^T; then Q_h = P_k^T W_q,h. A softmax
// does not see what is the same for all keys, so that C of the keys is taken about their mean, unless a sink stands
// beside the scores or a soft-cap bends them.
//
// Keys that turn (arXiv:2104.09864 section 3.2.1). As complex numbers q and k, the two elements of a frequency f add
// Re(conj(q_h) k_k e^{i f (j - i)}) to the score, and only multiplication by complex numbers commutes with the
// rotation. Over phases f (j - i) that are spread evenly, frequencies do not mix, and
//   sum_h E | conj(q_h(z_i)) k_k(z_j) - conj(q'_h(z_i)) k(z_j) |^2
// is least for the shared factor of the one-row R_k = k_k and G_k = sum of E |q_h|^2: a complex p_k a head and
// frequency, and q'_h = conj(p_k) q_h. Whatever of a head does not turn is fitted as above, as a block of its own.
//
// Norms of queries and keys tie them to their sizes: then keys are the mean. Clipping ties all three: then values, too.
// With as many calibration rows as z has elements, or fewer, C leaves directions out, and what lies there is lost.
#include "convert/kv_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "convert/shared_factor.h"

namespace transept {
namespace {

using Matrix = DynamicMatrix<double>;
using Complex = std::complex<double>;
using Index = Eigen::Index;

// The weights of one attention: heads one after another, [rows, hidden + 1] with the bias as the last column.
struct Heads {
  Matrix q, k, v;
  Matrix output;  // [hidden, query width]
  Matrix k_norm;  // of each KV head, one column; empty: shared by all, or none
};

// Second moments of what queries and keys are made from.
struct Moments {
  Matrix queries, keys;
};

// Elements of a head that turn together, and those that don't turn.
struct Turning {
  std::vector<std::pair<Index, Index>> pairs;
  std::vector<Index> still;
};

Turning turning_of(const PositionSpec& position, int64_t head_dim) {
  Turning t;
  Index rotated = 0;
  if (const auto* rope = std::get_if<RopePosition>(&position)) {
    rotated = rope->rotated(head_dim);
    for (Index i = 0; i < rotated / 2; ++i) {
      if (rope->pairing == RopePairing::kHalfSplit) {
        t.pairs.emplace_back(i, i + rotated / 2);
      } else {
        t.pairs.emplace_back(2 * i, 2 * i + 1);
      }
    }
  }
  for (Index i = rotated; i < head_dim; ++i) t.still.push_back(i);
  return t;
}

bool norms_by_head(const GqaSpec& spec) {
  return spec.qk_norm != QkNorm::kNone && spec.qk_norm_scope != QkNormScope::kHead;
}

Matrix values_of(const Param& param) {
  TRANSEPT_CHECK(param.value);
  Matrix m(param.out, param.in);
  for (Index r = 0; r < m.rows(); ++r) {
    for (Index c = 0; c < m.cols(); ++c) m(r, c) = static_cast<double>(param.value[r * m.cols() + c]);
  }
  return m;
}

void set_values(Parameters& parameters, const std::string& name, const Matrix& m) {
  const std::span<float> to = parameters.values(*parameters.find(name));
  TRANSEPT_CHECK(static_cast<Index>(to.size()) == m.size());
  for (Index r = 0; r < m.rows(); ++r) {
    for (Index c = 0; c < m.cols(); ++c) to[static_cast<size_t>(r * m.cols() + c)] = static_cast<float>(m(r, c));
  }
}

// A projection's weights with its bias, zero where it has none, as the last column; and back.
Matrix projection(const Parameters& parameters, const std::string& name) {
  const Param weight = parameters.param(name + ".weight"), bias = parameters.param(name + ".bias");
  Matrix m = Matrix::Zero(weight.out, weight.in + 1);
  m.leftCols(weight.in) = values_of(weight);
  if (bias) m.rightCols(1) = values_of(bias);
  return m;
}

void set_projection(Parameters& parameters, const std::string& name, const Matrix& m) {
  set_values(parameters, name + ".weight", m.leftCols(m.cols() - 1));
  if (parameters.find(name + ".bias")) set_values(parameters, name + ".bias", m.rightCols(1));
}

Heads read_heads(const Parameters& parameters, const std::string& prefix, const GqaSpec& spec, bool cross) {
  Heads heads;
  Matrix kv;
  if (cross) {
    heads.q = projection(parameters, prefix + "q");
    kv = projection(parameters, prefix + "kv");
  } else {
    const Matrix qkv = projection(parameters, prefix + "qkv");
    heads.q = qkv.topRows(spec.query_width());
    kv = qkv.bottomRows(2 * spec.kv_width());
  }
  heads.k = kv.topRows(spec.kv_width());
  heads.v = kv.bottomRows(spec.kv_width());
  heads.output = values_of(parameters.param(prefix + "output.weight"));
  if (norms_by_head(spec)) heads.k_norm = values_of(parameters.param(prefix + "k_norm.weight"));
  return heads;
}

void write_heads(const Heads& heads, Parameters& parameters, const std::string& prefix, const GqaSpec& spec,
                 bool cross) {
  Matrix kv(heads.k.rows() + heads.v.rows(), heads.k.cols());
  kv << heads.k, heads.v;
  if (cross) {
    set_projection(parameters, prefix + "q", heads.q);
    set_projection(parameters, prefix + "kv", kv);
  } else {
    Matrix qkv(heads.q.rows() + kv.rows(), kv.cols());
    qkv << heads.q, kv;
    set_projection(parameters, prefix + "qkv", qkv);
  }
  set_values(parameters, prefix + "output.weight", heads.output);
  if (norms_by_head(spec)) set_values(parameters, prefix + "k_norm.weight", heads.k_norm);
}

// Runs of `m` blocks of `rows` rows become one each: their mean, or the first.
Matrix pooled(const Matrix& from, Index rows, Index m, bool mean) {
  Matrix to = Matrix::Zero(from.rows() / m, from.cols());
  for (Index g = 0; g < to.rows() / rows; ++g) {
    for (Index k = 0; k < (mean ? m : 1); ++k)
      to.middleRows(g * rows, rows) += from.middleRows((g * m + k) * rows, rows);
  }
  return mean ? Matrix(to / static_cast<double>(m)) : to;
}

// One group: the KV heads [first, first + m) and the query heads that read them.
struct Group {
  Index number, first, m;
  Index queries_of_head;  // query heads of one KV head
  Index head_dim;
  Index query(Index k, Index i) const { return ((first + k) * queries_of_head + i) * head_dim; }  // its first row
};

void align_values(const Group& group, const Matrix& moment, const Heads& from, Heads& to) {
  const Index d = group.head_dim;
  const Matrix stacked = from.v.middleRows(group.first * d, group.m * d);
  std::vector<Matrix> grams;
  for (Index k = 0; k < group.m; ++k) {
    const auto outputs = from.output.middleCols(group.query(k, 0), group.queries_of_head * d);
    Matrix& gram = grams.emplace_back(Matrix::Zero(d, d));
    for (Index i = 0; i < group.queries_of_head; ++i)
      gram += outputs.middleCols(i * d, d).transpose() * outputs.middleCols(i * d, d);
  }
  const SharedFactor<double> found = shared_factor<double>(stacked, stacked * moment * stacked.transpose(), grams);
  to.v.middleRows(group.number * d, d) = found.shared;
  for (Index k = 0; k < group.m; ++k) {
    for (Index i = 0; i < group.queries_of_head; ++i) {
      to.output.middleCols(group.query(k, i), d) =
          from.output.middleCols(group.query(k, i), d) * found.maps[static_cast<size_t>(k)];
    }
  }
}

// What the keys of a group have to go by: E (z^T W_q)(z^T W_q)^T of the queries of each head, summed, and the second
// moment of all its keys side by side, as it is and about the mean.
struct KeyStatistics {
  std::vector<Matrix> queries;
  Matrix keys, centered;
};

KeyStatistics key_statistics(const Group& group, const Moments& moments, const Heads& from) {
  const Index d = group.head_dim;
  KeyStatistics s;
  for (Index k = 0; k < group.m; ++k) {
    Matrix& gram = s.queries.emplace_back(Matrix::Zero(d, d));
    for (Index i = 0; i < group.queries_of_head; ++i) {
      const auto q = from.q.middleRows(group.query(k, i), d);
      gram += q * moments.queries * q.transpose();
    }
  }
  const auto stacked = from.k.middleRows(group.first * d, group.m * d);
  s.keys = stacked * moments.keys * stacked.transpose();
  const Eigen::VectorXd mean = stacked * moments.keys.rightCols(1);  // E z is C's column of the one
  s.centered = s.keys - mean * mean.transpose();
  return s;
}

// The elements of a head that don't turn, in all heads of the group.
void align_still_keys(const Group& group, const std::vector<Index>& elements, const Matrix& moment,
                      const std::vector<Matrix>& queries, const Heads& from, Heads& to) {
  if (elements.empty()) return;
  const Index d = group.head_dim;
  std::vector<Index> rows;  // of the group's stack
  for (Index k = 0; k < group.m; ++k) {
    for (const Index e : elements) rows.push_back(k * d + e);
  }
  std::vector<Matrix> grams;
  grams.reserve(queries.size());
  for (const Matrix& gram : queries) grams.push_back(gram(elements, elements));
  const SharedFactor<double> found = shared_factor<double>(
      from.k.middleRows(group.first * d, group.m * d)(rows, Eigen::all), moment(rows, rows), grams);
  for (size_t e = 0; e < elements.size(); ++e)
    to.k.row(group.number * d + elements[e]) = found.shared.row(static_cast<Index>(e));
  for (Index k = 0; k < group.m; ++k) {
    for (Index i = 0; i < group.queries_of_head; ++i) {
      const Index q = group.query(k, i);
      to.q.middleRows(q, d)(elements, Eigen::all) =
          found.maps[static_cast<size_t>(k)].transpose() * from.q.middleRows(q, d)(elements, Eigen::all);
    }
  }
}

// The elements a and b of a head, which turn together, in all heads of the group.
void align_turning_keys(const Group& group, const std::pair<Index, Index>& pair, const Matrix& moment,
                        const std::vector<Matrix>& queries, const Heads& from, Heads& to) {
  const auto [a, b] = pair;
  const Index d = group.head_dim;
  const Complex i_unit(0, 1);
  using ComplexMatrix = DynamicMatrix<Complex>;
  ComplexMatrix stacked(group.m, from.k.cols()), metric(group.m, group.m);
  std::vector<ComplexMatrix> grams;
  for (Index k = 0; k < group.m; ++k) {
    const auto key = from.k.middleRows((group.first + k) * d, d);
    stacked.row(k) = key.row(a).cast<Complex>() + i_unit * key.row(b).cast<Complex>();
    for (Index l = 0; l < group.m; ++l) {
      const auto at = [&](Index x, Index y) { return moment(k * d + x, l * d + y); };
      metric(k, l) = Complex(at(a, a) + at(b, b), at(b, a) - at(a, b));
    }
    const Matrix& q = queries[static_cast<size_t>(k)];
    grams.push_back(ComplexMatrix::Constant(1, 1, q(a, a) + q(b, b)));
  }
  const SharedFactor<Complex> found = shared_factor<Complex>(stacked, metric, grams);
  to.k.row(group.number * d + a) = found.shared.row(0).real();
  to.k.row(group.number * d + b) = found.shared.row(0).imag();
  for (Index k = 0; k < group.m; ++k) {
    const Complex factor = std::conj(found.maps[static_cast<size_t>(k)](0, 0));
    for (Index i = 0; i < group.queries_of_head; ++i) {
      const Index q = group.query(k, i);
      to.q.row(q + a) = factor.real() * from.q.row(q + a) - factor.imag() * from.q.row(q + b);
      to.q.row(q + b) = factor.imag() * from.q.row(q + a) + factor.real() * from.q.row(q + b);
    }
  }
}

// The attention of `spec` with `heads` KV heads.
Heads merged(const Heads& from, const GqaSpec& spec, const Turning& turning, const Moments& moments, int64_t heads,
             KvMerge merge) {
  const Index m = spec.num_key_value_heads / heads, d = spec.head_dim;
  const bool mean = merge != KvMerge::kFirst;
  Heads to{from.q, pooled(from.k, d, m, mean), pooled(from.v, d, m, mean), from.output, {}};
  if (norms_by_head(spec)) to.k_norm = pooled(from.k_norm, d, m, mean);
  if (merge != KvMerge::kAligned || spec.clip_qkv > 0) return to;
  const bool constants_vanish = !spec.sinks && spec.logit_softcap == 0;
  for (Index g = 0; g < heads; ++g) {
    const Group group{g, g * m, m, spec.num_attention_heads / spec.num_key_value_heads, d};
    align_values(group, moments.keys, from, to);
    if (spec.qk_norm != QkNorm::kNone) continue;
    const KeyStatistics s = key_statistics(group, moments, from);
    align_still_keys(group, turning.still, constants_vanish ? s.centered : s.keys, s.queries, from, to);
    for (const auto& pair : turning.pairs) align_turning_keys(group, pair, s.keys, s.queries, from, to);
  }
  return to;
}

Matrix moment_of(const KvCalibration* calibration, const std::string& part, int64_t layer, int64_t hidden) {
  if (!calibration) return Matrix::Identity(hidden + 1, hidden + 1);
  const KvCalibration::Moment* moment = calibration->find(part, layer);
  TRANSEPT_CHECK(moment && moment->width == hidden + 1);
  return Eigen::Map<const Matrix>(moment->sum.data(), moment->width, moment->width) / static_cast<double>(moment->rows);
}

bool chosen(const std::optional<LayerPlace>& only, const LayerPlace& place) { return !only || *only == place; }

// Calls visit(stack, whether it is the encoder beside a decoder).
template <class Spec, class F>
void for_stacks(Spec& spec, const F& visit) {
  visit(spec, false);
  visit(spec.encoder, true);
}

// "layers[0].attention", "encoder.layers[2-5, 7].attention".
std::string place_text(const char* stack, const std::vector<int64_t>& layers) {
  std::string text;
  for (size_t i = 0; i < layers.size(); ++i) {
    size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += last > i ? fmt::format("{}-{}", layers[i], layers[last]) : fmt::format("{}", layers[i]);
    i = last;
  }
  return fmt::format("{}layers[{}].attention", stack, text);
}

// KV heads that every one of these numbers can become.
std::string common_divisors(const std::vector<int64_t>& present) {
  int64_t common = 0;
  for (const int64_t heads : present) common = std::gcd(common, heads);
  std::string text;
  for (int64_t i = 1; i <= common; ++i) {
    if (common % i == 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
  }
  return text;
}

void convert_attention(const Model& source, const LayerSpec& layer, const std::string& prefix, bool cross,
                       const Moments& moments, const KvConversion& conversion, Model& target) {
  const GqaSpec& spec = std::get<GqaSpec>(layer.attention);
  const Turning turning = turning_of(cross ? PositionSpec(NoPosition{}) : layer.position, spec.head_dim);
  const Heads heads = read_heads(source.parameters(), prefix, spec, cross);
  write_heads(merged(heads, spec, turning, moments, conversion.heads, conversion.merge), target.parameters(), prefix,
              spec, cross);
}

}  // namespace

ArchSpec with_kv_heads(const ArchSpec& spec, int64_t heads, const std::optional<LayerPlace>& only) {
  ArchSpec result = spec;
  std::vector<int64_t> present;                                      // of all layers that are converted
  std::map<std::pair<bool, int64_t>, std::vector<int64_t>> refused;  // (encoder, present heads or 0) to layers
  for_stacks(result, [&](StackSpec& stack, bool encoder) {
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      const LayerPlace place{encoder, static_cast<int64_t>(i)};
      if (!chosen(only, place)) continue;
      GqaSpec* const gqa = std::get_if<GqaSpec>(&stack.layers[i].attention);
      const int64_t has = gqa ? gqa->num_key_value_heads : 0;
      if (gqa) present.push_back(has);
      if (heads < 1 || !gqa || has % heads != 0) {
        refused[{encoder, has}].push_back(place.layer);
      } else {
        gqa->num_key_value_heads = heads;
      }
    }
  });
  Problems problems;
  for (const auto& [key, layers] : refused) {
    const auto [encoder, has] = key;
    const std::string place = place_text(encoder ? "encoder." : spec.encoder_decoder() ? "decoder." : "", layers);
    if (has == 0) {
      problems.push_back({place, "is latent attention (mla), which has no KV heads to merge", ""});
    } else {
      problems.push_back({place, fmt::format("has {} KV heads, which can't become {}", has, heads),
                          "allowed: " + common_divisors(present)});
    }
  }
  throw_if_any(std::move(problems));
  return result;
}

std::unique_ptr<Model> convert_kv_heads(const Model& source, const KvConversion& conversion, bool trainable) {
  auto target = std::make_unique<Model>(with_kv_heads(source.spec(), conversion.heads, conversion.only), trainable);
  Parameters& parameters = target->parameters();
  for (const Parameters::Entry& entry : parameters.entries()) {
    const Param from = source.parameters().param(entry.decl.name);
    TRANSEPT_CHECK(from.value);
    if (from.out * from.in == entry.size) std::copy_n(from.value, entry.size, parameters.values(entry).begin());
  }
  const int64_t hidden = source.spec().hidden_size;
  for_stacks(source.spec(), [&](const StackSpec& stack, bool encoder) {
    for (size_t i = 0; i < stack.layers.size(); ++i) {
      const LayerSpec& layer = stack.layers[i];
      const int64_t number = static_cast<int64_t>(i);
      const auto* const gqa = std::get_if<GqaSpec>(&layer.attention);
      if (!chosen(conversion.only, {encoder, number}) || gqa->num_key_value_heads == conversion.heads) continue;
      const std::string prefix = fmt::format("{}layers.{}.", encoder ? "encoder." : "", i);
      const auto moment = [&](const char* part) {
        return moment_of(conversion.calibration, fmt::format("{}{}", encoder ? "encoder " : "", part), number, hidden);
      };
      const Matrix self = moment("attention_input");
      convert_attention(source, layer, prefix + "attention.", false, {self, self}, conversion, *target);
      if (layer.cross_attention) {
        convert_attention(source, layer, prefix + "cross_attention.", true,
                          {moment("cross_attention_input"), moment("cross_attention_source")}, conversion, *target);
      }
    }
  });
  return target;
}

}  // namespace transept
