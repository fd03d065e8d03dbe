#!/usr/bin/env python3
"""Writes src/text/unicode_tables.cc and src/text/unicode_tables_normal.cc from pinned Unicode data.

    python tools/make_unicode_tables.py            # writes the two files
    python tools/make_unicode_tables.py --check    # makes them again in memory and compares

Needs PINNED (pip install unicodedataplus==16.0.0 unicodedata2==17.0.0). Tokenizers have to split and rewrite as Hugging
Face's package does, and its parts stand on different Unicode versions (measured over all code points by
tools/compare_rewriting.py against tokenizers 0.23.3):
    regular expressions, graphemes                            16.0
    numeric characters, lower case (Rust's char)              17.0
    NFC, NFD, NFKC, NFKD, StripAccents                         9.0
    BERT's punctuation, control characters, nonspacing marks   8.0
Of an old version we take the characters that it had (property Age) with today's values, and CHANGED names the few whose
value has changed since: decompositions and combining classes never change once a character exists.
"""

import argparse
import importlib
import sys
from pathlib import Path

PINNED = {"unicodedataplus": "16.0.0", "unicodedata2": "17.0.0"}
OUT = Path(__file__).resolve().parent.parent / "src" / "text"
POINTS = 0x110000
BLOCK = 128

# Code point: (the last version in which it had another general category, that category).
CHANGED = {
    0x166D: (11, "Po"), 0x1734: (13, "Mn"), 0x1885: (8, "Lo"), 0x1886: (8, "Lo"), 0x1CF2: (11, "Mc"), 0x1CF3: (11, "Mc"),
    0xA9BD: (10, "Mc"), 0x111C9: (10, "Po"), 0x1171E: (14, "Mn"),
}
# Other_Alphabetic beyond the marks (PropList.txt): circled and squared letters.
OTHER_ALPHABETIC = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
WHITE_SPACE = set(range(9, 14)) | set(range(0x2000, 0x200B)) | {0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
ASCII_PUNCTUATION = set(map(ord, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
# The order is that of the enumerations in unicode.h and grapheme.cc.
TRAITS = ("letter", "upper_like", "lower_like", "mark", "number", "punctuation", "symbol", "space", "word", "newline",
          "numeric17", "punctuation8", "nonspacing8", "control8", "mark9")
BREAKS = ("Other", "CR", "LF", "Control", "Extend", "ZWJ", "Regional_Indicator", "Prepend", "SpacingMark", "L", "V", "T", "LV", "LVT")


def load():
    modules = []
    for name, pinned in PINNED.items():
        try:
            module = importlib.import_module(name)
        except ImportError:
            sys.exit(f"error: {name}: not installed; pip install {name}=={pinned}")
        if module.unidata_version != pinned:
            sys.exit(f"error: {name} holds Unicode {module.unidata_version}; pip install {name}=={pinned}")
        modules.append(module)
    return modules


class Data:
    def __init__(self):
        self.v16, self.v17 = load()
        self.category16 = [self.v16.category(chr(c)) for c in range(POINTS)]
        self.category17 = [self.v17.category(chr(c)) for c in range(POINTS)]
        ages = [self.v16.age(chr(c)) for c in range(POINTS)]
        self.age = [float("inf") if a == "Unassigned" else float(a) for a in ages]

    def category(self, c, version):
        """The general category in an older version; Cn where it had no such character."""
        if c in CHANGED and version <= CHANGED[c][0]:
            return CHANGED[c][1]
        return self.category16[c] if self.age[c] <= version else "Cn"

    def traits(self, c):
        g, g8, g9 = self.category16[c], self.category(c, 8), self.category(c, 9)
        word = (g[0] in "LM" or g in ("Nd", "Nl", "Pc") or c in (0x200C, 0x200D)
                or any(a <= c <= b for a, b in OTHER_ALPHABETIC))
        held = {
            "letter": g[0] == "L",
            "upper_like": g in ("Lu", "Lt", "Lm", "Lo") or g[0] == "M",
            "lower_like": g in ("Ll", "Lm", "Lo") or g[0] == "M",
            "mark": g[0] == "M",
            "number": g[0] == "N",
            "punctuation": g[0] == "P",
            "symbol": g[0] == "S",
            "space": c in WHITE_SPACE,
            "word": word,
            "newline": c in (10, 13),
            "numeric17": self.category17[c][0] == "N",
            "punctuation8": g8[0] == "P" or c in ASCII_PUNCTUATION,
            "nonspacing8": g8 == "Mn",
            "control8": g8 in ("Cc", "Cf", "Co") and c not in (9, 10, 13),
            "mark9": g9[0] == "M",
        }
        return sum(1 << i for i, name in enumerate(TRAITS) if held[name])

    def lower(self, c):
        """Simple lower case in Unicode 17. Python's own tables may end earlier, so younger pairs come from their names."""
        if c == 0x130:
            return c  # becomes two characters; unicode.h says so
        lower = chr(c).lower()
        if len(lower) == 1 and ord(lower) != c:
            return ord(lower)
        if self.category17[c] == "Lu" and self.age[c] > 14:
            try:
                return ord(self.v17.lookup(self.v17.name(chr(c)).replace("CAPITAL", "SMALL")))
            except KeyError:
                pass
        return c

    def grapheme(self, c):
        value = BREAKS.index(self.v16.grapheme_cluster_break(chr(c)))
        return value | (0x10 if self.v16.is_extended_pictographic(chr(c)) else 0)


def surrogate(c):
    return 0xD800 <= c < 0xE000


class NormalData:
    """Decompositions, combining classes and compositions of Unicode 9.0. Hangul syllables are arithmetic (chapter 3.12)."""

    def __init__(self, data):
        u = data.v16
        self.canonical, self.compatible, self.pairs = {}, {}, []
        self.combining = [0] * POINTS
        for c in range(POINTS):
            if surrogate(c) or data.age[c] > 9 or 0xAC00 <= c < 0xAC00 + 11172:
                continue
            self.combining[c] = u.combining(chr(c))
            for form, table in (("NFD", self.canonical), ("NFKD", self.compatible)):
                to = [ord(x) for x in u.normalize(form, chr(c))]
                if to != [c]:
                    table[c] = to
            single = u.decomposition(chr(c))
            if single and "<" not in single and " " in single and u.normalize("NFC", chr(c)) == chr(c):
                self.pairs.append((*(int(x, 16) for x in single.split()), c))
        self.pairs.sort()
        seconds = {second for _, second, _ in self.pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
        primary = {c for _, _, c in self.pairs}
        self.classes = []
        for c in range(POINTS):
            hangul = 0xAC00 <= c < 0xAC00 + 11172
            value = self.combining[c]
            value |= 0x100 if c in self.canonical or hangul else 0
            value |= 0x200 if c in self.compatible or hangul else 0
            value |= 0x400 if c in seconds or (c in self.canonical and c not in primary) else 0
            value |= 0x800 if c in seconds or (c in self.compatible and self.compatible[c] != self.canonical.get(c)) or (
                c in self.canonical and c not in primary) else 0
            self.classes.append(value)


def numbers(values, form):
    lines, line = [], " "
    for value in values:
        word = " " + form(value) + ","
        if len(line) + len(word) > 120:
            lines.append(line)
            line = " "
        line += word
    lines.append(line)
    return "\n".join(lines)


def array(kind, name, values, form=str):
    return f"const {kind} {name}[{len(values)}] = {{\n{numbers(values, form)}\n}};\n"


def trie(kind, name, values, form=str):
    """Two stages: the block of c is NAMEBlocks[c / 128], its value NAMEValues[128 * block + c % 128]."""
    blocks, found, flat = [], {}, []
    for at in range(0, POINTS, BLOCK):
        block = tuple(values[at:at + BLOCK])
        if block not in found:
            found[block] = len(found)
            flat += block
        blocks.append(found[block])
    if max(blocks) > 0xFFFF:
        sys.exit(f"error: {name}: {max(blocks)} blocks do not fit")
    return array("uint16_t", f"{name}Blocks", blocks) + array(kind, f"{name}Values", flat, form)


def head(what):
    return (f"// {what}\n// Made by tools/make_unicode_tables.py, which says from what; not for editing.\n"
            '// clang-format off\n#include "text/unicode_tables.h"\n\nnamespace transept::unicode_tables {\n\n')


TAIL = "\n}  // namespace transept::unicode_tables\n"


def character_file(data):
    traits = [data.traits(c) for c in range(POINTS)]
    kinds = sorted(set(traits))
    kind_of = {value: i for i, value in enumerate(kinds)}
    lower = [data.lower(c) - c for c in range(POINTS)]
    deltas = sorted(set(lower), key=lambda d: (d != 0, d))
    delta_of = {value: i for i, value in enumerate(deltas)}
    for table in (kinds, deltas):
        if len(table) > 256:
            sys.exit(f"error: {len(table)} kinds do not fit a byte")
    return (head("Traits, lower case and grapheme breaks of all code points.")
            + array("uint32_t", "kTraitsOfKind", kinds, hex)
            + trie("uint8_t", "kTraits", [kind_of[t] for t in traits])
            + array("uint32_t", "kAsciiTraits", traits[:128], hex)
            + array("int32_t", "kLowerDeltas", deltas)
            + trie("uint8_t", "kLower", [delta_of[d] for d in lower])
            + trie("uint8_t", "kGrapheme", [data.grapheme(c) for c in range(POINTS)])
            + TAIL)


def normal_file(data):
    normal = NormalData(data)
    pool, rows, places = [], [], {}

    def place(to):
        key = tuple(to)
        if key not in places:
            places[key] = len(pool)
            pool.extend(to)
        return places[key], len(to)

    for c in sorted(normal.canonical.keys() | normal.compatible.keys()):
        rows.append((c, *place(normal.canonical.get(c, [])), *place(normal.compatible.get(c, []))))
    if len(pool) > 0xFFFF:
        sys.exit(f"error: {len(pool)} code points do not fit")
    row = lambda r: "{" + ",".join([hex(r[0]), *map(str, r[1:])]) + "}"
    pair = lambda p: "{" + ",".join(map(hex, p)) + "}"
    return (head("Decompositions, compositions and combining classes.")
            + trie("uint16_t", "kNormal", normal.classes)
            + array("uint32_t", "kDecomposedPoints", pool, hex)
            + array("Decomposition", "kDecompositions", rows, row)
            + f"const size_t kDecompositionCount = {len(rows)};\n"
            + array("Composition", "kCompositions", normal.pairs, pair)
            + f"const size_t kCompositionCount = {len(normal.pairs)};\n"
            + TAIL)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the files would change")
    args = parser.parse_args()
    data = Data()
    different = False
    for name, text in (("unicode_tables.cc", character_file(data)), ("unicode_tables_normal.cc", normal_file(data))):
        path = OUT / name
        if args.check:
            if not path.is_file() or path.read_text() != text:
                print(f"differs: {path}", file=sys.stderr)
                different = True
        else:
            path.write_text(text)
            print(f"{path}: {len(text)} bytes")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
