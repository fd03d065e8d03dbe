#!/usr/bin/env python3
"""Applies the listing of docs/adding-a-position.md to a copy of the tree, builds it there, and runs the test rows that it adds to.

usage: tests/tools/adding_a_position.py SCRATCH [JOBS]

SCRATCH holds the copy and its build; both may be there from an earlier run. The listing must touch what the page says: one source file,
in which it only adds but for the list of kinds, and one row of the tests. Controls: a listing that doesn't fit the tree isn't applied, and one
with an error doesn't compile.
"""

import filecmp
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ["CMakeLists.txt", "cmake", "src", "tests"]
SOURCE, ROWS = "src/spec/rope_scaling.h", "tests/support/position_rows.h"
TEST = "position_spec_test"


class Failure(Exception):
    pass


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)


def must(*command, **options):
    done = run(*command, **options)
    if done.returncode != 0:
        raise Failure(f"{shlex.join(map(str, command))} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def listing():
    blocks = re.findall(r"^```diff\n(.*?)^```$", (ROOT / "docs/adding-a-position.md").read_text(encoding="utf-8"), re.M | re.S)
    if len(blocks) != 1:
        raise Failure(f"docs/adding-a-position.md has {len(blocks)} diffs; expected one")
    return blocks[0]


def changes(diff):
    """The lines that a diff takes out of each file and adds to it."""
    files, name = {}, None
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            name = line[len("+++ b/"):]
            files[name] = ([], [])
        elif name and line[:1] in "-+" and not line.startswith("--- a/"):
            files[name][line[0] == "+"].append(line[1:])
    return files


def check_claim(diff):
    files = changes(diff)
    if set(files) != {SOURCE, ROWS}:
        raise Failure(f"the listing touches {sorted(files)}")
    removed, added = files[SOURCE]
    if "".join(removed).split("=")[0].strip() != "using RopeScalingKinds":
        raise Failure(f"the listing takes out of {SOURCE} more than the list: {removed}")
    if sum(line.startswith("struct ") for line in added) != 1:
        raise Failure("the listing adds more than one struct")
    if files[ROWS][0] or len(files[ROWS][1]) != 1:
        raise Failure(f"the listing changes {ROWS} by more than one row")


def apply(diff, folder):
    # No repository above the copy may take the paths for its own.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return run("git", "apply", "-", input=diff, cwd=folder, env=environment)


def fill(staging, diff):
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, staging / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(ROOT / name, staging / name)
    applied = apply(diff, staging)
    if applied.returncode != 0:
        raise Failure(f"the listing does not fit the tree: {applied.stderr}")


def sync(staging, tree):
    """Makes `tree` as `staging` is. A file that is the same keeps its time, so that what was built of it stands."""
    def names(folder):
        return {p.relative_to(folder) for name in COPIED for p in [folder / name, *(folder / name).rglob("*")] if p.is_file()}
    for gone in names(tree) - names(staging):
        (tree / gone).unlink()
    for name in names(staging):
        if not (tree / name).exists() or not filecmp.cmp(staging / name, tree / name, shallow=False):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(staging / name, tree / name)


def compiles(build, tree, source, other):
    """Whether the compiler accepts `source` with the headers of the tree `other`."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if Path(entry["file"]) == tree / source:
            command = shlex.split(entry["command"].replace(f"{tree}/src", f"{other}/src"))
            return run(*command, "-fsyntax-only", cwd=build).returncode == 0
    raise Failure(f"{source} is not built")


def rows_pass(build):
    return run(build / "bin" / TEST, "--gtest_brief=1").returncode == 0


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    scratch, jobs = Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) == 3 else "2"
    staging, tree, build = scratch / "staging", scratch / "tree", scratch / "build"
    diff = listing()
    check_claim(diff)
    fill(staging, diff)

    # Unoptimized: what is asked is whether it builds and what it computes.
    sync(staging, tree)
    must("cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=", "-DTRANSEPT_SANITIZE=")
    must("cmake", "--build", build, "-j", jobs, "--target", TEST, "src/nn/CMakeFiles/transept_nn.dir/position/rope.cc.o")
    if not rows_pass(build):
        raise Failure(f"the tests of specs and rules fail: {run(build / 'bin' / TEST, '--gtest_brief=1').stdout}")

    if apply(diff, staging).returncode == 0:
        raise Failure("control: a listing that doesn't fit was applied")
    if not compiles(build, tree, "src/spec/rope_scaling.cc", staging):
        raise Failure("control: the listing doesn't compile beside the tree")
    broken = diff.replace("angles.inv_freq[i] = 0;", "angles.inv_freqs[i] = 0;")
    fill(staging, broken)
    if broken == diff or compiles(build, tree, "src/spec/rope_scaling.cc", staging):
        raise Failure("control: a listing with an error compiles")
    shutil.rmtree(staging)
    print("the listing of docs/adding-a-position.md applies, builds and passes")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"error: {failure}")
