// The readers behind load_tokenizer, one a file format, and what the tokenizers share.
#pragma once

#include <filesystem>
#include <memory>

#include "base/problem.h"
#include "text/tokenizer.h"

namespace transept {

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path);
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& path);

// The tokenizer, extended where the folder's tokenizer_config.json lists the tokens of extend_tokenizer behind it.
std::unique_ptr<Tokenizer> with_added_tokens(std::unique_ptr<Tokenizer> tokenizer, const std::filesystem::path& folder);

InputError unknown_id(int64_t id, int64_t vocab_size);

}  // namespace transept
