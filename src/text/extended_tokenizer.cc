// A tokenizer with a mask and sentinels behind its vocabulary, for the objectives that need them. The names are those
// of Hugging Face's RoBERTa ("<mask>") and T5 ("<extra_id_0>"), and so is the place where they are kept:
// `added_tokens_decoder` of tokenizer_config.json.
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "text/formats.h"
#include "text/special_text.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMask = "<mask>";
constexpr const char* kAdded = "added_tokens_decoder";

std::string sentinel_name(int64_t i) { return "<extra_id_" + std::to_string(i) + ">"; }

class ExtendedTokenizer : public Tokenizer {
 public:
  ExtendedTokenizer(std::unique_ptr<Tokenizer> base, int64_t sentinels)
      : base_(std::move(base)), first_(static_cast<int32_t>(base_->vocab_size())), sentinels_(sentinels) {
    std::vector<std::pair<std::string, int32_t>> specials;
    for (int32_t id = first_; id < vocab_size(); ++id) specials.emplace_back(piece(id), id);
    specials_ = SpecialText(std::move(specials));
  }

  std::string_view kind() const override { return base_->kind(); }
  int64_t vocab_size() const override { return first_ + 1 + sentinels_; }
  std::optional<int32_t> bos() const override { return base_->bos(); }
  std::optional<int32_t> eos() const override { return base_->eos(); }
  std::optional<int32_t> pad() const override { return base_->pad(); }
  std::optional<int32_t> mask() const override { return first_; }
  std::optional<int32_t> first_sentinel() const override {
    return sentinels_ > 0 ? std::optional(first_ + 1) : std::nullopt;
  }
  int64_t sentinels() const override { return sentinels_; }
  std::vector<int32_t> ids_before() const override { return base_->ids_before(); }
  std::vector<int32_t> ids_after() const override { return base_->ids_after(); }
  bool drops_last_space() const override { return base_->drops_last_space(); }
  bool repairs_each_byte() const override { return base_->repairs_each_byte(); }
  std::vector<std::string> notes() const override { return base_->notes(); }
  bool is_special(int32_t id) const override { return added(id) || base_->is_special(id); }
  std::string bytes_of(int32_t id) const override { return added(id) ? std::string() : base_->bytes_of(id); }
  std::string first_bytes_of(int32_t id) const override {
    return added(id) ? std::string() : base_->first_bytes_of(id);
  }

  std::string piece(int32_t id) const override {
    if (id < 0 || id >= vocab_size()) throw unknown_id(id, vocab_size());
    if (id < first_) return base_->piece(id);
    return id == first_ ? kMask : sentinel_name(id - first_ - 1);
  }

  Encoding encode_with_offsets(std::string_view text, Specials specials) const override {
    if (specials == Specials::kNone) return base_->encode_with_offsets(text, specials);
    Encoding encoding;
    const auto frame = [&](const std::vector<int32_t>& ids) {
      if (specials != Specials::kAdd) return;
      encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
      encoding.offsets.resize(encoding.ids.size());
    };
    frame(ids_before());
    specials_.split(
        text,
        [&](std::string_view part) {
          const Encoding own = base_->encode_with_offsets(part, Specials::kRead);
          const size_t begin = static_cast<size_t>(part.data() - text.data());
          encoding.ids.insert(encoding.ids.end(), own.ids.begin(), own.ids.end());
          for (const ByteRange& range : own.offsets)
            encoding.offsets.push_back({begin + range.begin, begin + range.end});
        },
        [&](int32_t id, ByteRange range) {
          encoding.ids.push_back(id);
          encoding.offsets.push_back(range);
        });
    frame(ids_after());
    return encoding;
  }

  void save(const fs::path& folder) const override {
    base_->save(folder);
    const fs::path path = folder / "tokenizer_config.json";
    Json config = read_json(path), added = Json::object(), sentinel_names = Json::array();
    for (int32_t id = first_; id < vocab_size(); ++id) {
      added[std::to_string(id)] = {{"content", piece(id)}, {"lstrip", false},      {"normalized", false},
                                   {"rstrip", false},      {"single_word", false}, {"special", true}};
      if (id > first_) sentinel_names.push_back(piece(id));
    }
    config["mask_token"] = kMask;
    config["additional_special_tokens"] = sentinel_names;
    config[kAdded] = added;
    write_file_atomic(path, config.dump(1) + "\n");
  }

  std::unique_ptr<Tokenizer> release() { return std::move(base_); }

 private:
  // InputError for what is in neither part.
  bool added(int32_t id) const {
    if (id < 0 || id >= vocab_size()) throw unknown_id(id, vocab_size());
    return id >= first_;
  }
  std::unique_ptr<Tokenizer> base_;
  int32_t first_;
  int64_t sentinels_;
  SpecialText specials_;
};

}  // namespace

std::unique_ptr<Tokenizer> extend_tokenizer(std::unique_ptr<Tokenizer> tokenizer, int64_t sentinels) {
  TRANSEPT_CHECK(sentinels >= 0);
  if (auto* extended = dynamic_cast<ExtendedTokenizer*>(tokenizer.get())) {
    if (extended->sentinels() >= sentinels) return tokenizer;
    tokenizer = extended->release();
  }
  return std::make_unique<ExtendedTokenizer>(std::move(tokenizer), sentinels);
}

std::unique_ptr<Tokenizer> with_added_tokens(std::unique_ptr<Tokenizer> tokenizer, const fs::path& folder) {
  const fs::path path = folder / "tokenizer_config.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return tokenizer;
  const Json config = read_json(path);
  if (!config.is_object()) throw InputError(path.string(), "is no JSON object");
  const auto added = config.find(kAdded);
  if (added == config.end() || !added->is_object()) return tokenizer;
  const auto is = [&](int64_t id, const std::string& name) {
    const auto entry = added->find(std::to_string(id));
    if (entry == added->end() || !entry->is_object()) return false;
    const auto content = entry->find("content");
    return content != entry->end() && *content == name;
  };
  const int64_t first = tokenizer->vocab_size();
  if (!is(first, kMask)) return tokenizer;
  int64_t sentinels = 0;
  while (is(first + 1 + sentinels, sentinel_name(sentinels))) ++sentinels;
  return extend_tokenizer(std::move(tokenizer), sentinels);
}

}  // namespace transept
