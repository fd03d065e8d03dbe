// The tape: differentiable values and the record of how to go back. An op computes its result and, when there is a
// tape, records one closure that turns the gradient of its result into gradients of its inputs; forward and backward of
// an op stand side by side in ops/*.cc. Closures hold exactly the buffers they need and are destroyed as they run, so
// memory flows back to the arena during the backward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/arena.h"
#include "tensor/rows.h"
#include "tensor/weight.h"

namespace transept {

// Where the gradient of a value gathers. Empty until the first contribution.
struct GradientSlot {
  Buffer buffer;
};

// A token-major activation [rows, width], contiguous. Copies share the memory.
struct Var {
  Buffer value;
  int64_t rows = 0;
  int64_t width = 0;
  std::shared_ptr<GradientSlot> gradient;  // null when nothing flows back

  Rows view() const { return {value.data(), rows, width, width}; }
};

// A parameter as an op sees it: a matrix [out, in] or a vector. `gradient` is null when it is not trained;
// contributions are added to it. A matrix that is as its checkpoint stores it has no `value`: products read it by
// weight(), and nothing flows back through it.
struct Param {
  const float* value = nullptr;
  float* gradient = nullptr;
  int64_t out = 0;
  int64_t in = 1;
  std::span<const StoredRows> stored = {};
  DType dtype = DType::kF32;
  explicit operator bool() const { return value != nullptr || !stored.empty(); }
  Weight weight() const { return {value, stored, dtype, in}; }
};

class Tape {
 public:
  void record(std::function<void()> backward) { steps_.push_back(std::move(backward)); }
  // Runs the record from its end, destroying each step when it is done. The gradients of the last results must be in
  // their slots.
  void backward();

 private:
  std::vector<std::function<void()>> steps_;
};

// What every op needs: threads, memory, and a tape when gradients are wanted.
struct OpContext {
  ThreadPool& pool;
  Arena& arena;
  Tape* tape = nullptr;

  // A new value of this shape, uninitialized; it has a gradient slot when there is a tape.
  Var make(int64_t rows, int64_t width) const;
};

// The place where a backward step writes the gradient of an input: its slot's buffer and whether to add to what is
// there.
struct GradientTarget {
  Rows rows;
  bool accumulate;
};
GradientTarget gradient_target(Arena& arena, GradientSlot& slot, int64_t rows, int64_t width);

// Adds a whole gradient to a slot; takes the buffer over when the slot is empty.
void add_gradient(ThreadPool& pool, GradientSlot& slot, Buffer gradient);

// Runs `body` without a tape now and again, with one, when its gradient is wanted: activations inside are not kept
// (arXiv:1604.06174). `body` must be a pure function of its input (random draws by counter are).
Var recompute(const OpContext& context, const Var& x, std::function<Var(const OpContext&, const Var&)> body);

}  // namespace transept
