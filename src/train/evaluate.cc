#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "base/problem.h"
#include "kernels/cross_entropy.h"
#include "train/batch_call.h"

namespace transept {
namespace {

constexpr uint64_t kCorruptionSeed = 0;  // of every evaluation, so that all of them ask the same

// Tokens [begin, begin + inputs) are fed. Causal: of the tokens that follow them, those from index `scored_from` on are
// scored. Pairs: `begin` is the pair.
struct Window {
  int64_t begin, inputs, scored_from;
};

std::vector<Window> windows_of_text(int64_t tokens, int64_t context, int64_t stride) {
  std::vector<Window> windows;
  if (tokens < 2) return windows;
  if (stride == context) {
    for (int64_t b = 0; b + 1 < tokens; b += context) windows.push_back({b, std::min(context, tokens - 1 - b), 0});
    return windows;
  }
  int64_t end = std::min(context, tokens);  // of the window
  int64_t scored = 1;                       // tokens [0, scored) are done with; the first has nothing before it
  for (;;) {
    const int64_t begin = std::max<int64_t>(0, end - context);
    windows.push_back({begin, end - 1 - begin, scored - 1 - begin});
    if (end == tokens) return windows;
    scored = end;
    end = std::min(end + stride, tokens);
  }
}

std::vector<Window> windows_of_stream(const Split& split, int64_t context, int64_t stride, bool separate) {
  if (!separate) return windows_of_text(split.tokens(), context, stride);
  std::vector<Window> windows;
  for (int64_t d = 0; d < split.documents(); ++d) {
    for (Window w : windows_of_text(split.document_tokens(d), context, stride)) {
      w.begin += split.document_begin(d);
      windows.push_back(w);
    }
  }
  return windows;
}

// Documents are scored each alone, cut after `context` inputs.
std::vector<Window> windows_of_lines(const Split& split, int64_t context) {
  std::vector<Window> windows;
  for (int64_t d = 0; d < split.documents(); ++d) {
    const int64_t tokens = split.document_tokens(d);
    if (tokens > 1) windows.push_back({split.document_begin(d), std::min(context, tokens - 1), 0});
  }
  return windows;
}

// What training would read, each once.
std::vector<Window> examples_of(const Split& split, int64_t context, int64_t window) {
  std::vector<Window> windows;
  switch (split.unit()) {
    case Unit::kStream:
      for (int64_t b = 0; b < split.tokens(); b += window)
        windows.push_back({b, std::min(window, split.tokens() - b), 0});
      break;
    case Unit::kLines:
      for (int64_t d = 0; d < split.documents(); ++d)
        windows.push_back({d, std::min(context, split.document_tokens(d)), 0});
      break;
    case Unit::kPairs:
      for (int64_t p = 0; p < split.documents() / 2; ++p)
        windows.push_back({p, split.document_tokens(2 * p) + split.document_tokens(2 * p + 1), 0});
      break;
  }
  return windows;
}

void add_scored(const Split& split, const Window& window, Batch& batch) {
  std::vector<int32_t> tokens(static_cast<size_t>(window.inputs)), targets(tokens.size());
  split.copy(window.begin, window.inputs, tokens.data());
  split.copy(window.begin + 1, window.inputs, targets.data());
  std::fill(targets.begin(), targets.begin() + window.scored_from, kIgnoredTarget);
  batch.add(tokens, targets);
}

}  // namespace

double EvalResult::perplexity() const { return std::exp(loss); }

double EvalResult::bits_per_byte() const {
  if (bytes_scored == 0) return std::numeric_limits<double>::quiet_NaN();
  return loss * static_cast<double>(tokens_scored) / std::numbers::ln2 / static_cast<double>(bytes_scored);
}

EvalResult evaluate(const Model& model, const OpContext& op, const Split& split, const Tokenizer* tokenizer,
                    const EvalOptions& options) {
  const int64_t context = options.context, stride = options.stride > 0 ? options.stride : context;
  const Objective objective = options.examples.objective;
  const bool causal = objective == Objective::kCausal;
  Problems problems;
  if (context < 1)
    problems.push_back({"--context", std::to_string(context) + " is out of range", "allowed is 1 or more"});
  if (context >= 1 && stride > context) {
    problems.push_back({"--stride",
                        std::to_string(stride) + " is more than the context of " + std::to_string(context) +
                            ": tokens between windows would go unscored",
                        "use at most the context"});
  }
  if (!causal && stride < context)
    problems.push_back({"--stride", "applies to the objective causal only", "leave it out"});
  if (split.tokens() < 2) problems.push_back({"--data", "holds fewer than two tokens", "give more text"});
  throw_if_any(std::move(problems));
  TRANSEPT_CHECK(causal || options.vocabulary);
  if (options.vocabulary) check_examples(options.examples, *options.vocabulary, context);
  model.check_input({}, context - 1, "--context");
  for (int64_t i = 0; i < split.tokens(); ++i) {
    const int32_t token = split.token(i);
    if (token >= model.spec().vocab_size) model.check_input({&token, 1}, 0, "--data, token " + std::to_string(i));
  }

  const int64_t window_size = causal ? context : window_tokens(objective, context, *options.vocabulary);
  // Rows that an example has beside its text.
  const int64_t added_rows = std::max<int64_t>(0, context - window_size);
  std::vector<Window> windows = !causal ? examples_of(split, context, window_size)
                                : split.unit() == Unit::kStream
                                    ? windows_of_stream(split, context, stride, options.examples.separate_documents)
                                    : windows_of_lines(split, context);
  if (options.max_tokens > 0) {
    int64_t sum = 0;
    size_t keep = 0;
    while (keep < windows.size() && sum < options.max_tokens) {
      sum += windows[keep].inputs - windows[keep].scored_from;
      ++keep;
    }
    windows.resize(keep);
  }

  EvalResult result;
  std::vector<double> nats_at(static_cast<size_t>(context), 0.0);
  result.tokens_by_position.assign(static_cast<size_t>(context), 0);
  double nats = 0;
  const bool text_itself = causal || objective == Objective::kSeq2seq;
  const auto add = [&](size_t w, Batch& batch) {
    const Window& window = windows[w];
    Draws draws(kCorruptionSeed, w);
    if (causal) {
      add_scored(split, window, batch);
    } else if (split.unit() == Unit::kStream) {
      add_window(split, window.begin, window.inputs, options.examples, *options.vocabulary, draws, batch);
    } else if (split.unit() == Unit::kLines) {
      add_line(split, window.begin, context, options.examples, *options.vocabulary, draws, batch);
    } else {
      add_pair(split, window.begin, *options.vocabulary, batch);
    }
  };
  for (size_t w = 0; w < windows.size();) {
    Batch batch;
    const size_t first = w;
    const auto rows_of = [&](const Window& window) { return window.inputs + added_rows; };
    for (int64_t rows = 0; w < windows.size() && (w == first || rows + rows_of(windows[w]) <= options.batch_tokens);
         ++w) {
      add(w, batch);
      rows += rows_of(windows[w]);
    }
    std::vector<float> losses(batch.tokens.size());
    const Var h = model.hidden(op, call_of(batch));
    const LossSum sum = model.loss(op, h, batch.targets, 0.f, losses);
    nats += sum.nats;
    result.tokens_scored += sum.tokens;
    for (const SequenceRows& s : batch.layout) {
      for (int64_t i = 0; i < s.rows; ++i) {
        const size_t row = static_cast<size_t>(s.first_row + i);
        const int32_t target = batch.targets[row];
        if (target == kIgnoredTarget) continue;
        nats_at[static_cast<size_t>(i)] += static_cast<double>(losses[row]);
        ++result.tokens_by_position[static_cast<size_t>(i)];
        if (text_itself && tokenizer && target < tokenizer->vocab_size())
          result.bytes_scored += static_cast<int64_t>(tokenizer->bytes_of(target).size());
      }
    }
    if (options.progress) options.progress(static_cast<int64_t>(w), static_cast<int64_t>(windows.size()));
  }
  result.loss = nats / static_cast<double>(result.tokens_scored);
  for (size_t i = 0; i < nats_at.size(); ++i) {
    const int64_t n = result.tokens_by_position[i];
    result.loss_by_position.push_back(n > 0 ? nats_at[i] / static_cast<double>(n)
                                            : std::numeric_limits<double>::quiet_NaN());
  }
  return result;
}

}  // namespace transept
