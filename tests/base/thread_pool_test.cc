#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <csignal>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace transept {
namespace {

TEST(ThreadPool, EveryIndexOnceWithAWorkerInRange) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<int> visits(static_cast<size_t>(count));
      std::vector<int64_t> by_worker(static_cast<size_t>(threads));
      pool.run(count, [&](int64_t i, int worker) {
        ++visits[static_cast<size_t>(i)];
        ++by_worker.at(static_cast<size_t>(worker));
      });
      for (const int v : visits) ASSERT_EQ(v, 1);
      EXPECT_EQ(std::accumulate(by_worker.begin(), by_worker.end(), int64_t{0}), count);
    }
  }
}

// Whoever calls the pool takes the signals, its helpers take none; the caller's own mask is as it was.
TEST(ThreadPool, OnlyTheCallerTakesSignals) {
  ThreadPool pool(4);
  std::vector<int> blocked(4, -1);
  for (int round = 0; round < 1000; ++round) {
    pool.run(4, [&](int64_t, int worker) {
      sigset_t mask;
      ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &mask), 0);
      blocked[static_cast<size_t>(worker)] = sigismember(&mask, SIGINT) + 2 * sigismember(&mask, SIGTERM) +
                                             4 * sigismember(&mask, SIGALRM) + 8 * sigismember(&mask, SIGSEGV);
    });
  }
  EXPECT_EQ(blocked[0], 0);
  int helpers = 0;
  for (size_t worker = 1; worker < blocked.size(); ++worker) {
    if (blocked[worker] < 0) continue;
    ++helpers;
    EXPECT_EQ(blocked[worker], 1 + 2 + 4) << "worker " << worker;
  }
  EXPECT_GT(helpers, 0);
}

// Short jobs one after another, with plain memory handed from each to the next: a missing fence shows under the thread
// sanitizer.
TEST(ThreadPool, ManyShortJobsSeeEachOthersResults) {
  ThreadPool pool(4);
  std::vector<int64_t> a(16, 1), b(16);
  for (int round = 0; round < 3000; ++round) {
    pool.run(16, [&](int64_t i, int) { b[static_cast<size_t>(i)] = a[static_cast<size_t>(15 - i)] + 1; });
    std::swap(a, b);
  }
  for (const int64_t v : a) EXPECT_EQ(v, 3001);
}

TEST(ThreadPool, AnExceptionComesBackOnceAndThePoolLivesOn) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      EXPECT_THROW(pool.run(100,
                            [&](int64_t i, int) {
                              if (i % 10 == 3) throw std::runtime_error("planted");
                            }),
                   std::runtime_error);
      int64_t done = 0;
      pool.run(1, [&](int64_t, int) { ++done; });
      EXPECT_EQ(done, 1);
      std::vector<int> visits(64);
      pool.run(64, [&](int64_t i, int) { ++visits[static_cast<size_t>(i)]; });
      for (const int v : visits) ASSERT_EQ(v, 1);
    }
  }
}

TEST(ThreadPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 200; ++i) ThreadPool pool(3);
}

TEST(ThreadPool, ProcessorsAreAtLeastOne) { EXPECT_GE(available_processors(), 1); }

}  // namespace
}  // namespace transept
