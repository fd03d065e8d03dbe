#include "infer/beam_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/problem.h"
#include "infer/answer_text.h"

namespace transept {
namespace {

// A hypothesis in the beam.
struct Live {
  AnswerText answer;
  std::string text;
  std::vector<int32_t> tokens;
  double log_probability = 0;
};

struct Candidate {
  size_t parent;
  std::ptrdiff_t rank;  // among its parent's, 0 the likeliest
  int32_t token;
  double log_probability;  // of the whole hypothesis
};

double normalizer(int64_t length, double alpha) { return std::pow((5 + static_cast<double>(length)) / 6, alpha); }

// Appends the likeliest `count` continuations of one hypothesis, likeliest first, ties to the lower id. Ordered by the
// logits themselves: distinct ones can become the same log-probability.
void add_candidates(std::span<const float> logits, int64_t count, size_t parent, double log_probability,
                    std::vector<int32_t>& order, std::vector<Candidate>& out) {
  const double top = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double total = 0;
  for (const float z : logits) total += std::exp(static_cast<double>(z) - top);
  if (!std::isfinite(total)) {
    throw EnvironmentError("beam search", "the model gives logits that are not finite",
                           "its weights are damaged or have diverged");
  }
  order.resize(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = order.begin() + static_cast<std::ptrdiff_t>(std::min(logits.size(), static_cast<size_t>(count)));
  std::partial_sort(order.begin(), kept, order.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  for (auto at = order.begin(); at != kept; ++at) {
    const double z = static_cast<double>(logits[static_cast<size_t>(*at)]);
    if (std::isinf(z)) break;  // a token of probability zero, as those after it
    out.push_back({parent, at - order.begin(), *at, log_probability + (z - top - std::log(total))});
  }
}

class Finished {
 public:
  explicit Finished(const BeamOptions& options) : options_(options) {}

  // `length` counts the end token.
  void add(Live h, std::string finish_reason, int64_t length) {
    h.text += h.answer.finish();
    if (h.answer.stopped()) finish_reason = "stop";
    const double score = h.log_probability / normalizer(length, options_.length_penalty);
    const auto place = std::find_if(best_.begin(), best_.end(), [&](const Hypothesis& k) { return k.score < score; });
    best_.insert(place, {std::move(h.text), std::move(h.tokens), std::move(finish_reason), score});
    if (static_cast<int64_t>(best_.size()) > options_.beams) best_.pop_back();
  }
  // Whether a hypothesis of this log-probability that may still grow to `longest` can displace one: its
  // log-probability only falls, and the normalizer is largest for the longest.
  bool can_improve(double log_probability, int64_t longest) const {
    return static_cast<int64_t>(best_.size()) < options_.beams ||
           log_probability / normalizer(longest, options_.length_penalty) > best_.back().score;
  }
  std::vector<Hypothesis> take() { return std::move(best_); }

 private:
  const BeamOptions& options_;
  std::vector<Hypothesis> best_;  // best first; of equals, the earlier
};

}  // namespace

Problems BeamOptions::check() const {
  Problems problems;
  constexpr int64_t kMost = 4096;
  if (beams < 1 || beams > kMost) {
    problems.push_back(
        {"--beams", std::to_string(beams) + " is out of range", "allowed are 1 to " + std::to_string(kMost)});
  }
  if (!std::isfinite(length_penalty) || length_penalty < 0) {
    problems.push_back(
        {"--length-penalty", std::to_string(length_penalty) + " is out of range", "allowed is 0 or more"});
  }
  return problems;
}

BeamGeneration beam_search(Decoder& decoder, const Tokenizer& tokenizer, std::string_view text,
                           const GenerateOptions& options, const BeamOptions& beam,
                           const std::function<bool()>& go_on) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Prompt prompt = encode_prompt(decoder.spec(), tokenizer, text, decoder.prompt_context());
  BeamGeneration result;
  result.best.prompt_tokens = prompt.length();
  auto start = Clock::now();
  std::span<const float> logits = read_prompt(decoder, prompt);
  result.best.prefill_tokens_per_second = static_cast<double>(prompt.length()) / seconds_since(start);

  start = Clock::now();
  const size_t vocab = static_cast<size_t>(decoder.spec().vocab_size), known = known_tokens(decoder.spec(), tokenizer);
  const int64_t longest = longest_answer(decoder, options);
  Finished finished(beam);
  std::vector<Live> live{{AnswerText(tokenizer, options.stop), {}, {}}};
  std::vector<int32_t> order;
  int64_t length = 0, steps = 0;
  while (length < longest) {
    std::vector<Candidate> candidates;
    for (size_t b = 0; b < live.size(); ++b)
      add_candidates(logits.subspan(b * vocab, known), beam.beams, b, live[b].log_probability, order, candidates);
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
      return std::tie(a.parent, a.rank) < std::tie(b.parent, b.rank);
    });
    candidates.resize(std::min(candidates.size(), static_cast<size_t>(beam.beams)));
    ++length;
    std::vector<Live> next;
    std::vector<int64_t> from;
    std::vector<int32_t> tokens;
    for (const Candidate& c : candidates) {
      Live h = live[c.parent];
      h.log_probability = c.log_probability;
      if (ends_text(options, tokenizer, c.token)) {
        finished.add(std::move(h), "stop", length);
        continue;
      }
      h.tokens.push_back(c.token);
      h.text += h.answer.push(c.token);
      if (h.answer.stopped()) {
        finished.add(std::move(h), "stop", length);
        continue;
      }
      next.push_back(std::move(h));
      from.push_back(static_cast<int64_t>(c.parent));
      tokens.push_back(c.token);
    }
    live = std::move(next);
    const auto can_improve = [&](const Live& h) { return finished.can_improve(h.log_probability, longest); };
    if (length == longest || std::none_of(live.begin(), live.end(), can_improve) || (go_on && !go_on())) break;
    decoder.branch(from);
    logits = decoder.step(tokens);
    ++steps;
  }
  for (Live& h : live) finished.add(std::move(h), "length", length);
  if (steps > 0) result.best.decode_tokens_per_second = static_cast<double>(steps) / seconds_since(start);
  result.beams = finished.take();
  const Hypothesis& best = result.beams.front();
  result.best.text = best.text;
  result.best.tokens = best.tokens;
  result.best.finish_reason = best.finish_reason;
  return result;
}

}  // namespace transept
