#!/usr/bin/env python3
"""The loss that training reaches, beside PyTorch: nanoGPT's small CPU setting on the same text and the same held-out part.

4 layers, 4 heads, 128 wide, context 64, batch 12, 2,000 steps of AdamW (beta2 0.99, weight decay 0.1 on matrices, gradients clipped
at 1), warm-up over 100 steps to 1e-3, then a cosine down to 1e-4. Tokens are bytes. The last tenth of the text is held out and scored
whole, in disjoint windows of 64, by each side's own code. Several seeds a side; printed are the means and their difference.
"""

import math
import statistics
import sys
import tempfile
from pathlib import Path

import harness

PRESET = "nanogpt-cpu"
CONTEXT, BATCH, WARM_UP, HELD_OUT = 64, 12, 100, 0.1
PEAK, FLOOR, BETA2, WEIGHT_DECAY, CLIP = 1e-3, 1e-4, 0.99, 0.1, 1.0

# The preset as nanoGPT has it, for --peers-only; otherwise the model is what `transept spec` says.
NANOGPT = {"vocab_size": 512, "hidden_size": 128, "max_position_embeddings": CONTEXT, "tie_word_embeddings": True,
           "norm": {"kind": "layernorm", "eps": 1e-5, "bias": False}, "position": {"kind": "learned"},
           "attention": {"num_attention_heads": 4}, "ffn": {"kind": "gelu", "intermediate_size": 512}, "layers": [{"repeat": 4}]}


def read_text(paths):
    """All files, and all below folders, as one byte string."""
    files = []
    for path in paths:
        if path.is_dir():
            files += sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        elif path.is_file():
            files.append(path)
        else:
            harness.fail(f"{path}: no such file or folder")
    text = b"".join(p.read_bytes() for p in files)
    if len(text) * HELD_OUT < 2 * CONTEXT:
        harness.fail(f"{', '.join(map(str, paths))}: {len(text)} bytes of text are too few")
    if 0 in text:
        harness.fail(f"{', '.join(map(str, paths))}: holds NUL bytes; give plain text")
    return text


def split_point(text):
    """Where the held-out tenth begins, moved on to the next character so that both parts are well-formed."""
    at = int(len(text) * (1 - HELD_OUT))
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at


def learning_rate(step, steps):
    if step <= WARM_UP:
        return PEAK * step / WARM_UP
    return FLOOR + (PEAK - FLOOR) * 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP)))


def transept_loss(args, text_file, held_out_file, folder, seed):
    """Trains, then scores the held-out file: (loss, tokens scored)."""
    harness.transept(args, "train", PRESET, "--data", text_file, "--val-fraction", HELD_OUT, "--out", folder, "--seed", seed,
                     "--steps", args.steps, "--context", CONTEXT, "--batch", BATCH, "--lr", PEAK, "--min-lr", FLOOR,
                     "--warmup", WARM_UP, "--beta2", BETA2, "--weight-decay", WEIGHT_DECAY, "--clip", CLIP)
    scored = harness.transept(args, "eval", folder / "checkpoint", "--data", held_out_file, "--context", CONTEXT, "--stride", CONTEXT)
    return harness.field(scored, "loss"), harness.field(scored, "tokens_scored")


def train_torch(torch, spec, tokens, seed, steps):
    import torch_model

    torch.manual_seed(seed)
    model = torch_model.Decoder(spec)
    optimizer = torch_model.adamw(model, PEAK, BETA2, WEIGHT_DECAY)
    for step in range(1, steps + 1):
        begin = torch.randint(0, len(tokens) - CONTEXT, (BATCH, 1))
        rows = tokens[begin + torch.arange(CONTEXT + 1)]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps)
        loss = torch_model.train_step(model, model, optimizer, rows[:, :-1], rows[:, 1:], CLIP)
        if step % 500 == 0:
            print(f"torch, seed {seed}, step {step}: batch loss {loss.item():.4f}", file=sys.stderr)
    return model


def held_out_loss(torch, model, tokens, across):
    """(mean loss, tokens scored) over disjoint windows of CONTEXT tokens.

    across: a window's last token predicts the first of the next window, so every token but the very first is scored. Otherwise a
    window scores only what follows its own first token.
    """
    total = count = 0
    groups = {}  # window length to its windows: all full ones, and the rest at the end
    for begin in range(0, len(tokens) - 1, CONTEXT):
        window = tokens[begin : begin + CONTEXT + (1 if across else 0)]
        if len(window) > 1:
            groups.setdefault(len(window), []).append(window)
    with torch.no_grad():
        for windows in groups.values():
            for i in range(0, len(windows), 256):
                rows = torch.stack(windows[i : i + 256])
                total += model(rows[:, :-1], rows[:, 1:], reduction="sum").item()
                count += rows[:, 1:].numel()
    return total / count, count


def torch_losses(torch, model, held_out):
    """The loss in both conventions, by the number of tokens that each scores."""
    return {count: loss for loss, count in (held_out_loss(torch, model, held_out, across) for across in (True, False))}


def report(side, losses):
    spread = statistics.stdev(losses) if len(losses) > 1 else 0.0
    print(f"{side:9} {statistics.mean(losses):.4f} (sd {spread:.4f}; {', '.join(f'{x:.4f}' for x in losses)})")


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True, metavar="PATH", help="plain text files, or folders of them")
    parser.add_argument("--seeds", type=harness.at_least_one, default=3, help="runs a side (default: 3)")
    parser.add_argument("--steps", type=harness.at_least_one, default=2000, help="optimizer steps (default: 2000)")
    parser.add_argument("--peers-only", action="store_true", help="leave transept out")
    args = parser.parse_args()
    if args.steps <= WARM_UP:
        parser.error(f"--steps {args.steps} must be more than the warm-up's {WARM_UP}")
    text = read_text(args.data)
    cut = split_point(text)
    torch = harness.import_torch(args.threads)
    import torch_model

    spec = NANOGPT if args.peers_only else harness.transept(args, "spec", PRESET)
    if not args.peers_only:
        harness.check_parameters(args, PRESET, torch_model.Decoder(spec))
    tokens = torch.tensor(list(text), dtype=torch.long)
    train, held_out = tokens[:cut], tokens[cut:]
    result = {"machine": harness.machine(args, torch), "steps": args.steps, "train_tokens": len(train), "held_out_tokens": len(held_out),
              "torch": [], "transept": []}
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        text_file, held_out_file = Path(folder, "text.txt"), Path(folder, "held-out.txt")
        text_file.write_bytes(text)
        held_out_file.write_bytes(text[cut:])
        for seed in range(1, args.seeds + 1):
            by_count = torch_losses(torch, train_torch(torch, spec, train, seed, args.steps), held_out)
            count = max(by_count)
            if not args.peers_only:
                loss, count = transept_loss(args, text_file, held_out_file, Path(folder, f"seed-{seed}"), seed)
                if count not in by_count:
                    harness.fail(f"transept scored {count} tokens; disjoint windows of {CONTEXT} score one of {sorted(by_count)}")
                ours.append(loss)
                print(f"transept, seed {seed}: held-out loss {loss:.4f}", file=sys.stderr)
            theirs.append(by_count[count])
            result["tokens_scored"] = count
            print(f"torch, seed {seed}: held-out loss {theirs[-1]:.4f}", file=sys.stderr)
    result["torch"], result["transept"] = theirs, ours
    print(f"Held-out loss, nats a byte, {result['tokens_scored']} tokens scored:")
    report("torch", theirs)
    if ours:
        report("transept", ours)
        result["difference"] = statistics.mean(ours) - statistics.mean(theirs)
        print(f"transept - torch: {result['difference']:+.4f}")
    harness.write_json(args, result)


if __name__ == "__main__":
    main()
