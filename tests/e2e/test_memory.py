"""The number that the planner prints is the number that the allocator measures: parameters exactly, memory of training within bounds."""

import json
import math
import struct
from pathlib import Path

from harness import Case, main

# Of the plan. The arena may leave gaps that fit no buffer; beside it there are code, threads and the math library's scratch.
ACTIVATIONS = 0.06
PEAK = 0.10

WIDE = {  # GPT-2's form with the norms of the first transformer: post placement, learned positions, biases, dropout
    "name": "wide-post", "topology": "decoder", "vocab_size": 8192, "hidden_size": 768, "max_position_embeddings": 128, "dropout": 0.1,
    "norm": {"kind": "layernorm", "placement": "post"}, "position": {"kind": "learned"},
    "attention": {"kind": "gqa", "num_attention_heads": 12, "num_key_value_heads": 12, "qkv_bias": True, "output_bias": True},
    "ffn": {"kind": "gelu", "intermediate_size": 3072, "bias": True}, "layers": [{"repeat": 4}],
}


def stored_elements(path: Path) -> int:
    with path.open("rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    header.pop("__metadata__", None)
    return sum(math.prod(entry["shape"]) for entry in header.values())


class Memory(Case):
    def check(self, spec, context: int, batch: int, recompute: bool):
        self.run_ok("synth", "--bytes", 30000, "--out", self.tmp / "text.txt")
        flags = ["--context", context, "--batch", batch, *(["--recompute"] if recompute else [])]
        got = self.json("train", spec, "--data", self.tmp / "text.txt", "--out", self.tmp / "out", "--overwrite", "--steps", 2, "--eval-every", 0,
                        "--tokenizer", "byte", *flags)
        plan = self.json("plan", spec, *flags)
        self.assertEqual(got["plan"], plan)

        total = plan["parameters"]["total"]
        self.assertEqual(total, got["parameters"]["total"])
        self.assertEqual(total, stored_elements(self.tmp / "out/checkpoint/model.safetensors"))

        planned, measured = plan["memory"], got["memory"]
        self.assertEqual((planned["training_weights"], planned["gradients"], planned["optimizer"]), (4 * total, 4 * total, 8 * total))
        self.assertEqual(measured["weights"], planned["training_weights"])
        for part in ("gradients", "optimizer"):
            self.assertEqual(measured[part], planned[part], part)
        self.assertGreaterEqual(measured["activations"], planned["activations"])
        self.assertLess(measured["activations"], planned["activations"] * (1 + ACTIVATIONS))
        self.assertGreater(planned["peak_training"], 200 << 20, "too small a shape says nothing")
        self.assertLess(abs(measured["peak_training"] / planned["peak_training"] - 1), PEAK, (measured, planned))

    def test_narrow_and_short(self):
        for recompute in (False, True):
            with self.subTest(recompute=recompute):
                self.check("bench-a", 256, 16, recompute)

    def test_long(self):
        for recompute in (False, True):
            with self.subTest(recompute=recompute):
                self.check("bench-c", 2048, 2, recompute)

    def test_wide_post_norm(self):
        spec = self.file("wide.json", json.dumps(WIDE))
        for recompute in (False, True):
            with self.subTest(recompute=recompute):
                self.check(spec, 128, 16, recompute)


if __name__ == "__main__":
    main()
