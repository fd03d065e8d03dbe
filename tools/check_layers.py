#!/usr/bin/env python3
"""Fails when a folder of src/ includes a folder of its own level or of a higher one.

usage: tools/check_layers.py [ROOT]

The levels are those of the table in ROOT/docs/architecture.md: the one place where they are written. Every file of src/ is read;
tests may include whatever they test. An include of ours is written from src/ on: "folder/file.h".
"""

import re
import sys
from pathlib import Path

SUFFIXES = {".h", ".cc", ".cpp", ".hpp", ".inc"}
ROW = re.compile(r"^\|\s*(\d+)\s*\|([^|]*)\|")
# Also the file that Highway re-includes once an instruction set, named by a macro.
INCLUDE = re.compile(r'^\s*#\s*(?:include\s*([<"])|define\s+HWY_TARGET_INCLUDE\s+(["]))([^>"]+)[>"]')


def read_levels(page: str) -> dict[str, int]:
    """Folder -> level, from the rows `| level | `folder`, `folder` | ... |` of the table."""
    levels: dict[str, int] = {}
    for line in page.splitlines():
        row = ROW.match(line)
        if row:
            for folder in re.findall(r"`([a-z_]+)`", row.group(2)):
                levels[folder] = int(row.group(1))
    return levels


def offences(root: Path) -> list[str]:
    """Every offence as "file:line: what"; also the folders that table and tree do not have in common."""
    levels = read_levels((root / "docs/architecture.md").read_text(encoding="utf-8"))
    source = root / "src"
    folders = {p.name for p in source.iterdir() if p.is_dir()}
    found = [f"docs/architecture.md: the table has no row for src/{name}" for name in sorted(folders - levels.keys())]
    found += [f"docs/architecture.md: the table lists `{name}`, but there is no src/{name}" for name in sorted(levels.keys() - folders)]
    for path in sorted(p for p in source.rglob("*") if p.suffix in SUFFIXES):
        parts = path.relative_to(source).parts
        folder = parts[0] if len(parts) > 1 else None
        if folder is None:
            found.append(f"{path.relative_to(root)}: lies in no folder of src/")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quoted, target = '"' in (match.group(1), match.group(2)), match.group(3)
            at = f"{path.relative_to(root)}:{number}"
            first, slash, _ = target.partition("/")
            if first in levels and slash and (quoted or (source / target).is_file()):
                if folder != first and folder in levels and levels[first] >= levels[folder]:
                    way = "sideways" if levels[first] == levels[folder] else "upward"
                    found.append(f'{at}: {way}: {folder} (level {levels[folder]}) includes "{target}" (level {levels[first]})')
            elif quoted and (not slash or first in (".", "..")):
                found.append(f'{at}: "{target}": write the path from src/ on')
    return found


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = offences(root)
    for line in found:
        print(line)
    print(f"layers: {len(found)} offences" if found else "layers: every include goes down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
