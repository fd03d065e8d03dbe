#include "text/split_pattern.h"

#include "text/foreign_pattern.h"
#include "text/json_block.h"
#include "text/known_patterns.h"

namespace transept {
namespace {

class LiteralPattern : public SplitPattern {
 public:
  explicit LiteralPattern(std::string literal) : literal_(std::move(literal)) {}
  std::optional<PatternMatch> find(std::string_view text, size_t from) const override {
    const size_t at = literal_.size() == 1 ? text.find(literal_[0], from) : text.find(literal_, from);
    if (at == text.npos) return std::nullopt;
    return PatternMatch{at, at + literal_.size()};
  }

 private:
  std::string literal_;
};

}  // namespace

std::unique_ptr<SplitPattern> read_pattern(const Json& block, const std::string& where, Problems& problems) {
  if (block.is_string()) return std::make_unique<LiteralPattern>(block.get<std::string>());
  const JsonBlock fields(block, where, problems);
  if (!block.is_object()) return nullptr;
  const Json* literal = fields.find("String");
  const Json* regex = fields.find("Regex");
  if (block.size() == 1 && literal != nullptr && literal->is_string()) {
    return std::make_unique<LiteralPattern>(literal->get<std::string>());
  }
  if (block.size() == 1 && regex != nullptr && regex->is_string()) {
    return regex_pattern(regex->get<std::string>(), where + ".Regex", problems);
  }
  fields.add({}, "is neither {\"String\": ...} nor {\"Regex\": ...}");
  return nullptr;
}

std::unique_ptr<SplitPattern> regex_pattern(const std::string& regex, const std::string& where, Problems& problems) {
  std::unique_ptr<SplitPattern> known = known_pattern(regex);
  return known != nullptr ? std::move(known) : foreign_pattern(regex, where, problems);
}

}  // namespace transept
