// The tiled attention against the double-precision formulas on every instruction set, and against itself where two ways
// must agree.
#include "kernels/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "kernels/attention_ref.h"
#include "support/compare.h"
#include "support/isa.h"
#include "support/tolerances.h"

namespace transept {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kUntouched = 12345.f;

// What makes scores of products, beside scale and window.
struct Options {
  bool causal = true, bias = false, sinks = false;
  float softcap = 0;
};

struct Case {
  int64_t heads, kv_heads, head_dim, rows, window, first_position = 0;
  // (first position, rows) of each chunk of keys; empty: one chunk, the rows themselves.
  std::vector<std::pair<int64_t, int64_t>> chunks = {};
  Options options = {};
  int64_t value_dim = 0;

  int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
  int64_t kv_row_width() const { return kv_heads * (head_dim + value_width()); }
  std::string text() const {
    std::string s = "heads " + std::to_string(heads) + "/" + std::to_string(kv_heads) + " head_dim " +
                    std::to_string(head_dim) + " values " + std::to_string(value_width()) + " rows " +
                    std::to_string(rows) + " window " + std::to_string(window) + " at " +
                    std::to_string(first_position);
    for (const auto& [first, n] : chunks) s += " [" + std::to_string(first) + ", +" + std::to_string(n) + ")";
    return s + (options.causal ? " causal" : "") + (options.bias ? " bias" : "") + (options.sinks ? " sinks" : "") +
           " cap " + std::to_string(options.softcap);
  }
  // Without the pointers, which a Sequence has.
  AttentionShape shape() const {
    return {heads,
            kv_heads,
            head_dim,
            value_dim,
            1.3f / std::sqrt(static_cast<float>(head_dim)),
            options.causal,
            window,
            options.softcap,
            nullptr,
            0,
            0,
            nullptr};
  }
  std::vector<std::pair<int64_t, int64_t>> all_chunks() const {
    return chunks.empty() ? std::vector{std::pair{first_position, rows}} : chunks;
  }
  // The least and the greatest distance of a visible pair: what a table of biases must hold.
  std::pair<int64_t, int64_t> distances() const {
    int64_t least = std::numeric_limits<int64_t>::max(), most = std::numeric_limits<int64_t>::min();
    for (const auto& [first, n] : all_chunks()) {
      least = std::min(least, first_position - first - n + 1);
      most = std::max(most, first_position + rows - 1 - first);
    }
    if (options.causal) least = std::max<int64_t>(least, 0);
    if (window > 0) least = std::max(least, 1 - window), most = std::min(most, window - 1);
    return {least, std::max(least, most)};
  }
};

// Rows of `width` floats inside a larger, misaligned buffer, as in a fused projection.
struct Strided {
  int64_t rows, width, stride;
  std::vector<float> memory;
  Strided(int64_t rows_, int64_t width_, int64_t gap, float fill)
      : rows(rows_),
        width(width_),
        stride(width_ + gap),
        memory(static_cast<size_t>(rows_ * (width_ + gap) + 3), kUntouched) {
    for (int64_t r = 0; r < rows; ++r) std::fill_n(row(r), width, fill);
  }
  float* row(int64_t r) { return memory.data() + 3 + r * stride; }
  // Columns [first, first + n) of all rows, packed.
  std::vector<float> take(int64_t first, int64_t n) {
    std::vector<float> packed;
    for (int64_t r = 0; r < rows; ++r) packed.insert(packed.end(), row(r) + first, row(r) + first + n);
    return packed;
  }
  bool gaps_untouched() {
    for (size_t i = 0; i < 3; ++i) {
      if (memory[i] != kUntouched) return false;
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = width; i < stride; ++i) {
        if (row(r)[i] != kUntouched) return false;
      }
    }
    return true;
  }
};

std::vector<double> doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

// A case with random data, laid out in memory as a model would, and the same as input of the reference.
class Sequence {
 public:
  explicit Sequence(const Case& c, uint64_t seed = 1)
      : case_(c),
        qkv_(c.rows, c.heads * c.head_dim + c.kv_row_width(), 5, 0),
        out_(c.rows, c.heads * c.value_width(), 7, kNaN),
        d_out_(c.rows, c.heads * c.value_width(), 7, 0),
        d_qkv_(c.rows, c.heads * c.head_dim + c.kv_row_width(), 5, kNaN),
        lse_(static_cast<size_t>(c.rows * c.heads), kNaN),
        d_kv_(c.chunks.size() == 1 ? c.chunks[0].second : 0, c.kv_row_width(), 3, kNaN) {
    const CounterRng rng(seed, Stream::kTest);
    uint64_t draw = 0;
    const auto randomize = [&](Strided& x) {
      for (int64_t r = 0; r < x.rows; ++r) {
        for (int64_t i = 0; i < x.width; ++i) x.row(r)[i] = static_cast<float>(rng.normal(draw++));
      }
    };
    randomize(qkv_);
    randomize(d_out_);
    for (const auto& [first, n] : c.chunks) {
      cached_.emplace_back(n, c.kv_row_width(), 3, 0.f);
      randomize(cached_.back());
    }
    // An entry depends on head and distance alone, so that the tables of all cases agree. What lies around it is NaN.
    const CounterRng options(7, Stream::kTest);
    const int64_t group = c.heads / c.kv_heads;
    if (c.options.bias) {
      const auto [least, most] = c.distances();
      bias_.assign(static_cast<size_t>((most - least + 1) * c.heads) + 2 * kMargin, kNaN);
      d_bias_.assign(bias_.size(), kUntouched);
      size_t at = kMargin;
      for (int64_t g = 0; g < c.kv_heads; ++g) {
        for (int64_t d = least; d <= most; ++d) {
          for (int64_t h = 0; h < group; ++h)
            bias_[at++] =
                static_cast<float>(options.normal(static_cast<uint64_t>((d + 5000) * c.heads + g * group + h)));
        }
      }
    }
    for (int64_t h = 0; h < c.heads && c.options.sinks; ++h)
      sinks_.push_back(static_cast<float>(2 * options.normal(static_cast<uint64_t>(h))));
    d_sinks_.assign(sinks_.size(), kNaN);
  }

  const Case& the_case() const { return case_; }
  AttentionShape shape() const {
    AttentionShape shape = case_.shape();
    if (case_.options.bias) {
      const auto [least, most] = case_.distances();
      shape.bias = bias_.data() + kMargin;
      shape.bias_first = least;
      shape.bias_distances = most - least + 1;
    }
    if (case_.options.sinks) shape.sinks = sinks_.data();
    return shape;
  }
  Strided& qkv() { return qkv_; }
  Strided& d_qkv() { return d_qkv_; }
  Strided& chunk(size_t i) { return cached_[i]; }
  int64_t q_width() const { return case_.heads * case_.head_dim; }
  int64_t kv_width() const { return case_.kv_heads * case_.head_dim; }
  int64_t v_width() const { return case_.kv_heads * case_.value_width(); }
  int64_t out_width() const { return case_.heads * case_.value_width(); }

  AttentionSequence sequence() {
    chunks_.clear();
    if (case_.chunks.empty()) {
      float* k = qkv_.row(0) + q_width();
      chunks_.push_back({k, k + kv_width(), qkv_.stride, case_.rows, case_.first_position});
    }
    for (size_t i = 0; i < case_.chunks.size(); ++i) {
      float* k = cached_[i].row(0);
      chunks_.push_back({k, k + kv_width(), cached_[i].stride, case_.chunks[i].second, case_.chunks[i].first});
    }
    return {qkv_.row(0), qkv_.stride, case_.rows, case_.first_position, chunks_, out_.row(0), out_.stride, lse_.data()};
  }
  AttentionGradient gradient() {
    float* const d = d_qkv_.row(0);
    float* const dk = case_.chunks.empty() ? d + q_width() : d_kv_.row(0);
    return {sequence(),
            d_out_.row(0),
            d,
            dk,
            dk + kv_width(),
            case_.options.bias ? d_bias_.data() + kMargin : nullptr,
            case_.options.sinks ? d_sinks_.data() : nullptr};
  }

  std::vector<float> out() { return out_.take(0, out_width()); }
  const std::vector<float>& lse() const { return lse_; }
  std::vector<float> d_out() { return d_out_.take(0, out_width()); }
  std::vector<float> dq() { return d_qkv_.take(0, q_width()); }
  std::vector<float> dk() {
    return case_.chunks.empty() ? d_qkv_.take(q_width(), kv_width()) : d_kv_.take(0, kv_width());
  }
  std::vector<float> dv() {
    return case_.chunks.empty() ? d_qkv_.take(q_width() + kv_width(), v_width()) : d_kv_.take(kv_width(), v_width());
  }
  std::vector<float> d_bias() const {
    if (d_bias_.empty()) return {};
    return {d_bias_.begin() + kMargin, d_bias_.end() - kMargin};
  }
  const std::vector<float>& d_sinks() const { return d_sinks_; }
  bool gaps_untouched() {
    for (size_t i = 0; i < std::min<size_t>(kMargin, d_bias_.size()); ++i) {
      if (d_bias_[i] != kUntouched || d_bias_[d_bias_.size() - 1 - i] != kUntouched) return false;
    }
    return out_.gaps_untouched() && d_qkv_.gaps_untouched() && d_kv_.gaps_untouched();
  }

  ref::AttentionInput input() {
    ref::AttentionInput in{case_.heads,
                           case_.kv_heads,
                           case_.head_dim,
                           static_cast<double>(case_.shape().scale),
                           case_.window,
                           case_.first_position,
                           {},
                           doubles(qkv_.take(0, q_width())),
                           {},
                           {},
                           case_.options.causal,
                           static_cast<double>(case_.options.softcap),
                           {},
                           shape().bias_first,
                           doubles(sinks_)};
    in.value_dim = case_.value_dim;
    if (case_.options.bias) in.bias.assign(bias_.begin() + kMargin, bias_.end() - kMargin);
    const auto add = [&](Strided& x, int64_t at, int64_t first) {
      for (int64_t r = 0; r < x.rows; ++r) {
        in.key_positions.push_back(first + r);
        in.k.insert(in.k.end(), x.row(r) + at, x.row(r) + at + kv_width());
        in.v.insert(in.v.end(), x.row(r) + at + kv_width(), x.row(r) + at + kv_width() + v_width());
      }
    };
    if (case_.chunks.empty()) add(qkv_, q_width(), case_.first_position);
    for (size_t i = 0; i < case_.chunks.size(); ++i) add(cached_[i], 0, case_.chunks[i].first);
    return in;
  }

 private:
  Case case_;
  Strided qkv_, out_, d_out_, d_qkv_;
  static constexpr int64_t kMargin = 40;
  std::vector<float> lse_;
  std::vector<float> bias_, d_bias_, sinks_, d_sinks_;
  Strided d_kv_;
  std::vector<Strided> cached_;
  std::vector<KvChunk> chunks_;
};

// Returns with every worker awake, so that the job that follows is really shared.
void wake(ThreadPool& pool) {
  std::atomic<int> arrived{0};
  pool.run(pool.threads(), [&](int64_t, int) {
    arrived.fetch_add(1);
    while (arrived.load() < pool.threads()) std::this_thread::yield();
  });
}

void run_forward(const std::vector<Sequence*>& batch, int threads = 1) {
  const AttentionShape shape = batch[0]->shape();
  std::vector<AttentionSequence> sequences;
  for (Sequence* s : batch) sequences.push_back(s->sequence());
  ThreadPool pool(threads);
  std::vector<float> workspace(static_cast<size_t>(threads * attention_forward_workspace(shape)), kNaN);
  wake(pool);
  attention_forward(pool, shape, sequences, workspace.data());
}

void run_backward(const std::vector<Sequence*>& batch, int threads = 1) {
  const AttentionShape shape = batch[0]->shape();
  std::vector<AttentionGradient> gradients;
  int64_t most_keys = 0;
  for (Sequence* s : batch) {
    gradients.push_back(s->gradient());
    // Every sequence's gradient is laid out as the one table.
    TRANSEPT_CHECK(!shape.bias || s->shape().bias_distances == shape.bias_distances);
    most_keys = std::max(most_keys, gradients.back().forward.keys[0].rows);
  }
  ThreadPool pool(threads);
  std::vector<float> workspace(static_cast<size_t>(threads * attention_backward_workspace(shape, most_keys)), kNaN);
  wake(pool);
  attention_backward(pool, shape, gradients, workspace.data());
}

// lse with -infinity, which has no distance, replaced by 0 where both have it.
::testing::AssertionResult lse_close(std::vector<float> actual, std::vector<double> expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i]) && std::isinf(actual[i]) && actual[i] < 0) actual[i] = 0, expected[i] = 0;
  }
  return close(actual, expected, tolerance::kKernel);
}

// Every number of rows with every window, the other properties in turn, so that each meets many of each other.
std::vector<Case> training_cases() {
  const std::pair<int64_t, int64_t> heads[] = {{1, 1}, {4, 4}, {6, 2}, {8, 1}};
  const int64_t dims[] = {1, 8, 20, 33, 64, 80, 128, 256}, value_dims[] = {0, 17, 96};
  std::vector<Case> cases;
  size_t i = 0;
  for (const int64_t rows : {1, 3, 63, 64, 65, 200}) {
    for (const int64_t window : {0, 1, 4, 70}) {
      for (int turn = 0; turn < 2; ++turn, ++i) {
        const auto [h, g] = heads[(i + i / 8) % 4];
        const int64_t value_dim = value_dims[(i + i / 8) % 3];
        cases.push_back({h, g, dims[(i * 3 + i / 24) % 8], rows, window, turn == 0 ? 0 : 1000, {}, {}, value_dim});
      }
    }
  }
  cases.push_back({1, 1, 16, 700, 0});    // several blocks of queries, long blocks of keys
  cases.push_back({1, 1, 16, 700, 300});  // a window longer than a block
  for (const bool causal : {true, false}) {
    cases.push_back({2, 1, 16, 900, 100, 0, {}, {causal}});           // several runs of blocks in a short window
    cases.push_back({2, 1, 16, 900, 100, 0, {}, {causal}, 24});       // values longer than keys, and shorter
    cases.push_back({2, 2, 16, 900, 100, 0, {}, {causal}, 5});        //
    cases.push_back({2, 1, 16, 800, 130, 70, {{3, 860}}, {causal}});  // the same among more keys than queries
    cases.push_back({1, 1, 8, 1300, 1100, 0, {}, {causal}});          // a window that is not short
  }
  cases.push_back({4, 2, 8, 300, 64});
  cases.push_back({3, 1, 5, 171, 0});  // blocks that end inside a group
  return cases;
}

std::vector<Case> cached_cases() {
  return {
      {4, 4, 64, 1, 0, 99, {{0, 99}, {99, 1}}},                     // decode
      {8, 1, 128, 1, 0, 700, {{0, 700}, {700, 1}}},                 // decode, all heads on one KV head
      {6, 2, 33, 2, 0, 50, {{0, 7}, {7, 43}, {50, 2}}},             // few rows
      {6, 2, 20, 1, 70, 300, {{231, 40}, {271, 29}, {300, 1}}},     // ring, decode
      {6, 2, 64, 3, 70, 300, {{228, 40}, {268, 32}, {300, 3}}},     // ring, with keys that have left the window
      {1, 1, 8, 65, 4, 131, {{128, 3}, {131, 65}}},                 // chunked prefill in a window
      {4, 4, 80, 64, 0, 77, {{0, 13}, {13, 64}, {77, 64}}},         // chunked prefill
      {8, 1, 33, 63, 0, 201, {{0, 1}, {1, 200}, {201, 63}}},        //
      {6, 2, 128, 200, 0, 333, {{0, 333}, {333, 200}}},             //
      {6, 2, 256, 20, 70, 400, {{331, 15}, {346, 54}, {400, 20}}},  //
      {1, 1, 1, 3, 1, 5, {{0, 5}, {5, 3}}},                         //
      {2, 1, 16, 300, 70, 1000, {{931, 69}, {1000, 300}}},          //
      {1, 1, 20, 24, 7, 600, {{580, 20}, {600, 24}}},  // the most rows that go query by query, and one more
      {1, 1, 20, 25, 7, 600, {{580, 20}, {600, 25}}},
      {8, 1, 33, 3, 0, 1100, {{0, 1100}, {1100, 3}}},
      {2, 2, 16, 40, 10, 100, {{60, 20}, {115, 25}}},          // a gap: some rows see no key
      {2, 1, 16, 2, 10, 100, {{60, 20}, {101, 1}}},            // the same for few rows
      {2, 2, 16, 4, 0, 10, {{20, 5}}},                         // no row sees any key
      {2, 2, 16, 30, 0, 10, {{100, 5}}},                       //
      {16, 1, 72, 1, 0, 300, {{0, 300}, {300, 1}}, {}, 64},    // decode of latent attention, absorbed
      {40, 1, 72, 2, 0, 300, {{0, 300}, {300, 2}}, {}, 64},    //
      {4, 4, 24, 3, 0, 90, {{0, 93}}, {}, 16},                 // and expanded
      {16, 1, 288, 1, 0, 600, {{0, 600}, {600, 1}}, {}, 256},  // wide keys: a few columns a worker
      {6, 2, 260, 5, 70, 300, {{228, 72}, {300, 5}}, {}, 9},   //
  };
}

// Every combination of options and windows, the other properties in turn: sequences as in training, with keys of their
// own rows or of others (cross-attention), or chunks of keys from a cache, also behind the queries.
std::vector<Case> option_cases(bool training) {
  const std::pair<int64_t, int64_t> heads[] = {{1, 1}, {6, 2}, {5, 5}, {8, 1}, {40, 2}};
  const int64_t dims[] = {8, 33, 16, 20}, value_dims[] = {0, 12, 40}, rows[] = {33, 150, 3, 64, 1, 90, 129};
  std::vector<Case> cases;
  size_t i = 0;
  for (const bool causal : {true, false}) {
    for (const int64_t window : {0, 5, 70}) {
      for (const float softcap : {0.f, 1.5f}) {
        for (const bool bias : {false, true}) {
          for (const bool sinks : {false, true}) {
            const Options options{causal, bias, sinks, softcap};
            for (int turn = 0; turn < 3; ++turn, ++i) {
              const auto [h, g] = heads[i % 5];
              const int64_t n = rows[i % 7], first = turn == 1 ? 300 : 0;
              Case c{h, g, dims[i % 4], n, window, first, {}, options, value_dims[(i + i / 3) % 3]};
              if (training && turn == 2) c.chunks = {{causal ? 0 : -20, 71}};
              if (!training && turn == 0) c.chunks = {{0, n}, {n, 17}, {n + 17, 40}};
              if (!training && turn == 1) c.chunks = {{190, 61}, {251, 49}, {300, n}};
              if (!training && turn == 2) c.chunks = {{-600, 590}, {-10, 10}, {0, n + 5}}, c.rows = 1 + n % 3;
              cases.push_back(c);
            }
          }
        }
      }
    }
  }
  if (!training) return cases;
  // Several blocks of queries and of keys, and many more keys than queries, or fewer.
  for (const bool causal : {true, false}) {
    for (const int64_t window : {0, 200}) {
      const Options all{causal, true, true, 1.5f};
      cases.push_back({2, 1, 16, 400, window, 0, {}, all});
      cases.push_back({3, 3, 8, 40, window, 300, {{0, 390}}, all});
      cases.push_back({3, 1, 8, 290, window, 0, {{0, 30}}, all});
    }
  }
  return cases;
}

TEST(Attention, ForwardMatchesReference) {
  std::vector<Case> cases = training_cases();
  for (const auto& more : {cached_cases(), option_cases(true), option_cases(false)})
    cases.insert(cases.end(), more.begin(), more.end());
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text());
    Sequence s(c);
    const ref::AttentionOutput expected = ref::attention_forward(s.input());
    for_each_instruction_set([&] {
      Sequence t(c);
      run_forward({&t});
      EXPECT_TRUE(close(t.out(), expected.out, tolerance::kKernel));
      EXPECT_TRUE(lse_close(t.lse(), expected.lse));
      EXPECT_TRUE(t.gaps_untouched());
    });
  }
}

TEST(Attention, BackwardMatchesReference) {
  std::vector<Case> cases = training_cases();
  for (const Case& c : option_cases(true)) cases.push_back(c);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text());
    Sequence s(c);
    const ref::AttentionGradients expected = ref::attention_backward(s.input(), doubles(s.d_out()));
    for_each_instruction_set([&] {
      Sequence t(c);
      run_forward({&t});
      run_backward({&t});
      EXPECT_TRUE(close(t.dv(), expected.dv, tolerance::kKernel));
      EXPECT_TRUE(close(t.d_sinks(), expected.d_sinks, tolerance::kKernel));
      // With one key per query the softmax is constant: all but dv is zero but for the rounding of dP - D, which the
      // values' size bounds.
      const bool constant = std::all_of(expected.dq.begin(), expected.dq.end(),
                                        [](double x) { return std::abs(x) < tolerance::kDouble; });
      if (constant) {
        for (const auto& d : {t.dq(), t.dk(), t.d_bias()}) {
          for (const float x : d) EXPECT_LT(std::abs(x), 1e3 * tolerance::kKernel);
        }
      } else {
        EXPECT_TRUE(close(t.dq(), expected.dq, tolerance::kKernel));
        EXPECT_TRUE(close(t.dk(), expected.dk, tolerance::kKernel));
        EXPECT_TRUE(close(t.d_bias(), expected.d_bias, tolerance::kKernel));
      }
      EXPECT_TRUE(t.gaps_untouched());
    });
  }
}

TEST(Attention, ReferenceGradientsAreDerivatives) {
  std::vector<Case> cases{
      {4, 2, 3, 6, 0}, {2, 2, 2, 7, 3, 11}, {3, 1, 2, 4, 5, 9, {{5, 2}, {8, 5}}}, {2, 2, 2, 4, 0, 10, {{12, 3}}}};
  for (const bool causal : {true, false}) {
    for (const int64_t window : {0, 3}) {
      for (const bool bias : {true, false}) {
        for (const bool sinks : {true, false}) {
          for (const float cap : {0.f, 1.2f}) {
            cases.push_back({4, 2, 2, 5, window, 7, {}, {causal, bias, sinks, cap}});
            cases.push_back({4, 2, 2, 5, window, 7, {}, {causal, bias, sinks, cap}, 3});
            cases.push_back({2, 1, 2, 3, window, 7, {{3, 8}}, {causal, bias, sinks, cap}, 1});
          }
        }
      }
    }
  }
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text());
    Sequence s(c);
    const ref::AttentionInput in = s.input();
    const std::vector<double> d_out = doubles(s.d_out());
    const auto loss = [&](std::vector<double> ref::AttentionInput::* which) {
      return [&in, &d_out, which](const std::vector<double>& x) {
        ref::AttentionInput moved = in;
        moved.*which = x;
        const std::vector<double> out = ref::attention_forward(moved).out;
        double sum = 0;
        for (size_t i = 0; i < out.size(); ++i) sum += out[i] * d_out[i];
        return sum;
      };
    };
    const ref::AttentionGradients g = ref::attention_backward(in, d_out);
    EXPECT_TRUE(gradient_matches(loss(&ref::AttentionInput::q), in.q, g.dq, tolerance::kGradcheck));
    EXPECT_TRUE(gradient_matches(loss(&ref::AttentionInput::k), in.k, g.dk, tolerance::kGradcheck));
    EXPECT_TRUE(gradient_matches(loss(&ref::AttentionInput::v), in.v, g.dv, tolerance::kGradcheck));
    EXPECT_TRUE(gradient_matches(loss(&ref::AttentionInput::bias), in.bias, g.d_bias, tolerance::kGradcheck));
    EXPECT_TRUE(gradient_matches(loss(&ref::AttentionInput::sinks), in.sinks, g.d_sinks, tolerance::kGradcheck));
    // The checker sees one wrong element.
    const auto largest = [](const std::vector<double>& x) {
      return std::max_element(x.begin(), x.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }) -
             x.begin();
    };
    std::vector<double> wrong = g.dk;
    if (double& x = wrong[static_cast<size_t>(largest(wrong))]; x != 0) {
      x *= 1 + 1e-4;
      EXPECT_FALSE(gradient_matches(loss(&ref::AttentionInput::k), in.k, wrong, tolerance::kGradcheck));
    }
  }
}

// What the table must catch: a mask or a position that is off by one, a wrong pairing of heads, a lost key.
TEST(Attention, PlantedErrorsAreSeen) {
  Sequence s({6, 2, 33, 65, 4, 7});
  run_forward({&s});
  run_backward({&s});
  const ref::AttentionInput right = s.input();
  const auto forward_differs = [&](const ref::AttentionInput& in) {
    return !close(s.out(), ref::attention_forward(in).out, tolerance::kKernel);
  };
  const auto backward_differs = [&](const ref::AttentionInput& in) {
    const ref::AttentionGradients g = ref::attention_backward(in, doubles(s.d_out()));
    return !close(s.dq(), g.dq, tolerance::kKernel) && !close(s.dk(), g.dk, tolerance::kKernel) &&
           !close(s.dv(), g.dv, tolerance::kKernel);
  };
  EXPECT_FALSE(forward_differs(right));
  ref::AttentionInput wrong = right;
  wrong.window = 5;
  EXPECT_TRUE(forward_differs(wrong) && backward_differs(wrong));
  wrong = right;
  wrong.first_position += 1;
  EXPECT_TRUE(forward_differs(wrong) && backward_differs(wrong));
  wrong = right;
  wrong.key_positions[30] = 1000;
  EXPECT_TRUE(forward_differs(wrong) && backward_differs(wrong));
  wrong = right;
  std::swap_ranges(wrong.k.begin(), wrong.k.begin() + 33, wrong.k.begin() + 33);
  EXPECT_TRUE(forward_differs(wrong));
  wrong = right;
  wrong.scale *= 1.001;
  EXPECT_TRUE(forward_differs(wrong) && backward_differs(wrong));
  wrong = right;
  wrong.causal = false;
  EXPECT_TRUE(forward_differs(wrong) && backward_differs(wrong));
}

TEST(Attention, PlantedErrorsInOptionsAreSeen) {
  Sequence s({6, 2, 33, 65, 20, 7, {}, {false, true, true, 1.5f}});
  run_forward({&s});
  run_backward({&s});
  const ref::AttentionInput right = s.input();
  const auto differs = [&](const ref::AttentionInput& in) {
    const ref::AttentionGradients g = ref::attention_backward(in, doubles(s.d_out()));
    const auto apart = [](const std::vector<float>& a, const std::vector<double>& b) {
      return !close(a, b, tolerance::kKernel);
    };
    return apart(s.out(), ref::attention_forward(in).out) && apart(s.dq(), g.dq) && apart(s.dk(), g.dk) &&
           apart(s.dv(), g.dv) && apart(s.d_bias(), g.d_bias) && apart(s.d_sinks(), g.d_sinks);
  };
  EXPECT_FALSE(differs(right));
  ref::AttentionInput wrong = right;
  wrong.window = 19;
  EXPECT_TRUE(differs(wrong));
  wrong = right;
  wrong.causal = true;
  EXPECT_TRUE(differs(wrong));
  wrong = right;
  wrong.softcap *= 1.001;
  EXPECT_TRUE(differs(wrong));
  wrong = right;
  for (double& x : wrong.sinks) x += 0.001;
  EXPECT_TRUE(differs(wrong));
  wrong = right;
  std::rotate(wrong.bias.begin(), wrong.bias.begin() + 3, wrong.bias.end());  // a distance further
  EXPECT_TRUE(differs(wrong));
  wrong = right;
  std::swap(wrong.bias[30], wrong.bias[31]);  // the biases of two heads
  EXPECT_TRUE(differs(wrong));
}

// Soft-capping before the mask and in every path: a hidden key keeps no weight. Scores 2, 0 and 5, the third hidden
// from the first of two rows; the second row sees it, so that it is in the block.
TEST(Attention, TheCapComesBeforeTheMask) {
  for (const int64_t heads : {1, 12, 13, 40}) {  // query by query, and in tiles
    AttentionShape shape{.heads = heads, .kv_heads = 1, .head_dim = 3, .scale = 1, .softcap = 1};
    std::vector<float> q, out(static_cast<size_t>(2 * 3 * heads)), lse(static_cast<size_t>(2 * heads));
    for (int64_t i = 0; i < 2 * heads; ++i) q.insert(q.end(), {1, 0, 0});
    const std::vector<float> k{2, 0, 0, 0, 0, 0, 5, 0, 0}, v{1, 0, 0, 0, 1, 0, 0, 0, 1};
    const KvChunk chunk{k.data(), v.data(), 3, 3, 0};
    const AttentionSequence s{q.data(), 3 * heads, 2, 1, {&chunk, 1}, out.data(), 3 * heads, lse.data()};
    for_each_instruction_set([&] {
      ThreadPool pool(1);
      std::vector<float> workspace(static_cast<size_t>(attention_forward_workspace(shape)), kNaN);
      attention_forward(pool, shape, {&s, 1}, workspace.data());
      for (int64_t h = 0; h < heads; ++h) {
        const std::vector<float> p(out.begin() + 3 * h, out.begin() + 3 * h + 3);
        EXPECT_TRUE(close(p, std::vector<double>{0.72393, 0.27607, 0}, tolerance::kKernel)) << heads << " heads";
        EXPECT_EQ(p[2], 0);
      }
    });
    ref::AttentionInput in{heads, 1, 3, 1, 0, 1, {0, 1, 2}, doubles(q), doubles(k), doubles(v)};
    in.softcap = 1;
    const std::vector<double> p = ref::attention_forward(in).out;
    EXPECT_TRUE(close(std::vector<double>(p.begin(), p.begin() + 3), std::vector<double>{0.72393, 0.27607, 0},
                      tolerance::kKernel));
  }
}

// Copies q, k and v of `whole` into a case that has rows [first, first + n) as queries and everything before in chunks.
void copy_rows(Sequence& whole, Sequence& part, int64_t first) {
  const int64_t q_width = whole.q_width(), kv_width = whole.kv_width();
  for (int64_t r = 0; r < part.the_case().rows; ++r)
    std::copy_n(whole.qkv().row(first + r), q_width, part.qkv().row(r));
  for (size_t i = 0; i < part.the_case().chunks.size(); ++i) {
    const auto [at, n] = part.the_case().chunks[i];
    for (int64_t r = 0; r < n; ++r) std::copy_n(whole.qkv().row(at + r) + q_width, 2 * kv_width, part.chunk(i).row(r));
  }
}

TEST(Attention, PiecesEqualTheWhole) {
  for (const auto& [window, options] :
       {std::pair<int64_t, Options>{0, {}}, {40, {}}, {0, {true, true, true, 1.5f}}, {40, {true, true, true, 1.5f}}}) {
    const Case c{6, 2, 20, 150, window, 0, {}, options};
    SCOPED_TRACE(c.text());
    Sequence whole(c);
    run_forward({&whole});
    const std::vector<float> expected = whole.out();
    for (const int64_t step : {1, 2, 7, 64, 149}) {
      SCOPED_TRACE("step " + std::to_string(step));
      std::vector<float> joined;
      for (int64_t first = 0; first < c.rows; first += step) {
        const int64_t n = std::min(step, c.rows - first);
        // The oldest keys that a window still needs, as a ring that wrapped: two chunks of odd size, then the new rows.
        const int64_t begin = window > 0 ? std::max<int64_t>(0, first - window + 1) : 0,
                      middle = begin + (first - begin) / 3;
        Case part = c;
        part.rows = n;
        part.first_position = first;
        for (const auto& [from, to] :
             {std::pair{begin, middle}, std::pair{middle, first}, std::pair{first, first + n}}) {
          if (to > from) part.chunks.push_back({from, to - from});
        }
        Sequence piece(part);
        copy_rows(whole, piece, first);
        run_forward({&piece});
        const std::vector<float> out = piece.out();
        joined.insert(joined.end(), out.begin(), out.end());
      }
      EXPECT_TRUE(close(joined, expected, tolerance::kKernel));
    }
  }
}

// Latent attention takes the first elements of each key as its value, in place.
TEST(Attention, ValuesMayBePartsOfKeys) {
  for (const int64_t heads : {4, 40}) {  // query by query, and in tiles
    const Case c{heads, 1, 24, 2, 0, 70, {{0, 72}}, {}, 16};
    Sequence apart(c), within(c);
    for (int64_t r = 0; r < 72; ++r) std::copy_n(apart.chunk(0).row(r), 16, apart.chunk(0).row(r) + 24);
    run_forward({&apart});
    AttentionSequence s = within.sequence();
    KvChunk chunk = s.keys[0];
    chunk.v = chunk.k;
    s.keys = {&chunk, 1};
    ThreadPool pool(1);
    std::vector<float> workspace(static_cast<size_t>(attention_forward_workspace(c.shape())), kNaN);
    attention_forward(pool, c.shape(), {&s, 1}, workspace.data());
    EXPECT_EQ(within.out(), apart.out());
  }
}

TEST(Attention, AsManyKvHeadsAsHeadsIsAttentionHeadByHead) {
  const Case c{4, 4, 33, 90, 0};
  Sequence all(c);
  run_forward({&all});
  run_backward({&all});
  for (int64_t h = 0; h < c.heads; ++h) {
    Sequence one({1, 1, c.head_dim, c.rows, 0});
    ASSERT_EQ(one.the_case().shape().scale, c.shape().scale);
    AttentionGradient g = one.gradient();
    Strided d_out(c.rows, c.head_dim, 7, 0);
    for (int64_t r = 0; r < c.rows; ++r) {
      for (int64_t part = 0; part < 3; ++part) {
        std::copy_n(all.qkv().row(r) + (part * c.heads + h) * c.head_dim, c.head_dim,
                    one.qkv().row(r) + part * c.head_dim);
      }
      std::copy_n(all.gradient().d_out + r * all.sequence().out_stride + h * c.head_dim, c.head_dim, d_out.row(r));
    }
    run_forward({&one});
    g.d_out = d_out.row(0);
    ThreadPool pool(1);
    const AttentionShape shape = one.the_case().shape();
    std::vector<float> workspace(static_cast<size_t>(attention_backward_workspace(shape, c.rows)));
    attention_backward(pool, shape, {&g, 1}, workspace.data());
    const auto head_of = [&](const std::vector<float>& x) {
      std::vector<float> y;
      for (int64_t r = 0; r < c.rows; ++r) {
        const auto at = x.begin() + (r * c.heads + h) * c.head_dim;
        y.insert(y.end(), at, at + c.head_dim);
      }
      return y;
    };
    EXPECT_TRUE(close(one.out(), head_of(all.out()), tolerance::kKernel));
    EXPECT_TRUE(close(one.dq(), head_of(all.dq()), tolerance::kKernel));
    EXPECT_TRUE(close(one.dk(), head_of(all.dk()), tolerance::kKernel));
    EXPECT_TRUE(close(one.dv(), head_of(all.dv()), tolerance::kKernel));
  }
}

TEST(Attention, AWindowOverAllRowsIsNoWindow) {
  for (const bool causal : {true, false}) {
    const Case none{6, 2, 20, 100, 0, 0, {}, {causal, true, true, 1.5f}};
    Case wide = none;
    wide.window = 100;
    Sequence a(none), b(wide);
    for (Sequence* s : {&a, &b}) {
      run_forward({s});
      run_backward({s});
    }
    // They are cut into blocks of other sizes.
    EXPECT_TRUE(close(a.out(), doubles(b.out()), tolerance::kKernel));
    EXPECT_TRUE(close(a.dq(), doubles(b.dq()), tolerance::kKernel));
    EXPECT_TRUE(close(a.dk(), doubles(b.dk()), tolerance::kKernel));
    EXPECT_TRUE(close(a.dv(), doubles(b.dv()), tolerance::kKernel));
    EXPECT_TRUE(close(a.d_bias(), doubles(b.d_bias()), tolerance::kKernel));
  }
}

// Scores of up to 1e4 in size are whole numbers here, hence exact, and the softmax is all but one-hot.
TEST(Attention, LargeScoresStayFinite) {
  for (const int64_t rows : {2, 130}) {
    const Case c{2, 1, 4, rows, 0};
    AttentionShape shape = c.shape();
    shape.scale = 1;
    Sequence s(c);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < 12; ++i) s.qkv().row(r)[i] = static_cast<float>((r * 37 + i * 11) % 101 - 50);
    }
    ref::AttentionInput in = s.input();
    in.scale = 1;
    const ref::AttentionOutput expected = ref::attention_forward(in);
    ThreadPool pool(1);
    for_each_instruction_set([&] {
      std::vector<float> workspace(static_cast<size_t>(attention_backward_workspace(shape, rows)), kNaN);
      const AttentionGradient g = s.gradient();
      attention_forward(pool, shape, {&g.forward, 1}, workspace.data());
      attention_backward(pool, shape, {&g, 1}, workspace.data());
      EXPECT_TRUE(close(s.out(), expected.out, tolerance::kKernel));
      for (const std::vector<float>& d : {s.dq(), s.dk(), s.dv()}) {
        for (const float x : d) ASSERT_TRUE(std::isfinite(x));
      }
    });
  }
}

TEST(Attention, RowsWithoutKeysGiveZeros) {
  for (const Options& options : {Options{}, Options{true, true, true, 1.5f}}) {
    for (const int64_t rows : {4, 30}) {
      Sequence s({2, 2, 16, rows, 0, 10, {{100, 5}}, options});
      run_forward({&s});
      for (const float x : s.out()) EXPECT_EQ(x, 0);
      for (size_t i = 0; i < s.lse().size(); ++i) {
        EXPECT_EQ(s.lse()[i], options.sinks ? s.shape().sinks[i % 2] : -std::numeric_limits<float>::infinity());
      }
    }
    // No keys at all.
    Sequence none({2, 2, 16, 30, 0, 10, {{0, 0}}, options});
    run_forward({&none});
    for (const float x : none.out()) EXPECT_EQ(x, 0);
    // In the backward pass too: the keys begin 5 positions after the queries.
    Sequence s({2, 1, 16, 40, 0, 10, {{15, 40}}, options});
    run_forward({&s});
    run_backward({&s});
    const ref::AttentionGradients expected = ref::attention_backward(s.input(), doubles(s.d_out()));
    EXPECT_TRUE(close(s.dq(), expected.dq, tolerance::kKernel));
    EXPECT_TRUE(close(s.dk(), expected.dk, tolerance::kKernel));
    EXPECT_TRUE(close(s.dv(), expected.dv, tolerance::kKernel));
    EXPECT_TRUE(close(s.d_bias(), expected.d_bias, tolerance::kKernel));
    EXPECT_TRUE(close(s.d_sinks(), expected.d_sinks, tolerance::kKernel));
    for (int64_t i = 0; i < 5 * s.q_width(); ++i) EXPECT_EQ(s.dq()[static_cast<size_t>(i)], 0);
  }
}

// A sink is a key with that score and values of zero; one of -inf is none.
TEST(Attention, ASinkIsAKeyWithoutAValue) {
  for (const int64_t rows : {3, 90}) {
    const Case c{2, 2, 4, rows, 0, 1, {{0, rows + 1}}};  // the first key stands for the sink
    Sequence with_key(c), sinks({2, 2, 4, rows, 0, 1, {{1, rows}}, {true, false, true, 0}}),
        without({2, 2, 4, rows, 0, 1, {{1, rows}}});
    // All queries have 1 in front, so that the key (x, 0, 0, 0) scores scale * x.
    for (Sequence* s : {&with_key, &sinks, &without}) {
      for (int64_t r = 0; r < rows; ++r) {
        std::copy_n(with_key.qkv().row(r), s->q_width(), s->qkv().row(r));
        s->qkv().row(r)[0] = s->qkv().row(r)[4] = 1;
      }
    }
    std::fill_n(with_key.chunk(0).row(0), 16, 0.f);
    for (int64_t h = 0; h < 2; ++h) with_key.chunk(0).row(0)[4 * h] = sinks.shape().sinks[h] / c.shape().scale;
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(with_key.chunk(0).row(r + 1), 16, sinks.chunk(0).row(r));
      std::copy_n(with_key.chunk(0).row(r + 1), 16, without.chunk(0).row(r));
    }
    run_forward({&with_key});
    run_forward({&sinks});
    run_forward({&without});
    EXPECT_TRUE(close(sinks.out(), doubles(with_key.out()), tolerance::kKernel));
    EXPECT_TRUE(close(sinks.lse(), doubles(with_key.lse()), tolerance::kKernel));
    const std::vector<float> closed(2, -std::numeric_limits<float>::infinity());
    AttentionShape shape = sinks.shape();
    shape.sinks = closed.data();
    ThreadPool pool(1);
    std::vector<float> workspace(static_cast<size_t>(attention_forward_workspace(shape)), kNaN);
    const AttentionSequence s = sinks.sequence();
    attention_forward(pool, shape, {&s, 1}, workspace.data());
    EXPECT_EQ(sinks.out(), without.out());
  }
}

// A ragged batch gives each sequence the bits it gets alone, on any number of threads. The first sequence is long
// enough that workers overlap: a shared workspace would show.
TEST(Attention, BatchAndThreadsDoNotChangeABit) {
  for (const Options& options : {Options{}, {true, true, true, 1.5f}, {false, true, true, 1.5f}}) {
    // In the window every sequence has the same table of distances.
    std::vector<Case> cases;
    for (const int64_t rows : {1200, 300, 41, 65, 60}) cases.push_back({6, 2, 20, rows, 41, 0, {}, options});
    if (!options.bias) {
      for (const int64_t rows : {1, 0, 17, 3}) cases.push_back({6, 2, 20, rows, 0, 0, {}, options});
      for (Case& c : cases) c.window = 0;
    }
    std::vector<Sequence> alone;
    for (size_t i = 0; i < cases.size(); ++i) alone.emplace_back(cases[i], i);
    for (Sequence& s : alone) {
      run_forward({&s});
      run_backward({&s});
    }
    for (const int threads : {1, 2, 3}) {
      std::vector<Sequence> together;
      for (size_t i = 0; i < cases.size(); ++i) together.emplace_back(cases[i], i);
      std::vector<Sequence*> batch;
      for (Sequence& s : together) batch.push_back(&s);
      run_forward(batch, threads);
      run_backward(batch, threads);
      for (size_t i = 0; i < cases.size(); ++i) {
        SCOPED_TRACE(std::to_string(threads) + " threads, sequence " + std::to_string(i));
        EXPECT_EQ(together[i].out(), alone[i].out());
        EXPECT_EQ(together[i].lse(), alone[i].lse());
        EXPECT_EQ(together[i].dq(), alone[i].dq());
        EXPECT_EQ(together[i].dk(), alone[i].dk());
        EXPECT_EQ(together[i].dv(), alone[i].dv());
        EXPECT_EQ(together[i].d_bias(), alone[i].d_bias());
        EXPECT_EQ(together[i].d_sinks(), alone[i].d_sinks());
      }
    }
  }
}

// By hand: a decoding row and its keys; one block of 48 whose keys come as 24 for all columns and 24 for the last 32;
// two blocks under a window of 48, which take the 48 and the 95 keys they see at once.
TEST(Attention, ComputedScoresAreThoseOfTheTiles) {
  const auto computed = [](int64_t rows, int64_t keys, int64_t window) {
    const KvChunk chunk{nullptr, nullptr, 0, keys, 0};
    const AttentionSequence sequence{.rows = rows, .first_position = keys - rows, .keys = {&chunk, 1}};
    return attention_computed_scores({.heads = 6, .kv_heads = 3, .head_dim = 8, .window = window}, sequence);
  };
  EXPECT_EQ(computed(1, 10, 0), 6 * 10);
  EXPECT_EQ(computed(1, 10, 4), 6 * 4);
  EXPECT_EQ(computed(0, 10, 0), 0);
  const auto one_head = [](int64_t rows, int64_t window) {
    const KvChunk chunk{nullptr, nullptr, 0, rows, 0};
    return attention_computed_scores({.heads = 1, .kv_heads = 1, .head_dim = 8, .window = window},
                                     {.rows = rows, .keys = {&chunk, 1}});
  };
  EXPECT_EQ(one_head(48, 0), 24 * 48 + 24 * 32);
  EXPECT_EQ(one_head(96, 48), 48 * 48 + 95 * 48);
}

TEST(Attention, LseMayBeLeftOut) {
  Sequence s({4, 2, 20, 30, 0}), t({4, 2, 20, 30, 0});
  run_forward({&s});
  AttentionSequence without = t.sequence();
  without.lse = nullptr;
  ThreadPool pool(1);
  std::vector<float> workspace(static_cast<size_t>(attention_forward_workspace(t.the_case().shape())), kNaN);
  attention_forward(pool, t.the_case().shape(), {&without, 1}, workspace.data());
  EXPECT_EQ(s.out(), t.out());
}

}  // namespace
}  // namespace transept
