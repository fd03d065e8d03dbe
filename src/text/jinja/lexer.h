// A template's source as tokens, by the rules of jinja2 3.1 with trim_blocks and lstrip_blocks on and
// keep_trailing_newline off: what Hugging Face's transformers sets for chat templates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transept::jinja {

struct Token {
  enum class Kind {
    kData,
    kBlockBegin,
    kBlockEnd,
    kVariableBegin,
    kVariableEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind;
  int line;
  std::string text;  // of data, name, string (escapes resolved) or operator
  int64_t integer = 0;
  double number = 0;

  bool is(Kind k, std::string_view what) const { return kind == k && text == what; }
  bool is_name(std::string_view name) const { return is(Kind::kName, name); }
  bool is_operator(std::string_view op) const { return is(Kind::kOperator, op); }
};

// Ends with kEnd. InputError `where`: line N when the source is no template, or no UTF-8.
std::vector<Token> tokenize(std::string_view source, const std::string& where);

// What stands there, for errors.
std::string describe(const Token& token);

}  // namespace transept::jinja
