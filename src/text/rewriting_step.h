// One step of a normalizer or pre-tokenizer as tokenizer.json writes it: {"type": ..., and its settings}. A setting
// that is missing, misshapen or unknown is a problem, since the text would be read otherwise than its model was taught.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "text/json_block.h"

namespace transept {

class RewritingStep : public JsonBlock {
 public:
  RewritingStep(const Json& block, std::string where, Problems& problems)
      : JsonBlock(block, std::move(where), problems),
        block_(block),
        before_(problems.size() - (block.is_object() ? 0 : 1)),  // the base has added that one
        problems_(problems) {
    if (block.is_object()) type_ = text("type").value_or("");
  }

  std::string_view type() const { return type_; }
  // No problem was added since the step was opened.
  bool sound() const { return problems_.size() == before_; }

  bool required_boolean(const char* key) const {
    if (find(key) == nullptr) add(key, "is missing");
    return boolean(key, false);
  }
  std::string required_text(const char* key) const {
    if (find(key) == nullptr) add(key, "is missing");
    return text(key).value_or("");
  }
  // A problem for every key but "type" and these.
  void only(std::initializer_list<std::string_view> keys) const {
    if (!block_.is_object()) return;
    for (const auto& item : block_.items()) {
      if (item.key() != "type" && std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
        add(item.key(), "is no setting of " + type_);
      }
    }
  }
  void refuse_type(std::string_view kind) const {
    std::string what = "is ";
    what.append(type_.empty() ? "missing" : type_).append(", no ").append(kind).append(" that is supported");
    add("type", std::move(what));
  }

 private:
  const Json& block_;
  size_t before_;
  Problems& problems_;
  std::string type_;
};

}  // namespace transept
