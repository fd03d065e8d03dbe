"""The harness of the end-to-end tests must fail where a program misbehaves: each case here is a program that does."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402


class Harness(harness.Case):
    def setUp(self):
        super().setUp()
        former = harness.BIN
        self.addCleanup(setattr, harness, "BIN", former)

    def program(self, body):
        path = self.file("transept", "#!/bin/sh\n" + body + "\n")
        path.chmod(0o755)
        harness.BIN = path

    def test_a_proper_refusal_passes(self):
        self.program('echo "error: $1: wrong; mend it" >&2; exit 2')
        self.assert_refused("x.json", status=2, says=["x.json", "mend"])

    def test_improper_refusals_fail(self):
        for body in ('echo "error: x: wrong" >&2; exit 0',              # says so, and calls it success
                     'echo "error: x: wrong" >&2; exit 1',              # the other status
                     'echo "wrong" >&2; exit 2',                        # no error line
                     'echo "error: x: wrong"; exit 2',                  # on stdout
                     'echo "error: x: wrong" >&2; echo 3; exit 2',      # a result besides
                     'echo "error: y: wrong" >&2; exit 2',              # another place
                     'echo "error: x: std::bad_alloc" >&2; exit 2',     # not for people
                     'echo "error: x: wrong" >&2; kill -ABRT $$'):      # a crash
            with self.subTest(body=body):
                self.program(body)
                with self.assertRaises(AssertionError):
                    self.assert_refused("x", status=2, says=["x: "])

    def test_a_failure_is_not_taken_for_success(self):
        self.program("exit 3")
        with self.assertRaises(AssertionError):
            self.run_ok("x")
        self.program("echo '{} trailing'")
        with self.assertRaises(ValueError):
            self.json("x")

    def test_a_hanging_program_is_ended(self):
        self.program("exec sleep 60")
        with self.assertRaises(harness.subprocess.TimeoutExpired):
            harness.run("x", timeout=0.3)

    def test_the_file_limit_fails_a_write_in_the_middle(self):
        self.program(f'exec head -c 100000 /dev/zero > "{self.tmp}/big"')
        result = harness.run(file_limit=4096)
        self.assertEqual(result.status, 1, str(result))  # a status, not a signal
        self.assertEqual((self.tmp / "big").stat().st_size, 4096)


if __name__ == "__main__":
    unittest.main()
