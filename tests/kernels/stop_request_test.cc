// A stop asked for in the middle of a product: on the thread's own stack the handler would write over the heap.
#include "base/stop_request.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/gemm.h"

namespace transept {
namespace {

TEST(StopRequest, MeetsAProductAndHarmsNothing) {
  // A shape whose workspace is on the heap: not all are.
  constexpr int64_t kRows = 8, kColumns = 64, kDepth = 4096;
  const std::vector<float> a(static_cast<size_t>(kRows * kDepth), 1.f), b(static_cast<size_t>(kDepth * kColumns), 1.f);
  std::atomic<bool> armed{false}, over{false};
  std::atomic<int> sent{0};
  const pthread_t target = pthread_self();
  std::thread sender([&] {
    while (!over.load()) {
      if (!armed.exchange(false)) continue;
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(sent % 100);
      while (std::chrono::steady_clock::now() < until) {
      }
      pthread_kill(target, SIGINT);
      ++sent;
    }
  });
  for (int round = 0; round < 2000; ++round) {
    catch_stop_signals();
    const int before = sent;
    armed = true;
    while (sent == before) {
      // Blocks that come and go around the workspace, whose book-keeping would be hit.
      std::vector<std::vector<float>> c;
      for (int i = 0; i < 4; ++i) {
        c.emplace_back(static_cast<size_t>(kRows * kColumns), 0.f);
        gemm_tile(Transpose::kNo, Transpose::kNo, kRows, kColumns, kDepth, 1.f, a.data(), kDepth, b.data(), kColumns,
                  0.f, c.back().data(), kColumns);
        for (const float v : c.back()) ASSERT_EQ(v, static_cast<float>(kDepth));
      }
    }
  }
  over = true;
  sender.join();
  EXPECT_TRUE(stop_requested().load());
}

}  // namespace
}  // namespace transept
