#include "ops/tape.h"

#include "base/check.h"
#include "kernels/elementwise.h"
#include "ops/parallel.h"

namespace transept {

void Tape::backward() {
  while (!steps_.empty()) {
    steps_.back()();
    steps_.pop_back();
  }
}

Var OpContext::make(int64_t rows, int64_t width) const {
  return {Buffer(arena, rows * width), rows, width, tape ? std::make_shared<GradientSlot>() : nullptr};
}

GradientTarget gradient_target(Arena& arena, GradientSlot& slot, int64_t rows, int64_t width) {
  const bool accumulate = static_cast<bool>(slot.buffer);
  if (!accumulate) slot.buffer = Buffer(arena, rows * width);
  TRANSEPT_CHECK(slot.buffer.size() == rows * width);
  return {{slot.buffer.data(), rows, width, width}, accumulate};
}

void add_gradient(ThreadPool& pool, GradientSlot& slot, Buffer gradient) {
  if (!slot.buffer) {
    slot.buffer = std::move(gradient);
    return;
  }
  TRANSEPT_CHECK(slot.buffer.size() == gradient.size());
  for_flat(pool, gradient.size(), [&](int64_t begin, int64_t count) {
    add_rows({gradient.data() + begin, 1, count, count}, {slot.buffer.data() + begin, 1, count, count});
  });
}

Var recompute(const OpContext& context, const Var& x, std::function<Var(const OpContext&, const Var&)> body) {
  if (!context.tape) return body(context, x);
  OpContext bare = context;
  bare.tape = nullptr;
  Var y = body(bare, x);
  y.gradient = std::make_shared<GradientSlot>();
  context.tape->record([context, x, slot = y.gradient, rows = y.rows, width = y.width, body = std::move(body)] {
    if (!slot->buffer) return;
    Tape inner;
    OpContext again = context;
    again.tape = &inner;
    Var input = x;
    input.gradient = std::make_shared<GradientSlot>();
    {
      const Var output = body(again, input);
      TRANSEPT_CHECK(output.rows == rows && output.width == width);
      output.gradient->buffer = std::move(slot->buffer);
    }
    inner.backward();
    if (x.gradient && input.gradient->buffer)
      add_gradient(context.pool, *x.gradient, std::move(input.gradient->buffer));
  });
  return y;
}

}  // namespace transept
