#include "train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/problem.h"
#include "kernels/cross_entropy.h"

namespace transept {
namespace {

// Tokens [begin, begin + inputs) are fed; of the tokens that follow them, those from index `scored_from` on are scored.
struct Window {
  int64_t begin, inputs, scored_from;
};

std::vector<Window> windows_of_stream(int64_t tokens, int64_t context, int64_t stride) {
  std::vector<Window> windows;
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

// Documents are scored each alone, cut after `context` inputs.
std::vector<Window> windows_of_lines(const Split& split, int64_t context) {
  std::vector<Window> windows;
  for (int64_t d = 0; d < split.documents(); ++d) {
    const int64_t tokens = split.document_tokens(d);
    if (tokens > 1) windows.push_back({split.document_begin(d), std::min(context, tokens - 1), 0});
  }
  return windows;
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
  Problems problems;
  if (context < 1)
    problems.push_back({"--context", std::to_string(context) + " is out of range", "allowed is 1 or more"});
  if (context >= 1 && stride > context) {
    problems.push_back({"--stride",
                        std::to_string(stride) + " is more than the context of " + std::to_string(context) +
                            ": tokens between windows would go unscored",
                        "use at most the context"});
  }
  if (split.tokens() < 2) problems.push_back({"--data", "holds fewer than two tokens", "give more text"});
  throw_if_any(std::move(problems));
  model.check_input({}, context - 1, "--context");
  for (int64_t i = 0; i < split.tokens(); ++i) {
    const int32_t token = split.token(i);
    if (token >= model.spec().vocab_size) model.check_input({&token, 1}, 0, "--data, token " + std::to_string(i));
  }

  std::vector<Window> windows = split.unit() == Unit::kLines ? windows_of_lines(split, context)
                                                             : windows_of_stream(split.tokens(), context, stride);
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
  for (size_t w = 0; w < windows.size();) {
    BatchLayout layout;
    std::vector<int32_t> tokens, targets;
    const size_t first = w;
    for (int64_t rows = 0; w < windows.size() && (w == first || rows + windows[w].inputs <= options.batch_tokens);
         ++w) {
      const Window& window = windows[w];
      layout.push_back({rows, window.inputs, 0});
      for (int64_t i = 0; i < window.inputs; ++i) {
        tokens.push_back(split.token(window.begin + i));
        targets.push_back(i < window.scored_from ? kIgnoredTarget : split.token(window.begin + i + 1));
      }
      rows += window.inputs;
    }
    std::vector<float> losses(tokens.size());
    const Var h = model.hidden(op, {.tokens = tokens, .layout = layout, .dropout = {}, .observe = {}});
    const LossSum sum = model.loss(op, h, targets, 0.f, losses);
    nats += sum.nats;
    result.tokens_scored += sum.tokens;
    for (const SequenceRows& s : layout) {
      for (int64_t i = 0; i < s.rows; ++i) {
        const size_t row = static_cast<size_t>(s.first_row + i);
        if (targets[row] == kIgnoredTarget) continue;
        nats_at[static_cast<size_t>(i)] += static_cast<double>(losses[row]);
        ++result.tokens_by_position[static_cast<size_t>(i)];
        if (tokenizer && targets[row] < tokenizer->vocab_size())
          result.bytes_scored += static_cast<int64_t>(tokenizer->bytes_of(targets[row]).size());
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
