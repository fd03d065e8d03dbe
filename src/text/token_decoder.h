// The block "decoder" of a tokenizer.json, resolved at load into what one token stands for. Decoders whose result is
// not that of their tokens one by one are refused, but for what stands at the ends of a text.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/problem.h"

namespace transept {

class TokenDecoder {
 public:
  // What the token stands for in the middle of a text, and as its first token. Raw bytes.
  std::string bytes(std::string_view token) const { return apply(token, false); }
  std::string first_bytes(std::string_view token) const { return apply(token, true); }
  // BPEDecoder: a space at the end of the last token is left out.
  bool drops_last_space() const { return drops_last_space_; }
  // ByteFallback: ill-formed bytes become one U+FFFD each; else (ByteLevel) one for each maximal ill-formed part.
  bool repairs_each_byte() const { return repairs_each_byte_; }
  // Whether tokens write bytes as the characters of text/byte_level.h.
  bool byte_level() const { return byte_level_; }

 private:
  friend TokenDecoder read_token_decoder(const Json& block, const std::string& where, Problems& problems);
  friend class DecoderReader;
  // A step maps one token; `first`: it begins the text.
  using Step = std::function<std::string(const std::string& token, bool first)>;

  std::string apply(std::string_view token, bool first) const;

  std::vector<Step> steps_;
  bool drops_last_space_ = false, repairs_each_byte_ = false, byte_level_ = false;
};

// ByteLevel, ByteFallback, Fuse, Metaspace, WordPiece, BPEDecoder, Replace, Strip, Sequence. JSON null joins the tokens
// with spaces.
TokenDecoder read_token_decoder(const Json& block, const std::string& where, Problems& problems);

}  // namespace transept
