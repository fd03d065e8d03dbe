#include "ops/moe.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "kernels/gemm.h"
#include "kernels/weights.h"
#include "ops/parallel.h"

namespace transept {
namespace {

// Rows that one worker scores and routes at a time.
constexpr int64_t kRoutedRows = 64;

// Consecutive rows of one sequence.
struct Run {
  int64_t first, rows, sequence;
};

std::vector<Run> runs_of(const BatchLayout& layout, int64_t rows) {
  std::vector<Run> runs;
  for (size_t s = 0; s < layout.size(); ++s) {
    const SequenceRows& q = layout[s];
    TRANSEPT_CHECK(q.first_row >= 0 && q.rows >= 0 && q.first_row + q.rows <= rows);
    for (int64_t at = 0; at < q.rows; at += kRoutedRows) {
      runs.push_back({q.first_row + at, std::min(kRoutedRows, q.rows - at), static_cast<int64_t>(s)});
    }
  }
  return runs;
}

// What the forward pass leaves for the backward pass, beside buffers.
struct Routed {
  Routing routing;
  std::vector<int64_t> places;  // of each expert
  std::vector<Run> runs;
  int64_t counted = 0;         // rows of runs
  std::vector<float> balance;  // [sequences or 1, experts]: the gradient of P; empty: none
  bool balance_of_sequence = false;
  float z = 0;  // the factor of d(lse^2)

  Routed(const RouterShape& shape, int64_t rows) : routing(shape, rows) {}
  Rows of_expert(Rows x, int64_t e) const {
    return x.slice(routing.offsets[static_cast<size_t>(e)], places[static_cast<size_t>(e)]);
  }
};

// The losses' values, into `statistics`, and their gradients with respect to P and lse^2, from the sums of each run.
void balance(const RouterShape& shape, const BalanceLosses& losses, const BatchLayout& layout,
             const std::vector<RouterSums>& sums, Routed& routed, RouterStatistics& statistics) {
  const Routing& routing = routed.routing;
  const size_t experts = static_cast<size_t>(shape.experts);
  // What one balance loss is taken over: a sequence, or the batch.
  struct Part {
    std::vector<double> probability;
    std::vector<int64_t> load;
    int64_t rows = 0;
  };
  std::vector<Part> parts(losses.per_sequence ? layout.size() : 1);
  for (Part& part : parts) {
    part.probability.assign(experts, 0);
    part.load.assign(experts, 0);
  }
  double entropy = 0, squared_lse = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const Run& run = routed.runs[i];
    Part& part = parts[losses.per_sequence ? static_cast<size_t>(run.sequence) : 0];
    for (size_t e = 0; e < experts; ++e) part.probability[e] += sums[i].probability[e];
    count_choices(routing.expert.data() + run.first * routing.slots, run.rows * routing.slots, part.load.data());
    part.rows += run.rows;
    entropy += sums[i].entropy;
    squared_lse += sums[i].squared_lse;
  }
  const int64_t taken = std::count_if(parts.begin(), parts.end(), [](const Part& part) { return part.rows > 0; });
  const double rows = static_cast<double>(std::max<int64_t>(1, routed.counted)),
               weight = static_cast<double>(losses.weight);
  statistics = {.load = std::vector<int64_t>(experts),
                .z_loss = static_cast<double>(losses.z) * squared_lse / rows,
                .entropy = entropy / rows,
                .rows = routed.counted,
                .pairs = routing.chosen,
                .dropped = routing.dropped};
  routed.z = static_cast<float>(weight * static_cast<double>(losses.z) / rows);
  routed.balance_of_sequence = losses.per_sequence;
  if (losses.balance != 0) routed.balance.assign(parts.size() * experts, 0);
  for (size_t p = 0; p < parts.size(); ++p) {
    const Part& part = parts[p];
    for (size_t e = 0; e < experts; ++e) statistics.load[e] += part.load[e];
    if (part.rows == 0 || losses.balance == 0) continue;
    const double share = static_cast<double>(losses.balance) / static_cast<double>(taken),
                 part_rows = static_cast<double>(part.rows);
    statistics.balance_loss += share * load_balance(shape, part.load, part.probability, part.rows);
    for (size_t e = 0; e < experts; ++e) {
      const double f = static_cast<double>(part.load[e]) / (part_rows * static_cast<double>(shape.top_k));
      routed.balance[p * experts + e] =
          static_cast<float>(weight * share * static_cast<double>(shape.experts) * f / part_rows);
    }
  }
}

// Chooses, groups, and takes the losses.
std::shared_ptr<const Routed> route(const OpContext& context, const RouterShape& shape, const BalanceLosses& losses,
                                    const BatchLayout& layout, ConstRows logits, RouterStatistics* statistics) {
  const auto routed = std::make_shared<Routed>(shape, logits.rows);
  routed->runs = runs_of(layout, logits.rows);
  Routing& routing = routed->routing;
  for (const Run& run : routed->runs) routed->counted += run.rows;
  const bool wanted = statistics != nullptr || losses.balance != 0 || losses.z != 0;
  std::vector<RouterSums> sums(wanted ? routed->runs.size() : 0);
  {
    const Buffer held(context.arena, logits.rows * shape.experts);
    const Rows scores{held.data(), logits.rows, shape.experts, shape.experts};
    context.pool.run(static_cast<int64_t>(routed->runs.size()), [&](int64_t i, int) {
      const Run& run = routed->runs[static_cast<size_t>(i)];
      const ConstRows l = logits.slice(run.first, run.rows);
      const Rows s = scores.slice(run.first, run.rows);
      router_scores(shape, l, s);
      if (shape.choice == RouterChoice::kTokens) {
        const int64_t at = run.first * routing.slots;
        choose_experts(shape, l, s, routing.expert.data() + at, routing.gate.data() + at);
      }
      if (wanted) {
        RouterSums& sum = sums[static_cast<size_t>(i)];
        sum.probability.assign(static_cast<size_t>(shape.experts), 0);
        add_router_sums(shape, l, s, sum);
      }
    });
    if (shape.choice == RouterChoice::kExperts) {
      std::vector<int32_t> scratch(static_cast<size_t>(logits.rows));
      context.pool.run(static_cast<int64_t>(layout.size()), [&](int64_t i, int) {
        const SequenceRows& q = layout[static_cast<size_t>(i)];
        const int64_t at = q.first_row * routing.slots;
        choose_rows(shape, scores.slice(q.first_row, q.rows), routing.expert.data() + at, routing.gate.data() + at,
                    scratch.data() + q.first_row);
      });
    }
  }
  group_by_expert(router_capacity(shape, routed->counted), routing);
  for (size_t e = 0; e + 1 < routing.offsets.size(); ++e) {
    routed->places.push_back(routing.offsets[e + 1] - routing.offsets[e]);
  }
  if (wanted) {
    RouterStatistics unread;
    balance(shape, losses, layout, sums, *routed, statistics != nullptr ? *statistics : unread);
  }
  return routed;
}

// Memory for [rows, width]; there may be no rows.
Buffer make_rows(const OpContext& context, int64_t rows, int64_t width) {
  return Buffer(context.arena, std::max<int64_t>(1, rows * width));
}

// Rows by expert.
Buffer gathered(const OpContext& context, const Routing& routing, ConstRows x) {
  const int64_t places = routing.places();
  const Buffer y = make_rows(context, places, x.width);
  const Rows to{y.data(), places, x.width, x.width};
  for_rows(context.pool, places, x.width, [&](int64_t first, int64_t rows) {
    gather_rows(x, routing.pair.data() + first, routing.slots, to.slice(first, rows));
  });
  return y;
}

Buffer jittered(const OpContext& context, const RouterJitter& jitter, ConstRows x) {
  const Buffer y(context.arena, x.rows * x.width);
  const Rows to{y.data(), x.rows, x.width, x.width};
  for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t rows) {
    jitter_rows(jitter, first, x.slice(first, rows), to.slice(first, rows));
  });
  return y;
}

// The columns of a tile in rows, `column` floats from their start.
Rows part(Rows x, const Tile& t, int64_t column) {
  return {x.row(t.row) + column + t.column, t.rows, t.columns, x.stride};
}

// y_e = x_e W_e^T + b_e on one tile, W_e and b_e the rows of w and bias from `first` on and `column` the first of y's
// columns.
void times_transposed(ConstRows x, const Weight& w, const Param& bias, int64_t first, const Tile& t, int64_t column,
                      Rows y) {
  const int64_t row = first + column + t.column;
  multiply_tile(x.slice(t.row, t.rows), w, row, t.columns, part(y, t, column));
  if (bias) add_bias(bias.value + row, part(y, t, column));
}

// dx_e = dy_e W_e on one tile, w [dy.width, width].
void times_weight(ConstRows dy, const float* w, int64_t width, const Tile& t, Rows dx) {
  const Rows out = part(dx, t, 0);
  gemm_tile(Transpose::kNo, Transpose::kNo, t.rows, t.columns, dy.width, 1.f, dy.row(t.row), dy.stride, w + t.column,
            width, 0.f, out.data, out.stride);
}

// dW_e += dy_e^T x_e for every expert with rows.
void add_weight_gradients(const OpContext& context, const Routed& routed, Rows dy, Rows x, float* dw) {
  std::vector<int64_t> heights;
  for (const int64_t n : routed.places) heights.push_back(n > 0 ? dy.width : 0);
  for_group_tiles(context.pool, heights, x.width, [&](const GroupTile& g) {
    const Tile& t = g.tile;
    const ConstRows d = routed.of_expert(dy, g.group), from = routed.of_expert(x, g.group);
    gemm_tile(Transpose::kYes, Transpose::kNo, t.rows, t.columns, d.rows, 1.f, d.data + t.row, d.stride,
              from.data + t.column, from.stride, 1.f, dw + (g.group * dy.width + t.row) * x.width + t.column, x.width);
  });
}

// db_e += column sums of the rows of every expert.
void add_bias_gradients(const OpContext& context, const Routed& routed, Rows dy, const Param& bias) {
  if (!bias.gradient) return;
  context.pool.run(static_cast<int64_t>(routed.places.size()),
                   [&](int64_t e, int) { sum_columns(routed.of_expert(dy, e), bias.gradient + e * dy.width); });
}

// Turns a tile of da / gate, in place, into gate * a, and z into dz; adds to dots[row of the tile] the product of da /
// gate and a, the tile's part of the gradient of the gate.
void activation_backward_tile(const MoeParams& p, const float* gates, Rows da, Rows gate, Rows up, float* dots) {
  constexpr int64_t kRows = 8, kColumns = 512;
  alignas(64) float kept[kRows * kColumns];
  for (int64_t r = 0; r < da.rows; r += kRows) {
    const int64_t rows = std::min(kRows, da.rows - r);
    for (int64_t c = 0; c < da.width; c += kColumns) {
      const int64_t columns = std::min(kColumns, da.width - c);
      const auto block = [&](Rows x) { return Rows{x.row(r) + c, rows, columns, x.stride}; };
      const Rows d = block(da), before{kept, rows, columns, kColumns};
      copy_rows(d, before);
      for (int64_t i = 0; i < rows; ++i) scale_rows(gates[r + i], d.slice(i, 1));
      if (p.gated) {
        gated_backward(p.activation, block(gate), block(up), d, block(gate), block(up), d);
      } else {
        activation_backward(p.activation, block(gate), d, block(gate), d);
      }
      add_dots_and_gate_rows(before, gates + r, d, dots + r);
    }
  }
}

// The gradient of every gate, [rows, slots] (0 where nothing is computed), from the sums of each column of tiles.
std::vector<float> gate_gradients(const Routing& routing, const Buffer& dots, int64_t columns) {
  std::vector<float> d_gate(routing.gate.size());
  const int64_t places = routing.places();
  for (int64_t i = 0; i < places; ++i) {
    float& sum = d_gate[static_cast<size_t>(routing.pair[static_cast<size_t>(i)])];
    for (int64_t c = 0; c < columns; ++c) sum += dots.data()[c * places + i];
  }
  return d_gate;
}

// d_logits [rows, experts]: of the gates and of the losses.
Buffer logit_gradients(const OpContext& context, const RouterShape& shape, const Routed& routed, ConstRows logits,
                       const std::vector<float>& d_gate) {
  const Buffer held(context.arena, logits.rows * logits.width);
  const Rows to{held.data(), logits.rows, logits.width, logits.width};
  if (routed.counted < logits.rows) std::fill_n(held.data(), held.size(), 0.f);
  context.pool.run(static_cast<int64_t>(routed.runs.size()), [&](int64_t i, int) {
    const Run& run = routed.runs[static_cast<size_t>(i)];
    const int64_t pair = run.first * routed.routing.slots;
    const float* slopes = routed.balance.empty() ? nullptr : routed.balance.data();
    if (slopes != nullptr && routed.balance_of_sequence) slopes += run.sequence * shape.experts;
    router_backward(shape, logits.slice(run.first, run.rows), routed.routing.expert.data() + pair, d_gate.data() + pair,
                    slopes, routed.z, to.slice(run.first, run.rows));
  });
  return held;
}

// One call of the op, as its passes share it.
struct Call {
  OpContext context;
  Var x;
  MoeParams p;
  int64_t f, in_width, out_width;

  bool noisy() const { return p.jitter.epsilon != 0; }
  const float* in(int64_t e) const { return p.in.value + e * in_width * x.width; }
  const float* down(int64_t e) const { return p.down.value + e * out_width * f; }

  Buffer router_input() const { return noisy() ? jittered(context, p.jitter, x.view()) : x.value; }
  // z = x_e in_e^T and a = act(z), by expert.
  void hidden(const Routed& routed, Rows z, Rows a) const;
  // y = the sum of each row's gates times a_e down_e^T, with its end.
  void outputs(const Routed& routed, Rows a, const LinearEnd& end, Rows y) const;
  // From g [rows, out_width], the gradient before the dropout: turns z into dz, adds the gradient of down, and gives
  // that of the gates.
  std::vector<float> hidden_backward(const Routed& routed, ConstRows g, Rows z) const;
  // dx of the experts, written to or added to what is there.
  void input_backward(const Routed& routed, Rows dz, const GradientTarget& dx) const;
  // Adds the gradient of the router, and its part of dx.
  void router_backward(const Routed& routed, ConstRows logits, const std::vector<float>& d_gate, Rows dx) const;
};

void Call::hidden(const Routed& routed, Rows z, Rows a) const {
  const Buffer held = gathered(context, routed.routing, x.view());
  const Rows by_expert{held.data(), z.rows, x.width, x.width};
  for_group_tiles(context.pool, routed.places, f, [&](const GroupTile& g) {
    const ConstRows from = routed.of_expert(by_expert, g.group);
    const Rows ze = routed.of_expert(z, g.group), ae = routed.of_expert(a, g.group);
    const Tile& t = g.tile;
    const int64_t first = g.group * in_width;
    times_transposed(from, p.in.weight(), p.in_bias, first, t, 0, ze);
    if (p.gated) {
      times_transposed(from, p.in.weight(), p.in_bias, first, t, f, ze);
      gated_forward(p.activation, part(ze, t, 0), part(ze, t, f), part(ae, t, 0));
    } else {
      activation_forward(p.activation, part(ze, t, 0), part(ae, t, 0));
    }
  });
}

void Call::outputs(const Routed& routed, Rows a, const LinearEnd& end, Rows y) const {
  const Routing& routing = routed.routing;
  const Buffer held = make_rows(context, a.rows, out_width);
  const Rows by_expert{held.data(), a.rows, out_width, out_width};
  for_group_tiles(context.pool, routed.places, out_width, [&](const GroupTile& g) {
    times_transposed(routed.of_expert(a, g.group), p.down.weight(), p.down_bias, g.group * out_width, g.tile, 0,
                     routed.of_expert(by_expert, g.group));
  });
  for_rows(context.pool, y.rows, out_width, [&](int64_t first, int64_t rows) {
    const Rows to = y.slice(first, rows);
    const int64_t pair = first * routing.slots;
    combine_rows(by_expert, routing.position.data() + pair, routing.gate.data() + pair, routing.slots, false, to);
    apply_end(end, to, first, 0);
  });
}

std::vector<float> Call::hidden_backward(const Routed& routed, ConstRows g, Rows z) const {
  const Routing& routing = routed.routing;
  const int64_t places = z.rows;
  const Buffer held = gathered(context, routing, g), a_held = make_rows(context, places, f),
               dots = make_rows(context, column_tiles(f), places);
  const Rows by_expert{held.data(), places, out_width, out_width}, a{a_held.data(), places, f, f};
  std::fill_n(dots.data(), dots.size(), 0.f);
  std::vector<float> gates;
  for (const int32_t pair : routing.pair) gates.push_back(routing.gate[static_cast<size_t>(pair)]);
  for_group_tiles(context.pool, routed.places, f, [&](const GroupTile& group) {
    const Tile& t = group.tile;
    const int64_t e = group.group, first = routing.offsets[static_cast<size_t>(e)] + t.row;
    const Rows da = routed.of_expert(a, e), dz = routed.of_expert(z, e);
    times_weight(routed.of_expert(by_expert, e), down(e), f, t, da);
    activation_backward_tile(p, gates.data() + first, part(da, t, 0), part(dz, t, 0), p.gated ? part(dz, t, f) : Rows(),
                             dots.data() + group.column_tile * places + first);
  });
  if (p.down.gradient) add_weight_gradients(context, routed, by_expert, a, p.down.gradient);
  if (p.down_bias) {
    // The bias is part of what the gate multiplies.
    context.pool.run(static_cast<int64_t>(routed.places.size()), [&](int64_t e, int) {
      const int64_t first = routing.offsets[static_cast<size_t>(e)];
      const Rows g_e = routed.of_expert(by_expert, e);
      add_dots_and_gate_rows({p.down_bias.value + e * out_width, g_e.rows, out_width, 0}, gates.data() + first, g_e,
                             dots.data() + first);
    });
    add_bias_gradients(context, routed, by_expert, p.down_bias);
  }
  return gate_gradients(routing, dots, column_tiles(f));
}

void Call::input_backward(const Routed& routed, Rows dz, const GradientTarget& dx) const {
  const Routing& routing = routed.routing;
  const Buffer held = make_rows(context, dz.rows, x.width);
  const Rows by_expert{held.data(), dz.rows, x.width, x.width};
  for_group_tiles(context.pool, routed.places, x.width, [&](const GroupTile& g) {
    times_weight(routed.of_expert(dz, g.group), in(g.group), x.width, g.tile, routed.of_expert(by_expert, g.group));
  });
  for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t rows) {
    combine_rows(by_expert, routing.position.data() + first * routing.slots, nullptr, routing.slots, dx.accumulate,
                 dx.rows.slice(first, rows));
  });
}

void Call::router_backward(const Routed& routed, ConstRows logits, const std::vector<float>& d_gate, Rows dx) const {
  const Buffer held = logit_gradients(context, p.router, routed, logits, d_gate);
  const ConstRows d_logits{held.data(), logits.rows, logits.width, logits.width};
  add_bias_gradient(context, p.gate_bias, d_logits);
  if (p.gate.gradient) {
    const Buffer input = router_input();
    gemm_ytx(context.pool, d_logits, {input.data(), x.rows, x.width, x.width}, p.gate.gradient);
  }
  if (!x.gradient) return;
  if (!noisy()) return gemm_xw(context.pool, d_logits, p.gate.value, x.width, 1.f, dx);
  const Buffer d_held(context.arena, x.rows * x.width);
  const Rows d_input{d_held.data(), x.rows, x.width, x.width};
  gemm_xw(context.pool, d_logits, p.gate.value, x.width, 0.f, d_input);
  for_rows(context.pool, x.rows, x.width, [&](int64_t first, int64_t rows) {
    const Rows d = d_input.slice(first, rows);
    jitter_rows(p.jitter, first, d, d);
    add_rows(d, dx.slice(first, rows));
  });
}

}  // namespace

Var moe(const OpContext& context, const Var& x, const MoeParams& p, const BalanceLosses& losses,
        const BatchLayout& layout, const LinearEnd& end, RouterStatistics* statistics) {
  check_router(p.router);
  const int64_t experts = p.router.experts, f = p.down.in;
  const Call call{context, x, p, f, p.gated ? 2 * f : f, p.down.out / experts};
  const int64_t in_width = call.in_width, out_width = call.out_width;
  TRANSEPT_CHECK(p.gate.out == experts && p.gate.in == x.width);
  TRANSEPT_CHECK(p.in.out == experts * in_width && p.in.in == x.width && p.down.out == experts * out_width);
  const auto fits = [](const Param& bias, int64_t width) { return !bias || bias.out == width; };
  TRANSEPT_CHECK(fits(p.gate_bias, experts) && fits(p.in_bias, p.in.out) && fits(p.down_bias, p.down.out));
  TRANSEPT_CHECK(!end.bias);
  check_end(end, x.rows, out_width);
  if (x.rows == 0) {
    if (statistics != nullptr) *statistics = {.load = std::vector<int64_t>(static_cast<size_t>(experts))};
    return {Buffer(), 0, out_width, context.tape ? std::make_shared<GradientSlot>() : nullptr};
  }
  const Var y = context.make(x.rows, out_width);
  const Buffer logits(context.arena, x.rows * experts);
  const Rows logit_view{logits.data(), x.rows, experts, experts};
  {
    const Buffer input = call.router_input();
    multiply(context.pool, {input.data(), x.rows, x.width, x.width}, p.gate.weight(), experts, logit_view,
             [&](Rows tile, int64_t, int64_t column) {
               if (p.gate_bias) add_bias(p.gate_bias.value + column, tile);
             });
  }
  const std::shared_ptr<const Routed> routed = route(context, p.router, losses, layout, logit_view, statistics);
  const int64_t places = routed->routing.places();
  Buffer z = make_rows(context, places, in_width);
  {
    const Buffer a = make_rows(context, places, f);
    call.hidden(*routed, {z.data(), places, in_width, in_width}, {a.data(), places, f, f});
    call.outputs(*routed, {a.data(), places, f, f}, end, y.view());
  }
  if (context.tape) {
    context.tape->record([call, logits, routed, z, dropout = end.dropout, slot = y.gradient,
                          residual = end.residual ? end.residual->gradient : nullptr]() mutable {
      if (!slot->buffer) return;
      const OpContext& c = call.context;
      const Var& input = call.x;
      const int64_t rows = input.rows, width = input.width, count = routed->routing.places();
      const Rows dz{z.data(), count, call.in_width, call.in_width};
      std::vector<float> d_gate;
      {
        const Buffer g = gradient_before_dropout(c, dropout, slot->buffer, rows, call.out_width);
        d_gate = call.hidden_backward(*routed, {g.data(), rows, call.out_width, call.out_width}, dz);
      }
      add_bias_gradients(c, *routed, dz, call.p.in_bias);
      if (call.p.in.gradient) {
        const Buffer by_expert = gathered(c, routed->routing, input.view());
        add_weight_gradients(c, *routed, dz, {by_expert.data(), count, width, width}, call.p.in.gradient);
      }
      GradientTarget dx{};
      if (input.gradient) {
        dx = gradient_target(c.arena, *input.gradient, rows, width);
        call.input_backward(*routed, dz, dx);
      }
      z.reset();
      if (call.p.gate.gradient || input.gradient) {
        const int64_t logit_width = call.p.router.experts;
        call.router_backward(*routed, {logits.data(), rows, logit_width, logit_width}, d_gate, dx.rows);
      }
      if (residual) add_gradient(c.pool, *residual, std::move(slot->buffer));
      slot->buffer.reset();
    });
  }
  return y;
}

}  // namespace transept
