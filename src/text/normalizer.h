// Normalizers: the block "normalizer" of Hugging Face's tokenizer.json. What each rewrites, and what it aligns with
// what, is what the Python package tokenizers 0.23.3 does; tools/compare_rewriting.py compares the two.
//   NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled, BertNormalizer, Nmt,
//   ByteLevel, Sequence
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/problem.h"
#include "text/aligned_text.h"

namespace transept {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // The text is valid UTF-8, before and after. Safe to call from several threads.
  virtual void apply(AlignedText& text) const = 0;
};

// Null when the block is JSON null (nothing to do), and when a problem was added. Problems name the JSON path
// (`where` + ".normalizers[1].type") of everything that is unknown or misshapen.
std::unique_ptr<Normalizer> read_normalizer(const Json& block, const std::string& where, Problems& problems);

// The normalizer Precompiled: `charsmap` is a sentencepiece model's precompiled_charsmap, raw bytes, as hostile as any
// file, applied as Hugging Face tokenizers do (sentencepiece itself takes the longest key at every place). An empty one
// changes nothing (null).
std::unique_ptr<Normalizer> precompiled_normalizer(std::string_view charsmap, const std::string& where,
                                                   Problems& problems);

}  // namespace transept
