// The readers of files from elsewhere, as functions of bytes: whatever the bytes are, they give an InputError or an
// answer. libFuzzer drives them (fuzz_main.cc), and a test runs them over the kept corpus.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace transept {

struct Reader {
  std::string_view name;  // of its folder in tests/fuzz/corpus
  void (*read)(std::string_view bytes);
};

std::span<const Reader> readers();

}  // namespace transept
