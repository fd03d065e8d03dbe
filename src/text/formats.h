// The readers behind load_tokenizer, one a file format, and what the tokenizers share.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/problem.h"
#include "text/added_tokens.h"
#include "text/tokenizer.h"
#include "text/tokenizer_file.h"

namespace transept {

// Files as they came, name and bytes: what saving a foreign tokenizer writes again.
using SavedFiles = std::vector<std::pair<std::string, std::string>>;

// What tokenizer_config.json says (special_tokens_map.json where it is silent); empty without such files.
struct TokenizerConfig {
  std::optional<std::string> bos, eos, pad, unk, mask, cls, sep;
  std::optional<bool> add_bos, add_eos, add_prefix_space, legacy;
  std::optional<bool> do_lower_case, tokenize_chinese_chars, strip_accents;
  // Tokens that were put behind a vocabulary: added_tokens_decoder, and added_tokens.json of older folders.
  std::vector<AddedToken> added;
  SavedFiles files;

  // Those from id `size` on, in their order. InputError where there are some and they leave ids out. Empty where they
  // are those of extend_tokenizer, which with_added_tokens reads.
  std::vector<AddedToken> added_behind(int64_t size, const std::string& where) const;
};
// InputError where a file is there but no JSON object, or one of these members is misshapen.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder);

// A tokenizer of what tokenizer.json says; saving it writes `files` and the configuration's. InputError with every
// problem found, each with its path in the file.
std::unique_ptr<Tokenizer> hf_tokenizer(TokenizerFile file, const TokenizerConfig& config, SavedFiles files,
                                        const std::string& where);
// Whether the file is the byte tokenizer's.
bool is_byte_tokenizer(const TokenizerFile& file);

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path);
// vocab.txt, one piece a line: BERT's WordPiece.
std::unique_ptr<Tokenizer> load_word_pieces(const std::filesystem::path& path);
// vocab.json with merges.txt beside it: GPT-2's byte-level BPE, with RoBERTa's frame where the vocabulary has its
// tokens.
std::unique_ptr<Tokenizer> load_byte_level_bpe(const std::filesystem::path& path);
// Of the bytes of a sentencepiece model; saving it writes them as `name`, and the configuration's files.
std::unique_ptr<Tokenizer> sentencepiece_tokenizer(std::string serialized, std::string name,
                                                   const TokenizerConfig& config, const std::string& where);
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& path);
// Whether the file is as train_bpe makes them. False for what is no model at all.
bool is_own_sentencepiece(const std::filesystem::path& path);

// The tokenizer, extended where the folder's tokenizer_config.json lists the tokens of extend_tokenizer behind it.
std::unique_ptr<Tokenizer> with_added_tokens(std::unique_ptr<Tokenizer> tokenizer, const std::filesystem::path& folder);

InputError unknown_id(int64_t id, int64_t vocab_size);

}  // namespace transept
