#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/stop_request.h"

namespace transept {
namespace {
// Workers spin this many times for the next job before they sleep: ops follow each other within microseconds, and a
// futex wake costs about as much as a small op.
constexpr int kSpins = 2000;

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake, done;
  std::atomic<uint64_t> generation{0};  // bumped under `mutex` for each job
  bool stop = false;

  const std::function<void(int64_t, int)>* body = nullptr;
  int64_t count = 0;
  std::atomic<int64_t> next{0};
  std::atomic<int> running{0};  // helpers that have not finished the current job
  std::exception_ptr error;
  std::vector<std::jthread> helpers;

  void work(int worker) {
    for (;;) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      try {
        (*body)(i, worker);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next.store(count, std::memory_order_relaxed);
      }
    }
  }

  void helper(int worker) {
    uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < kSpins && generation.load(std::memory_order_acquire) == seen; ++spin) pause_cpu();
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stop || generation.load(std::memory_order_relaxed) != seen; });
        if (stop) return;
        seen = generation.load(std::memory_order_relaxed);
      }
      work(worker);
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard lock(mutex);
        done.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int threads) : threads_(threads), state_(std::make_unique<State>()) {
  TRANSEPT_CHECK(threads >= 1);
  const SignalsBlocked blocked;
  for (int w = 1; w < threads; ++w) state_->helpers.emplace_back([s = state_.get(), w] { s->helper(w); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  state_->helpers.clear();  // joins
}

void ThreadPool::run(int64_t count, const std::function<void(int64_t, int)>& body) {
  if (count <= 0) return;
  if (threads_ == 1 || count == 1) {
    for (int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  State& s = *state_;
  {
    std::lock_guard lock(s.mutex);
    s.body = &body;
    s.count = count;
    s.next.store(0, std::memory_order_relaxed);
    s.running.store(threads_ - 1, std::memory_order_relaxed);
    s.error = nullptr;
    s.generation.fetch_add(1, std::memory_order_release);
  }
  s.wake.notify_all();
  s.work(0);
  for (int spin = 0; spin < kSpins && s.running.load(std::memory_order_acquire) != 0; ++spin) pause_cpu();
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.running.load(std::memory_order_acquire) == 0; });
  if (s.error) std::rethrow_exception(s.error);
}

int available_processors() {
  int n = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
  std::ifstream quota("/sys/fs/cgroup/cpu.max");
  std::string limit;
  double period = 0;
  if (quota >> limit >> period && limit != "max" && period > 0) {
    n = std::min(n, std::max(1, static_cast<int>(std::stod(limit) / period + 0.5)));
  }
  return std::max(1, n);
}

}  // namespace transept
