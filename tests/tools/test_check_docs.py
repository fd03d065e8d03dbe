"""The documentation checker must find what is planted, and nothing else."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_docs  # noqa: E402


class Pages(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        (self.root / "docs").mkdir()
        (self.root / "src").mkdir()
        (self.root / "src/a.h").write_text("")

    def offences(self, text):
        (self.root / "README.md").write_text(text)
        return check_docs.offences(self.root)

    def test_a_sound_page_passes(self):
        self.assertEqual(self.offences("# A title: `x`\n[up](#a-title-x) [file](src/a.h) [web](https://example.org)\n"
                                       "`src/*.h` `src/` `./README.md` `n/m` `runs/x/report.html`\n```sh\ntrue\n```\n"
                                       "```text\n./README.md\n[broken](in/a/block)\n```\n"), [])

    def test_links(self):
        self.assertEqual(self.offences("[a](src/b.h)\n[b](README.md#gone) [c](#gone) [d](src/a.h#x)\n"),
                         ["README.md:1: link to src/b.h: no such file", "README.md:2: link to README.md#gone: no such heading",
                          "README.md:2: link to #gone: no such heading", "README.md:2: link to src/a.h#x: no such heading"])

    def test_paths_in_backticks(self):
        self.assertEqual(self.offences("`src/b.h` and `tools/*.py`, `./gone`, `GONE.md`\n"),
                         [f"README.md:1: `{p}` does not exist" for p in ("src/b.h", "tools/*.py", "./gone", "GONE.md")])

    def test_blocks_that_would_escape_the_run(self):
        for language in ("", "bash", "console", "sh -x", "shell"):
            self.assertEqual(len(self.offences(f"```{language}\ntrue\n```\n")), 1, language)
        self.assertEqual(len(self.offences("~~~\ntrue\n~~~\n")), 1)
        self.assertIn("never closed", self.offences("```sh\ntrue\n")[0])

    def test_commands_named_in_text_blocks_exist(self):
        self.assertEqual(self.offences("```text\n$ ./gone --now\n```\n"), ["README.md:2: ./gone does not exist"])

    def test_files_that_a_diff_changes_exist(self):
        self.assertEqual(self.offences("```diff\n--- a/src/a.h\n+++ b/src/a.h\n--- a/src/b.h\n+++ b/src/b.h\n```\n"),
                         ["README.md:4: src/b.h does not exist"])

    def test_the_index_links_every_page(self):
        (self.root / "docs/README.md").write_text("[a](a.md)\n")
        (self.root / "docs/a.md").write_text("a\n")
        self.assertEqual(self.offences("x\n"), [])
        (self.root / "docs/b.md").write_text("b\n")
        self.assertEqual(self.offences("x\n"), ["docs/README.md: no link to b.md"])

    def test_exit_status(self):
        self.assertEqual(check_docs.main([str(self.root)]), 2)  # no page: nothing was checked
        self.offences("fine\n")
        self.assertEqual(check_docs.main([str(self.root)]), 0)
        self.offences("`src/gone.h`\n")
        self.assertEqual(check_docs.main([str(self.root)]), 1)


if __name__ == "__main__":
    unittest.main()
