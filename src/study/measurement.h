// What a study measures of a model, or of attention alone. A measurement is a struct with its keys; its results go by
// the names that stand beside it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/thread_pool.h"
#include "data/corpus.h"
#include "data/examples.h"
#include "nn/model.h"
#include "spec/fields.h"
#include "spec/kinds.h"

namespace transept {

// How a text longer than the context is scored (train/evaluate.h).
enum class EvalProtocol { kDisjoint, kSliding };
template <>
struct EnumNames<EvalProtocol> {
  static constexpr std::array<std::string_view, 2> kNames{"disjoint", "sliding"};
};

// loss (nats a token), perplexity; the curve loss_by_position.
struct PerplexityMeasurement {
  static constexpr std::string_view kName = "perplexity";
  int64_t context = 0;
  EvalProtocol protocol = EvalProtocol::kDisjoint;
  int64_t stride = 0;
  // Tokens between windows.
  int64_t advance() const {
    if (protocol == EvalProtocol::kDisjoint) return context;
    return stride > 0 ? std::min(stride, context) : std::max<int64_t>(1, context / 4);
  }
  template <class V>
  void fields(V& v) {
    v("context", context, AtLeast{1}, "tokens of a window");
    v("protocol", protocol, Any{}, "disjoint windows, or windows that slide by `stride`");
    v("stride", stride, AtLeast{0}, "sliding: tokens that a window scores; 0: a quarter of the context");
  }
};

// cache_bytes_per_token, of float32.
struct CacheMeasurement {
  static constexpr std::string_view kName = "cache";
  template <class V>
  void fields(V&) {}
};

// decode_tokens_per_second, or decode_tokens_per_second_NAME: the median of five runs, one sequence.
struct DecodeMeasurement {
  static constexpr std::string_view kName = "decode";
  int64_t cached = 0;
  int64_t tokens = 64;
  std::string name;
  template <class V>
  void fields(V& v) {
    v("cached", cached, AtLeast{0}, "tokens in the cache before");
    v("tokens", tokens, AtLeast{1}, "tokens that are timed");
    v("name", name, Any{}, "what the metric's name ends in; empty: nothing");
  }
};

// batch_in_budget: sequences of `context` tokens that fit into `bytes` beside the weights, by the plan.
struct BatchMeasurement {
  static constexpr std::string_view kName = "batch";
  int64_t context = 0;
  int64_t megabytes = 0;
  template <class V>
  void fields(V& v) {
    v("context", context, AtLeast{1}, "tokens of a sequence");
    v("megabytes", megabytes, AtLeast{1}, "of memory, a million bytes each");
  }
};

// error_output, error_gradient_query, _key, _value, of a form of attention against the paper's formulas in double
// (study/attention_forms.h), relative to the largest element.
struct FormMeasurement {
  static constexpr std::string_view kName = "attention_form";
  std::string form;
  int64_t tokens = 64;
  int64_t heads = 4;
  int64_t head_dim = 32;
  template <class V>
  void fields(V& v) {
    v("form", form, Any{}, "dot_product, causal, multi_head, projected or grouped");
    v("tokens", tokens, AtLeast{2}, "of the sequence");
    v("heads", heads, AtLeast{1}, "query heads, where the form has several");
    v("head_dim", head_dim, AtLeast{1}, "elements of a head");
  }
};

// What becomes of scores of random queries and keys (study/score_statistics.h): score_deviation, entropy (nats),
// entropy_share, largest_probability, saturated_share, score_gradient_norm, query_gradient_norm (medians).
enum class ScoreScale { kNone, kRoot };
template <>
struct EnumNames<ScoreScale> {
  static constexpr std::array<std::string_view, 2> kNames{"1", "1/sqrt(d_k)"};
};
struct ScoresMeasurement {
  static constexpr std::string_view kName = "scores";
  int64_t head_dim = 0;
  ScoreScale scale = ScoreScale::kRoot;
  int64_t queries = 256;
  int64_t keys = 256;
  template <class V>
  void fields(V& v) {
    v("head_dim", head_dim, AtLeast{1}, "elements of a query and of a key");
    v("scale", scale, Any{}, "factor on the scores");
    v("queries", queries, AtLeast{1}, "how many are drawn");
    v("keys", keys, AtLeast{1}, "that each query sees");
  }
};

// Where a trained model looks (study/attention_maps.h), on the first tokens of the held-out text: a map a head, and
// map_entropy (nats), map_distance (tokens), map_first_token, map_previous_token, means over layers and heads.
struct MapsMeasurement {
  static constexpr std::string_view kName = "attention_maps";
  int64_t tokens = 32;
  template <class V>
  void fields(V& v) {
    v("tokens", tokens, Between{2, 64}, "of the text");
  }
};

using MeasurementKinds = Kinds<PerplexityMeasurement, CacheMeasurement, DecodeMeasurement, BatchMeasurement,
                               FormMeasurement, ScoresMeasurement, MapsMeasurement>;
using Measurement = MeasurementKinds::Any;

struct Curve {
  std::vector<double> x, y;
};

// A matrix to be looked at: queries down, keys across.
struct MeasuredMap {
  std::string name;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values;
};

struct Measured {
  std::map<std::string, double> metrics;
  std::map<std::string, Curve> curves;
  std::vector<MeasuredMap> maps;
};

struct MeasuringContext {
  ThreadPool& pool;
  const Corpus& corpus;
  const Tokenizer& tokenizer;
  const Vocabulary& vocabulary;
  const ExampleOptions& examples;  // what the models are trained for, and scored on
  const Model* model = nullptr;    // null: the cell has none
  uint64_t seed = 0;
};

// Whether it is of a model, and which names its metrics and curves have.
bool needs_model(const Measurement& measurement);

// InputError when the model cannot be measured so, as a table of positions that ends before the context.
void measure(const Measurement& measurement, const MeasuringContext& context, Measured& result);

}  // namespace transept
