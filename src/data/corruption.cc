#include "data/corruption.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "kernels/cross_entropy.h"

namespace transept {
namespace {

// The lengths of `segments` parts of `items`, none empty where there are enough: every division is as likely
// (_random_segmentation of the T5 code: the places where a new part begins are drawn without repetition).
std::vector<int64_t> random_division(int64_t items, int64_t segments, Draws& draws) {
  if (items == 0) return std::vector<int64_t>(static_cast<size_t>(segments), 0);
  const uint64_t key = draws.bits(), places = static_cast<uint64_t>(items - 1);
  std::vector<int64_t> ends;
  for (uint64_t i = 0; i + 1 < static_cast<uint64_t>(segments); ++i)
    ends.push_back(static_cast<int64_t>(permute(i, places, key, 0)) + 1);
  ends.push_back(items);
  std::sort(ends.begin(), ends.end());
  std::adjacent_difference(ends.begin(), ends.end(), ends.begin());
  return ends;
}

// By inversion: the first n whose cumulative probability exceeds the draw.
int64_t poisson(double mean, Draws& draws) {
  const double u = draws.uniform();
  double probability = std::exp(-mean), sum = probability;
  int64_t n = 0;
  while (u >= sum && probability > 0) {
    ++n;
    probability *= mean / static_cast<double>(n);
    sum += probability;
  }
  return n;
}

template <class Container>
void append(std::vector<int32_t>& out, const Container& part) {
  out.insert(out.end(), part.begin(), part.end());
}

}  // namespace

Vocabulary vocabulary_of(const Tokenizer& tokenizer) {
  Vocabulary v;
  v.start = decoder_start(tokenizer);
  v.bos = tokenizer.bos();
  v.eos = tokenizer.eos();
  v.mask = tokenizer.mask();
  v.first_sentinel = tokenizer.first_sentinel();
  v.sentinels = tokenizer.sentinels();
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    v.special.push_back(tokenizer.is_special(id));
    const std::string bytes = tokenizer.bytes_of(id);
    const size_t last = bytes.find_last_not_of(" \t\r\n");
    v.full_stop.push_back(last != std::string::npos && bytes[last] == '.');
    if (!v.special.back()) v.ordinary.push_back(id);
  }
  return v;
}

MaskedText mask_tokens(std::span<const int32_t> text, const Vocabulary& vocabulary, Draws& draws) {
  TRANSEPT_CHECK(vocabulary.mask && !vocabulary.ordinary.empty());
  MaskedText out{{text.begin(), text.end()}, std::vector<int32_t>(text.size(), kIgnoredTarget)};
  std::vector<size_t> maskable;
  const auto choose = [&](size_t i) {
    out.targets[i] = text[i];
    const double what = draws.uniform();
    if (what < kReadsMask) {
      out.tokens[i] = *vocabulary.mask;
    } else if (what < kReadsMask + kReadsRandom) {
      out.tokens[i] = vocabulary.ordinary[draws.below(vocabulary.ordinary.size())];
    }
  };
  bool any = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (vocabulary.special[static_cast<size_t>(text[i])]) continue;
    maskable.push_back(i);
    if (draws.uniform() >= kMaskedShare) continue;
    any = true;
    choose(i);
  }
  if (!any && !maskable.empty()) choose(maskable[draws.below(maskable.size())]);
  return out;
}

SpanCounts span_counts(int64_t tokens) {
  TRANSEPT_CHECK(tokens >= 1);
  // The environment's rounding is to nearest, half to even, as the paper's code rounds.
  const auto rounded = [](double x) { return static_cast<int64_t>(std::nearbyint(x)); };
  const int64_t noise =
      std::max<int64_t>(1, std::min(rounded(static_cast<double>(tokens) * kNoiseDensity), tokens - 1));
  return {noise, std::max<int64_t>(1, rounded(static_cast<double>(noise) / kMeanSpan))};
}

int64_t span_window(int64_t length) {
  const auto source = [](int64_t tokens) {
    const SpanCounts c = span_counts(tokens);
    return tokens - c.noise + c.spans + 1;
  };
  int64_t tokens = std::max<int64_t>(1, length - 1);
  while (source(tokens + 1) <= length) ++tokens;
  return tokens;
}

SourceAndTarget drop_spans(std::span<const int32_t> text, const Vocabulary& vocabulary, Draws& draws) {
  const auto tokens = static_cast<int64_t>(text.size());
  const SpanCounts counts = span_counts(tokens);
  TRANSEPT_CHECK(vocabulary.first_sentinel && counts.spans < vocabulary.sentinels);
  const std::vector<int64_t> dropped = random_division(counts.noise, counts.spans, draws);
  const std::vector<int64_t> kept = random_division(tokens - counts.noise, counts.spans, draws);
  SourceAndTarget out;
  size_t at = 0;
  int32_t sentinel = *vocabulary.first_sentinel;
  for (size_t s = 0; s < dropped.size(); ++s, ++sentinel) {
    append(out.source, text.subspan(at, static_cast<size_t>(kept[s])));
    at += static_cast<size_t>(kept[s]);
    out.source.push_back(sentinel);
    out.target.push_back(sentinel);
    append(out.target, text.subspan(at, static_cast<size_t>(dropped[s])));
    at += static_cast<size_t>(dropped[s]);
  }
  out.target.push_back(sentinel);
  return out;
}

std::vector<int32_t> infill(std::span<const int32_t> text, const Vocabulary& vocabulary, Draws& draws) {
  TRANSEPT_CHECK(vocabulary.mask && !text.empty());
  int64_t left = static_cast<int64_t>(std::ceil(static_cast<double>(text.size()) * kInfilledShare));
  const int64_t kept = static_cast<int64_t>(text.size()) - left;
  int64_t inserted = 0, saved = 0;
  struct Span {
    int64_t place, tokens;  // in front of which of the kept tokens, and how many are replaced
    size_t drawn;           // as which one: the order at one place
  };
  std::vector<Span> spans;
  while (left > 0) {
    const int64_t tokens = std::min(poisson(kMeanInfilled, draws), left);
    if (tokens == 0) {
      ++inserted;
    } else {
      spans.push_back({0, tokens, spans.size()});
      saved += tokens - 1;
      left -= tokens;
    }
  }
  for (inserted = std::min(inserted, saved); inserted > 0; --inserted) spans.push_back({0, 0, spans.size()});
  for (Span& s : spans) s.place = static_cast<int64_t>(draws.below(static_cast<uint64_t>(kept) + 1));
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return std::pair(a.place, a.drawn) < std::pair(b.place, b.drawn); });
  std::vector<int32_t> out;
  int64_t done = 0;  // kept tokens written
  size_t at = 0;
  for (const Span& s : spans) {
    append(out, text.subspan(at, static_cast<size_t>(s.place - done)));
    at += static_cast<size_t>(s.place - done + s.tokens);
    done = s.place;
    out.push_back(*vocabulary.mask);
  }
  append(out, text.subspan(at));
  return out;
}

std::vector<int32_t> permute_sentences(std::span<const int32_t> text, const Vocabulary& vocabulary, Draws& draws) {
  std::vector<std::span<const int32_t>> sentences;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && !vocabulary.full_stop[static_cast<size_t>(text[i])]) continue;
    sentences.push_back(text.subspan(begin, i + 1 - begin));
    begin = i + 1;
  }
  const uint64_t key = draws.bits();
  std::vector<int32_t> out;
  for (uint64_t i = 0; i < sentences.size(); ++i) append(out, sentences[permute(i, sentences.size(), key, 1)]);
  return out;
}

}  // namespace transept
