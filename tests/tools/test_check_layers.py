"""The layer checker must find what is planted, and nothing else."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_layers  # noqa: E402

TABLE = """# Architecture

| level | folder | holds |
|---|---|---|
| 0 | `base` | `not_a_folder` |
| 1 | `spec`, `text` | |
| 2 | `plan` | |
"""


class Tree(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.put("docs/architecture.md", TABLE)
        for folder in ("base", "spec", "text", "plan"):
            self.put(f"src/{folder}/{folder}.h", "#pragma once\n#include <vector>\n")

    def put(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def offences(self):
        return check_layers.offences(self.root)

    def test_downward_and_own_includes_pass(self):
        self.put("src/plan/a.cc", '#include "plan/plan.h"\n#include "base/base.h"\n#include "spec/spec.h"\n#include "text/text.h"\n#include "hwy/highway.h"\n')
        self.assertEqual(self.offences(), [])

    def test_upward(self):
        self.put("src/base/a.h", '#pragma once\n#include "plan/plan.h"\n')
        self.assertEqual(self.offences(), ['src/base/a.h:2: upward: base (level 0) includes "plan/plan.h" (level 2)'])

    def test_sideways(self):
        self.put("src/spec/a.cc", '#include "text/text.h"\n')
        self.assertEqual(self.offences(), ['src/spec/a.cc:1: sideways: spec (level 1) includes "text/text.h" (level 1)'])

    def test_in_a_subfolder_with_spaces_angles_and_macros(self):
        self.put("src/spec/deep/a.cc", '  #  include  "plan/plan.h"\n#include <text/text.h>\n#define HWY_TARGET_INCLUDE "plan/plan.h"\n')
        self.assertEqual([o.split(": ")[1] for o in self.offences()], ["upward", "sideways", "upward"])

    def test_relative_includes_cannot_hide(self):
        self.put("src/base/a.cc", '#include "../plan/plan.h"\n#include "base.h"\n')
        self.assertEqual(len(self.offences()), 2)

    def test_table_and_tree_name_the_same_folders(self):
        self.put("src/extra/a.h", "#pragma once\n")
        (self.root / "src/text/text.h").unlink()
        (self.root / "src/text").rmdir()
        found = "\n".join(self.offences())
        self.assertIn("no row for src/extra", found)
        self.assertIn("there is no src/text", found)

    def test_exit_status(self):
        self.assertEqual(check_layers.main([str(self.root)]), 0)
        self.put("src/base/a.h", '#include "plan/plan.h"\n')
        self.assertEqual(check_layers.main([str(self.root)]), 1)
        self.assertEqual(check_layers.main(["--bogus"]), 2)


if __name__ == "__main__":
    unittest.main()
