// The wish of a user or of the system that the program end: SIGINT or SIGTERM, turned into a flag that long work asks
// at moments at which it can stop.
//
// The handler runs on a stack of its own, and the threads of a pool take no signals: while it multiplies, oneDNN's
// float kernel for AVX-512 (2.6) points the stack pointer into its workspace on the heap, where a handler on the
// thread's own stack would write its frame over whatever lies below.
#pragma once

#include <atomic>
#include <csignal>

namespace transept {

// From now on the first SIGINT or SIGTERM sets stop_requested(); a second one of the same kind ends the process at
// once. To be called from the main thread, which alone takes signals.
void catch_stop_signals();

// Set by the handler.
const std::atomic<bool>& stop_requested();

// The first SIGINT from now on sets stop_requested(), which is false again until then; SIGTERM is left as it is. For a
// program that a user stops in what it does, not altogether.
void catch_next_interrupt();
// Leaves SIGINT to the system again, which ends the process.
void release_interrupt();

// While it lives, the calling thread, and each thread it starts for good, takes no signals but those that a fault in
// the thread itself raises.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace transept
