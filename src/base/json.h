// JSON from outside: bounded in size and depth, and strict about duplicate keys, which the library would silently
// merge.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace transept {

// Key order is kept: what a person wrote is what is printed back.
using Json = nlohmann::ordered_json;

// InputError naming `where` and the byte when the text is no JSON, holds a duplicate key, or nests deeper than 64.
Json parse_json(std::string_view text, const std::string& where);

// Reads and parses; at most `max_bytes`.
Json read_json(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{16} << 20);

}  // namespace transept
