#!/usr/bin/env python3
"""Training speed beside PyTorch: tokens per second of whole optimizer steps (forward, backward, clipping, AdamW) in float32.

The same LLaMA-shaped model on both sides: GQA or MHA, RoPE, SwiGLU, RMSNorm, tied head. PyTorch runs eagerly and under
torch.compile (which needs a C++ compiler); the ratio is against the better of the two. Rounds are interleaved and medians taken.
"""

import harness

SHAPES = {  # preset: (vocab, layers, width, heads, KV heads, ffn, context, batch)
    "bench-a": (512, 6, 384, 6, 2, 1024, 256, 16),
    "bench-b": (8192, 8, 512, 8, 2, 1408, 512, 8),
    "bench-c": (512, 6, 384, 6, 6, 1024, 2048, 2),
}


def spec_of(shape):
    vocab, layers, width, heads, groups, ffn, context, _ = shape
    return {"vocab_size": vocab, "hidden_size": width, "max_position_embeddings": context, "tie_word_embeddings": True,
            "norm": {"kind": "rmsnorm", "eps": 1e-5}, "position": {"kind": "rope", "theta": 10000.0},
            "attention": {"num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": width // heads},
            "ffn": {"kind": "swiglu", "intermediate_size": ffn}, "layers": [{"repeat": layers}]}


def peer(torch, shape, compiled, seconds):
    import torch_model

    vocab, context, batch = shape[0], shape[6], shape[7]
    torch.manual_seed(1)
    model = torch_model.Decoder(spec_of(shape))
    forward = torch.compile(model) if compiled else model
    optimizer = torch_model.adamw(model, lr=1e-3, beta2=0.95, weight_decay=0.1)
    tokens = torch.randint(0, vocab, (batch, context + 1))
    ids, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step():
        torch_model.train_step(model, forward, optimizer, ids, targets, clip=1.0)

    def measure():
        step()
        return batch * context / harness.median_seconds(step, seconds)

    step()  # compiles
    step()
    return model, measure


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES), metavar="PRESET",
                        help=f"which of {', '.join(SHAPES)} (default: all)")
    parser.add_argument("--rounds", type=harness.at_least_one, default=5, help="rounds of each contender (default: 5)")
    parser.add_argument("--seconds", type=float, default=8, help="time of one PyTorch round (default: 8)")
    parser.add_argument("--peers", nargs="+", choices=["eager", "compile"], default=["eager", "compile"], help="PyTorch's modes")
    parser.add_argument("--peers-only", action="store_true", help="leave transept out")
    args = parser.parse_args()
    torch = harness.import_torch(args.threads)
    result = {"machine": harness.machine(args, torch), "unit": "tokens_per_second", "shapes": {}}
    rows = []
    for name in args.shapes:
        shape = SHAPES[name]
        contenders = {}
        if not args.peers_only:
            words = ("bench", "train", name, "--context", shape[6], "--batch", shape[7])
            contenders["transept"] = lambda words=words: harness.field(harness.transept(args, *words), "tokens_per_second")
        for mode in args.peers:
            model, contenders[mode] = peer(torch, shape, mode == "compile", args.seconds)
        if not args.peers_only:
            harness.check_parameters(args, name, model)
        summary = harness.summarize(harness.interleave(contenders, args.rounds, name))
        result["shapes"][name] = summary
        medians = summary["medians"]
        rows.append([f"{name} T{shape[6]} B{shape[7]}"] + [medians.get(c) for c in ("transept", "eager", "compile")] + [summary["ratio"]])
        torch.compiler.reset()
    print("Training, tokens per second (medians); ratio: transept against the better peer")
    harness.print_table(["shape", "transept", "torch eager", "torch compile", "ratio"], rows)
    harness.write_json(args, result)


if __name__ == "__main__":
    main()
