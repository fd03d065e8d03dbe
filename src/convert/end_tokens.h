// The tokens that end an answer, as a model folder names them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace transept {

// "eos_token_id" of generation_config.json, else of config.json: one id or a list of them. Empty when neither names
// any. InputError when it is malformed.
std::vector<int32_t> read_end_tokens(const std::filesystem::path& folder);

}  // namespace transept
