"""Runs the built program as a person would: arguments in; exit status, stdout and stderr out. Standard library only.

The program is the one that TRANSEPT_BIN names (ctest sets it), or build/release/bin/transept. A test file is unittest's:

    from harness import Case, main

    class Plan(Case):
        def test_counts(self):
            self.assertEqual(self.json("plan", "gpt2")["parameters"]["total"], 124439808)

    if __name__ == "__main__":
        main()
"""

import array
import ast
import json
import math
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("TRANSEPT_BIN") or ROOT / "build/release/bin/transept").absolute()
TIMEOUT = 120  # seconds, for a command that says nothing else
MAX_REFUSAL_KIB = 1 << 20  # resident memory that a command may take to find out that its input is wrong


class Result(NamedTuple):
    command: list[str]
    status: int  # negative: ended by that signal
    stdout: str
    stderr: str

    def errors(self) -> list[str]:
        return [line for line in self.stderr.splitlines() if line.startswith("error: ")]

    def __str__(self) -> str:
        return f"$ {' '.join(self.command)}\nstatus {self.status}\n--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-4000:]}"


def run(*arguments, timeout: float = TIMEOUT, cwd=None, stdin: str | bytes = "", env: dict | None = None, file_limit: int | None = None,
        prefix: list[str] | None = None, stdout=subprocess.PIPE) -> Result:
    """Runs `transept ARGUMENTS`. file_limit: no file may grow beyond so many bytes: a write past it fails in the middle, as on a full
    disk. prefix: a command that runs it in turn. stdout: a file to write to instead. Raises subprocess.TimeoutExpired, having killed it, when time runs out."""

    def limits():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if file_limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then write() fails with EFBIG instead of ending the process
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    command = [*(prefix or []), str(BIN), *map(str, arguments)]
    raw = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = subprocess.run(command, input=raw, stdout=stdout, stderr=subprocess.PIPE, timeout=timeout, cwd=cwd,
                          env={**os.environ, **(env or {})}, preexec_fn=limits)
    return Result(command, done.returncode, (done.stdout or b"").decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


class Npy:
    """The .npy file of float32 rows: numpy.lib.format, version 1.0."""

    def __init__(self, path: Path):
        raw = path.read_bytes()
        assert raw[:8] == b"\x93NUMPY\x01\x00", raw[:8]
        size = struct.unpack_from("<H", raw, 8)[0]
        assert (10 + size) % 64 == 0 and raw[9 + size:10 + size] == b"\n"
        self.header = ast.literal_eval(raw[10:10 + size].decode("latin-1"))
        values = array.array("f", raw[10 + size:])
        rows, width = self.header["shape"]
        assert len(values) == rows * width
        self.rows = [values[r * width:(r + 1) * width] for r in range(rows)]


def nats(logits, target: int) -> float:
    """-log of the probability that logits give to a token, in double."""
    top = max(logits)
    return top + math.log(sum(math.exp(z - top) for z in logits)) - logits[target]


class Case(unittest.TestCase):
    """A test case with a scratch folder, `self.tmp`."""

    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="transept-")
        self.addCleanup(scratch.cleanup)
        self.tmp = Path(scratch.name)

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.tmp / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def spec(self, name: str = "spec.json", **changes) -> Path:
        """A spec so small that a training step takes milliseconds; `changes` replace its top-level keys."""
        document = {
            "name": "tiny", "topology": "decoder", "vocab_size": 260, "hidden_size": 32, "max_position_embeddings": 64,
            "norm": {"kind": "rmsnorm"}, "position": {"kind": "rope"},
            "attention": {"kind": "gqa", "num_attention_heads": 2, "num_key_value_heads": 1},
            "ffn": {"kind": "swiglu", "intermediate_size": 48}, "layers": [{"repeat": 2}],
        }
        return self.file(name, json.dumps({**document, **changes}))

    def text(self, name: str = "text.txt", size: int = 20000) -> Path:
        """Text of many different lines."""
        lines = (f"line {n} holds {n * n % 997} apples and {n * 7 % 89} pears\n" for n in range(size))
        whole = ""
        for line in lines:
            whole += line
            if len(whole) >= size:
                break
        return self.file(name, whole[:size])

    def run_ok(self, *arguments, **options) -> Result:
        result = run(*arguments, **options)
        self.assertEqual(result.status, 0, str(result))
        return result

    def json(self, *arguments, **options) -> dict:
        """The one JSON document that --json leaves on stdout."""
        return json.loads(self.run_ok(*arguments, "--json", **options).stdout)

    def assert_refused(self, *arguments, status: int | tuple = (1, 2), says: list | tuple = (), **options) -> Result:
        """The command ends with an error that a person can read: that status, lines `error: ...` on stderr that hold each of `says`, and
        nothing on stdout that a script could take for a result."""
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        result = run(*arguments, **options)
        allowed = (status,) if isinstance(status, int) else status
        self.assertIn(result.status, allowed, str(result))
        self.assertTrue(result.errors(), f"no line begins with 'error: '\n{result}")
        for word in says:
            self.assertTrue(any(word in line for line in result.errors()), f"no error line says {word!r}\n{result}")
        for sign in ("terminate called", "internal error", "Sanitizer", "runtime error", "std::"):
            self.assertNotIn(sign, result.stderr, str(result))
        self.assertEqual(result.stdout.strip(), "", str(result))
        # The system tells of the largest child so far: it was this one when that grew.
        now = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.assertFalse(now > largest and now > MAX_REFUSAL_KIB, str(result))
        return result


class Prepared(Case):
    """Cases that share what `prepare` makes, once for the class."""

    @classmethod
    def setUpClass(cls):
        home = tempfile.TemporaryDirectory(prefix="transept-")
        cls.addClassCleanup(home.cleanup)
        maker = Case()
        maker.tmp = Path(home.name)
        cls.prepare(maker)

    @classmethod
    def prepare(cls, maker: Case):
        """Leaves its results in `cls`; files go to maker.tmp."""
        raise NotImplementedError


def main() -> None:
    if not os.access(BIN, os.X_OK):
        sys.exit(f"error: {BIN}: no such program; build it, or name it in TRANSEPT_BIN")
    unittest.main()
