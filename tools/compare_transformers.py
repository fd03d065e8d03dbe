#!/usr/bin/env python3
"""Compares a model folder's logits with Hugging Face transformers', in one pass and token by token through the cache.

    tools/compare_transformers.py runs/quickstart/checkpoint --text "To be, or not to be"

Loads the folder with AutoModelForCausalLM (and AutoTokenizer, where it has a tokenizer; --tokens gives ids otherwise). Needs torch and transformers
(pip install torch==2.13.0 transformers). Exit status 1 when the relative difference is above the bound."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="model folder")
    parser.add_argument("--text", help="text to compare on; needs a tokenizer in the folder")
    parser.add_argument("--tokens", help="ids to compare on, as 1,2,3")
    parser.add_argument("--bound", type=float, default=2e-4, help="largest difference, relative to the largest logit (default 2e-4)")
    parser.add_argument("--transept", type=Path, default=ROOT / "build/release/bin/transept", help="the program")
    arguments = parser.parse_args()
    if (arguments.text is None) == (arguments.tokens is None):
        parser.error("give either --text or --tokens")
    try:
        import numpy
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as missing:
        sys.exit(f"error: {missing.name} is not installed; pip install torch==2.13.0 transformers")

    if arguments.text is not None:
        ids = AutoTokenizer.from_pretrained(arguments.model)(arguments.text).input_ids
    else:
        ids = [int(part) for part in arguments.tokens.split(",")]
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32).eval()
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0].numpy()
    status = 0
    with tempfile.TemporaryDirectory() as scratch:
        npy = Path(scratch) / "logits.npy"
        for name, flags in (("one pass", []), ("incremental", ["--incremental"])):
            subprocess.run([arguments.transept, "logits", arguments.model, "--tokens", ",".join(map(str, ids)), "--npy", npy, *flags],
                           check=True, stdout=subprocess.DEVNULL)
            logits = numpy.load(npy)
            difference = float(numpy.abs(logits - expected).max() / numpy.abs(expected).max())
            print(f"{name}: {len(ids)} tokens, largest difference {difference:.2e} of the largest logit (bound {arguments.bound:.0e})")
            if logits.shape != expected.shape or not difference <= arguments.bound:
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
