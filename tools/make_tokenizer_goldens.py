#!/usr/bin/env python3
"""Writes tests/goldens/text/rewriting.json: how Hugging Face tokenizers rewrites and splits a few texts.

    python tools/make_tokenizer_goldens.py            # writes the file
    python tools/make_tokenizer_goldens.py --check    # makes it again elsewhere and compares byte by byte

Needs the packages of PINNED (pip install tokenizers==0.23.3 sentencepiece==0.2.3); the tests that read it need neither.
"""

import argparse
import importlib.metadata
import sys
import tempfile
from pathlib import Path

from goldens import rewriting

PINNED = {"tokenizers": "0.23.3", "sentencepiece": "0.2.3"}
DEFAULT_OUT = Path(__file__).resolve().parent.parent / "tests" / "goldens" / "text"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder to write (default: tests/goldens/text)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file in --out would change")
    args = parser.parse_args()
    for name, pinned in PINNED.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            sys.exit(f"error: {name}: not installed; pip install {name}=={pinned}")
        if version != pinned:
            print(f"warning: {name} is {version}, the committed file was made with {pinned}", file=sys.stderr)
    if not args.check:
        print(rewriting.generate(args.out / "rewriting.json"))
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "rewriting.json"
        rewriting.generate(made)
        committed = args.out / "rewriting.json"
        same = committed.is_file() and committed.read_bytes() == made.read_bytes()
    if not same:
        print("differs: rewriting.json", file=sys.stderr)
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
