// The one thread pool. Work is a range of independent indices taken from an atomic counter; since every index writes
// only its own results, outputs do not depend on how many threads run or on who takes what. oneDNN is held to one
// thread inside each worker (kernels/gemm.cc), so no library thread ever competes with ours.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace transept {

class ThreadPool {
 public:
  // The caller of `run` is worker 0; `threads - 1` more are started. threads >= 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(index, worker) for every index in [0, count), worker in [0, threads()). Returns when all are done. An
  // exception in a body is rethrown here once. Not re-entrant: a body must not call run.
  void run(int64_t count, const std::function<void(int64_t index, int worker)>& body);

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

// Processors this process may use: the affinity mask bounded by the cgroup's quota, at least 1.
int available_processors();

}  // namespace transept
