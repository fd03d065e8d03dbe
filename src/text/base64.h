// Base64 (RFC 4648, section 4), as tokenizer.json holds binary data.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace transept {

// The bytes; none for a text that is no padded base64 of the standard alphabet.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace transept
