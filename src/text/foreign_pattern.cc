#include "text/foreign_pattern.h"

#include "text/oniguruma.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

namespace transept {
namespace {

// A pattern of a real vocabulary has under 2 kB (DeepSeek's list of letters); backtracking in one is over in a few
// steps a character. What needs more than these is an attack or a mistake.
constexpr size_t kLongestPattern = size_t{1} << 16;
constexpr uint32_t kMostSteps = 50'000'000;
constexpr uint32_t kMostHeapKib = 256 << 10;
constexpr size_t kFirstStack = size_t{32} << 10, kMostStack = size_t{8} << 20;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* pointer) const {
    free(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Free<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>>;

// What one thread needs to match any pattern.
struct Scratch {
  MatchContext context{pcre2_match_context_create(nullptr)};
  MatchData data{pcre2_match_data_create(1, nullptr)};
  JitStack stack{pcre2_jit_stack_create(kFirstStack, kMostStack, nullptr)};
  Scratch() {
    if (context == nullptr || data == nullptr) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), kMostSteps);
    pcre2_set_heap_limit(context.get(), kMostHeapKib);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());  // null: the machine's stack
  }
};

std::string message(int code) {
  PCRE2_UCHAR text[256];
  return pcre2_get_error_message(code, text, sizeof text) < 0 ? "error " + std::to_string(code)
                                                              : reinterpret_cast<const char*>(text);
}

class ForeignPattern : public SplitPattern {
 public:
  ForeignPattern(Code code, std::string regex) : code_(std::move(code)), regex_(std::move(regex)) {}

  std::optional<PatternMatch> find(std::string_view text, size_t from) const override {
    thread_local Scratch scratch;
    const auto match = [&](uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         options | PCRE2_NO_UTF_CHECK, scratch.data.get(), scratch.context.get());
    };
    int found = match(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found < 0) throw InputError("pattern " + regex_, "exceeds its bounds on this text: " + message(found));
    const size_t* range = pcre2_get_ovector_pointer(scratch.data.get());
    return PatternMatch{range[0], range[1]};
  }

 private:
  Code code_;
  std::string regex_;
};

}  // namespace

std::unique_ptr<SplitPattern> foreign_pattern(const std::string& regex, const std::string& where, Problems& problems) {
  const Translation translation = oniguruma_to_pcre(regex);
  if (!translation.pattern) {
    problems.push_back({where, "holds " + translation.refused + ", which is not supported", ""});
    return nullptr;
  }
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_max_pattern_length(context.get(), kLongestPattern);
  int error = 0;
  size_t offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translation.pattern->data()), translation.pattern->size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset,
                          context.get()));
  if (code == nullptr) {
    problems.push_back({where, "is no regular expression that can be compiled: " + message(error), ""});
    return nullptr;
  }
  // Without machine code (no memory for it, or no such machine) PCRE2 interprets.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return std::make_unique<ForeignPattern>(std::move(code), regex);
}

}  // namespace transept
