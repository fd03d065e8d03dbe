#include "base/stop_request.h"

#include <pthread.h>

#include <array>
#include <cstddef>

#include "base/check.h"

namespace transept {
namespace {
std::atomic<bool> requested{false};

// A frame holds all vector registers: 3 KiB with AVX-512, 11 KiB with AMX.
alignas(64) std::array<std::byte, 64 << 10> handler_stack;

// The next signal of this kind sets the flag.
void set_flag_at(int signal) {
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  TRANSEPT_CHECK(sigaltstack(&stack, nullptr) == 0);
  struct sigaction action{};
  action.sa_handler = [](int) { requested.store(true, std::memory_order_relaxed); };
  action.sa_flags = SA_ONSTACK | SA_RESTART | SA_RESETHAND;
  TRANSEPT_CHECK(sigaction(signal, &action, nullptr) == 0);
}
}  // namespace

void catch_stop_signals() {
  for (int signal : {SIGINT, SIGTERM}) set_flag_at(signal);
}

void catch_next_interrupt() {
  requested.store(false, std::memory_order_relaxed);
  set_flag_at(SIGINT);
}

void release_interrupt() { TRANSEPT_CHECK(std::signal(SIGINT, SIG_DFL) != SIG_ERR); }

const std::atomic<bool>& stop_requested() { return requested; }

SignalsBlocked::SignalsBlocked() {
  sigset_t asynchronous;
  sigfillset(&asynchronous);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&asynchronous, fault);
  TRANSEPT_CHECK(pthread_sigmask(SIG_BLOCK, &asynchronous, &before_) == 0);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace transept
