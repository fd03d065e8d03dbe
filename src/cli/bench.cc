// transept bench: figures of this machine. Each is the median over repeats; the JSON names machine, commit, instruction
// set, threads and repeats.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"
#include "base/file.h"
#include "base/problem.h"
#include "base/rng.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/memory_watch.h"
#include "cli/model_argument.h"
#include "infer/decoder.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"
#include "kernels/weights.h"
#include "ops/ffn.h"
#include "ops/moe.h"
#include "plan/machine_type.h"
#include "plan/plan.h"
#include "study/machine.h"
#include "tensor/floats.h"
#include "train/trainer.h"

namespace transept {
namespace {

using Clock = std::chrono::steady_clock;

struct Timing {
  double median_seconds = 0;
  int64_t repeats = 0;
};

struct Repeats {
  int64_t count = 7;
  double seconds = 2;  // more repeats until this much time has been measured
};

// One unmeasured call, then at least `count` measured ones.
Timing measure(const Repeats& repeats, const std::function<void()>& work) {
  work();
  std::vector<double> times;
  double total = 0;
  while (static_cast<int64_t>(times.size()) < repeats.count || total < repeats.seconds) {
    const auto start = Clock::now();
    work();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], static_cast<int64_t>(times.size())};
}

Floats random_floats(int64_t count, uint32_t substream) {
  Floats x(count);
  const CounterRng rng(0, Stream::kTest, substream);
  for (int64_t i = 0; i < count; ++i) x.data()[i] = static_cast<float>(rng.uniform(static_cast<uint64_t>(i)) - 0.5);
  return x;
}

void print(const Globals& globals, Json figures, const Timing& timing, int threads) {
  const Machine machine = this_machine(instruction_set_name(), build_commit());
  if (globals.json) {
    figures["median_seconds"] = timing.median_seconds;
    figures["repeats"] = timing.repeats;
    figures["threads"] = threads;
    figures["machine"] = {{"cpu", machine.cpu},
                          {"processors", machine.processors},
                          {"memory_bytes", machine.memory_bytes},
                          {"system", machine.system}};
    figures["instruction_set"] = machine.instruction_set;
    figures["commit"] = machine.commit;
    print_json(figures);
    return;
  }
  for (const auto& [name, value] : figures.items())
    fmt::print("{} {}\n", name, value.is_number_float() ? fmt::format("{:.2f}", value.get<double>()) : value.dump());
  fmt::print("median of {} repeats: {:.3f} ms; {} threads, {}, {}, commit {}\n", timing.repeats,
             1e3 * timing.median_seconds, threads, machine.instruction_set, machine.cpu, machine.commit);
}

// Flags of a benchmark: sizes that must be at least 1.
struct Sizes {
  std::vector<std::pair<const char*, int64_t>> all;
  void check() const {
    constexpr int64_t kMost = int64_t{1} << 24;
    Problems problems;
    for (const auto& [flag, value] : all) {
      if (value < 1 || value > kMost)
        problems.push_back({flag, fmt::format("{} is out of range", value), fmt::format("allowed are 1 to {}", kMost)});
    }
    throw_if_any(std::move(problems));
  }
};

// A model to time: where it only runs, a folder's weights in the type that they are stored in; otherwise random ones.
std::unique_ptr<Model> model_to_time(const std::string& argument, bool trainable, ThreadPool& pool) {
  if (!trainable && std::filesystem::is_directory(argument)) return load_model_argument(argument).model;
  auto model = std::make_unique<Model>(resolve_spec(argument), trainable);
  model->parameters().initialize(model->spec(), 0, pool);
  return model;
}

std::vector<int32_t> random_tokens(const ArchSpec& spec, int64_t count) {
  const CounterRng rng(0, Stream::kTest);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(i), static_cast<uint64_t>(spec.vocab_size))));
  return tokens;
}

void bench_train(CLI::App* sub, const Globals& globals, const std::shared_ptr<Repeats>& repeats,
                 std::function<int()>& selected) {
  struct Options {
    std::string model;
    int64_t context = 256, batch = 16;
    Recompute recompute = Recompute::kNone;
  };
  auto o = std::make_shared<Options>();
  sub->add_option("SPEC", o->model, "preset, spec file or model folder")->required();
  sub->add_option("--context", o->context, "tokens of a sequence")->capture_default_str();
  sub->add_option("--batch", o->batch, "sequences of a step")->capture_default_str();
  add_recompute(sub, o->recompute);
  sub->callback([o, &globals, repeats, &selected] {
    selected = [o, &globals, repeats] {
      Sizes{{{"--context", o->context}, {"--batch", o->batch}}}.check();
      ThreadPool pool = globals.pool();
      const auto model = model_to_time(o->model, true, pool);
      model->check_input({}, o->context - 1, "--context");
      Trainer trainer(*model, pool, {.adamw = {}, .dropout_seed = 0, .recompute = o->recompute});
      Batch batch;
      batch.layout = equal_sequences(o->batch, o->context);
      batch.target_count = o->batch * o->context;
      batch.tokens = random_tokens(model->spec(), batch.target_count);
      batch.targets = batch.tokens;
      std::rotate(batch.targets.begin(), batch.targets.begin() + 1, batch.targets.end());
      uint64_t pass = 0;
      const Timing t = measure(*repeats, [&] { trainer.step({&batch, 1}, pass++, 1e-4); });
      PlanOptions options;
      options.context = o->context;
      options.batch = o->batch;
      const double tokens_per_second = static_cast<double>(batch.target_count) / t.median_seconds;
      const double flops = static_cast<double>(make_plan(model->spec(), options).flops.train_per_token);
      print(globals,
            {{"tokens_per_second", tokens_per_second},
             {"gflops", tokens_per_second * flops * 1e-9},
             {"activation_peak_bytes", trainer.activation_peak_bytes()},
             {"parameters", model->parameters().count()}},
            t, pool.threads());
      return 0;
    };
  });
}

LatentForm latent_form(const std::string& name) {
  if (name == "absorbed") return LatentForm::kAbsorbed;
  return name == "expanded" ? LatentForm::kExpanded : LatentForm::kCheaper;
}

void bench_prefill_decode(CLI::App* sub, bool decode, const Globals& globals, const std::shared_ptr<Repeats>& repeats,
                          std::function<int()>& selected) {
  struct Options {
    std::string model;
    int64_t tokens = 512, cached = 0;
    std::string latents = "cheaper";
  };
  auto o = std::make_shared<Options>();
  sub->add_option("MODEL", o->model, "preset, spec file or model folder")->required();
  sub->add_option("--tokens", o->tokens, "tokens to feed")->capture_default_str();
  sub->add_option("--cached", o->cached, "tokens in the cache before the first one")->capture_default_str();
  sub->add_option("--latents", o->latents, "how latent attention reads its cache: cheaper, absorbed or expanded")
      ->capture_default_str()
      ->check(CLI::IsMember({"cheaper", "absorbed", "expanded"}));
  sub->callback([o, decode, &globals, repeats, &selected] {
    selected = [o, decode, &globals, repeats] {
      Sizes{{{"--tokens", o->tokens}, {"--cached", o->cached + 1}}}.check();
      ThreadPool pool = globals.pool();
      const MemoryWatch watch(pool);
      const auto model = model_to_time(o->model, false, pool);
      Decoder decoder(*model, pool, o->cached + o->tokens);
      const std::vector<int32_t> before = random_tokens(model->spec(), o->cached),
                                 tokens = random_tokens(model->spec(), o->tokens);
      std::vector<double> seconds;
      // The cache is filled outside the time that counts.
      const Timing whole = measure(*repeats, [&] {
        decoder.reset();
        decoder.set_latent_form(LatentForm::kCheaper);
        if (!before.empty()) decoder.feed(before);
        decoder.set_latent_form(latent_form(o->latents));
        const auto start = Clock::now();
        if (decode) {
          for (const int32_t token : tokens) decoder.feed({&token, 1});
        } else {
          decoder.feed(tokens);
        }
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      });
      std::sort(seconds.begin(), seconds.end());
      const double median = seconds[seconds.size() / 2];
      print(globals,
            {{"tokens_per_second", static_cast<double>(o->tokens) / median},
             {"cache_bytes", decoder.cache_bytes()},
             {"peak_memory_bytes", watch.peak()}},
            {median, whole.repeats}, pool.threads());
      return 0;
    };
  });
}

struct Rate {
  double per_second = 0;  // of the median
  Timing timing;
};

// Operations of the product [m, k] x [k, n] in float32.
Rate gemm_rate(ThreadPool& pool, const Repeats& repeats, int64_t m, int64_t k, int64_t n) {
  const Floats x = random_floats(m * k, 1), w = random_floats(n * k, 2), y(m * n);
  const Timing t =
      measure(repeats, [&] { gemm_xwt(pool, {x.data(), m, k, k}, w.data(), n, 0.f, {y.data(), m, n, n}); });
  return {2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) / t.median_seconds, t};
}

void bench_gemm(CLI::App* sub, const Globals& globals, const std::shared_ptr<Repeats>& repeats,
                std::function<int()>& selected) {
  struct Options {
    int64_t m = 0, k = 0, n = 0;
  };
  auto o = std::make_shared<Options>();
  sub->add_option("M", o->m, "rows of the result")->required();
  sub->add_option("K", o->k, "length of the sums")->required();
  sub->add_option("N", o->n, "columns of the result")->required();
  sub->callback([o, &globals, repeats, &selected] {
    selected = [o, &globals, repeats] {
      Sizes{{{"M", o->m}, {"K", o->k}, {"N", o->n}}}.check();
      ThreadPool pool = globals.pool();
      const auto [flops_per_second, t] = gemm_rate(pool, *repeats, o->m, o->k, o->n);
      print(globals, {{"gflops", flops_per_second * 1e-9}}, t, pool.threads());
      return 0;
    };
  });
}

void bench_attention(CLI::App* sub, const Globals& globals, const std::shared_ptr<Repeats>& repeats,
                     std::function<int()>& selected) {
  struct Options {
    int64_t batch = 1, heads = 8, kv_heads = 0, tokens = 1024, head_dim = 64, window = 0;
    double softcap = 0;
    bool backward = false, bidirectional = false, alibi = false, relative_bias = false;
  };
  auto o = std::make_shared<Options>();
  sub->add_option("--batch", o->batch, "sequences")->capture_default_str();
  sub->add_option("--heads", o->heads, "query heads")->capture_default_str();
  sub->add_option("--kv-heads", o->kv_heads, "key and value heads (default: as many as query heads)");
  sub->add_option("--tokens", o->tokens, "tokens of a sequence")->capture_default_str();
  sub->add_option("--head-dim", o->head_dim, "elements of a head")->capture_default_str();
  sub->add_option("--window", o->window,
                  "keys a query sees, itself one of them (bidirectional: on either side); 0: all")
      ->capture_default_str();
  sub->add_option("--softcap", o->softcap, "soft cap of the scores; 0: none")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  sub->add_flag("--bidirectional", o->bidirectional, "keys at later positions are seen too");
  auto* alibi = sub->add_flag("--alibi", o->alibi, "a constant bias by distance");
  sub->add_flag("--relative-bias", o->relative_bias, "a learned bias by distance: the backward pass makes its gradient")
      ->excludes(alibi);
  sub->add_flag("--backward", o->backward, "forward and backward");
  sub->callback([o, &globals, repeats, &selected] {
    selected = [o, &globals, repeats] {
      const int64_t kv_heads = o->kv_heads > 0 ? o->kv_heads : o->heads;
      Sizes{{{"--batch", o->batch},
             {"--heads", o->heads},
             {"--kv-heads", kv_heads},
             {"--tokens", o->tokens},
             {"--head-dim", o->head_dim},
             {"--window", o->window + 1}}}
          .check();
      if (o->heads % kv_heads != 0)
        throw InputError("--kv-heads", fmt::format("{} does not divide --heads = {}", kv_heads, o->heads));
      AttentionShape shape{.heads = o->heads,
                           .kv_heads = kv_heads,
                           .head_dim = o->head_dim,
                           .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(o->head_dim))),
                           .causal = !o->bidirectional,
                           .window = o->window,
                           .softcap = static_cast<float>(o->softcap)};
      const bool biased = o->alibi || o->relative_bias;
      const int64_t distances = biased ? (o->bidirectional ? 2 * o->tokens - 1 : o->tokens) : 0;
      const Floats bias = random_floats(distances * o->heads, 3), d_bias(o->relative_bias ? bias.size() * o->batch : 0);
      if (biased) {
        shape.bias = bias.data();
        shape.bias_first = o->bidirectional ? 1 - o->tokens : 0;
        shape.bias_distances = distances;
      }
      const int64_t q = o->heads * o->head_dim, kv = kv_heads * o->head_dim, width = q + 2 * kv,
                    rows = o->batch * o->tokens;
      const Floats qkv = random_floats(rows * width, 1), d_out = random_floats(rows * q, 2), out(rows * q),
                   lse(rows * o->heads), dqkv(rows * width);
      ThreadPool pool = globals.pool();
      std::vector<KvChunk> chunks;
      for (int64_t b = 0; b < o->batch; ++b) {
        const float* row = qkv.data() + b * o->tokens * width;
        chunks.push_back({row + q, row + q + kv, width, o->tokens, 0});
      }
      std::vector<AttentionSequence> batch;
      std::vector<AttentionGradient> gradients;
      for (int64_t b = 0; b < o->batch; ++b) {
        const int64_t first = b * o->tokens;
        batch.push_back({qkv.data() + first * width,
                         width,
                         o->tokens,
                         0,
                         {&chunks[static_cast<size_t>(b)], 1},
                         out.data() + first * q,
                         q,
                         lse.data() + first * o->heads});
        float* row = dqkv.data() + first * width;
        gradients.push_back({batch.back(), d_out.data() + first * q, row, row + q, row + q + kv,
                             o->relative_bias ? d_bias.data() + b * bias.size() : nullptr});
      }
      const Floats workspace(pool.threads() * std::max(attention_forward_workspace(shape),
                                                       attention_backward_workspace(shape, o->tokens)));
      const Timing t = measure(*repeats, [&] {
        attention_forward(pool, shape, batch, workspace.data());
        if (o->backward) attention_backward(pool, shape, gradients, workspace.data());
      });
      // Two products a visible pair forward; five more backward, two and a half times as much (the scores are made
      // again).
      double pairs = 0;
      const int64_t reach = o->window > 0 ? o->window - 1 : o->tokens;
      for (int64_t i = 0; i < o->tokens; ++i) {
        pairs += static_cast<double>(1 + std::min(i, reach));
        if (o->bidirectional) pairs += static_cast<double>(std::min(o->tokens - 1 - i, reach));
      }
      const double flops_per_score = 4.0 * static_cast<double>(o->head_dim) * (o->backward ? 3.5 : 1.0);
      const auto rate = [&](double scores) {
        return static_cast<double>(o->batch) * scores * flops_per_score / t.median_seconds * 1e-9;
      };
      print(globals,
            {{"gflops", rate(static_cast<double>(o->heads) * pairs)},
             {"computed_gflops", rate(static_cast<double>(attention_computed_scores(shape, batch[0])))}},
            t, pool.threads());
      return 0;
    };
  });
}

// A layer of experts beside the dense layer of as many FLOPs a token, forward and backward, in turns.
void bench_moe(CLI::App* sub, const Globals& globals, const std::shared_ptr<Repeats>& repeats,
               std::function<int()>& selected) {
  struct Options {
    int64_t tokens = 4096, hidden = 512, intermediate = 1536, experts = 8, top_k = 2;
  };
  auto o = std::make_shared<Options>();
  sub->add_option("--tokens", o->tokens, "tokens of a batch")->capture_default_str();
  sub->add_option("--hidden", o->hidden, "width of the model")->capture_default_str();
  sub->add_option("--intermediate", o->intermediate,
                  "width of the dense layer; an expert has its share of a choice, rounded to 16")
      ->capture_default_str();
  sub->add_option("--experts", o->experts, "experts")->capture_default_str();
  sub->add_option("--top-k", o->top_k, "experts that a token chooses")->capture_default_str();
  sub->callback([o, &globals, repeats, &selected] {
    selected = [o, &globals, repeats] {
      Sizes{{{"--tokens", o->tokens},
             {"--hidden", o->hidden},
             {"--intermediate", o->intermediate},
             {"--experts", o->experts},
             {"--top-k", o->top_k}}}
          .check();
      if (o->top_k > o->experts)
        throw InputError("--top-k", fmt::format("{} is more than --experts = {}", o->top_k, o->experts));
      const int64_t width = std::max<int64_t>(16, (o->intermediate + 8 * o->top_k) / (16 * o->top_k) * 16);
      // Values and gradients of [rows, columns].
      struct Weight {
        Floats value, gradient;
        int64_t rows, columns;
        Weight(int64_t rows_, int64_t columns_, uint32_t substream)
            : value(random_floats(rows_ * columns_, substream)),
              gradient(rows_ * columns_),
              rows(rows_),
              columns(columns_) {}
        Param param() const { return {value.data(), gradient.data(), rows, columns}; }
      };
      const Weight in(2 * o->intermediate, o->hidden, 1), down(o->hidden, o->intermediate, 2),
          router(o->experts, o->hidden, 3), experts_in(o->experts * 2 * width, o->hidden, 4),
          experts_down(o->experts * o->hidden, width, 5);
      const Floats x = random_floats(o->tokens * o->hidden, 6), dy = random_floats(o->tokens * o->hidden, 7);
      const FfnParams dense{.in = in.param(), .in_bias = {}, .down = down.param()};
      const MoeParams sparse{.router = {.experts = o->experts, .top_k = o->top_k, .normalize = true},
                             .gate = router.param(),
                             .in = experts_in.param(),
                             .down = experts_down.param(),
                             .jitter = {}};
      const BalanceLosses losses{.balance = 0.01f, .z = 0.001f};
      const BatchLayout layout = equal_sequences(1, o->tokens);
      ThreadPool pool = globals.pool();
      Arena arena;
      RouterStatistics statistics;
      const auto seconds_of = [&](auto layer) {
        const auto filled = [&](const Floats& values) {
          Buffer buffer(arena, values.size());
          std::copy_n(values.data(), values.size(), buffer.data());
          return buffer;
        };
        Tape tape;
        const OpContext context{pool, arena, &tape};
        const Var input{filled(x), o->tokens, o->hidden, std::make_shared<GradientSlot>()};
        Buffer gradient = filled(dy);
        const auto start = Clock::now();
        const Var y = layer(context, input);
        y.gradient->buffer = std::move(gradient);
        tape.backward();
        return std::chrono::duration<double>(Clock::now() - start).count();
      };
      std::vector<double> dense_times, sparse_times;
      Timing t = measure(*repeats, [&] {
        dense_times.push_back(seconds_of([&](const OpContext& c, const Var& v) { return ffn(c, v, dense, {}); }));
        sparse_times.push_back(seconds_of(
            [&](const OpContext& c, const Var& v) { return moe(c, v, sparse, losses, layout, {}, &statistics); }));
      });
      const auto median = [](std::vector<double> times) {
        std::sort(times.begin(), times.end());
        return times[times.size() / 2];
      };
      t.median_seconds = median(sparse_times);
      // Three matrices, and three products with each, of two operations a weight.
      const double flops = 18.0 * static_cast<double>(o->tokens * o->hidden);
      const double rate = flops * static_cast<double>(width * o->top_k) / t.median_seconds * 1e-9,
                   dense_rate = flops * static_cast<double>(o->intermediate) / median(dense_times) * 1e-9;
      print(globals,
            {{"gflops", rate},
             {"dense_gflops", dense_rate},
             {"ratio", rate / dense_rate},
             {"expert_width", width},
             {"max_violation", max_violation(statistics.load)}},
            t, pool.threads());
      return 0;
    };
  });
}

// Bytes of reading `floats` numbers again and again, by all threads together: what a cache holds is read from there.
Rate read_rate(ThreadPool& pool, const Repeats& repeats, const Floats& data, int64_t floats) {
  constexpr int64_t kPiece = int64_t{1} << 14, kLeast = int64_t{1} << 26;  // a measurement reads 256 MiB at the least
  const int64_t pieces = (floats + kPiece - 1) / kPiece, passes = (kLeast + floats - 1) / floats;
  std::vector<double> sums(static_cast<size_t>(pool.threads()));
  const Timing t = measure(repeats, [&] {
    pool.run(pieces * passes, [&](int64_t i, int worker) {
      constexpr int kLanes = 64;
      float lanes[kLanes] = {};
      const int64_t first = i % pieces * kPiece, count = std::min(kPiece, floats - first) / kLanes * kLanes;
      const float* at = data.data() + first;
      for (int64_t j = 0; j < count; j += kLanes) {
        for (int l = 0; l < kLanes; ++l) lanes[l] += at[j + l];
      }
      sums[static_cast<size_t>(worker)] += std::accumulate(lanes, lanes + kLanes, 0.f);
    });
  });
  TRANSEPT_CHECK(std::accumulate(sums.begin(), sums.end(), 0.0) > 0);  // so that no compiler leaves the reading out
  return {static_cast<double>(floats * passes) * sizeof(float) / t.median_seconds, t};
}

Floats ones(int64_t count) {
  Floats data(count);
  std::fill_n(data.data(), count, 1.f);
  return data;
}

constexpr int64_t kFarBeyondCaches = int64_t{1} << 30;  // bytes

void bench_read(CLI::App* sub, const Globals& globals, const std::shared_ptr<Repeats>& repeats,
                std::function<int()>& selected) {
  auto bytes = std::make_shared<int64_t>(kFarBeyondCaches);
  sub->add_option("--bytes", *bytes, "size of what is read again and again: a cache may hold it")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1} << 12, int64_t{1} << 40));
  sub->callback([bytes, &globals, repeats, &selected] {
    selected = [bytes, &globals, repeats] {
      const int64_t floats = *bytes / static_cast<int64_t>(sizeof(float));
      const Floats data = ones(floats);
      ThreadPool pool = globals.pool();
      const auto [bytes_per_second, t] = read_rate(pool, *repeats, data, floats);
      print(globals, {{"gb_per_second", bytes_per_second * 1e-9}, {"bytes", *bytes}}, t, pool.threads());
      return 0;
    };
  });
}

// Operations of products of one row with weights that stay in the second-level cache, as a decode step makes them.
double measure_row_flops(ThreadPool& pool, const Repeats& repeats, DType dtype) {
  constexpr int64_t kWidth = 512, kColumns = 256;  // 512 KiB of floats a worker
  constexpr int64_t kProducts = 512;               // of a measurement
  const int64_t workers = pool.threads(), rows = workers * kColumns;
  const Floats values = random_floats(rows * kWidth, 1), x = random_floats(kWidth, 2), y(rows);
  std::vector<uint16_t> halves(static_cast<size_t>(rows * kWidth));
  (dtype == DType::kF16 ? f16_from_f32 : bf16_from_f32)(values.data(), rows * kWidth, halves.data());
  const StoredRows stored{halves.data(), 0, rows};
  Weight weight{.dtype = dtype, .columns = kWidth};
  if (dtype == DType::kF32) {
    weight.values = values.data();
  } else {
    weight.stored = {&stored, 1};
  }
  const Timing t = measure(repeats, [&] {
    pool.run(workers, [&](int64_t, int worker) {
      const int64_t first = worker * kColumns;
      for (int64_t i = 0; i < kProducts; ++i)
        multiply_tile({x.data(), 1, kWidth, kWidth}, weight, first, kColumns,
                      {y.data() + first, 1, kColumns, kColumns});
    });
  });
  return 2.0 * static_cast<double>(rows * kWidth * kProducts) / t.median_seconds;
}

// What a layer takes in a decode step beside its arithmetic: the difference between two depths of a model so narrow
// that reading its weights takes next to no time, divided by the layers between them.
double measure_layer_seconds(ThreadPool& pool, const Repeats& repeats) {
  constexpr int64_t kDepths[] = {2, 34}, kSteps = 64;
  double seconds[2] = {};
  for (int i = 0; i < 2; ++i) {
    Model model(spec_from_json({{"name", "narrow"},
                                {"vocab_size", 256},
                                {"hidden_size", 32},
                                {"max_position_embeddings", kSteps},
                                {"attention", {{"num_attention_heads", 2}}},
                                {"ffn", {{"intermediate_size", 64}}},
                                {"num_hidden_layers", kDepths[i]}},
                               "narrow"),
                false);
    model.parameters().initialize(model.spec(), 0, pool);
    Decoder decoder(model, pool, kSteps);
    const std::vector<int32_t> tokens = random_tokens(model.spec(), kSteps);
    seconds[i] = measure(repeats, [&] {
                   decoder.reset();
                   for (const int32_t token : tokens) decoder.feed({&token, 1});
                 }).median_seconds;
  }
  return std::max(0.0, (seconds[1] - seconds[0]) / static_cast<double>(kSteps * (kDepths[1] - kDepths[0])));
}

// The description of this machine that `plan --machine` takes.
void bench_machine(CLI::App* sub, const Globals& globals, const std::shared_ptr<Repeats>& repeats,
                   std::function<int()>& selected) {
  struct Options {
    std::string out, name = "this-machine";
    double usd_per_hour = 0;
  };
  auto o = std::make_shared<Options>();
  sub->add_option("--out", o->out, "also write the description to this file");
  sub->add_option("--name", o->name, "of the machine in the description")->capture_default_str();
  sub->add_option("--price-per-hour", o->usd_per_hour, "of the machine, in USD; 0: not known")->capture_default_str();
  sub->callback([o, &globals, repeats, &selected] {
    selected = [o, &globals, repeats] {
      // Before a minute is spent on it: whether a description may have this name and price.
      read_machine_types(
          {{"name", o->name}, {"extends", machine_types().front().name}, {"usd_per_hour", o->usd_per_hour}},
          "bench machine");
      ThreadPool pool = globals.pool();
      const Machine here = this_machine(instruction_set_name(), build_commit());
      MachineType machine;
      machine.name = o->name;
      machine.kind = "cpu";
      machine.description = fmt::format("{}, {} threads", here.cpu, pool.threads());
      machine.note =
          fmt::format("measured by transept bench machine, commit {}, {}", here.commit, here.instruction_set);
      machine.memory_bytes = here.memory_bytes;
      machine.usd_per_hour = o->usd_per_hour;
      constexpr int64_t kSide = 2048;
      machine.flops_per_second["f32"] = gemm_rate(pool, *repeats, kSide, kSide, kSide).per_second;
      const Floats data = ones(kFarBeyondCaches / static_cast<int64_t>(sizeof(float)));
      for (int64_t bytes = int64_t{1} << 20; bytes <= kFarBeyondCaches; bytes *= 2) {
        const int64_t floats = bytes / static_cast<int64_t>(sizeof(float));
        machine.read_rates.push_back({bytes, read_rate(pool, *repeats, data, floats).per_second});
      }
      machine.memory_bytes_per_second = machine.read_rates.back().bytes_per_second;
      for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
        machine.row_flops_per_second[std::string(dtype_name(dtype))] = measure_row_flops(pool, *repeats, dtype);
      machine.layer_seconds = measure_layer_seconds(pool, *repeats);
      const Json description = to_json(machine);
      if (!o->out.empty()) write_file_atomic(o->out, description.dump(2) + "\n");
      if (globals.json) {
        print_json(description);
        return 0;
      }
      fmt::print("{}: {}\n", machine.name, machine.description);
      fmt::print("f32 products {:.1f} GFLOP/s; memory {:.1f} GiB, {:.1f} GB/s; a layer of a decode step {:.1f} us\n",
                 machine.flops_per_second["f32"] * 1e-9, static_cast<double>(machine.memory_bytes) / (int64_t{1} << 30),
                 machine.memory_bytes_per_second * 1e-9, machine.layer_seconds * 1e6);
      for (const auto& [dtype, rate] : machine.row_flops_per_second)
        fmt::print("one row with {} weights {:.1f} GFLOP/s\n", dtype, rate * 1e-9);
      for (const MachineType::ReadRate& r : machine.read_rates)
        fmt::print("reading {:>5} MiB {:>7.1f} GB/s\n", r.working_set_bytes >> 20, r.bytes_per_second * 1e-9);
      return 0;
    };
  });
}

}  // namespace

void register_bench(Registry& registry) {
  auto repeats = std::make_shared<Repeats>();
  auto selected = std::make_shared<std::function<int()>>();
  Globals& globals = registry.globals;
  CLI::App* bench = registry.add(
      "bench", "figures of this machine: train, prefill, decode, attention, moe, gemm, read, machine", [selected] {
        if (!*selected) throw InputError("bench", "needs to know what to measure", "see bench --help");
        return (*selected)();
      });
  const auto add = [&](const char* name, const char* description) {
    CLI::App* sub = bench->add_subcommand(name, description);
    sub->add_flag("--json", globals.json, "print one JSON document on stdout");
    sub->add_option("--threads", globals.threads, "threads to use (default: all that this process may use)")
        ->check(CLI::Range(1, 4096));
    sub->add_option("--repeats", repeats->count, "measured repeats at the least")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000000));
    sub->add_option("--seconds", repeats->seconds, "measured time at the least")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 1e6));
    return sub;
  };
  bench_train(add("train", "training steps: tokens a second"), globals, repeats, *selected);
  bench_prefill_decode(add("prefill", "a prompt in one go: tokens a second"), false, globals, repeats, *selected);
  bench_prefill_decode(add("decode", "token by token: tokens a second"), true, globals, repeats, *selected);
  bench_attention(
      add("attention", "attention; gflops counts visible pairs, computed_gflops the hidden ones of its tiles too"),
      globals, repeats, *selected);
  bench_moe(add("moe", "a layer of experts beside a dense one of as many FLOPs a token, forward and backward"), globals,
            repeats, *selected);
  bench_gemm(add("gemm", "matrix product [M, K] x [K, N]"), globals, repeats, *selected);
  bench_read(add("read", "streaming read of memory"), globals, repeats, *selected);
  bench_machine(add("machine", "a description of this machine for `plan --machine`: products, reading, layers"),
                globals, repeats, *selected);
}

}  // namespace transept
