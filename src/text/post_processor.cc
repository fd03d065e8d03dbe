#include "text/post_processor.h"

#include "text/json_block.h"
#include "text/tokenizer_file.h"

namespace transept {
namespace {

class PostProcessorReader {
 public:
  PostProcessorReader(PostProcessor& result, Problems& problems) : result_(result), problems_(problems) {}

  void read(const Json& block, const std::string& where) {
    if (block.is_null()) return;
    const JsonBlock b(block, where, problems_);
    const std::string type = b.text("type").value_or("");
    if (type == "Sequence") {
      const Json* list = b.list("processors");
      for (size_t i = 0; list != nullptr && i < list->size(); ++i)
        read((*list)[i], b.path("processors[" + std::to_string(i) + "]"));
    } else if (type == "ByteLevel") {
      trim(b);
    } else if (type == "RobertaProcessing") {
      trim(b);
      frame(b, {pair_id(b, "cls")}, {pair_id(b, "sep")});
    } else if (type == "BertProcessing") {
      frame(b, {pair_id(b, "cls")}, {pair_id(b, "sep")});
    } else if (type == "TemplateProcessing") {
      template_processing(b);
    } else if (block.is_object()) {
      b.add("type", "\"" + type + "\" is no post-processor that is known",
            "known ones: TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence");
    }
  }

 private:
  void trim(const JsonBlock& b) {
    if (!b.boolean("trim_offsets", true)) return;
    if (result_.trims_offsets) return;  // what is trimmed stays so
    result_.trims_offsets = true;
    result_.keeps_prefix_space = b.boolean("add_prefix_space", true);
  }

  void frame(const JsonBlock& b, std::vector<int32_t> before, std::vector<int32_t> after) {
    if (framed_) b.add("type", "adds tokens where another post-processor has added some", "keep one of them");
    framed_ = true;
    result_.before = std::move(before);
    result_.after = std::move(after);
  }

  int32_t checked_id(const Json& id, const std::string& where) {
    if (const auto value = count_of(id); value && *value <= static_cast<uint64_t>(kMostTokenId))
      return static_cast<int32_t>(*value);
    problems_.push_back({where, "is no id from 0 to " + std::to_string(kMostTokenId), ""});
    return 0;
  }

  // ["[CLS]", 101]
  int32_t pair_id(const JsonBlock& b, const char* key) {
    const Json* pair = b.find(key);
    if (pair != nullptr && pair->is_array() && pair->size() == 2 && (*pair)[0].is_string())
      return checked_id((*pair)[1], b.path(key) + "[1]");
    b.add(key, "is no pair of a token and its id");
    return 0;
  }

  void template_processing(const JsonBlock& b) {
    const Json* single = b.list("single");
    if (single == nullptr) return;
    const Json none = Json::object();
    const Json* specials = b.find("special_tokens");
    const JsonBlock special_tokens(specials == nullptr ? none : *specials, b.path("special_tokens"), problems_);
    std::vector<int32_t> before, after;
    int sequences = 0;
    for (size_t i = 0; i < single->size(); ++i) {
      const std::string at = b.path("single[" + std::to_string(i) + "]");
      const Json& item = (*single)[i];
      if (!item.is_object() || item.size() != 1) {
        problems_.push_back({at, "is neither a Sequence nor a SpecialToken", ""});
        continue;
      }
      const std::string kind = item.begin().key();
      const JsonBlock piece(item.begin().value(), at + "." + kind, problems_);
      const std::string id = piece.text("id").value_or("");
      if (kind == "Sequence") {
        if (id != "A") piece.add("id", "is not A, the only sequence there is");
        ++sequences;
      } else if (kind == "SpecialToken") {
        const Json* token = special_tokens.find(id.c_str());
        if (token == nullptr) {
          piece.add("id", "\"" + id + "\" is not among special_tokens");
          continue;
        }
        const JsonBlock entry(*token, special_tokens.path(id), problems_);
        const Json* ids = entry.list("ids");
        for (size_t k = 0; ids != nullptr && k < ids->size(); ++k) {
          const int32_t value = checked_id((*ids)[k], entry.path("ids[" + std::to_string(k) + "]"));
          (sequences == 0 ? before : after).push_back(value);
        }
      } else {
        problems_.push_back({at, "is neither a Sequence nor a SpecialToken", ""});
      }
    }
    if (sequences != 1) b.add("single", "does not hold the text once", "write it as [CLS] $A [SEP]");
    if (!before.empty() || !after.empty()) frame(b, std::move(before), std::move(after));
  }

  PostProcessor& result_;
  Problems& problems_;
  bool framed_ = false;
};

}  // namespace

PostProcessor read_post_processor(const Json& block, const std::string& where, Problems& problems) {
  PostProcessor result;
  PostProcessorReader(result, problems).read(block, where);
  return result;
}

}  // namespace transept
