#!/usr/bin/env python3
"""Writes tests/goldens/: tiny random models and what PyTorch and transformers compute from them, small tokenizers and their answers.

    python tools/make_goldens.py            # writes tests/goldens/
    python tools/make_goldens.py --check    # makes them again elsewhere and compares byte by byte

Needs the packages of PINNED below (pip install torch==2.13.0 transformers==5.24.0 sentencepiece==0.2.3); the tests that read the files need none of them.
The same versions give the same bytes: weights come from numpy's frozen RandomState, torch runs on one thread and on its
baseline instruction set, so that the machine does not choose the order of a sum.
"""

import argparse
import filecmp
import importlib
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

# Read by torch, MKL and OpenMP when they are loaded, so before the first import of torch.
os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

PINNED = {"torch": "2.13.0", "transformers": "5.24.0", "safetensors": "0.8.0", "numpy": "2.4.6",
          "tokenizers": "0.23.3", "sentencepiece": "0.2.3"}
DEFAULT_OUT = Path(__file__).resolve().parent.parent / "tests" / "goldens"
PARTS = ("logits", "train", "bugs", "folders", "text/tokenizers", "text/rewriting")
LIMIT_BYTES = 5_000_000


def versions():
    """The versions in use; a warning for each that is not the pinned one, since other bytes may follow."""
    found = {}
    for name, pinned in PINNED.items():
        try:
            version = importlib.import_module(name).__version__.split("+")[0]
        except ImportError:
            sys.exit(f"error: {name}: not installed; pip install {name}=={pinned}")
        if version != pinned:
            print(f"warning: {name} is {version}, the committed files were made with {pinned}", file=sys.stderr)
        found[name] = version
    found["python"] = platform.python_version()
    return found


def differing_files(left, right):
    names = {p.relative_to(d) for d in (left, right) for part in PARTS for p in (d / part).rglob("*") if p.is_file()}
    names.add(Path("manifest.json"))
    return sorted(str(n) for n in names
                  if not ((left / n).is_file() and (right / n).is_file() and filecmp.cmp(left / n, right / n, shallow=False)))


def generate(out):
    found = versions()
    import torch

    from goldens import bugs, common, folders, logits, published, rewriting, tokenizer_kinds, training

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for part in PARTS:
        shutil.rmtree(out / part, ignore_errors=True)
    manifest = {
        "made_by": "tools/make_goldens.py",
        "versions": found,
        "logits": logits.generate(out / "logits"),
        "train": training.generate(out / "train"),
        "bugs": bugs.generate(out / "bugs"),
        "published": published.generate(out / "bugs" / "published.json"),
        "folders": folders.generate(out / "folders" / "cases.json"),
        "rewriting": rewriting.generate(out / "text" / "rewriting" / "cases.json"),
        "tokenizers": tokenizer_kinds.generate(out / "text" / "tokenizers"),
    }
    common.write_json(out / "manifest.json", manifest)
    size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    if size > LIMIT_BYTES:
        sys.exit(f"error: {out}: {size} bytes, more than {LIMIT_BYTES}; make the models smaller")
    print(f"{out}: {size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder to write (default: tests/goldens)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the files in --out would change")
    args = parser.parse_args()
    if not args.check:
        generate(args.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        different = differing_files(args.out, Path(folder))
    for name in different:
        print(f"differs: {name}", file=sys.stderr)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
