"""The runner of documented commands must fail when one of them fails, wherever it stands."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import docs_commands  # noqa: E402


class Runner(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.program = self.root / "transept"
        self.program.write_text('#!/bin/sh\n[ "$1" = plan ] && echo planned "$2"\n')
        self.program.chmod(0o755)

    def status(self, text, timeout=20):
        page = self.root / "page.md"
        page.write_text(text)
        return docs_commands.run_page(page, self.program, timeout)

    def test_blocks_share_a_shell_and_a_folder(self):
        self.assertEqual(self.status("```sh\ntransept plan gpt2 > out\nx=1\n```\ntext\n```sh\ngrep -q 'planned gpt2' out\ntest $x = 1\n```\n"), 0)

    def test_any_failing_command_counts(self):
        for block in ("false\ntrue", "transept frobnicate", "no-such-command", "false | true", "true\nfalse", "echo $no_such_variable", "f() { false; }\nf\ntrue"):
            self.assertEqual(self.status(f"```sh\n{block}\n```\n"), 1, block)
        self.assertEqual(self.status("```sh\nfalse\n```\n```sh\ntrue\n```\n"), 1)

    def test_other_blocks_are_not_run(self):
        self.assertEqual(self.status("```text\nfalse\n```\n```sh\ntrue\n```\n"), 0)

    def test_nothing_to_run_and_endless(self):
        self.assertEqual(self.status("no block\n"), 2)
        self.assertEqual(self.status("```sh\nsleep 5\n```\n", timeout=0.2), 1)


if __name__ == "__main__":
    unittest.main()
