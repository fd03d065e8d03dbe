// Pre-tokenizers: the block "pre_tokenizer" of Hugging Face's tokenizer.json, which splits a text into the words that a
// model then cuts into tokens. What each splits and rewrites is what the Python package tokenizers 0.23.3 does;
// tools/compare_rewriting.py compares the two.
//   ByteLevel, Split, Whitespace, WhitespaceSplit, BertPreTokenizer, Metaspace, Punctuation, Digits,
//   CharDelimiterSplit, Sequence
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/problem.h"
#include "text/aligned_text.h"

namespace transept {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Splits and possibly rewrites parts, in order; `parts` are pieces of one text between special tokens. A part whose
  // offset() is 0 begins the text (Metaspace's prepend_scheme "first"). Empty parts vanish. Safe to call from several
  // threads.
  virtual void apply(std::vector<AlignedText>& parts) const = 0;
  // Whether the parts are raw bytes where Hugging Face's are the characters of text/byte_level.h: the vocabulary then
  // has to be mapped by from_byte_level. Such parts are still valid UTF-8; a model cuts them anywhere.
  virtual bool raw_bytes() const { return false; }
};

// What a ByteLevel step makes of a text.
enum class ByteLevelText {
  kCharacters,  // one printable character a byte, as Hugging Face has it
  // The text stays as it is where ByteLevel is the last step, or stands alone, and raw_bytes() says so; elsewhere as
  // kCharacters.
  kRawBytes,
};

// Null when the block is JSON null (the text is one part), and when a problem was added. Problems name the JSON path
// (`where` + ".pretokenizers[1].type") of everything that is unknown or misshapen.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const Json& block, const std::string& where, Problems& problems,
                                                 ByteLevelText byte_level = ByteLevelText::kCharacters);

}  // namespace transept
