#include "study/measurement.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "infer/decoder.h"
#include "plan/plan.h"
#include "study/attention_forms.h"
#include "study/attention_maps.h"
#include "study/score_statistics.h"
#include "train/evaluate.h"

namespace transept {
namespace {

constexpr int kDecodeRuns = 5;  // of which the median counts

void run(const PerplexityMeasurement& m, const MeasuringContext& c, Measured& result) {
  Arena arena;
  const EvalResult r =
      evaluate(*c.model, {c.pool, arena, nullptr}, c.corpus.val(), nullptr,
               {.context = m.context, .stride = m.advance(), .vocabulary = &c.vocabulary, .progress = {}});
  result.metrics["loss"] = r.loss;
  result.metrics["perplexity"] = r.perplexity();
  Curve& curve = result.curves["loss_by_position"];
  // Single positions are few tokens each and their losses noise: means over runs of them, at their middle.
  constexpr int64_t kPoints = 64;
  const int64_t positions = static_cast<int64_t>(r.loss_by_position.size());
  const int64_t run_length = std::max<int64_t>(1, (positions + kPoints - 1) / kPoints);
  for (int64_t first = 0; first < positions; first += run_length) {
    double nats = 0;
    int64_t scored = 0;
    const int64_t end = std::min(positions, first + run_length);
    for (int64_t i = first; i < end; ++i) {
      const int64_t n = r.tokens_by_position[static_cast<size_t>(i)];
      if (n == 0) continue;
      nats += r.loss_by_position[static_cast<size_t>(i)] * static_cast<double>(n);
      scored += n;
    }
    if (scored == 0) continue;
    curve.x.push_back(static_cast<double>(first + end + 1) / 2);  // counted from 1
    curve.y.push_back(nats / static_cast<double>(scored));
  }
}

void run(const CacheMeasurement&, const MeasuringContext& c, Measured& result) {
  Decoder decoder(*c.model, c.pool, 1);
  result.metrics["cache_bytes_per_token"] = static_cast<double>(decoder.cache_bytes());
}

void run(const DecodeMeasurement& m, const MeasuringContext& c, Measured& result) {
  using Clock = std::chrono::steady_clock;
  const Split text = c.corpus.val();
  if (text.tokens() < m.cached + m.tokens)
    throw InputError("decode", "needs more held-out text: " + std::to_string(m.cached + m.tokens) + " tokens");
  std::vector<int32_t> tokens(static_cast<size_t>(m.cached + m.tokens));
  text.copy(0, m.cached + m.tokens, tokens.data());
  const std::span<const int32_t> all = tokens, before = all.first(static_cast<size_t>(m.cached)),
                                 timed = all.subspan(static_cast<size_t>(m.cached));
  Decoder decoder(*c.model, c.pool, m.cached + m.tokens);
  std::vector<double> seconds;
  for (int i = 0; i < kDecodeRuns; ++i) {
    decoder.reset();
    if (!before.empty()) decoder.feed(before);
    const auto start = Clock::now();
    for (const int32_t token : timed) decoder.feed({&token, 1});
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kDecodeRuns / 2, seconds.end());
  const std::string name = "decode_tokens_per_second" + (m.name.empty() ? "" : "_" + m.name);
  result.metrics[name] = static_cast<double>(m.tokens) / seconds[kDecodeRuns / 2];
}

void run(const BatchMeasurement& m, const MeasuringContext& c, Measured& result) {
  PlanOptions options;
  options.context = m.context;
  options.memory_bytes = m.megabytes * 1'000'000;
  result.metrics["batch_in_budget"] = static_cast<double>(make_plan(c.model->spec(), options).serving.largest_batch);
}

void run(const FormMeasurement& m, const MeasuringContext& c, Measured& result) {
  const AttentionErrors errors = attention_errors(c.pool, m.form, m.tokens, m.heads, m.head_dim, c.seed);
  result.metrics["error_output"] = errors.output;
  result.metrics["error_gradient_query"] = errors.gradient_query;
  result.metrics["error_gradient_key"] = errors.gradient_key;
  result.metrics["error_gradient_value"] = errors.gradient_value;
}

void run(const ScoresMeasurement& m, const MeasuringContext& c, Measured& result) {
  const ScoreStatistics s = score_statistics(m.head_dim, m.scale == ScoreScale::kRoot, m.queries, m.keys, c.seed);
  result.metrics["score_deviation"] = s.score_deviation;
  result.metrics["entropy"] = s.entropy;
  result.metrics["entropy_share"] = s.entropy_share;
  result.metrics["largest_probability"] = s.largest_probability;
  result.metrics["saturated_share"] = s.saturated_share;
  result.metrics["score_gradient_norm"] = s.score_gradient.median;
  result.metrics["query_gradient_norm"] = s.query_gradient.median;
}

void run(const MapsMeasurement& m, const MeasuringContext& c, Measured& result) {
  const Split text = c.corpus.val();
  if (text.tokens() < m.tokens)
    throw InputError("attention_maps", "needs " + std::to_string(m.tokens) + " tokens of held-out text");
  std::vector<int32_t> tokens(static_cast<size_t>(m.tokens));
  text.copy(0, m.tokens, tokens.data());
  std::vector<std::string> pieces;
  for (const int32_t token : tokens) pieces.push_back(c.tokenizer.piece(token));
  Arena arena;
  const std::vector<AttentionMap> maps = attention_maps(*c.model, {c.pool, arena, nullptr}, tokens);
  MapStatistics sum;
  for (const AttentionMap& map : maps) {
    MeasuredMap& shown = result.maps.emplace_back();
    shown.name = "layer " + std::to_string(map.layer + 1) + ", head " + std::to_string(map.head + 1);
    shown.rows = shown.columns = pieces;
    for (int64_t q = 0; q < map.tokens; ++q) {
      const auto row = map.probabilities.begin() + q * map.tokens;
      shown.values.emplace_back(row, row + map.tokens);
    }
    const MapStatistics s = map_statistics(map);
    sum.entropy += s.entropy;
    sum.distance += s.distance;
    sum.first_token += s.first_token;
    sum.previous_token += s.previous_token;
  }
  const double count = static_cast<double>(maps.size());
  result.metrics["map_entropy"] = sum.entropy / count;
  result.metrics["map_distance"] = sum.distance / count;
  result.metrics["map_first_token"] = sum.first_token / count;
  result.metrics["map_previous_token"] = sum.previous_token / count;
}

}  // namespace

bool needs_model(const Measurement& measurement) {
  return !std::holds_alternative<FormMeasurement>(measurement) &&
         !std::holds_alternative<ScoresMeasurement>(measurement);
}

void measure(const Measurement& measurement, const MeasuringContext& context, Measured& result) {
  std::visit([&](const auto& m) { run(m, context, result); }, measurement);
}

}  // namespace transept
