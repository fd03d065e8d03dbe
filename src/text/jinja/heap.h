// What one rendering may use. Templates come with models, from anyone: steps, bytes and depth are bounded, so that no
// template runs for long, fills the memory, or ends the stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace transept::jinja {

// What is wrong, without the place: the parser and the interpreter add it.
class TemplateError : public std::exception {
 public:
  explicit TemplateError(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

// A step is a node evaluated, a value compared, 64 bytes of text looked at or a kilobyte copied: some 2 s of work in
// all.
constexpr uint64_t kMaxSteps = 20'000'000;
constexpr size_t kMaxBytes = size_t{128} << 20;  // of values alive at one time
constexpr size_t kMaxOutput = size_t{64} << 20;
constexpr int kMaxNesting = 100;        // of lists and dicts in each other
constexpr int kMaxCallDepth = 1000;     // of nodes evaluated inside each other, macros included
constexpr int64_t kMaxRange = 100'000;  // items of range(); jinja2's sandbox has the same bound

class Heap {
 public:
  void step(size_t bytes = 0) {
    steps_ += 1 + bytes / 64;
    if (steps_ > kMaxSteps) throw TemplateError("takes too many steps");
  }
  void copied(size_t bytes) { step(bytes / 16); }
  void take(size_t bytes) {
    if (bytes > kMaxBytes - bytes_) throw TemplateError("takes too much memory");
    bytes_ += bytes;
  }
  void give(size_t bytes) noexcept { bytes_ -= bytes; }

 private:
  uint64_t steps_ = 0;
  size_t bytes_ = 0;
};

// Bytes of a heap, given back at the end. A null heap is for what the source itself holds.
class Held {
 public:
  Held(Heap* heap, size_t bytes) : heap_(heap), bytes_(bytes) {
    if (heap_) heap_->take(bytes_);
  }
  ~Held() {
    if (heap_) heap_->give(bytes_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  void grow(size_t bytes) {
    if (heap_) heap_->take(bytes);
    bytes_ += bytes;
  }

 private:
  Heap* heap_;
  size_t bytes_;
};

}  // namespace transept::jinja
