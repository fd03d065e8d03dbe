// Any regular expression of a tokenizer.json, run by PCRE2: compiled to machine code where possible, its steps and
// memory bounded, since the file is not ours.
#pragma once

#include <memory>
#include <string>

#include "base/problem.h"
#include "text/split_pattern.h"

namespace transept {

// Null and a problem when it cannot be compiled, or does not mean what it means to Oniguruma.
std::unique_ptr<SplitPattern> foreign_pattern(const std::string& regex, const std::string& where, Problems& problems);

}  // namespace transept
