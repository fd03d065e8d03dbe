#include "infer/generate.h"

#include <algorithm>
#include <chrono>

#include "base/problem.h"

namespace transept {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Holds back the end of a text as long as it may be the beginning of a stop string.
class StopWatch {
 public:
  explicit StopWatch(const std::vector<std::string>& stops) : stops_(stops) {}

  // Adds text; gives what is safe to show. `stopped()` then tells whether a stop string was completed.
  std::string push(std::string_view text) {
    held_ += text;
    size_t first = std::string::npos;
    for (const std::string& stop : stops_) {
      if (!stop.empty()) first = std::min(first, held_.find(stop));
    }
    if (first != std::string::npos) {
      stopped_ = true;
      std::string out = held_.substr(0, first);
      held_.clear();
      return out;
    }
    size_t keep = 0;
    for (const std::string& stop : stops_) {
      for (size_t n = std::min(stop.size() - (stop.empty() ? 0 : 1), held_.size()); n > keep; --n) {
        if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
      }
    }
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
    return out;
  }
  std::string rest() { return std::exchange(held_, {}); }
  bool stopped() const { return stopped_; }

 private:
  const std::vector<std::string>& stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace

Generation generate(Decoder& decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<bool(std::string_view)>& emit) {
  std::vector<int32_t> ids = tokenizer.encode(prompt, true);
  if (ids.empty() && tokenizer.bos()) ids.push_back(*tokenizer.bos());
  if (ids.empty()) throw InputError("--prompt", "is empty, and the model has no token to begin with", "give a prompt");
  const int64_t prompt_tokens = static_cast<int64_t>(ids.size());
  if (prompt_tokens > decoder.context()) {
    throw InputError("--prompt",
                     "has " + std::to_string(prompt_tokens) + " tokens, more than the context of " +
                         std::to_string(decoder.context()),
                     "shorten it");
  }
  Generation result;
  result.prompt_tokens = prompt_tokens;
  result.finish_reason = "length";
  decoder.reset();
  TokenSampler sampler(options.sampling);
  StreamDecoder stream(tokenizer, false);
  StopWatch watch(options.stop);
  bool wanted = true;
  const auto give = [&](std::string text) {
    result.text += text;
    if (emit && !text.empty()) wanted = emit(text);
  };

  auto start = Clock::now();
  std::span<const float> logits = decoder.feed(ids);
  result.prefill_tokens_per_second = static_cast<double>(prompt_tokens) / seconds_since(start);
  start = Clock::now();
  int64_t fed = 0;
  while (static_cast<int64_t>(result.tokens.size()) < options.max_tokens) {
    // The model's vocabulary may be padded beyond the tokenizer's.
    const int32_t token =
        sampler.next(logits.first(std::min(logits.size(), static_cast<size_t>(tokenizer.vocab_size()))));
    if (!options.ignore_eos && tokenizer.eos() == token) {
      result.finish_reason = "stop";
      break;
    }
    result.tokens.push_back(token);
    give(watch.push(stream.push(token)));
    if (watch.stopped()) {
      result.finish_reason = "stop";
      break;
    }
    if (!wanted || decoder.position() >= decoder.context()) break;
    if (static_cast<int64_t>(result.tokens.size()) < options.max_tokens) {
      logits = decoder.feed({&token, 1});
      ++fed;
    }
  }
  if (!watch.stopped()) {
    give(watch.push(stream.finish()));
    if (watch.stopped()) {
      result.finish_reason = "stop";
    } else {
      give(watch.rest());
    }
  }
  if (fed > 0) result.decode_tokens_per_second = static_cast<double>(fed) / seconds_since(start);
  return result;
}

}  // namespace transept
