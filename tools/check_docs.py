#!/usr/bin/env python3
"""Checks the Markdown pages: what they name exists, and what they tell a reader to type is run by a test.

usage: tools/check_docs.py [ROOT]

- A relative link leads to an existing file, and its #anchor to a heading of it.
- A path in backticks (one that begins with a folder of the tree or with ./) exists; `*` may stand in it. What building and running
  leaves behind (build/, runs/, .cache/) is not looked for.
- A file that a `diff` block changes exists.
- A fenced block says what it is. `sh` is run by the tests `docs_commands.*` (tests/e2e/docs_commands.py): on each page in order, in an
  empty folder, with the built program on PATH. `text` is not run: output, and the few commands that a test cannot run; a word of it that begins
  with ./ must exist. Other shell names (bash, console, shell, none at all) are refused: they would escape both.
- docs/README.md links to every other page of docs/.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

LANGUAGES = {"sh", "text", "diff", "json", "cpp", "c", "cmake", "python", "html", "math"}
TREE = {"src", "tests", "tools", "docs", "cmake", "bench", "web", "python", ".ci"}
PRODUCTS = ("build", "runs", ".cache")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*(.*)$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"`([^`]+)`")
PATH = re.compile(r"^[A-Za-z0-9_.*+/-]+$")


class Block(NamedTuple):
    line: int  # of the opening fence
    language: str
    lines: list[str]


def parse(text: str) -> tuple[list[Block], list[tuple[int, str]]]:
    """The fenced blocks of a page, and its other lines with their numbers."""
    blocks: list[Block] = []
    prose: list[tuple[int, str]] = []
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if fence:
            if match and match.group(1).startswith(fence) and not match.group(2).strip():
                fence = ""
            else:
                blocks[-1].lines.append(line)
        elif match:
            fence = match.group(1)
            blocks.append(Block(number, match.group(2).strip(), []))
        else:
            prose.append((number, line))
    if fence:
        blocks.append(Block(blocks[-1].line, "(never closed)", []))
    return blocks, prose


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    made: set[str] = set()
    for _, line in parse(text)[1]:
        if re.match(r"^#{1,6}\s", line):
            title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
            name, count = title, 0
            while name in made:
                count += 1
                name = f"{title}-{count}"
            made.add(name)
    return made


def pages(root: Path) -> list[Path]:
    """The pages that belong to the tree: git's, or all but products where there is no git."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        found = [root / name for name in listed.stdout.split("\0") if name]
    else:
        found = [p for p in root.rglob("*.md") if p.relative_to(root).parts[0] not in PRODUCTS]
    return sorted(p for p in set(found) if p.is_file())


def named_path_exists(root: Path, name: str) -> bool:
    name = name.removeprefix("./")
    if name.split("/")[0] in PRODUCTS:
        return True
    return any(root.glob(name.rstrip("/"))) if "*" in name else (root / name).exists()


def is_path(token: str) -> bool:
    if not PATH.match(token):
        return False
    return token.startswith("./") or ("/" in token and token.split("/")[0] in TREE) or re.fullmatch(r"[A-Z][A-Za-z]+\.(md|txt|json)", token) is not None


def page_offences(root: Path, page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    blocks, prose = parse(text)
    name = page.relative_to(root)
    found = []
    for block in blocks:
        if block.language not in LANGUAGES:
            found.append(f"{name}:{block.line}: a block of '{block.language}'; say one of {', '.join(sorted(LANGUAGES))}")
        if block.language == "text":
            for offset, line in enumerate(block.lines, 1):
                for word in re.findall(r"(?:^|\s)(\./[\w./-]+)", line):
                    if not named_path_exists(root, word):
                        found.append(f"{name}:{block.line + offset}: {word} does not exist")
        if block.language == "diff":
            for offset, line in enumerate(block.lines, 1):
                changed = re.match(r"--- a/(\S+)$", line)
                if changed and not (root / changed.group(1)).exists():
                    found.append(f"{name}:{block.line + offset}: {changed.group(1)} does not exist")
    for number, line in prose:
        for target in LINK.findall(line):
            if re.match(r"^[a-z][a-z+.-]*:", target):
                continue
            path, _, anchor = target.partition("#")
            aim = (page.parent / path) if path else page
            if not aim.exists():
                found.append(f"{name}:{number}: link to {target}: no such file")
            elif anchor and (aim.suffix != ".md" or anchor not in anchors(aim.read_text(encoding="utf-8"))):
                found.append(f"{name}:{number}: link to {target}: no such heading")
        for token in CODE.findall(line):
            if is_path(token) and not named_path_exists(root, token):
                found.append(f"{name}:{number}: `{token}` does not exist")
    return found


def offences(root: Path) -> list[str]:
    found = [offence for page in pages(root) for offence in page_offences(root, page)]
    index = root / "docs/README.md"
    linked = set(LINK.findall(index.read_text(encoding="utf-8"))) if index.exists() else set()
    for page in sorted((root / "docs").rglob("*.md")):
        if page != index and str(page.relative_to(root / "docs")) not in linked:
            found.append(f"docs/README.md: no link to {page.relative_to(root / 'docs')}")
    return found


def main(arguments: list[str]) -> int:
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    root = Path(arguments[0]).resolve() if arguments else Path(__file__).resolve().parent.parent
    if not pages(root):
        print(f"error: {root}: holds no Markdown page", file=sys.stderr)
        return 2
    found = offences(root)
    for line in found:
        print(line)
    print(f"docs: {len(found)} offences" if found else f"docs: {len(pages(root))} pages, all they name exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
