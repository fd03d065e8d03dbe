# Writes OUT: the commit that the program is built from. Run at build time; leaves OUT alone when nothing changed.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --match=NeVeRmAtCh
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
#include "cli/build_info.h"

namespace transept {
std::string build_commit() { return "@commit@"; }
}  // namespace transept
]] @ONLY)
