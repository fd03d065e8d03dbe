// The readers behind load_tokenizer, one a file format, and what the tokenizers share.
#pragma once

#include <filesystem>
#include <memory>

#include "base/problem.h"
#include "text/tokenizer.h"

namespace transept {

std::unique_ptr<Tokenizer> load_tokenizer_json(const std::filesystem::path& path);
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& path);

InputError unknown_id(int64_t id, int64_t vocab_size);

}  // namespace transept
