"""Model folders written again: the same numbers in another form, type or number of files, and clear words where there is no such form."""

import json
import shutil

from harness import Case, Npy, Prepared, main

TOKENS = "3,7,11,15,19,23,27,31"
GPT2 = {"position": {"kind": "learned"}, "norm": {"kind": "layernorm"}, "ffn": {"kind": "gelu_tanh", "intermediate_size": 64, "bias": True},
        "attention": {"kind": "gqa", "num_attention_heads": 4, "num_key_value_heads": 4, "qkv_bias": True, "output_bias": True},
        "tie_word_embeddings": True}


class Convert(Prepared):
    @classmethod
    def prepare(cls, maker: Case):
        cls.models = {}
        for name, changes in {"llama": {}, "gpt2": GPT2}.items():
            out = maker.tmp / name
            maker.run_ok("train", maker.spec(f"{name}.json", **changes), "--data", maker.text(), "--out", out, "--steps", 5, "--lr", 0.01)
            cls.models[name] = out

    def logits(self, model) -> list[float]:
        path = self.tmp / "logits.npy"
        self.run_ok("logits", model, "--tokens", TOKENS, "--npy", path)
        return [x for row in Npy(path).rows for x in row]

    def convert(self, model, *more) -> dict:
        return self.json("convert", model, "--out", self.tmp / "out", *more)

    def test_same_numbers(self):
        for name, model in self.models.items():
            right = self.logits(model)
            for more in ((), ("--family", "transept"), ("--max-shard-size", "20KB")):
                with self.subTest(model=name, more=more):
                    receipt = self.convert(model, "--overwrite", *more)
                    self.assertEqual(receipt["model_type"], "transept" if "transept" in more else name)
                    self.assertEqual(self.logits(self.tmp / "out"), right)
                    shards = [f for f in receipt["files"] if f.endswith(".safetensors")]
                    self.assertEqual(len(shards) > 1, "--max-shard-size" in more)
                    self.assertIn("tokenizer.json", receipt["files"])
                    self.assertEqual(receipt["bytes"], sum(p.stat().st_size for p in (self.tmp / "out").rglob("*") if p.is_file()))
                    # And back.
                    self.run_ok("convert", self.tmp / "out", "--out", self.tmp / "back", "--overwrite", "--family", name)
                    before, after = (next(p.glob("model.safetensors")).read_bytes() for p in (model / "checkpoint", self.tmp / "back"))
                    self.assertEqual(before, after)

    def test_types(self):
        right = self.logits(self.models["llama"])
        largest = max(map(abs, right))
        for dtype, bits in {"bf16": 8, "f16": 11}.items():
            with self.subTest(dtype=dtype):
                self.convert(self.models["llama"], "--dtype", dtype, "--overwrite")
                size = (self.tmp / "out/model.safetensors").stat().st_size
                self.assertLess(size, 0.55 * (self.models["llama"] / "checkpoint/model.safetensors").stat().st_size)
                difference = max(abs(a - b) for a, b in zip(self.logits(self.tmp / "out"), right, strict=True))
                self.assertGreater(difference, 0)
                self.assertLess(difference, largest * 2.0 ** (3 - bits))

    def test_a_form_that_nobody_has(self):
        document = json.loads(self.spec().read_text())
        document["attention"]["logit_softcap"] = 20
        spec = self.file("capped.json", json.dumps(document))
        self.run_ok("train", spec, "--data", self.text(), "--out", self.tmp / "capped", "--steps", 1)
        receipt = self.convert(self.tmp / "capped")
        self.assertEqual(receipt["model_type"], "transept")
        self.assertIn("llama: has no way to say attention as it is here", receipt["reasons"])
        self.assertIn("no family", self.run_ok("convert", self.tmp / "capped", "--out", self.tmp / "text").stdout)
        self.assert_refused("convert", self.tmp / "capped", "--out", self.tmp / "asked", "--family", "llama", status=2,
                            says=["llama: has no way to say attention"])

    def test_refusals(self):
        model, out = self.models["llama"], self.tmp / "out"
        for more, word in {("--dtype", "q4"): "f32, f16 and bf16", ("--family", "lama"): "gpt_neox", ("--family", "gpt2"): "gpt2: ",
                           ("--max-shard-size", "0GB"): "--max-shard-size", ("--max-shard-size", "5PB"): "5PB"}.items():
            with self.subTest(more=more):
                self.assert_refused("convert", model, "--out", out, *more, status=2, says=[word])
        self.assertFalse(out.exists())
        self.assert_refused("convert", "small-1m", "--out", out, status=2, says=["has no weights"])
        checkpoint = model / "checkpoint"
        self.assert_refused("convert", model, "--out", checkpoint, "--overwrite", status=2, says=["is the model itself"])
        self.convert(model)
        self.assert_refused("convert", model, "--out", out, status=2, says=["exists already", "--overwrite"])
        # What is no model is not thrown away.
        (self.tmp / "letters").mkdir()
        self.assert_refused("convert", model, "--out", self.tmp / "letters", "--overwrite", status=2, says=["is no model folder"])
        # A failure leaves what was there.
        before = (out / "config.json").read_bytes()
        broken = shutil.copytree(checkpoint, self.tmp / "broken")
        (broken / "model.safetensors").write_bytes(b"x")
        self.assert_refused("convert", broken, "--out", out, "--overwrite", status=2, says=["model.safetensors"])
        self.assertEqual((out / "config.json").read_bytes(), before)


if __name__ == "__main__":
    main()
