// Every file that the fuzzers keep, read again: good ones, and damaged ones that each reached a line of a reader that
// no other did.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/problem.h"
#include "fuzz/readers.h"

namespace transept {
namespace {

TEST(FuzzCorpus, IsReadOrRefused) {
  for (const Reader& reader : readers()) {
    int read = 0, refused = 0;
    const auto folder = std::filesystem::path(TRANSEPT_SOURCE_DIR) / "tests/fuzz/corpus" / reader.name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      SCOPED_TRACE(entry.path().string());
      try {
        reader.read(read_file(entry.path(), 1 << 20));
        ++read;
      } catch (const InputError&) {
        ++refused;
      }
    }
    EXPECT_GE(read, 1) << reader.name;
    EXPECT_GE(refused, 1) << reader.name;
  }
}

}  // namespace
}  // namespace transept
