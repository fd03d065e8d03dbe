// The sums of roofline.h, on the counts of make_plan.
#include "plan/roofline.h"

#include <algorithm>
#include <cmath>

#include "base/problem.h"

namespace transept {
namespace {

constexpr double kSecondsPerHour = 3600;
// Beyond so many rows every expert is chosen, and no machine holds as many sequences.
constexpr int64_t kMostRows = int64_t{1} << 20;

bool has_experts(const ArchSpec& spec) {
  const auto sparse = [](const LayerSpec& layer) { return layer.moe.num_experts > 0; };
  return std::any_of(spec.layers.begin(), spec.layers.end(), sparse) ||
         std::any_of(spec.encoder.layers.begin(), spec.encoder.layers.end(), sparse);
}

double all_reduces(const std::vector<LayerSpec>& layers) {
  int64_t count = 0;
  for (const LayerSpec& layer : layers) count += layer.block.parallel() ? layer.sublayers() - 1 : layer.sublayers();
  return static_cast<double>(count);
}

// What the passes of one model share.
class Server {
 public:
  Server(const ArchSpec& spec, const PlanOptions& options, const MachineType& machine, int64_t machines)
      : spec_(spec), options_(options), machine_(machine), machines_(machines) {
    options_.memory_bytes = 0;
    plan_ = make_plan(spec, options_);
    options_.context = plan_.context;
    options_.source_context = plan_.source_context;
    experts_ = has_experts(spec);
    weight_size_ = static_cast<double>(plan_.memory.weights) / static_cast<double>(plan_.parameters.total);
    peak_ = machine.peak(plan_.dtype);
  }

  const Plan& plan() const { return plan_; }
  const MachineType::Peak& peak() const { return peak_; }
  bool decodes() const { return spec_.topology != Topology::kEncoder; }

  // Bytes of the weights that a pass over so many rows reads.
  double weight_bytes(int64_t rows) const {
    if (!experts_) return static_cast<double>(plan_.serving.weight_bytes_per_step);
    PlanOptions one = options_;
    one.context = one.source_context = 1;
    one.batch = std::min(rows, kMostRows);
    return static_cast<double>(make_plan(spec_, one).serving.weight_bytes_per_step);
  }

  Decode decode(int64_t batch) const {
    const double rows = static_cast<double>(batch);
    // Of the bytes a token, all but the weights are its own.
    const double own = plan_.serving.bytes_per_decoded_token -
                       static_cast<double>(plan_.serving.weight_bytes_per_step) / static_cast<double>(plan_.batch);
    Decode d{.context = plan_.context, .batch = batch, .step = {}};
    d.step = pass(rows * plan_.serving.flops_per_decoded_token, weight_bytes(batch) + rows * own, rows,
                  all_reduces(spec_.layers));
    d.step.layer_seconds = machine_.layer_seconds * static_cast<double>(spec_.layers.size());
    d.step.seconds += d.step.layer_seconds;
    d.tokens_per_second_per_sequence = 1 / d.step.seconds;
    d.tokens_per_second = rows / d.step.seconds;
    d.usd_per_million_tokens = usd_per_million(d.tokens_per_second);
    return d;
  }

  Prefill prefill() const {
    const bool seq2seq = spec_.encoder_decoder();
    Prefill p{.tokens = seq2seq ? plan_.source_context : plan_.context, .batch = plan_.batch, .pass = {}};
    const double tokens = static_cast<double>(p.tokens), batch = static_cast<double>(p.batch);
    double flops = 0, bytes = 0, cached = 0, reduces = all_reduces(spec_.layers);
    if (seq2seq) {
      // A target of one token leaves the source's share, beside that of decoding this token.
      PlanOptions one = options_;
      one.context = 1;
      const Plan start = make_plan(spec_, one);
      flops = tokens * (start.flops.forward_per_token - start.serving.flops_per_decoded_token) +
              start.serving.flops_per_decoded_token;
      bytes = static_cast<double>(plan_.parameters.active_without_input_embedding) * weight_size_;
      cached = static_cast<double>(start.kv_cache.bytes);
      reduces = all_reduces(spec_.encoder.layers);
    } else {
      flops = tokens * plan_.flops.forward_per_token;
      if (decodes())
        flops -= (tokens - 1) * 2 * static_cast<double>(spec_.vocab_size) * static_cast<double>(spec_.hidden_size);
      bytes = weight_bytes(p.tokens > kMostRows / p.batch ? kMostRows : p.tokens * p.batch);
      cached = static_cast<double>(plan_.kv_cache.bytes);
    }
    p.pass = pass(batch * flops, bytes + batch * cached, batch * tokens, reduces);
    p.seconds_to_first_token = p.pass.seconds;
    p.tokens_per_second = batch * tokens / p.pass.seconds;
    p.usd_per_million_tokens = usd_per_million(p.tokens_per_second);
    return p;
  }

  // Operations grow with the batch, bytes by the caches and by what more experts are touched, ever less: operations are
  // behind up to one batch and ahead from there on.
  std::optional<int64_t> compute_bound_batch() const {
    const auto binds = [&](int64_t batch) {
      const PassTime step = decode(batch).step;
      return step.flops / static_cast<double>(machines_) / peak_.flops_per_second >= step.memory_seconds;
    };
    if (!binds(kMostRows)) return std::nullopt;
    int64_t below = 0, at = kMostRows;
    while (at - below > 1) {
      const int64_t middle = below + (at - below) / 2;
      (binds(middle) ? at : below) = middle;
    }
    return at;
  }

 private:
  PassTime pass(double flops, double bytes, double rows, double reduces) const {
    return pass_time(machine_, machines_, flops, machine_.reachable_flops_per_second(plan_.dtype, rows), bytes,
                     rows * static_cast<double>(spec_.hidden_size) * weight_size_, reduces);
  }
  double usd_per_million(double tokens_per_second) const {
    return machine_.usd_per_hour * static_cast<double>(machines_) / kSecondsPerHour / tokens_per_second * 1e6;
  }

  const ArchSpec& spec_;
  PlanOptions options_;
  const MachineType& machine_;
  int64_t machines_;
  Plan plan_;
  bool experts_ = false;
  double weight_size_ = 0;  // bytes of an element
  MachineType::Peak peak_;
};

}  // namespace

PassTime pass_time(const MachineType& machine, int64_t machines, double flops, double flops_per_second, double bytes,
                   double reduced_bytes, double all_reduces) {
  const double n = static_cast<double>(machines);
  PassTime t{.flops = flops, .bytes = bytes};
  t.compute_seconds = flops / n / flops_per_second;
  t.memory_seconds = bytes / n / machine.read_bytes_per_second(bytes / n);
  if (machines > 1) {
    const double one_way = machine.interconnect_bytes_per_second / 2;
    t.communication_seconds = all_reduces * 2 * (n - 1) / n * reduced_bytes / one_way;
  }
  t.seconds = std::max(t.compute_seconds, t.memory_seconds) + t.communication_seconds;
  return t;
}

Serving plan_serving(const ArchSpec& spec, const PlanOptions& options, const MachineType& machine, int64_t machines) {
  if (machines > 1 && !(machine.interconnect_bytes_per_second > 0))
    throw InputError("--serve-tensor-parallel",
                     "the bandwidth between machines of the type " + machine.name + " is not known",
                     "give interconnect_bytes_per_second in a file that extends it");
  const Server server(spec, options, machine, machines);
  Serving s;
  s.machines = machines;
  s.peak = server.peak();
  s.prefill = server.prefill();
  s.memory_bytes = machine.memory_bytes * machines;
  if (!server.decodes()) return s;
  s.decode = server.decode(server.plan().batch);
  s.compute_bound_batch = server.compute_bound_batch();
  PlanOptions held = options;
  held.memory_bytes = s.memory_bytes;
  s.largest_batch = make_plan(spec, held).serving.largest_batch;
  if (s.largest_batch > 0) s.largest = server.decode(s.largest_batch);
  return s;
}

}  // namespace transept
