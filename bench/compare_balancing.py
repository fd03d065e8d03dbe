#!/usr/bin/env python3
"""What balancing does to a mixture of experts: the preset small-moe with sigmoid scores, trained without any, with the balance loss, and
with the rule that moves selection biases, on the same text, the same seeds and the same steps.

MaxVio is the busiest expert's load over the mean load, minus 1 (arXiv:2408.15664 equation 4), of each layer and step; printed are its
mean and its greatest value over the last tenth of the steps, experts without a token in a step (of all layers), the entropy of the
routers' scores, and the held-out loss.
"""

import json
import statistics
import tempfile
from pathlib import Path

import harness

PRESET = "small-moe"
KINDS = {
    "none": {"router_aux_loss_coef": 0},
    "balance loss": {"router_aux_loss_coef": 0.01},
    "selection bias": {"router_aux_loss_coef": 0, "selection_bias": True, "bias_update_speed": 0.003},
}
SCORING = {"scoring_func": "sigmoid"}  # as the rule was published with


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def train(args, kind, seed, folder):
    spec = folder / "spec.json"
    spec.write_text(json.dumps({"extends": PRESET, "name": kind, "moe": SCORING | KINDS[kind]}))
    out = folder / "run"
    summary = harness.transept(args, "train", spec, "--data", *args.data, "--out", out, "--seed", seed, "--steps", args.steps,
                               "--context", args.context, "--batch", args.batch, "--lr", args.lr, "--val-fraction", 0.02)
    last = lines_of(out)[-max(1, args.steps // 10):]
    values = {name: [[v for key, v in line.items() if key.endswith("." + name)] for line in last]
              for name in ("max_violation", "idle_experts", "router_entropy")}
    return {"val_loss": harness.field(summary, "val_loss"),
            "max_violation": statistics.mean(v for line in values["max_violation"] for v in line),
            "worst_max_violation": max(v for line in values["max_violation"] for v in line),
            "idle_experts": statistics.mean(sum(line) for line in values["idle_experts"]),
            "router_entropy": statistics.mean(v for line in values["router_entropy"] for v in line)}


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True, metavar="PATH", help="plain text files, or folders of them")
    parser.add_argument("--seeds", type=harness.at_least_one, default=3, help="runs of each kind (default: 3)")
    parser.add_argument("--steps", type=harness.at_least_one, default=600, help="optimizer steps (default: 600)")
    parser.add_argument("--context", type=harness.at_least_one, default=128, help="tokens of a window (default: 128)")
    parser.add_argument("--batch", type=harness.at_least_one, default=8, help="windows of a batch (default: 8)")
    parser.add_argument("--lr", type=float, default=2e-3, help="peak learning rate (default: 0.002)")
    args = parser.parse_args()
    result = {"machine": harness.machine(args), "preset": PRESET, "steps": args.steps, "kinds": {kind: [] for kind in KINDS}}
    for seed in range(1, args.seeds + 1):
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                result["kinds"][kind].append(train(args, kind, seed, Path(folder)))
    rows = []
    for kind, runs in result["kinds"].items():
        mean = {key: statistics.mean(run[key] for run in runs) for key in runs[0]}
        rows.append([kind, *(f"{mean[key]:.{digits}f}" for key, digits in
                             (("max_violation", 3), ("worst_max_violation", 2), ("idle_experts", 2), ("router_entropy", 2), ("val_loss", 4)))])
    harness.print_table(["balancing", "MaxVio", "worst MaxVio", "idle experts", "router entropy", "held-out loss"], rows)
    harness.write_json(args, result)


if __name__ == "__main__":
    main()
