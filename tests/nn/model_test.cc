// Equivalences that need no oracle, over every combination of kinds: decode = forward in any chunks, a window no
// smaller than the text = none, a batch = one by one, recomputed = kept, one thread = many, saved = loaded; and
// gradients against differences of the loss.
#include "nn/model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <sstream>

#include "convert/model_folder.h"
#include "infer/decoder.h"
#include "support/compare.h"
#include "support/models.h"
#include "support/spec_sweep.h"
#include "support/temp_folder.h"
#include "support/throws.h"
#include "support/tolerances.h"
#include "train/trainer.h"

namespace transept {
namespace {

constexpr int64_t kTokens = 17;

// Once with each model; stops at the first that fails, whose document is shown.
void for_each_case(const std::function<void(const ArchSpec&)>& check) {
  for (const SpecCase& c : spec_cases()) {
    SCOPED_TRACE(c.name);
    check(c.spec);
    if (::testing::Test::HasFailure()) return;
  }
}

// The source of an encoder-decoder; other models have none.
std::vector<int32_t> source_ids(const ArchSpec& spec, int64_t count, uint64_t seed) {
  return spec.encoder_decoder() ? random_ids(count, spec.vocab_size, seed) : std::vector<int32_t>{};
}

std::vector<float> forward_all(const Model& model, ThreadPool& pool, std::span<const int32_t> ids,
                               std::span<const int32_t> source) {
  std::vector<float> logits(ids.size() * static_cast<size_t>(model.spec().vocab_size));
  forward_logits(model, pool, ids, logits, source);
  return logits;
}

std::vector<float> decode_all(const Model& model, ThreadPool& pool, std::span<const int32_t> ids,
                              std::span<const int32_t> source, size_t chunk, LatentForm form = LatentForm::kCheaper) {
  const size_t vocab = static_cast<size_t>(model.spec().vocab_size);
  std::vector<float> logits(ids.size() * vocab);
  // Rules that look at the length of the whole see that of the forward pass.
  Decoder decoder(model, pool, static_cast<int64_t>(ids.size()), static_cast<int64_t>(source.size()));
  decoder.set_latent_form(form);
  if (!source.empty()) decoder.read_source(source);
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t count = std::min(chunk, ids.size() - at);
    decoder.feed_all(ids.subspan(at, count), std::span(logits).subspan(at * vocab, count * vocab));
  }
  return logits;
}

void set_windows(ArchSpec& spec, int64_t window) {
  for (StackSpec* stack : {static_cast<StackSpec*>(&spec), &spec.encoder}) {
    for (LayerSpec& layer : stack->layers) std::visit([&](auto& a) { a.sliding_window = window; }, layer.attention);
  }
}

TEST(EveryModel, DecodesAsItRunsForward) {
  ThreadPool pool(1);
  for_each_case([&](const ArchSpec& spec) {
    const auto model = random_model(spec, false);
    if (spec.topology == Topology::kEncoder) {
      EXPECT_NE(input_error([&] { Decoder(*model, pool, kTokens); }), "(no error)") << "an encoder decodes nothing";
      return;
    }
    const auto ids = random_ids(kTokens, spec.vocab_size, 1), source = source_ids(spec, 6, 2);
    const std::vector<float> whole = forward_all(*model, pool, ids, source);
    for (const size_t chunk : {size_t{1}, size_t{3}, ids.size()})
      EXPECT_TRUE(close(decode_all(*model, pool, ids, source, chunk), whole, tolerance::kKernel)) << "by " << chunk;
  });
}

// Latents are read in two ways, and the pass chooses; here each is forced.
TEST(EveryModel, AbsorbedAndExpandedLatentsAreTheSame) {
  ThreadPool pool(1);
  size_t models = 0, apart = 0;
  for_each_case([&](const ArchSpec& spec) {
    const auto latent = [](const LayerSpec& layer) { return std::holds_alternative<MlaSpec>(layer.attention); };
    if (spec.topology == Topology::kEncoder || std::none_of(spec.layers.begin(), spec.layers.end(), latent)) return;
    ++models;
    const auto model = random_model(spec, false);
    const auto ids = random_ids(kTokens, spec.vocab_size, 1), source = source_ids(spec, 6, 2);
    const std::vector<float> whole = forward_all(*model, pool, ids, source);
    for (const size_t chunk : {size_t{1}, size_t{3}, ids.size()}) {
      const std::vector<float> absorbed = decode_all(*model, pool, ids, source, chunk, LatentForm::kAbsorbed),
                               expanded = decode_all(*model, pool, ids, source, chunk, LatentForm::kExpanded);
      EXPECT_TRUE(close(absorbed, whole, tolerance::kKernel)) << "by " << chunk;
      EXPECT_TRUE(close(expanded, whole, tolerance::kKernel)) << "by " << chunk;
      apart += absorbed != expanded;
    }
  });
  EXPECT_GT(models, 10u);
  EXPECT_GT(apart, models) << "two ways round in other places";
}

TEST(EveryModel, AWindowOfTheWholeTextIsNone) {
  ThreadPool pool(1);
  for_each_case([&](const ArchSpec& spec) {
    ArchSpec full = spec, windowed = spec;
    set_windows(full, 0), set_windows(windowed, kTokens);
    const auto a = random_model(full, false), b = random_model(windowed, false);
    const auto ids = random_ids(kTokens, spec.vocab_size, 1), source = source_ids(spec, kTokens, 2);
    const std::vector<float> whole = forward_all(*a, pool, ids, source);
    EXPECT_EQ(whole, forward_all(*b, pool, ids, source));
    if (spec.topology == Topology::kEncoder) return;
    EXPECT_EQ(decode_all(*a, pool, ids, source, 3), decode_all(*b, pool, ids, source, 3)) << "ring = full";
    if (spec.encoder_decoder()) return;
    set_windows(windowed, kTokens - 1);
    EXPECT_NE(whole, forward_all(*random_model(windowed, false), pool, ids, source))
        << "the first token is out of sight";
  });
}

// Three sequences of different lengths, and sources of different lengths.
struct Ragged {
  explicit Ragged(const ArchSpec& spec)
      : layout{{0, 17, 0}, {17, 1, 0}, {18, 33, 0}}, ids(random_ids(51, spec.vocab_size, 2)) {
    if (spec.encoder_decoder()) source_layout = {{0, 5, 0}, {5, 9, 0}, {14, 1, 0}};
    source = source_ids(spec, 15, 3);
  }
  std::span<const int32_t> ids_of(size_t s) const { return rows(ids, layout[s]); }
  std::span<const int32_t> source_of(size_t s) const {
    return source.empty() ? std::span<const int32_t>{} : rows(source, source_layout[s]);
  }
  static std::span<const int32_t> rows(std::span<const int32_t> all, const SequenceRows& s) {
    return all.subspan(static_cast<size_t>(s.first_row), static_cast<size_t>(s.rows));
  }
  BatchLayout layout, source_layout;
  std::vector<int32_t> ids, source;
};

TEST(EveryModel, ARowOfABatchEqualsItsOwnRun) {
  ThreadPool pool(1);
  for_each_case([&](const ArchSpec& spec) {
    const auto model = random_model(spec, false);
    const Ragged r(spec);
    Arena arena;
    const OpContext op{pool, arena, nullptr};
    const Var batch = model->hidden(op, {.tokens = r.ids,
                                         .layout = r.layout,
                                         .source_tokens = r.source,
                                         .source_layout = r.source_layout,
                                         .dropout = {},
                                         .observe = {}});
    for (size_t s = 0; s < r.layout.size(); ++s) {
      std::vector<float> alone(r.ids_of(s).size() * static_cast<size_t>(batch.width));
      forward_hidden(*model, pool, r.ids_of(s), alone, r.source_of(s));
      EXPECT_TRUE(close(std::span<const float>(batch.view().row(r.layout[s].first_row), alone.size()),
                        std::span<const float>(alone), tolerance::kKernel))
          << "sequence " << s;
    }
  });
}

// The same through a cache: all sequences in one pass, at first up to unequal positions, then a token more each.
TEST(EveryModel, ACachedBatchEqualsOneByOne) {
  ThreadPool pool(1);
  for_each_case([&](const ArchSpec& spec) {
    if (spec.topology == Topology::kEncoder) return;
    const auto model = random_model(spec, false);
    const Ragged r(spec);
    constexpr int64_t kContext = 34;
    const std::vector<int64_t> prompts{4, 1, 31};
    const auto run = [&](KvStore& cache, const std::vector<size_t>& sequences) {
      Arena arena;
      const OpContext op{pool, arena, nullptr};
      std::vector<std::vector<float>> hidden(sequences.size());
      for (int64_t step = 0; step < 3; ++step) {
        BatchLayout layout, source_layout;
        std::vector<int32_t> tokens, source;
        for (const size_t s : sequences) {
          const int64_t first = step == 0 ? 0 : prompts[s] + step - 1, count = step == 0 ? prompts[s] : 1;
          layout.push_back({static_cast<int64_t>(tokens.size()), count, first});
          for (int64_t i = first; i < first + count; ++i)
            tokens.push_back(r.ids[static_cast<size_t>(r.layout[s].first_row + i) % r.ids.size()]);
          if (step > 0 || r.source.empty()) continue;
          source_layout.push_back({static_cast<int64_t>(source.size()), r.source_layout[s].rows, 0});
          source.insert(source.end(), r.source_of(s).begin(), r.source_of(s).end());
        }
        const Var h = model->hidden(op, {.tokens = tokens,
                                         .layout = layout,
                                         .source_tokens = source,
                                         .source_layout = source_layout,
                                         .cache = &cache,
                                         .dropout = {},
                                         .observe = {}});
        for (size_t s = 0; s < sequences.size(); ++s) {
          const float* row = h.view().row(layout[s].first_row);
          hidden[s].insert(hidden[s].end(), row, row + layout[s].rows * h.width);
        }
      }
      return hidden;
    };
    KvStore together(spec, 3, kContext, 9);
    const auto batch = run(together, {0, 1, 2});
    for (size_t s = 0; s < prompts.size(); ++s) {
      KvStore own(spec, 1, kContext, 9);
      EXPECT_TRUE(close(batch[s], run(own, {s})[0], tolerance::kKernel)) << "sequence " << s;
    }
  });
}

Batch random_batch(const ArchSpec& spec, int64_t sequences, int64_t tokens) {
  Batch batch;
  batch.layout = equal_sequences(sequences, tokens);
  batch.target_count = sequences * tokens;
  batch.tokens = random_ids(batch.target_count, spec.vocab_size, 3);
  batch.targets = random_ids(batch.target_count, spec.vocab_size, 4);
  if (spec.encoder_decoder()) batch.source_layout = equal_sequences(sequences, tokens + 1);
  batch.source_tokens = source_ids(spec, sequences * (tokens + 1), 5);
  return batch;
}

// Parameters that receive no gradient, whatever the loss; empty: it receives one.
std::string why_without_gradient(const ArchSpec& spec, const ParamDecl& decl) {
  const std::string& name = decl.name;
  if (name.starts_with("pooler.")) return "the loss reads hidden states, and the pooler what becomes of a sequence";
  const StackSpec& stack = decl.encoder ? spec.encoder : spec;
  const auto blind = [](const LayerSpec& layer) {
    const auto* gqa = std::get_if<GqaSpec>(&layer.attention);
    const int64_t window = std::visit([](const auto& a) { return a.sliding_window; }, layer.attention);
    return window == 1 && !(gqa && gqa->sinks);
  };
  // Parameters of scores alone.
  const auto scores = [&] {
    for (const char* own :
         {".q_norm.weight", ".k_norm.weight", ".q.weight", ".q_down.weight", ".q_down.bias", ".q_up.weight"}) {
      if (name.ends_with(own)) return true;
    }
    return false;
  };
  if (name.ends_with("router.selection_bias")) return "it is moved by loads";
  if (name.ends_with("router.weight") || name.ends_with("router.bias")) {
    const MoeSpec& moe = stack.layers[static_cast<size_t>(decl.layer)].moe;
    const bool one = moe.scoring_func == ScoringFunc::kSoftmaxOfChosen || moe.norm_topk_prob;
    if (moe.num_experts_per_tok == 1 && one && moe.router_aux_loss_coef == 0 && moe.router_z_loss_coef == 0)
      return "the only chosen expert has the weight 1 whatever its score";
  }
  if (name.ends_with("position.bias") && std::all_of(stack.layers.begin(), stack.layers.end(), blind))
    return "a token that sees only itself has the weight 1 whatever its score";
  if (decl.part == Part::kAttention && scores() && blind(stack.layers[static_cast<size_t>(decl.layer)]))
    return "as above";
  return {};
}

// What is wrong with the gradients at a random point: along the gradient of each parameter, where the slope is largest,
// differences of the float32 loss must be its length.
std::string gradient_problems(const ArchSpec& spec, uint64_t seed) {
  std::ostringstream problems;
  ThreadPool pool(1);
  const auto model = random_model(spec, true, seed);
  const Batch batch = random_batch(spec, 2, 8);
  Trainer trainer(*model, pool, {});
  trainer.accumulate({&batch, 1}, 0);
  const auto g = model->parameters().gradients();
  const std::vector<float> gradient(g.begin(), g.end());
  const auto values = model->parameters().values();
  const std::vector<float> at(values.begin(), values.end());
  for (const auto& e : model->parameters().entries()) {
    double norm = 0;
    for (int64_t i = 0; i < e.size; ++i)
      norm += std::pow(static_cast<double>(gradient[static_cast<size_t>(e.offset + i)]), 2);
    norm = std::sqrt(norm);
    if (const std::string why = why_without_gradient(spec, e.decl); !why.empty()) {
      if (norm > tolerance::kFloat) problems << e.decl.name << " has a gradient of " << norm << ", but " << why << '\n';
      continue;
    }
    if (norm == 0) {
      problems << e.decl.name << " receives no gradient\n";
      continue;
    }
    const auto loss_at = [&](double step) {
      for (int64_t i = 0; i < e.size; ++i) {
        const size_t k = static_cast<size_t>(e.offset + i);
        values[k] = at[k] + static_cast<float>(step * static_cast<double>(gradient[k]) / norm);
      }
      const StepResult r = trainer.accumulate({&batch, 1}, 0);
      double loss = r.loss;
      for (const auto& [layer, s] : r.routers) loss += s.balance_loss + s.z_loss;
      std::copy(at.begin(), at.end(), values.begin());
      return loss;
    };
    // A step may cross a kink of ReLU or send a token to another expert, which a shorter one, with more noise, does
    // not.
    double error = 0;
    for (const double h : {0.004, 0.001, 0.00025}) {
      error = (loss_at(h) - loss_at(-h)) / (2 * h) - norm;
      if (std::abs(error) <= tolerance::kFloatDifference * (norm + 0.05)) break;
    }
    if (std::abs(error) > tolerance::kFloatDifference * (norm + 0.05))
      problems << e.decl.name << " has a gradient of " << norm << ", and the slope is " << norm + error << '\n';
  }
  return problems.str();
}

// Where ReLU leaves next to nothing for a norm, the loss bends too sharply for differences: another point must do then,
// and few may need it. A wrong gradient is wrong everywhere.
TEST(EveryModel, GradientsMatchDifferencesOfTheLoss) {
  size_t again = 0;
  for_each_case([&](const ArchSpec& spec) {
    std::string problems = gradient_problems(spec, 5);
    for (uint64_t seed = 6; seed < 8 && !problems.empty(); ++seed, ++again) problems = gradient_problems(spec, seed);
    EXPECT_EQ(problems, "");
  });
  EXPECT_LE(again, spec_cases().size() / 25);
}

TEST(EveryModel, ThreadsAndRecomputationChangeNothing) {
  for_each_case([&](ArchSpec spec) {
    spec.dropout = 0.2;
    const Batch batch = random_batch(spec, 3, 14);
    std::vector<float> first;
    const auto model = random_model(spec, true);
    const auto gradients = model->parameters().gradients();
    for (const int threads : {1, 3}) {
      for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        ThreadPool pool(threads);
        Trainer trainer(*model, pool, {.adamw = {}, .dropout_seed = 4, .recompute = recompute});
        trainer.accumulate({&batch, 1}, 11);
        if (first.empty()) first.assign(gradients.begin(), gradients.end());
        EXPECT_EQ(std::memcmp(first.data(), gradients.data(), gradients.size_bytes()), 0)
            << threads << " threads, recompute: " << recompute_name(recompute);
      }
    }
    ThreadPool pool(1);
    Trainer trainer(*model, pool, {.adamw = {}, .dropout_seed = 4, .recompute = Recompute::kNone});
    trainer.accumulate({&batch, 1}, 12);
    EXPECT_NE(std::memcmp(first.data(), gradients.data(), gradients.size_bytes()), 0)
        << "another pass draws other masks";
  });
}

TEST(EveryModel, SavedAndLoadedAreTheSameBits) {
  ThreadPool pool(1);
  for_each_case([&](const ArchSpec& spec) {
    const auto model = random_model(spec, false);
    const TempFolder folder;
    save_model(*model, folder.path());
    const auto loaded = load_model(folder.path());
    EXPECT_EQ(spec_to_json(loaded->spec()), spec_to_json(spec));
    ASSERT_EQ(loaded->parameters().block_size(), model->parameters().block_size());
    const auto a = model->parameters().values(), b = loaded->parameters().values();
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size_bytes()), 0);
    const auto ids = random_ids(9, spec.vocab_size, 1), source = source_ids(spec, 6, 2);
    EXPECT_EQ(forward_all(*model, pool, ids, source), forward_all(*loaded, pool, ids, source));
  });
}

}  // namespace
}  // namespace transept
