// transept convert --kv-heads: the options, and the conversion that they ask for.
#pragma once

#include <string>

#include "cli/conversion.h"

namespace transept {

struct KvHeadsOptions {
  int64_t heads = 0;
  std::string method;  // "": aligned with text, mean without
};
// Gives --kv-heads, without which none of this is done.
CLI::Option* add_kv_heads_options(CLI::App* sub, KvHeadsOptions& options);

// InputError when the spec can't have so many; `has_text`: whether the conversion will see some.
Conversion kv_heads_conversion(const KvHeadsOptions& options, const ArchSpec& before, bool has_text);

}  // namespace transept
