// Tokens to a tree, by the grammar of jinja2 3.1 with its extension loopcontrols and the block `generation` of
// transformers. What no chat template uses is refused by name: inheritance, imports, recursive loops.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/ast.h"

namespace transept::jinja {

// InputError `where`: line N.
Body parse(std::string_view source, const std::string& where);

}  // namespace transept::jinja
