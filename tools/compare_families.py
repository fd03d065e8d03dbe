#!/usr/bin/env python3
"""Every family of checkpoints beside Hugging Face transformers: in, out, and trained here.

    tools/compare_families.py            # all
    tools/compare_families.py gemma      # those whose name holds "gemma"

The tiny models with odd settings of tools/goldens/folders.py are saved by transformers. `transept logits` must give transformers' numbers in one pass and,
for decoders, with --incremental; what `transept convert` writes from them must hold the same tensors and give transformers the same numbers. Then models
of several forms are trained by `transept train` for a few steps, and transformers must read them and compute what Transept computes. Needs torch and
transformers (pip install torch==2.13.0 transformers==5.24.0). Exit status 1 when anything differs."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOUND = 2e-4  # of the largest logit
SPEC = {"vocab_size": 300, "hidden_size": 32, "max_position_embeddings": 64, "num_hidden_layers": 3, "tie_word_embeddings": False,
        "norm": {"kind": "rmsnorm"}, "position": {"kind": "rope"}, "attention": {"num_attention_heads": 4, "num_key_value_heads": 2},
        "ffn": {"kind": "swiglu", "intermediate_size": 48}}
STACKS = {"encoder": {"num_hidden_layers": 2}, "decoder": {"num_hidden_layers": 2}, "num_hidden_layers": None}
BIASED = {"norm": {"kind": "layernorm"}, "attention": {"num_attention_heads": 4, "num_key_value_heads": 4, "qkv_bias": True, "output_bias": True},
          "ffn": {"kind": "gelu", "intermediate_size": 48, "bias": True}, "position": {"kind": "learned"}, "tie_word_embeddings": True}
# By the family whose form training must choose: the groups that differ from SPEC.
TRAINED = {
    "llama": {}, "mistral": {"attention": {**SPEC["attention"], "sliding_window": 9}},
    "qwen2": {"attention": {**SPEC["attention"], "qkv_bias": True}}, "qwen3": {"attention": {**SPEC["attention"], "qk_norm": "rmsnorm"}},
    "gemma": {"norm": {"kind": "rmsnorm", "unit_offset": True}, "scale_embedding": True, "ffn": {"kind": "geglu", "intermediate_size": 48}},
    "olmo2": {"norm": {"kind": "rmsnorm", "placement": "post_sublayer"},
              "attention": {**SPEC["attention"], "qk_norm": "rmsnorm", "qk_norm_scope": "all_heads"}},
    "mixtral": {"moe": {"num_experts": 4, "num_experts_per_tok": 2, "scoring_func": "softmax_of_chosen"}},
    "gpt2": BIASED,
    "bloom": BIASED | {"position": {"kind": "alibi"}, "embedding_norm": True, "ffn": {"kind": "gelu_tanh", "intermediate_size": 128, "bias": True}},
    "bert": BIASED | {"topology": "encoder", "norm": {"kind": "layernorm", "placement": "post"}, "embedding_norm": True, "type_vocab_size": 2,
                      "head_transform": True, "head_bias": True, "pooling": "cls"},
    "t5": STACKS | {"topology": "encoder_decoder", "position": {"kind": "t5"}, "attention": {"num_attention_heads": 4, "scale": 1},
                    "ffn": {"kind": "relu", "intermediate_size": 48}},
    "bart": BIASED | STACKS | {"topology": "encoder_decoder", "norm": {"kind": "layernorm", "placement": "post"}, "embedding_norm": True},
}


class Comparison:
    def __init__(self, program, scratch):
        import numpy
        import torch

        self.numpy, self.torch, self.program, self.scratch = numpy, torch, program, scratch
        self.failures = 0

    def transept(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"transept {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def ours(self, folder, tokens, decoder_tokens, *flags):
        npy = self.scratch / "logits.npy"
        more = ["--decoder-tokens", ",".join(map(str, decoder_tokens))] if decoder_tokens else []
        self.transept("logits", folder, "--tokens", ",".join(map(str, tokens)), "--npy", npy, *more, *flags)
        return self.numpy.load(npy)

    def theirs(self, model, tokens, decoder_tokens):
        inputs = {"input_ids": self.torch.tensor([tokens])} | (
            {"decoder_input_ids": self.torch.tensor([decoder_tokens])} if decoder_tokens else {})
        with self.torch.no_grad():
            out = model.eval()(**inputs)
        return (out.logits if hasattr(out, "logits") else out.last_hidden_state)[0].numpy()

    def check(self, name, what, got, expected, bound=BOUND):
        apart = float(abs(got - expected).max() / abs(expected).max()) if got.shape == expected.shape else float("inf")
        if not apart <= bound:
            self.failures += 1
            print(f"  {name}: {what}: differs by {apart:.1e} of the largest value")
        return apart


def compare_saved(run, name, case, folders, load_file):
    if case.family == "deepseek":
        print(f"{name}: no class of transformers' has this form; the test suite compares it with a Qwen2 MoE that computes the same")
        return
    model = folders.model_of(case)
    folder, again = run.scratch / name, run.scratch / f"{name}-again"
    model.save_pretrained(folder)
    expected = run.theirs(model, case.tokens, case.decoder_tokens)
    hidden = ["--hidden"] if case.family in folders.HEADLESS else []
    worst = run.check(name, "one pass", run.ours(folder, case.tokens, case.decoder_tokens, *hidden), expected)
    if case.family not in folders.ENCODERS:
        worst = max(worst, run.check(name, "incremental", run.ours(folder, case.tokens, case.decoder_tokens, "--incremental"), expected))
    receipt = json.loads(run.transept("convert", folder, "--out", again, "--max-shard-size", "9KB", "--json"))
    before = load_file(folder / "model.safetensors")
    after = {key: value for shard in again.glob("*.safetensors") for key, value in load_file(shard).items()}
    # BART's bias on the logits is all zero.
    for key, value in before.items():
        if key not in after and not (value == 0).all():
            run.failures += 1
            print(f"  {name}: {key} is not written again")
        elif key in after and not run.numpy.array_equal(after[key], value):
            run.failures += 1
            print(f"  {name}: {key} is another one")
    back = type(model).from_pretrained(again, attn_implementation="eager", experts_implementation="eager")
    apart = run.check(name, "written again and read by transformers", run.theirs(back, case.tokens, case.decoder_tokens), expected, 1e-6)
    print(f"{name}: {receipt['model_type']}, {len(before)} tensors; transept {worst:.1e}, written again {apart:.1e}", flush=True)


def compare_trained(run, family, changes, hf):
    spec = {key: value for key, value in {**SPEC, **changes}.items() if value is not None}
    file, out = run.scratch / f"{family}.json", run.scratch / f"trained-{family}"
    file.write_text(json.dumps(spec))
    topology = spec.get("topology", "decoder")
    run.transept("train", file, "--data", run.text, "--out", out, "--steps", 20, "--lr", 0.01, "--batch", 4)
    config = json.loads((out / "checkpoint/config.json").read_text())
    if config["model_type"] != family:
        run.failures += 1
        print(f"  {family}: was saved as {config['model_type']}")
        return
    model_class = getattr(hf, config["architectures"][0])
    tokens, decoder_tokens = list(range(40, 64)), list(range(70, 80)) if topology == "encoder_decoder" else []
    for what, folder, bound in (("trained", out / "checkpoint", BOUND), ("in bf16", run.scratch / f"bf16-{family}", BOUND)):
        if what == "in bf16":
            run.transept("convert", out, "--out", folder, "--dtype", "bf16")
        model = model_class.from_pretrained(folder, attn_implementation="eager", experts_implementation="eager", dtype=run.torch.float32)
        apart = run.check(family, what, run.theirs(model, tokens, decoder_tokens), run.ours(folder, tokens, decoder_tokens), bound)
        print(f"{family}, {what}: transformers {apart:.1e}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="", help="only cases and families whose name holds this")
    parser.add_argument("--transept", type=Path, default=ROOT / "build/release/bin/transept", help="the program")
    arguments = parser.parse_args()
    try:
        import transformers as hf
        from goldens import folders
        from safetensors.numpy import load_file
    except ImportError as missing:
        sys.exit(f"error: {missing.name} is not installed; pip install torch==2.13.0 transformers==5.24.0")
    with tempfile.TemporaryDirectory() as scratch:
        run = Comparison(arguments.transept, Path(scratch))
        run.text = run.scratch / "text.txt"
        run.transept("synth", "--bytes", 60000, "--out", run.text)
        for name, case in folders.CASES.items():
            if arguments.name in name or arguments.name in case.family:
                compare_saved(run, name, case, folders, load_file)
        for family, changes in TRAINED.items():
            if arguments.name in family:
                compare_trained(run, family, changes, hf)
    print("all agree" if run.failures == 0 else f"{run.failures} differences")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
