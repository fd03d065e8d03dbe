// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A draw is a pure function of (seed, stream, index), so nothing needs to be saved to resume, and any thread may
// compute any draw.
#pragma once

#include <array>
#include <cstdint>

namespace transept {

__extension__ using uint128 = unsigned __int128;

// Named streams keep the uses of one seed apart.
enum class Stream : uint32_t {
  kInit = 1,
  kData = 2,
  kDropout = 3,
  kSampling = 4,
  kText = 5,
  kTest = 6,
  kCorruption = 7,
  kJitter = 8
};

// Four independent 32-bit words for the counter (low, high).
std::array<uint32_t, 4> philox(uint64_t key, uint64_t low, uint64_t high);

class CounterRng {
 public:
  CounterRng(uint64_t seed, Stream stream, uint32_t substream = 0)
      : key_(seed), high_((uint64_t{static_cast<uint32_t>(stream)} << 32) | substream) {}

  std::array<uint32_t, 4> words(uint64_t index) const { return philox(key_, index, high_); }
  uint64_t bits64(uint64_t index) const {
    const auto w = words(index);
    return (uint64_t{w[1]} << 32) | w[0];
  }
  // Uniform in [0, 1) with 53 bits.
  double uniform(uint64_t index) const { return static_cast<double>(bits64(index) >> 11) * 0x1.0p-53; }
  // Uniform integer in [0, bound), bound >= 1, by Lemire's multiplication (bias below 2^-64 * bound).
  uint64_t below(uint64_t index, uint64_t bound) const {
    return static_cast<uint64_t>((static_cast<uint128>(bits64(index)) * bound) >> 64);
  }
  // Standard normal by Box-Muller from the two 64-bit halves of one counter.
  double normal(uint64_t index) const;

 private:
  uint64_t key_;
  uint64_t high_;
};

// A pseudo-random permutation of [0, n) evaluated point by point (Feistel network with cycle walking): the image of
// `index`.
uint64_t permute(uint64_t index, uint64_t n, uint64_t seed, uint64_t tweak);

}  // namespace transept
