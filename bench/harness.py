"""What the comparisons share: arguments, the calls of transept, interleaved rounds, tables."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TORCH = "2.13.0"


def fail(message):
    sys.exit(f"error: {message}")


def import_torch(threads):
    try:
        import torch
    except ImportError:
        fail(f"torch: not installed; pip install torch=={TORCH}")
    version = torch.__version__.split("+")[0]
    if version != TORCH:
        print(f"warning: torch is {version}, the published figures are beside {TORCH}", file=sys.stderr)
    torch.set_num_threads(threads)
    return torch


def parser(doc):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--transept", type=Path, default=ROOT / "build" / "release" / "bin" / "transept", help="the program under test")
    p.add_argument("--threads", type=at_least_one, default=len(os.sched_getaffinity(0)),
                   help="threads of both sides (default: the processors)")
    p.add_argument("--json", type=Path, metavar="FILE", help="also write everything to FILE")
    return p


def at_least_one(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def transept(args, *words):
    """The JSON document of one call of transept."""
    if not args.transept.is_file():
        fail(f"{args.transept}: no such program; cmake --preset release && cmake --build --preset release, or --transept PATH")
    command = [str(args.transept), *map(str, words), "--threads", str(args.threads), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        fail(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.strip()}")
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        fail(f"{' '.join(command)}: standard output is not one JSON document:\n{done.stdout[:400]}")


def field(document, *path):
    value = document
    for key in path:
        if not isinstance(value, dict) or key not in value:
            fail(f"transept's JSON has no {'.'.join(path)}: {json.dumps(document)[:400]}")
        value = value[key]
    return value


def check_parameters(args, spec, model):
    """The two sides must train the same model."""
    ours = field(transept(args, "plan", spec), "parameters", "total")
    theirs = sum(p.numel() for p in model.parameters())
    if ours != theirs:
        fail(f"{spec}: transept plans {ours} parameters, the PyTorch model has {theirs}")


def machine(args, torch=None):
    cpu = platform.processor()
    try:
        with open("/proc/cpuinfo") as lines:
            cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    load = os.getloadavg()[0]
    if load > 0.3:
        print(f"warning: load average {load:.2f}: this machine is not quiet, so the figures mean little", file=sys.stderr)
    return {"cpu": cpu, "processors": os.cpu_count(), "threads": args.threads, "load_average_before": round(load, 2),
            "python": platform.python_version(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())} | (
                {"torch": torch.__version__, "torch_capability": torch.backends.cpu.get_cpu_capability()} if torch else {})


def interleave(contenders, rounds, label):
    """Runs every contender once a round, in turn, so that a slow minute of the machine hits all of them. A name to its figures."""
    figures = {name: [] for name in contenders}
    for r in range(rounds):
        for name, measure in contenders.items():
            figures[name].append(measure())
            print(f"{label}, round {r + 1}/{rounds}, {name}: {figures[name][-1]:.1f}", file=sys.stderr)
    return figures


def summarize(figures, ours="transept"):
    """Medians, and ours against the best of the others (None without ours)."""
    medians = {name: statistics.median(values) for name, values in figures.items()}
    peers = {name: m for name, m in medians.items() if name != ours}
    best = max(peers, key=peers.get)
    return {"medians": medians, "rounds": figures, "best_peer": best,
            "ratio": medians[ours] / peers[best] if ours in medians else None}


def median_seconds(step, seconds, least=3):
    """The median time of a step, over `seconds` of them and at least `least`."""
    times, begin = [], time.perf_counter()
    while len(times) < least or time.perf_counter() - begin < seconds:
        at = time.perf_counter()
        step()
        times.append(time.perf_counter() - at)
    return statistics.median(times)


def cell(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
    return str(value)


def print_table(header, rows):
    cells = [header] + [[cell(c) for c in row] for row in rows]
    widths = [max(len(r[i]) for r in cells) for i in range(len(header))]
    for n, row in enumerate(cells):
        print("| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))) + " |")
        if n == 0:
            print("|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|")


def write_json(args, document):
    if args.json:
        args.json.write_text(json.dumps(document, indent=2) + "\n")
