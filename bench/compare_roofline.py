#!/usr/bin/env python3
"""Predicted beside measured decoding speed: `transept bench machine` describes this machine, `transept plan --machine` predicts tokens a
second from a spec alone, and `transept bench decode` measures them. The goal is a ratio within 25 % where the
weights are larger than the caches.

A step is predicted in the middle of the measured tokens. Weights are float32 (random) or bfloat16 (a folder made by one step of training
and `transept convert --dtype bf16`); the cache is float32, as the program keeps it. It has no peer and needs no PyTorch.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import harness

GOAL = 0.25
# Preset, tokens in the cache before the first measured one, measured tokens, type of the weights.
CASES = [
    ("small-30m", 0, 64, "f32"),
    ("bench-b", 0, 64, "f32"),
    ("gpt2", 0, 24, "f32"),
    ("pythia-160m", 0, 24, "f32"),
    ("small-135m", 0, 24, "f32"),
    ("smollm2-360m", 0, 8, "f32"),
    ("small-30m", 0, 64, "bf16"),
    ("small-135m", 0, 32, "bf16"),
    ("small-135m", 1024, 32, "f32"),
    ("small-135m", 2048, 32, "f32"),
    ("small-10m", 0, 128, "f32"),
    ("small-moe", 0, 128, "f32"),
    ("small-mla", 0, 128, "f32"),
]


def bf16_folder(args, preset, folder):
    """The preset with trained weights in bfloat16: bench decode reads them as a folder stores them."""
    out = folder / preset
    if not out.exists():
        text = folder / "text.txt"
        text.write_text("".join(f"line {n} holds {n * n % 997} apples\n" for n in range(2000)))
        run = folder / f"{preset}-run"
        harness.transept(args, "train", preset, "--data", text, "--out", run, "--steps", 1, "--context", 16, "--batch", 1,
                         "--tokenizer", "byte")
        harness.transept(args, "convert", run, "--out", out, "--dtype", "bf16")
    return out


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--rounds", type=harness.at_least_one, default=3, help="rounds of all cases (default: 3)")
    parser.add_argument("--seconds", type=float, default=1, help="measured time of a case and round, at the least (default: 1)")
    parser.add_argument("--machine", type=Path, metavar="FILE", help="a description to use; default: measured here, first")
    parser.add_argument("--only", metavar="PRESET", help="the cases of one preset")
    args = parser.parse_args()
    cases = [case for case in CASES if args.only in (None, case[0])]
    if not cases:
        harness.fail(f"--only {args.only}: known are {', '.join(sorted({case[0] for case in CASES}))}")
    result = {"machine": harness.machine(args), "cases": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        result["descriptions"] = []

        def describe():
            """The machine as it is now: others may share it, so each round has its own description."""
            description = folder / "machine.json"
            harness.transept(args, "bench", "machine", "--out", description, "--repeats", 5, "--seconds", 0.3)
            result["descriptions"].append(json.loads(description.read_text()))
            return description

        def measure(case):
            preset, cached, tokens, dtype = case
            model = preset if dtype == "f32" else bf16_folder(args, preset, folder)
            found = harness.transept(args, "bench", "decode", model, "--cached", cached, "--tokens", tokens, "--repeats", 3,
                                     "--seconds", args.seconds)
            return harness.field(found, "tokens_per_second")

        def predict(case, description):
            preset, cached, tokens, dtype = case
            plan = harness.transept(args, "plan", preset, "--machine", description, "--dtype", dtype, "--kv-dtype", "f32",
                                    "--context", cached + (tokens + 1) // 2)
            return harness.field(plan, "economics", "decode")

        names = {f"{preset} {dtype} behind {cached}": (preset, cached, tokens, dtype) for preset, cached, tokens, dtype in cases}
        found = {name: [] for name in names}
        for number in range(args.rounds):
            description = args.machine or describe()
            for name, case in names.items():
                speed = measure(case)
                decode = predict(case, description)
                found[name].append({"predicted": decode, "measured": speed, "ratio": decode["tokens_per_second"] / speed})
                print(f"round {number + 1}/{args.rounds}, {name}: {speed:.1f} tokens/s, predicted over measured {found[name][-1]['ratio']:.2f}",
                      file=sys.stderr)
        rows = []
        for name, (preset, cached, tokens, dtype) in names.items():
            ratio = statistics.median(r["ratio"] for r in found[name])
            result["cases"].append({"preset": preset, "cached": cached, "tokens": tokens, "dtype": dtype, "rounds": found[name], "ratio": ratio})
            decode = found[name][-1]["predicted"]
            rows.append([name, f"{decode['bytes'] / 2**20:.1f}", f"{1e6 * decode['memory_seconds']:.0f}",
                         f"{1e6 * decode['compute_seconds']:.0f}", f"{1e6 * decode['layer_seconds']:.0f}",
                         statistics.median(r["predicted"]["tokens_per_second"] for r in found[name]),
                         statistics.median(r["measured"] for r in found[name]), f"{ratio:.2f}{'' if abs(ratio - 1) <= GOAL else ' *'}"])
    harness.print_table(["model", "MiB a step", "bytes, us", "operations, us", "layers, us", "predicted, tokens/s", "measured", "ratio"], rows)
    outside = sum(abs(case["ratio"] - 1) > GOAL for case in result["cases"])
    print(f"{len(rows) - outside} of {len(rows)} within {GOAL:.0%}")
    harness.write_json(args, result)


if __name__ == "__main__":
    main()
