#include "text/token_decoder.h"

#include <array>

#include "text/byte_level.h"
#include "text/byte_piece.h"
#include "text/json_block.h"
#include "text/utf8.h"

namespace transept {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

// What Hugging Face's libraries call cleaning up the artefacts of tokenization (decoders/wordpiece.rs).
std::string cleaned_up(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules{{{" .", "."},
                                                                                  {" ?", "?"},
                                                                                  {" !", "!"},
                                                                                  {" ,", ","},
                                                                                  {" ' ", "'"},
                                                                                  {" n't", "n't"},
                                                                                  {" 'm", "'m"},
                                                                                  {" do not", " don't"},
                                                                                  {" 's", "'s"},
                                                                                  {" 've", "'ve"},
                                                                                  {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) text = replaced(text, from, to);
  return text;
}

bool one_character(std::string_view text) { return !text.empty() && utf8_part(text).length == text.size(); }

}  // namespace

class DecoderReader {
 public:
  DecoderReader(TokenDecoder& result, Problems& problems) : result_(result), problems_(problems) {}

  void read(const Json& block, const std::string& where) {
    const JsonBlock b(block, where, problems_);
    if (!block.is_object()) return;
    const std::string type = b.text("type").value_or("");
    if (type == "Sequence") {
      const Json* list = b.list("decoders");
      for (size_t i = 0; list != nullptr && i < list->size(); ++i)
        read((*list)[i], b.path("decoders[" + std::to_string(i) + "]"));
    } else if (type == "Fuse") {
      fused_ = true;
    } else if (type == "Strip") {
      strip(b);
    } else if (fused_ || bytes_ > 0) {
      // Metaspace after ByteFallback is what converters of Unigram vocabularies write.
      if (type == "Metaspace" && !fused_) return metaspace(b);
      b.add("type", "\"" + type + "\" behind a step that joins tokens is not supported",
            "only Fuse, and Strip at the beginning, may follow ByteLevel, ByteFallback or Fuse");
    } else if (type == "ByteLevel") {
      byte_level();
    } else if (type == "ByteFallback") {
      byte_fallback();
    } else if (type == "Metaspace") {
      metaspace(b);
    } else if (type == "WordPiece") {
      word_piece(b);
    } else if (type == "BPEDecoder") {
      bpe(b);
    } else if (type == "Replace") {
      replace(b);
    } else {
      b.add(
          "type", "\"" + type + "\" is no decoder that is supported",
          "supported ones: ByteLevel, ByteFallback, Fuse, Metaspace, WordPiece, BPEDecoder, Replace, Strip, Sequence");
    }
  }

  void join_with_spaces() {
    add([](const std::string& token, bool first) { return first ? token : " " + token; });
  }

 private:
  void add(TokenDecoder::Step step) { result_.steps_.push_back(std::move(step)); }

  void byte_level() {
    fused_ = result_.byte_level_ = true;
    add([](const std::string& token, bool) { return from_byte_level(token).value_or(token); });
  }

  void byte_fallback() {
    ++bytes_;
    result_.repairs_each_byte_ = true;
    add([](const std::string& token, bool) {
      const auto byte = byte_of_piece(token);
      return byte ? std::string(1, static_cast<char>(*byte)) : token;
    });
  }

  void metaspace(const JsonBlock& b) {
    const std::string mark = b.text("replacement").value_or("\xE2\x96\x81");
    if (!one_character(mark)) b.add("replacement", "is not one character");
    std::string scheme = b.text("prepend_scheme").value_or("always");
    if (scheme != "always" && scheme != "first" && scheme != "never")
      b.add("prepend_scheme", "\"" + scheme + "\" is none of always, first, never");
    // The older spelling.
    if (b.find("prepend_scheme") == nullptr && !b.boolean("add_prefix_space", true)) scheme = "never";
    if (mark.empty()) return;
    add([mark, prepended = scheme != "never"](const std::string& token, bool first) {
      return replaced(token, mark, first && prepended ? "" : " ");
    });
  }

  void word_piece(const JsonBlock& b) {
    const std::string prefix = b.text("prefix").value_or("##");
    add([prefix, clean = b.boolean("cleanup", true)](const std::string& token, bool first) {
      std::string text = first ? token : token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
      return clean ? cleaned_up(std::move(text)) : text;
    });
  }

  void bpe(const JsonBlock& b) {
    const std::string suffix = b.text("suffix").value_or("</w>");
    if (suffix.empty()) return b.add("suffix", "is empty");
    result_.drops_last_space_ = true;
    add([suffix](const std::string& token, bool) { return replaced(token, suffix, " "); });
  }

  void replace(const JsonBlock& b) {
    const Json* pattern = b.find("pattern");
    const std::optional<std::string> content = b.text("content");
    if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1 || !pattern->contains("String") ||
        !(*pattern)["String"].is_string() || (*pattern)["String"].get<std::string>().empty()) {
      return b.add("pattern", "is not {\"String\": TEXT}, which alone is supported in a decoder");
    }
    if (!content) return b.add("content", "is no string");
    const auto from = (*pattern)["String"].get<std::string>();
    add([from, to = *content](const std::string& token, bool) { return replaced(token, from, to); });
  }

  void strip(const JsonBlock& b) {
    const std::string content = b.text("content").value_or("");
    const uint64_t start = b.count("start").value_or(0), stop = b.count("stop").value_or(0);
    if (!one_character(content)) return b.add("content", "is not one character");
    if (fused_ && (start > 1 || stop > 0)) {
      return b.add("", "strips more of the joined text than one character at its beginning, which is not supported");
    }
    if (bytes_ > 0 && !fused_)
      return b.add("", "strips byte tokens before they are joined, which is not supported", "put Fuse in front of it");
    add([content, start, stop, joined = fused_](const std::string& token, bool first) {
      std::string_view text = token;
      if (!joined || first) {
        for (uint64_t i = 0; i < start && text.starts_with(content); ++i) text.remove_prefix(content.size());
        for (uint64_t i = 0; i < stop && text.ends_with(content); ++i) text.remove_suffix(content.size());
      }
      return std::string(text);
    });
  }

  TokenDecoder& result_;
  Problems& problems_;
  bool fused_ = false;
  int bytes_ = 0;  // ByteFallback steps so far
};

std::string TokenDecoder::apply(std::string_view token, bool first) const {
  std::string text(token);
  for (const Step& step : steps_) text = step(text, first);
  return text;
}

TokenDecoder read_token_decoder(const Json& block, const std::string& where, Problems& problems) {
  TokenDecoder result;
  DecoderReader reader(result, problems);
  if (block.is_null()) {
    reader.join_with_spaces();
  } else {
    reader.read(block, where);
  }
  return result;
}

}  // namespace transept
