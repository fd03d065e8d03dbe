// What the program was built from.
#pragma once

#include <string>

namespace transept {
std::string build_commit();  // short hash, "-dirty" with uncommitted changes; "unknown" outside a repository
}
