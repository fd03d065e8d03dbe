"""Runs every `sh` block of a Markdown page, as a reader would: in order, in one shell, in an empty folder, with the program on PATH.

usage: docs_commands.py PAGE

The first command that fails ends the run; its text and what it printed are shown. tools/check_docs.py sees to it that no block of
commands goes by another name.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_docs  # noqa: E402

BIN = Path(os.environ.get("TRANSEPT_BIN") or ROOT / "build/release/bin/transept").absolute()
TIMEOUT = 900  # seconds, for all blocks of a page


def script_of(page: Path) -> str:
    """The page's commands; before each block a line that says where it stands."""
    blocks = [b for b in check_docs.parse(page.read_text(encoding="utf-8"))[0] if b.language == "sh"]
    return "".join(f"where='{page.name}:{b.line}'\n" + "\n".join(b.lines) + "\n" for b in blocks)


def run_page(page: Path, program: Path = BIN, timeout: float = TIMEOUT) -> int:
    script = script_of(page)
    if not script:
        print(f"error: {page}: holds no sh block", file=sys.stderr)
        return 2
    guard = "set -Eeuo pipefail\ntrap 'echo \"error: $where: failed with status $?: $BASH_COMMAND\" >&2' ERR\n"
    with tempfile.TemporaryDirectory(prefix="transept-docs-") as scratch:
        environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
        shell = subprocess.Popen(["bash", "-c", guard + script], cwd=scratch, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            return 1 if shell.wait(timeout) else 0
        except subprocess.TimeoutExpired:
            print(f"error: {page}: took more than {timeout} s", file=sys.stderr)
            return 1
        finally:
            # Whatever a page left running ends with it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    if not os.access(BIN, os.X_OK):
        sys.exit(f"error: {BIN}: no such program; build it, or name it in TRANSEPT_BIN")
    sys.exit(run_page(Path(sys.argv[1]).resolve()))
