#!/usr/bin/env python3
"""Causal attention beside PyTorch's scaled_dot_product_attention, float32, forward and forward + backward, in GFLOP/s.

Only the causal half is counted: a query at position t makes 4 * head_dim * (t + 1) operations, so a forward pass costs
2 * batch * heads * head_dim * tokens * (tokens + 1). Forward + backward counts 3.5 times that (two products forward, five backward)
on both sides, whatever either recomputes. Rounds are interleaved and medians taken.

--options leaves PyTorch out and shows what each option of the scores costs instead: the time per computed score (those of a tile that a
mask hides count too), in per cent over plain causal attention of the same heads and tokens, all in one run. The shapes' heads stay, --tokens gives the lengths.
"""

import harness

SHAPES = [(8, 8, 64), (1, 32, 128), (2, 8, 128)]  # batch, heads, head_dim
TOKENS = [1024, 2048]
PLAIN = "causal"
# Words of `bench attention` for each option, and query heads to a KV head.
OPTIONS = {
    PLAIN: ([], 1),
    "causal again": ([], 1),  # what the machine's noise is worth
    "bidirectional": (["--bidirectional"], 1),
    "window 256": (["--window", 256], 1),
    "window 512": (["--window", 512], 1),
    "window 1024": (["--window", 1024], 1),
    "soft cap": (["--softcap", 50], 1),
    "ALiBi": (["--alibi"], 1),
    "learned bias": (["--relative-bias"], 1),
    "soft cap, ALiBi": (["--softcap", 50, "--alibi"], 1),
    "KV heads / 4": ([], 4),
}


def flops(batch, heads, size, tokens, backward):
    return 2.0 * batch * heads * size * tokens * (tokens + 1) * (3.5 if backward else 1.0)


def peer(torch, batch, heads, groups, size, tokens, backward, seconds):
    torch.manual_seed(1)
    q = torch.randn(batch, heads, tokens, size, requires_grad=backward)
    k, v = (torch.randn(batch, groups, tokens, size, requires_grad=backward) for _ in range(2))
    out_grad = torch.randn(batch, heads, tokens, size)

    def forward():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=groups != heads)

    def step():
        if backward:
            torch.autograd.grad(forward(), (q, k, v), out_grad)
        else:
            forward()

    def measure():
        step()
        return flops(batch, heads, size, tokens, backward) / harness.median_seconds(step, seconds) / 1e9

    return measure


def words_of(batch, heads, groups, size, tokens, backward):
    return ["bench", "attention", "--batch", batch, "--heads", heads, "--kv-heads", groups, "--tokens", tokens, "--head-dim", size] + (
        ["--backward"] if backward else [])


def compare_options(args):
    result = {"machine": harness.machine(args), "unit": "gflops", "counts": "the scores computed", "cases": []}
    for batch, heads, size in SHAPES:
        for tokens in args.tokens:
            for backward in (False, True):
                label = f"B{batch} H{heads} D{size} T{tokens} " + ("forward + backward" if backward else "forward")
                contenders = {}
                for name, (more, share) in OPTIONS.items():
                    if more[:1] == ["--window"] and more[1] >= tokens:
                        continue
                    words = words_of(batch, heads, heads // share, size, tokens, backward) + more
                    contenders[name] = lambda words=words: harness.field(harness.transept(args, *words), "computed_gflops")
                figures = harness.interleave(contenders, args.rounds, label)
                medians = harness.summarize(figures, PLAIN)["medians"]
                costs = {name: 100 * (medians[PLAIN] / m - 1) for name, m in medians.items()}
                result["cases"].append({"batch": batch, "heads": heads, "head_dim": size, "tokens": tokens, "backward": backward,
                                        "medians": medians, "rounds": figures, "cost_percent": costs})
                print(f"\n{label}")
                harness.print_table(["option", "GFLOP/s", "cost per score computed, %"], [[n, m, costs[n]] for n, m in medians.items()])
    harness.write_json(args, result)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--rounds", type=harness.at_least_one, default=5, help="rounds of each contender (default: 5)")
    parser.add_argument("--seconds", type=float, default=2, help="time of one PyTorch round (default: 2)")
    parser.add_argument("--tokens", type=harness.at_least_one, nargs="+", default=TOKENS, help="lengths (default: 1024 2048)")
    parser.add_argument("--kv-share", type=harness.at_least_one, default=1, metavar="N",
                        help="query heads to a KV head (default: 1)")
    parser.add_argument("--options", action="store_true", help="what each option of the scores costs, without PyTorch")
    parser.add_argument("--peers-only", action="store_true", help="leave transept out")
    args = parser.parse_args()
    if any(heads % args.kv_share for _, heads, _ in SHAPES):
        parser.error(f"--kv-share {args.kv_share} does not divide the heads of every shape ({', '.join(str(h) for _, h, _ in SHAPES)})")
    if args.options:
        compare_options(args)
        return
    torch = harness.import_torch(args.threads)
    result = {"machine": harness.machine(args, torch), "unit": "gflops", "counts": "the causal half", "cases": []}
    rows = []
    for batch, heads, size in SHAPES:
        for tokens in args.tokens:
            for backward in (False, True):
                groups = heads // args.kv_share
                label = f"B{batch} H{heads} G{groups} D{size} T{tokens} " + ("forward + backward" if backward else "forward")
                contenders = {}
                if not args.peers_only:
                    words = words_of(batch, heads, groups, size, tokens, backward)
                    contenders["transept"] = lambda words=words: harness.field(harness.transept(args, *words), "gflops")
                contenders["sdpa"] = peer(torch, batch, heads, groups, size, tokens, backward, args.seconds)
                summary = harness.summarize(harness.interleave(contenders, args.rounds, label))
                result["cases"].append({"batch": batch, "heads": heads, "kv_heads": groups, "head_dim": size, "tokens": tokens,
                                        "backward": backward} | summary)
                rows.append([label, summary["medians"].get("transept"), summary["medians"]["sdpa"], summary["ratio"]])
    print("Causal attention, GFLOP/s of the causal half (medians); ratio: transept against torch SDPA")
    harness.print_table(["shape", "transept", "torch SDPA", "ratio"], rows)
    harness.write_json(args, result)


if __name__ == "__main__":
    main()
