#!/usr/bin/env python3
"""Writes src/text/jinja/case_tables.h: the case mappings of Python's str.upper, str.lower and str.title, one character at a time.

    python tools/make_case_tables.py            # writes the file
    python tools/make_case_tables.py --check    # compares; needs a Python with the Unicode version that the file names
"""

import sys
import unicodedata
from pathlib import Path

PATH = Path(__file__).resolve().parent.parent / "src/text/jinja/case_tables.h"
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(mapping):
    """[first, last, step, distance]: runs of characters that move by the same distance."""
    runs = []
    for c in CHARACTERS:
        to = mapping(c)
        if to == c or len(to) != 1:
            continue
        at, distance = ord(c), ord(to) - ord(c)
        if runs and runs[-1][3] == distance and at - runs[-1][1] in (1, 2) and runs[-1][2] in (0, at - runs[-1][1]):
            runs[-1][1], runs[-1][2] = at, at - runs[-1][1]
        else:
            runs.append([at, at, 0, distance])
    return [(first, last, step or 1, distance) for first, last, step, distance in runs]


def filled(entries):
    lines, line = [], "   "
    for entry in entries:
        if len(line) + len(entry) > 118:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return "\n".join([*lines, line])


def spelled(text):
    return "".join(f"\\U{ord(c):08X}" for c in text)


def table(name, mapping):
    runs = [f"{{0x{first:X}, 0x{last:X}, {step}, {distance}}}" for first, last, step, distance in ranges(mapping)]
    longer = [f"{{0x{ord(c):X}, u8\"{spelled(mapping(c))}\"}}" for c in CHARACTERS if len(mapping(c)) > 1]
    return f"""constexpr CaseRange k{name}Ranges[] = {{
{filled(runs)}
}};
constexpr CaseText k{name}Texts[] = {{
{filled(longer)}
}};
"""


def document():
    return f"""// Case mappings of Unicode {unicodedata.unidata_version} (UnicodeData.txt, SpecialCasing.txt), made by tools/make_case_tables.py.
#pragma once

#include <cstdint>

namespace transept::jinja {{

// Every step-th character from first to last moves by `distance`.
struct CaseRange {{
  char32_t first, last;
  int32_t step, distance;
}};
// A character that becomes several.
struct CaseText {{
  char32_t from;
  const char8_t* to;
}};

// clang-format off
{table("Upper", str.upper)}
{table("Lower", str.lower)}
{table("Title", str.title)}// clang-format on

}}  // namespace transept::jinja
"""


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PATH.read_text(encoding="utf-8") == document() else f"error: {PATH}: differs; run tools/make_case_tables.py")
    PATH.write_text(document(), encoding="utf-8")
