// A file of the source tree that is part of the program (cmake/EmbedDocuments.cmake).
#pragma once

#include <span>
#include <string_view>

namespace transept {

struct EmbeddedDocument {
  std::string_view name;  // of the file, without its suffix
  std::string_view text;
};

}  // namespace transept
