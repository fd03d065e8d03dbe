#!/usr/bin/env python3
"""Fetches axe-core, the checker of accessibility that tests/e2e/browser.py runs in the pages: one script, 0.4 MB, MPL 2.0, from one pinned
wheel of the package index.

usage: tools/fetch_axe.py FOLDER

FOLDER then holds axe.min.js; the tests look in .cache/axe. When it is there already, nothing is fetched. Exit status 1, with a reason, when
it cannot be had (no network, no pip): the tests then skip that check, and say so.
"""

import sys
from pathlib import Path

import pinned_wheel
from pinned_wheel import Unavailable

PIN = pinned_wheel.Pin("axe-core-python", "0.1.0", "f99f6bd674726c631c5e20b876983b44dff2b8f452a0ccf08f3c23ee45d0aac3")
SCRIPT = "axe.min.js"
MAX_BYTES = 4 << 20


def extract(path: Path, folder: Path, sha256: str = PIN.sha256) -> None:
    """Writes the script of the wheel into `folder`."""
    contents = pinned_wheel.members(path, sha256, lambda name: name == f"axe_core_python/{SCRIPT}", MAX_BYTES)
    if not contents:
        raise Unavailable(f"{path.name} holds no {SCRIPT}")
    pinned_wheel.write_folder(folder, contents)


def main(arguments: list[str]) -> int:
    return pinned_wheel.main(arguments, __doc__, "axe-core", lambda folder: (folder / SCRIPT).is_file(),
                      lambda scratch, folder: extract(pinned_wheel.download(PIN, scratch), folder))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
