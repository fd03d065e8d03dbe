#!/usr/bin/env python3
"""A checkpoint of the size of LLaMA-2-7B: how long it takes to load, and what running it peaks at.

Writes a Hugging Face folder of random bf16 weights in shards (13.5 GB at --folder, kept for the next run), generates a few tokens from it, and compares
the program's largest resident size with its weights, its planned cache and 300 MB. Loading maps the shards: their pages are read as products ask for
them. Needs numpy (pip install numpy).

    bench/large_checkpoint.py --folder /tmp/llama-2-7b
"""

import json
import resource
import struct
import tempfile
from pathlib import Path

import harness

PRESET = "llama-2-7b"
SLACK_BYTES = 300_000_000
SHARD_BYTES = 5_000_000_000
PROMPT = "To be"


def tensors_of(config):
    """Names and shapes of the LLaMA form."""
    width, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    kv = config["num_key_value_heads"] * config["head_dim"]
    yield "model.embed_tokens.weight", (vocab, width)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name, shape in {"self_attn.q_proj": (width, width), "self_attn.k_proj": (kv, width), "self_attn.v_proj": (kv, width),
                            "self_attn.o_proj": (width, width), "mlp.gate_proj": (ffn, width), "mlp.up_proj": (ffn, width),
                            "mlp.down_proj": (width, ffn), "input_layernorm": (width,), "post_attention_layernorm": (width,)}.items():
            yield f"{prefix}{name}.weight", shape
    yield "model.norm.weight", (width,)
    yield "lm_head.weight", (vocab, width)


def write_shard(path, tensors, random_bytes):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        left = at
        while left > 0:
            left -= out.write(random_bytes[:min(left, len(random_bytes))])
    return at


def make(args, config):
    """bf16 numbers of standard deviation 0.02: one block of them again and again."""
    try:
        import numpy
    except ImportError:
        harness.fail("numpy: not installed; pip install numpy")
    noise = numpy.random.RandomState(1).standard_normal(1 << 24).astype(numpy.float32) * 0.02
    random_bytes = memoryview((noise.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes())
    shards, size = [[]], 0
    for name, shape in tensors_of(config):
        own = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        if shards[-1] and size + own > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append((name, shape))
        size += own
    weight_map, total = {}, 0
    for i, tensors in enumerate(shards):
        name = f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        total += write_shard(args.folder / name, tensors, random_bytes)
        weight_map |= {tensor: name for tensor, _ in tensors}
    (args.folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))


def prepare(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    # A tiny model of the same form has the config's keys and a tokenizer to copy.
    with tempfile.TemporaryDirectory() as scratch:
        text, run = Path(scratch) / "text.txt", Path(scratch) / "run"
        harness.transept(args, "synth", "--bytes", 20000, "--out", text)
        harness.transept(args, "train", "small-1m", "--data", text, "--out", run, "--steps", 1, "--tokenizer", "byte")
        config = json.loads((run / "checkpoint/config.json").read_text())
        (args.folder / "tokenizer.json").write_bytes((run / "checkpoint/tokenizer.json").read_bytes())
    spec = harness.transept(args, "spec", PRESET)
    for key in ("vocab_size", "hidden_size", "max_position_embeddings", "num_hidden_layers", "tie_word_embeddings"):
        config[key] = spec[key]
    for key in ("num_attention_heads", "num_key_value_heads", "head_dim"):
        config[key] = spec["attention"][key]
    config |= {"intermediate_size": spec["ffn"]["intermediate_size"], "rms_norm_eps": spec["norm"]["eps"], "torch_dtype": "bfloat16"}
    (args.folder / "config.json").write_text(json.dumps(config))
    if not (args.folder / "model.safetensors.index.json").is_file():
        make(args, config)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where the checkpoint is made, or is already")
    parser.add_argument("--max-tokens", type=harness.at_least_one, default=8, help="tokens to generate (default: 8)")
    args = parser.parse_args()
    prepare(args)
    context = len(PROMPT) + args.max_tokens
    plan = harness.transept(args, "plan", args.folder, "--context", context, "--dtype", "bf16", "--kv-dtype", "f32")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    made = harness.transept(args, "generate", args.folder, "--prompt", PROMPT, "--max-tokens", args.max_tokens, "--temperature", 0)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    if peak <= before * 1024:
        harness.fail("a child before this one was larger")
    weights, cache = harness.field(plan, "memory", "weights"), harness.field(plan, "kv_cache", "bytes")
    result = {"machine": harness.machine(args), "load_seconds": harness.field(made, "timings", "load_seconds"), "peak_bytes": peak,
              "weights_bytes": weights, "cache_bytes": cache, "allowed_bytes": weights + cache + SLACK_BYTES,
              "decode_tokens_per_second": harness.field(made, "timings", "decode_tokens_per_second")}
    rows = [["load, s", result["load_seconds"]], ["peak, GB", peak * 1e-9], ["weights + planned cache + 0.3, GB", result["allowed_bytes"] * 1e-9],
            ["decode, tokens/s", result["decode_tokens_per_second"]]]
    harness.print_table(["", PRESET], rows)
    harness.write_json(args, result)
    if peak > result["allowed_bytes"]:
        harness.fail("the peak is above what is allowed")


if __name__ == "__main__":
    main()
