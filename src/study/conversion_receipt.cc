#include "study/conversion_receipt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/format_number.h"
#include "data/sampler.h"
#include "plan/parameters.h"
#include "train/batch_call.h"

namespace transept {
namespace {

constexpr int64_t kLogitRows = 256;  // at a time: two tables of as many rows as the vocabulary has entries

// Adds up what two rows of logits differ by.
class LogitSums {
 public:
  void add(const float* before, const float* after, int64_t vocab) {
    const double before_norm = log_sum(before, vocab), after_norm = log_sum(after, vocab);
    for (int64_t i = 0; i < vocab; ++i) {
      const double z = static_cast<double>(before[i]), error = static_cast<double>(after[i]) - z;
      max_error_ = std::max(max_error_, std::abs(error));
      squares_ += z * z;
      errors_ += error * error;
      kl_ += std::exp(z - before_norm) * (after_norm - before_norm - error);
    }
    same_ += std::max_element(before, before + vocab) - before == std::max_element(after, after + vocab) - after;
    ++rows_;
    elements_ += vocab;
  }
  LogitDamage result() const {
    const double rows = static_cast<double>(rows_), elements = static_cast<double>(elements_);
    return {max_error_, std::sqrt(errors_ / elements), std::sqrt(errors_ / squares_), kl_ / rows,
            static_cast<double>(same_) / rows};
  }

 private:
  static double log_sum(const float* z, int64_t vocab) {
    const double top = static_cast<double>(*std::max_element(z, z + vocab));
    double sum = 0;
    for (int64_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(z[i]) - top);
    return top + std::log(sum);
  }
  double max_error_ = 0, squares_ = 0, errors_ = 0, kl_ = 0;
  int64_t rows_ = 0, elements_ = 0, same_ = 0;
};

// What one sublayer of a layer leaves, and what it was added to.
struct SublayerStream {
  std::vector<float> before, after;
};

std::vector<float> copied(ConstRows rows) {
  std::vector<float> values;
  for (int64_t r = 0; r < rows.rows; ++r) values.insert(values.end(), rows.row(r), rows.row(r) + rows.width);
  return values;
}

struct ErrorSums {
  double errors = 0, changes = 0;
  void add(const SublayerStream& source, const SublayerStream& converted) {
    for (size_t i = 0; i < source.after.size(); ++i) {
      const double y = static_cast<double>(source.after[i]);
      errors += std::pow(static_cast<double>(converted.after[i]) - y, 2);
      changes += std::pow(y - static_cast<double>(source.before[i]), 2);
    }
  }
  double relative() const { return std::sqrt(errors / changes); }
};

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }

Json json_of(const LogitDamage& d) {
  return {{"max_error", number(d.max_error)},
          {"rms_error", number(d.rms_error)},
          {"relative_rms", number(d.relative_rms)},
          {"kl_nats", number(d.kl_nats)},
          {"same_choice", number(d.same_choice)}};
}

std::string text_of(const char* name, const LogitDamage& d) {
  return fmt::format(
      "logits {}: rms error {} ({:.3g} % of their rms), largest {}; KL {} nats; the same first choice at {:.1f} %\n",
      name, format_number(d.rms_error), 100 * d.relative_rms, format_number(d.max_error), format_number(d.kl_nats),
      100 * d.same_choice);
}

}  // namespace

ConversionProbe::ConversionProbe(const Model& source, const OpContext& op, const Split& held_out,
                                 const EvalOptions& options, const Vocabulary& vocabulary, int64_t tokens)
    : source_(source), op_(op), held_out_(held_out), options_(options) {
  TRANSEPT_CHECK(!op.tape);
  constexpr uint64_t kSeed = 0;  // so that all conversions of a model are measured on the same text
  const Sampler sampler(held_out, options.context, 1, kSeed, options.examples, vocabulary);
  for (int64_t i = 0; i < sampler.units_per_epoch() && tokens_ < tokens; ++i) {
    Batch batch = sampler.batch(static_cast<uint64_t>(i));
    if (batch.target_count == 0) continue;
    tokens_ += batch.target_count;
    batches_.push_back(std::move(batch));
  }
  source_loss_ = probe_loss(source);
}

double ConversionProbe::loss(const Model& model) const {
  return evaluate(model, op_, held_out_, nullptr, options_).loss;
}

double ConversionProbe::probe_loss(const Model& model) const {
  double nats = 0;
  for (const Batch& batch : batches_) nats += model.loss(op_, model.hidden(op_, call_of(batch)), batch.targets, 0).nats;
  return nats / static_cast<double>(tokens_);
}

LogitDamage ConversionProbe::logits(const Model& converted) const {
  const int64_t vocab = source_.spec().vocab_size;
  TRANSEPT_CHECK(converted.spec().vocab_size == vocab);
  std::vector<float> before(static_cast<size_t>(kLogitRows * vocab)), after(before.size());
  LogitSums sums;
  for (const Batch& batch : batches_) {
    const Var a = source_.hidden(op_, call_of(batch)), b = converted.hidden(op_, call_of(batch));
    for (int64_t first = 0; first < a.rows; first += kLogitRows) {
      const int64_t rows = std::min(kLogitRows, a.rows - first);
      source_.logits(op_, a.view().slice(first, rows), {before.data(), rows, vocab, vocab});
      converted.logits(op_, b.view().slice(first, rows), {after.data(), rows, vocab, vocab});
      for (int64_t r = 0; r < rows; ++r) {
        if (batch.targets[static_cast<size_t>(first + r)] != kIgnoredTarget)
          sums.add(before.data() + r * vocab, after.data() + r * vocab, vocab);
      }
    }
  }
  return sums.result();
}

LayerDamage ConversionProbe::layer(const Model& converted, const LayerPlace& place) const {
  using Streams = std::map<std::string, SublayerStream>;
  // One pass; gives its nats.
  const auto pass = [&](const Model& model, const Batch& batch, Streams& seen) {
    ForwardCall call = call_of(batch);
    call.observe = [&](std::string_view part, int64_t at, ConstRows rows) {
      if (at != place.layer) return;
      for (const char* name : {"attention", "cross_attention"}) {
        const std::string leaves = fmt::format("{}{}", place.encoder ? "encoder " : "", name);
        if (part == leaves) seen[name].after = copied(rows);
        if (part == leaves + "_residual") seen[name].before = copied(rows);
      }
    };
    return model.loss(op_, model.hidden(op_, call), batch.targets, 0).nats;
  };
  std::map<std::string, ErrorSums> sums;
  double nats = 0;
  for (const Batch& batch : batches_) {
    Streams before, after;
    pass(source_, batch, before);
    nats += pass(converted, batch, after);
    for (const auto& [name, stream] : before) sums[name].add(stream, after.at(name));
  }
  LayerDamage damage;
  damage.place = place;
  damage.attention_error = sums["attention"].relative();
  if (sums.contains("cross_attention")) damage.cross_attention_error = sums["cross_attention"].relative();
  damage.loss = nats / static_cast<double>(tokens_);
  damage.loss_increase = damage.loss - source_loss_;
  return damage;
}

ConversionReceipt start_receipt(Json conversion, const ArchSpec& before, const ArchSpec& after) {
  ConversionReceipt receipt;
  receipt.conversion = std::move(conversion);
  receipt.own_stack = before.topology == Topology::kEncoder ? "encoder" : "decoder";
  receipt.cache_dtype = "bf16";
  const auto cache = [&](const ArchSpec& spec) {
    const int64_t context = spec.max_position_embeddings;
    return count_cache(spec, context, spec.encoder_decoder() ? context : 0, 1, *find_stored_type(receipt.cache_dtype));
  };
  receipt.parameters_before = count_parameters(before).total;
  receipt.parameters_after = count_parameters(after).total;
  receipt.cache_before = cache(before);
  receipt.cache_after = cache(after);
  return receipt;
}

Json to_json(const ConversionReceipt& r) {
  const auto both = [](int64_t before, int64_t after) { return Json{{"before", before}, {"after", after}}; };
  Json out{{"conversion", r.conversion},
           {"parameters", both(r.parameters_before, r.parameters_after)},
           {"kv_cache",
            {{"dtype", r.cache_dtype},
             {"bytes_per_token", both(r.cache_before.bytes_per_token, r.cache_after.bytes_per_token)},
             {"elements_per_token", both(r.cache_before.elements_per_token, r.cache_after.elements_per_token)},
             {"source_elements_per_token",
              both(r.cache_before.source_elements_per_token, r.cache_after.source_elements_per_token)},
             {"bytes", both(r.cache_before.bytes, r.cache_after.bytes)}}}};
  if (!r.measured) return out;
  const MeasuredDamage& m = *r.measured;
  out["data"] = {{"held_out_tokens", m.held_out_tokens},
                 {"probe_tokens", m.probe_tokens},
                 {"context", m.context},
                 {"objective", m.objective}};
  out["loss"] = {{"before", number(m.loss_before)}, {"after", number(m.loss_after)}};
  out["logits"] = {{"after", json_of(m.logits)}};
  if (r.recovery) {
    out["loss"]["recovered"] = number(r.recovery->loss);
    out["logits"]["recovered"] = json_of(r.recovery->logits);
    out["recovery"] = {{"steps", r.recovery->steps},
                       {"tokens", r.recovery->tokens},
                       {"lr", r.recovery->lr},
                       {"teacher", r.recovery->teacher},
                       {"seconds", r.recovery->seconds}};
  }
  out["perplexity"] = Json::object();
  for (const auto& [when, loss] : out["loss"].items())
    out["perplexity"][when] = loss.is_null() ? Json() : number(std::exp(loss.get<double>()));
  out["layers"] = Json::array();
  for (const LayerDamage& d : m.layers) {
    Json layer{{"stack", d.place.encoder ? "encoder" : r.own_stack},
               {"layer", d.place.layer},
               {"attention_error", number(d.attention_error)},
               {"loss", number(d.loss)},
               {"loss_increase", number(d.loss_increase)}};
    if (d.cross_attention_error) layer["cross_attention_error"] = number(*d.cross_attention_error);
    out["layers"].push_back(std::move(layer));
  }
  return out;
}

std::string to_text(const ConversionReceipt& r) {
  std::string text;
  for (const auto& [key, value] : r.conversion.items())
    text += fmt::format("{} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  const auto line = [&](const std::string& label, const std::vector<std::string>& cells) {
    text += fmt::format("{:<22}", label);
    for (const std::string& cell : cells) text += fmt::format("{:>17}", cell);
    text += "\n";
  };
  const auto counts = [](int64_t before, int64_t after) {
    return std::vector{format_count(static_cast<double>(before)), format_count(static_cast<double>(after))};
  };
  std::vector<std::string> titles{"before", "after"};
  if (r.recovery) titles.emplace_back("recovered");
  text += "\n";
  line("", titles);
  if (r.measured) {
    std::vector<double> losses{r.measured->loss_before, r.measured->loss_after};
    if (r.recovery) losses.push_back(r.recovery->loss);
    std::vector<std::string> nats, perplexities;
    for (const double loss : losses) {
      nats.push_back(fmt::format("{:.4f}", loss));
      perplexities.push_back(fmt::format("{:.3f}", std::exp(loss)));
    }
    line("perplexity", perplexities);
    line("loss, nats a token", nats);
  }
  line(fmt::format("KV bytes a token, {}", r.cache_dtype),
       counts(r.cache_before.bytes_per_token, r.cache_after.bytes_per_token));
  if (r.cache_before.source_elements_per_token > 0) {
    line("KV elements, source",
         counts(r.cache_before.source_elements_per_token, r.cache_after.source_elements_per_token));
  }
  line("parameters", counts(r.parameters_before, r.parameters_after));
  if (!r.measured) return text;
  const MeasuredDamage& m = *r.measured;
  text += fmt::format("\n{} held-out tokens, windows of {}, objective {}; below on {} of them\n",
                      format_count(static_cast<double>(m.held_out_tokens)), m.context, m.objective,
                      format_count(static_cast<double>(m.probe_tokens)));
  text += text_of("after", m.logits);
  if (r.recovery) {
    text += text_of("recovered", r.recovery->logits);
    text += fmt::format("recovered by {} steps over {} tokens at {}, {} % of the loss from the source, in {:.0f} s\n",
                        r.recovery->steps, format_count(static_cast<double>(r.recovery->tokens)),
                        exact_number(r.recovery->lr), exact_number(100 * r.recovery->teacher), r.recovery->seconds);
  }
  if (m.layers.empty()) return text;
  text += "\neach layer alone, before any recovery\n";
  line("", {"attention error", "loss", "increase"});
  for (const LayerDamage& d : m.layers) {
    line(fmt::format("{}layer {}", d.place.encoder ? "encoder " : "", d.place.layer),
         {fmt::format("{:.2f} %", 100 * d.attention_error), fmt::format("{:.4f}", d.loss),
          fmt::format("{:+.4f}", d.loss_increase)});
  }
  return text;
}

}  // namespace transept
