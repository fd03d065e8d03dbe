#include "base/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace transept {

std::array<uint32_t, 4> philox(uint64_t key, uint64_t low, uint64_t high) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
                            static_cast<uint32_t>(high >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

double CounterRng::normal(uint64_t index) const {
  const auto w = words(index);
  const uint64_t a = (uint64_t{w[1]} << 32) | w[0], b = (uint64_t{w[3]} << 32) | w[2];
  const double u = (static_cast<double>(a >> 11) + 1.0) * 0x1.0p-53;  // (0, 1]
  const double v = static_cast<double>(b >> 11) * 0x1.0p-53;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

uint64_t permute(uint64_t index, uint64_t n, uint64_t seed, uint64_t tweak) {
  if (n <= 1) return 0;
  const int half = (std::bit_width(n - 1) + 1) / 2;  // at least 1
  const uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t x = index;
  do {  // walks a cycle of the domain 2^(2*half) < 4n until it is back inside [0, n): under four steps on average
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t f = philox(seed, (right << 8) | round, tweak)[0];
      const uint64_t next = left ^ (f & mask);
      left = right;
      right = next;
    }
    x = (left << half) | right;
  } while (x >= n);
  return x;
}

}  // namespace transept
