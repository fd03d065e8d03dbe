#include "plan/parallel.h"

#include <algorithm>
#include <span>

#include "plan/count.h"
#include "tensor/logit_rows.h"

namespace transept {
namespace {

constexpr int64_t kMostRanks = 1 << 20;  // along one axis: more than any machine has

int64_t ceil_div(int64_t n, int64_t parts) { return (n + parts - 1) / parts; }
// What a rank sends to pass on or to gather its share among `ranks`, as a share of the whole.
double others(int64_t ranks) { return static_cast<double>(ranks - 1) / static_cast<double>(ranks); }

int64_t heads_of(const LayerSpec& layer) {
  return std::visit([](const auto& a) { return a.num_attention_heads; }, layer.attention);
}

// Names and widths that tensor parallelism must divide.
std::vector<std::pair<std::string, int64_t>> dealt_out(const LayerSpec& layer) {
  std::vector<std::pair<std::string, int64_t>> widths = {{"num_attention_heads", heads_of(layer)}};
  if (const auto* gqa = std::get_if<GqaSpec>(&layer.attention))
    widths.emplace_back("num_key_value_heads", gqa->num_key_value_heads);
  if (!layer.moe) {
    widths.emplace_back("ffn.intermediate_size", layer.ffn.intermediate_size);
    return widths;
  }
  widths.emplace_back("moe.moe_intermediate_size", layer.moe.moe_intermediate_size);
  if (layer.moe.has_shared())
    widths.emplace_back("moe.shared_expert_intermediate_size", layer.moe.shared_expert_intermediate_size);
  return widths;
}

void add_once(Problems& problems, Problem problem) {
  for (const Problem& p : problems) {
    if (p.to_string() == problem.to_string()) return;
  }
  problems.push_back(std::move(problem));
}

// Elements of a parameter that one rank computes with.
Count rank_elements(const ParamDecl& decl, const ParallelLayout& layout) {
  int64_t n = elements(decl).value();
  if (decl.experts > 1) n /= layout.expert;
  if (decl.use.shard == Shard::kNone || layout.tensor == 1) return n;
  const size_t axis = decl.use.shard == Shard::kRows ? 0 : 1;
  return Count(n / decl.shape[axis]) * ceil_div(decl.shape[axis], layout.tensor);  // a vocabulary is padded
}

// Ranks that hold the same share of a parameter, between which its state can be dealt out.
int64_t replicas(const ParamDecl& decl, const ParallelLayout& layout) {
  return layout.data * layout.context / (decl.experts > 1 ? layout.expert : 1);
}

struct Stage {
  int64_t first = 0, count = 0;
  bool opens = false, closes = false;  // it has the embeddings; the head
  std::span<const LayerSpec> layers(const ArchSpec& spec) const {
    return std::span(spec.layers).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  }
  // A tied table stands on both ends.
  bool holds(const ArchSpec& spec, const ParamDecl& decl) const {
    if (decl.encoder) return true;  // an encoder-decoder is one stage
    if (decl.layer >= 0) return decl.layer >= first && decl.layer < first + count;
    const bool table = decl.part == Part::kEmbedding || decl.part == Part::kPosition;
    const bool before = table || decl.name.starts_with("embedding_norm.");
    if (decl.part == Part::kEmbedding && spec.tie_word_embeddings) return opens || closes;
    return before ? opens : closes;
  }
};

std::vector<Stage> split(const ArchSpec& spec, int64_t stages) {
  const auto layers = static_cast<int64_t>(spec.layers.size());
  std::vector<Stage> all;
  for (int64_t i = 0; i < stages; ++i) {
    const int64_t begin = layers * i / stages, end = layers * (i + 1) / stages;
    all.push_back({begin, end - begin, i == 0, i + 1 == stages});
  }
  return all;
}

struct Split {
  const ArchSpec& spec;
  const ParallelLayout& layout;
  const TrainingSetup& training;
  std::vector<ParamDecl> parameters;

  int64_t element() const { return training.precision.element_bytes; }
  int64_t sequences() const { return training.batch / layout.data / layout.micro_batches; }
  Count micro_rows() const { return Count(sequences()) * (training.context / layout.context); }
  Count micro_source_rows() const { return Count(sequences()) * training.source_context; }
  // Of a rank in a whole step.
  double step_rows(Count of_micro_batch) const {
    return static_cast<double>(of_micro_batch.value()) * static_cast<double>(layout.micro_batches);
  }
  double step_rows() const { return step_rows(micro_rows()); }
};

StageMemory memory_of(const Split& s, const Stage& stage, int64_t in_flight) {
  StageMemory m{.first_layer = stage.first, .layers = stage.count, .in_flight = in_flight};
  Count parameters, weights, gradients, master, moments;
  std::vector<Count> by_layer(s.spec.layers.size());
  for (const ParamDecl& decl : s.parameters) {
    if (!stage.holds(s.spec, decl)) continue;
    const Count n = rank_elements(decl, s.layout);
    const auto share = [&](int64_t from) {
      return s.layout.zero >= from ? Count(ceil_div(n.value(), replicas(decl, s.layout))) : n;
    };
    parameters += n;
    weights += share(3);
    gradients += share(2);
    master += share(1);
    moments += optimizer_bytes(s.training.optimizer, share(1));
    if (decl.layer >= 0 && !decl.encoder) by_layer[static_cast<size_t>(decl.layer)] += n;
  }
  // With ZeRO-3 a layer's weights are gathered while it runs, and those of the next one meanwhile.
  if (s.layout.zero == 3 && s.layout.data * s.layout.context > 1)
    weights += Count(2) * *std::max_element(by_layer.begin(), by_layer.end());
  m.parameters = parameters.value();
  m.weights = (weights * s.element()).value();
  m.gradients = (gradients * s.element()).value();
  m.master_weights = (master * s.training.precision.master_bytes).value();
  m.optimizer = moments.value();

  const TokenRows rows{s.micro_rows(), s.micro_source_rows()};
  if (s.spec.encoder_decoder()) {
    m.activations = activation_bytes(s.spec, {s.sequences(), s.training.context, s.training.source_context,
                                              s.training.recompute, s.element()})
                        .total() /
                    s.layout.tensor;
    return m;
  }
  const RunOfLayers run = run_of_layers(s.spec, stage.layers(s.spec), rows, s.training.recompute);
  Count head;
  if (stage.closes) {
    const Count chunk = Count(std::min(rows.own.value(), logit_rows(s.spec.vocab_size))) * s.spec.vocab_size;
    head = (run.kept + stack_end(s.spec, s.spec, rows.own) + rows.own * s.spec.hidden_size) * s.element() +
           chunk * kLogitBytes;
  }
  const Count waiting = Count(in_flight - 1) * run.kept * s.element();
  m.activations = ceil_div((waiting + std::max(run.fullest * s.element(), head)).value(), s.layout.tensor);
  return m;
}

// Gradients to all replicas, or, dealt out, to their owners, and weights back from them. From ZeRO-2 on each
// micro-batch sends its gradients, and ZeRO-3 gathers weights for each forward and each backward pass.
Traffic data_traffic(const Split& s, const Stage& stage) {
  const double element = static_cast<double>(s.element());
  const double micro = static_cast<double>(s.layout.micro_batches);
  const double gradient_rounds = s.layout.zero >= 2 ? micro : 1, weight_rounds = s.layout.zero == 3 ? 2 * micro : 1;
  Traffic t{.kind = "data",
            .operation =
                s.layout.zero == 0 ? "all-reduce of gradients" : "reduce-scatter of gradients, all-gather of weights"};
  for (const ParamDecl& decl : s.parameters) {
    if (!stage.holds(s.spec, decl)) continue;
    const double bytes = static_cast<double>(rank_elements(decl, s.layout).value()) * element;
    t.bytes += bytes * others(replicas(decl, s.layout)) * (gradient_rounds + weight_rounds);
  }
  return t;
}

// Each sublayer gathers its input and scatters its sum, forward and backward, and gathers the input once more for the
// gradient of the weights (arXiv:2205.05198 section 4.2.2).
Traffic tensor_traffic(const Split& s, const Stage& stage) {
  const auto passes = [&](const LayerSpec& layer) {
    const int64_t sublayers = layer.block.form == BlockForm::kParallel ? 1 : layer.sublayers();
    const int64_t again =
        s.training.recompute == Recompute::kFull ? sublayers : s.training.recompute == Recompute::kSelective;
    return static_cast<double>(5 * sublayers + 2 * again);
  };
  double own = 2.0 * (stage.opens + stage.closes), source = 0;  // a lookup's sum, a head's input, and back
  for (const LayerSpec& layer : stage.layers(s.spec)) own += passes(layer);
  for (const LayerSpec& layer : s.spec.encoder.layers) source += passes(layer);
  const double rows = own * s.step_rows(s.micro_rows()) + source * s.step_rows(s.micro_source_rows());
  return {.kind = "tensor",
          .operation = "all-gather and reduce-scatter of activations",
          .bytes = others(s.layout.tensor) * rows * static_cast<double>(s.spec.hidden_size * s.element())};
}

Traffic pipeline_traffic(const Split& s) {
  const double neighbours = s.layout.pipeline > 2 ? 2 : 1;
  const double whole = s.step_rows() * static_cast<double>(s.spec.hidden_size * s.element());
  return {.kind = "pipeline",
          .operation = "activations to the next stage, their gradients back",
          .bytes = neighbours * whole / static_cast<double>(s.layout.tensor)};
}

// Each token's choices go to their experts and come back, forward and backward.
Traffic expert_traffic(const Split& s, const Stage& stage) {
  double choices = 0;
  for (const LayerSpec& layer : stage.layers(s.spec)) {
    if (layer.moe) choices += static_cast<double>(layer.moe.num_experts_per_tok);
  }
  const double passes = s.training.recompute == Recompute::kNone ? 4 : 6;
  const double whole = s.step_rows() * static_cast<double>(s.spec.hidden_size * s.element());
  return {.kind = "expert",
          .operation = "all-to-all of tokens",
          .bytes = others(s.layout.expert) * passes * choices * whole / static_cast<double>(s.layout.tensor)};
}

// Keys and values, or latents, travel round the ring once forward; backward, they and their gradients. A window needs
// no rank beyond it.
Traffic context_traffic(const Split& s, const Stage& stage) {
  const int64_t chunk = s.training.context / s.layout.context;
  double elements_sent = 0;
  for (const LayerSpec& layer : stage.layers(s.spec)) {
    int64_t width = 0, hops = s.layout.context - 1;
    for (const CacheRow& row : std::visit([](const auto& a) { return a.cache_rows(); }, layer.attention))
      width += row.width;
    if (const int64_t window = window_of(layer); window > 0) hops = std::min(hops, ceil_div(window - 1, chunk));
    elements_sent += static_cast<double>(width) * static_cast<double>(hops);
  }
  return {.kind = "context",
          .operation = "keys and values round the ring",
          .bytes = 3 * s.step_rows() * elements_sent * static_cast<double>(s.element()) /
                   static_cast<double>(s.layout.tensor)};
}

}  // namespace

int64_t ParallelPlan::peak() const {
  int64_t most = 0;
  for (const StageMemory& stage : stages) most = std::max(most, stage.total());
  return most;
}

Problems check_layout(const ArchSpec& spec, const ParallelLayout& layout, const TrainingSetup& training) {
  Problems problems;
  const struct {
    const char* name;
    int64_t ranks;
  } axes[] = {{"data-parallel", layout.data},         {"tensor-parallel", layout.tensor},
              {"pipeline-parallel", layout.pipeline}, {"expert-parallel", layout.expert},
              {"context-parallel", layout.context},   {"micro-batches", layout.micro_batches}};
  for (const auto& axis : axes) {
    if (axis.ranks < 1 || axis.ranks > kMostRanks)
      problems.push_back(
          {axis.name, "got " + std::to_string(axis.ranks), "allowed: 1 to " + std::to_string(kMostRanks)});
  }
  if (layout.zero < 0 || layout.zero > 3)
    problems.push_back({"zero", "got " + std::to_string(layout.zero), "allowed: 0 to 3"});
  if (!problems.empty()) return problems;

  const auto must_divide = [&](const char* axis, int64_t ranks, const std::string& what, int64_t n) {
    if (n % ranks == 0) return;
    add_once(problems, {axis, std::to_string(ranks) + " does not divide " + what + ", " + std::to_string(n),
                        "choose a divisor of it"});
  };
  bool experts = false;
  for (const StackSpec* stack : {static_cast<const StackSpec*>(&spec), &spec.encoder}) {
    for (const LayerSpec& layer : stack->layers) {
      for (const auto& [name, width] : dealt_out(layer)) must_divide("tensor-parallel", layout.tensor, name, width);
      if (!layer.moe) continue;
      experts = true;
      must_divide("expert-parallel", layout.expert, "moe.num_experts", layer.moe.num_experts);
    }
  }
  if (layout.expert > 1 && !experts)
    problems.push_back({"expert-parallel", "the model has no experts", "leave it at 1"});
  must_divide("expert-parallel", layout.expert, "data-parallel", layout.data);
  must_divide("context-parallel", layout.context, "context", training.context);
  must_divide("data-parallel", layout.data, "batch", training.batch);
  if (training.batch % layout.data == 0)
    must_divide("micro-batches", layout.micro_batches, "a replica's share of the batch", training.batch / layout.data);
  const auto layers = static_cast<int64_t>(spec.layers.size());
  for (const auto& [axis, ranks] :
       {std::pair{"pipeline-parallel", layout.pipeline}, {"context-parallel", layout.context}}) {
    if (ranks > 1 && spec.encoder_decoder())
      problems.push_back({axis, "is planned for models of one stack, and this one has an encoder beside its decoder",
                          "leave it at 1"});
  }
  if (layout.pipeline > layers) {
    problems.push_back({"pipeline-parallel",
                        std::to_string(layout.pipeline) + " stages for " + std::to_string(layers) + " layers",
                        "use at most one a layer"});
  }
  return problems;
}

ParallelPlan plan_parallel(const ArchSpec& spec, const ParallelLayout& layout, const TrainingSetup& training) {
  const Split s{spec, layout, training, spec.declare().decls()};
  ParallelPlan plan;
  plan.layout = layout;
  plan.ranks = layout.ranks();
  const double micro = static_cast<double>(layout.micro_batches), waiting = static_cast<double>(layout.pipeline - 1);
  plan.bubble = waiting / (micro + waiting);

  std::vector<Traffic> most;
  const std::vector<Stage> stages = split(spec, layout.pipeline);
  for (size_t i = 0; i < stages.size(); ++i) {
    const int64_t in_flight = std::min(layout.micro_batches, layout.pipeline - static_cast<int64_t>(i));
    plan.stages.push_back(memory_of(s, stages[i], in_flight));
    const std::vector<Traffic> own = {data_traffic(s, stages[i]), tensor_traffic(s, stages[i]), pipeline_traffic(s),
                                      expert_traffic(s, stages[i]), context_traffic(s, stages[i])};
    if (most.empty()) most = own;
    for (size_t kind = 0; kind < own.size(); ++kind) most[kind].bytes = std::max(most[kind].bytes, own[kind].bytes);
  }
  const int64_t ranks[] = {layout.data * layout.context, layout.tensor, layout.pipeline, layout.expert, layout.context};
  for (size_t kind = 0; kind < most.size(); ++kind) {
    if (ranks[kind] > 1) plan.traffic.push_back(most[kind]);
  }
  return plan;
}

}  // namespace transept
