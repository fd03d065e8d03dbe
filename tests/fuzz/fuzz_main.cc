// libFuzzer's entry: TRANSEPT_READER names the reader.
#include <string_view>

#include "base/problem.h"
#include "fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const transept::Reader& reader : transept::readers()) {
    if (reader.name != TRANSEPT_READER) continue;
    try {
      reader.read({reinterpret_cast<const char*>(data), size});
    } catch (const transept::InputError&) {
      // A refusal is an answer.
    }
  }
  return 0;
}
