// Byte-pair vocabularies, trained with the sentencepiece library (Kudo and Richardson, 2018, arXiv 1808.06226).
#include <sentencepiece_trainer.h>

#include <cmath>
#include <unordered_map>

#include "base/problem.h"
#include "text/formats.h"
#include "text/utf8.h"

namespace transept {
namespace {

// Parts of the training text of about kPartBytes, cut after a line where there is one; ill-formed bytes are left out.
class Parts : public sentencepiece::SentenceIterator {
 public:
  Parts(std::span<const std::string_view> texts, uint64_t max_bytes) {
    uint64_t bytes = 0;
    for (std::string_view rest : texts) {
      bytes += rest.size();
      while (!rest.empty()) {
        size_t cut = std::min(rest.size(), kPartBytes);
        if (const size_t line = rest.substr(0, cut).rfind('\n'); cut < rest.size() && line != std::string_view::npos)
          cut = line + 1;
        parts_.push_back(rest.substr(0, cut));
        rest.remove_prefix(cut);
      }
    }
    if (bytes > max_bytes) {
      // Every n-th part, so that all of the text has its share.
      const double share = static_cast<double>(max_bytes) / static_cast<double>(bytes);
      std::vector<std::string_view> kept;
      for (size_t i = 0; i < parts_.size(); ++i) {
        if (std::floor(static_cast<double>(i + 1) * share) > std::floor(static_cast<double>(i) * share))
          kept.push_back(parts_[i]);
      }
      parts_ = std::move(kept);
    }
    load();
  }
  bool done() const override { return at_ >= parts_.size(); }
  void Next() override {
    ++at_;
    load();
  }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  static constexpr size_t kPartBytes = 4096;

  void load() {
    value_.clear();
    if (done()) return;
    for (std::string_view rest = parts_[at_]; !rest.empty();) {
      const Utf8Part part = utf8_part(rest);
      if (part.valid && rest[0] != '\0') value_ += rest.substr(0, part.length);
      rest.remove_prefix(part.length);
    }
  }
  std::vector<std::string_view> parts_;
  size_t at_ = 0;
  std::string value_;
};

}  // namespace

std::unique_ptr<Tokenizer> train_bpe(std::span<const std::string_view> texts, const BpeOptions& options) {
  constexpr int64_t kLeast = 4 + 256 + 1, kMost = int64_t{1} << 20;
  if (options.vocab_size < kLeast || options.vocab_size > kMost) {
    throw InputError("vocabulary", "a size of " + std::to_string(options.vocab_size) + " is not possible",
                     "choose one from " + std::to_string(kLeast) + " to " + std::to_string(kMost));
  }
  const std::unordered_map<std::string, std::string> arguments{
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(options.vocab_size)},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"allow_whitespace_only_pieces", "true"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"max_sentence_length", "65536"},
      {"num_threads", "1"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "3"},
      {"minloglevel", "3"},
  };
  Parts parts(texts, options.max_bytes);
  std::string serialized;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &parts, &serialized);
  if (!status.ok()) {
    // "file(line) [condition] explanation": only the last part is for people.
    std::string why = status.message();
    if (const size_t bracket = why.rfind("] "); bracket != std::string::npos) why.erase(0, bracket + 2);
    // Its advice names options of the library, which nobody here can give.
    why.erase(std::min(why.size(), why.find(" Increase vocab_size")));
    if (why.ends_with('.')) why.pop_back();
    if (why.empty()) why = "there is too little of it";
    throw InputError("vocabulary",
                     std::to_string(options.vocab_size) + " pieces cannot be learnt from this text: " + why,
                     "choose another size, give more text, or use the byte-level tokenizer");
  }
  TokenizerConfig config;
  config.add_bos = config.add_eos = false;
  return sentencepiece_tokenizer(std::move(serialized), "tokenizer.model", config, "the trained vocabulary");
}

}  // namespace transept
