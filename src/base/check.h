// Assertions about our own code. TRANSEPT_CHECK is always on and stands at the boundaries of ops and modules;
// TRANSEPT_DCHECK is for inner loops and vanishes with NDEBUG. Neither may be reachable by any input: that is what
// InputError is for.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace transept::detail {
[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "internal error: %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}
}  // namespace transept::detail

#define TRANSEPT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::transept::detail::check_failed(__FILE__, __LINE__, #condition))
#ifdef NDEBUG
#define TRANSEPT_DCHECK(condition) static_cast<void>(0)
#else
#define TRANSEPT_DCHECK(condition) TRANSEPT_CHECK(condition)
#endif
