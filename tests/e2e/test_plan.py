"""Plans from outside: models side by side, variants, budgets, ranks, published counts, quantized types; what is refused, and why."""

import json

from harness import Case, main


class Plan(Case):
    def test_side_by_side(self):
        models = self.json("plan", "--compare", "gpt2", "llama-3-8b", self.spec(), "--dtype", "bf16")["models"]
        self.assertEqual([m["parameters"]["total"] for m in models[:2]], [124439808, 8030261248])
        self.assertEqual(models[1]["architecture"]["num_key_value_heads"], 8)
        # Each is what it is alone.
        self.assertEqual(models[1], self.json("plan", "llama-3-8b", "--dtype", "bf16"))
        # A table of positions ends where it ends; the others reach the asked context.
        contexts = [m["context"] for m in self.json("plan", "--compare", "gpt2", "llama-3-8b", "--context", 4096)["models"]]
        self.assertEqual(contexts, [1024, 4096])
        names = [m["name"] for m in self.json("plan", "--compare", "gpt2*")["models"]]
        self.assertEqual(names, [p["name"] for p in self.json("presets") if p["name"].startswith("gpt2")])
        text = self.run_ok("plan", "--compare", "gpt2", "mixtral-8x7b").stdout
        self.assertIn("46,702,792,704  12,879,925,248", text)

    def test_variants(self):
        models = self.json("plan", "llama-3-8b", "--variants", "--context", 4096, "--dtype", "bf16")["models"]
        self.assertEqual([m["name"] for m in models],
                         ["llama-3-8b", *(f"llama-3-8b, {v}" for v in ("mha", "gqa", "mqa", "mla", "window"))])
        self.assertEqual([m["kv_cache"]["elements_per_token"] // 32 for m in models], [2048, 8192, 2048, 256, 576, 2048])

    def test_budget(self):
        spec = self.tmp / "shape.json"
        found = self.json("plan", "llama-3-8b", "--budget", "parameters=1B", "memory=8GiB", "--context", 2048, "--out", spec)["models"]
        for model in found:
            self.assertLessEqual(model["parameters"]["total"], 1e9)
            self.assertLessEqual(model["memory"]["peak_inference"], 8 << 30)
        self.assertEqual(self.json("plan", spec, "--context", 2048)["parameters"], found[0]["parameters"])
        self.assertEqual(json.loads(spec.read_text()), found[0]["spec"])

    def test_published(self):
        found = self.json("plan", "llama-2-7b", "--published", 6738417664)
        self.assertEqual((found["difference"], found["explained"], len(found["parts"])), (2048, True, 1))
        self.assertFalse(self.json("plan", "llama-2-7b", "--published", 6738415617)["explained"])

    def test_ranks_and_types(self):
        plan = self.json("plan", "mixtral-8x7b", "--context", 1024, "--batch", 16, "--train-dtype", "bf16", "--data-parallel", 8, "--zero", 1,
                         "--expert-parallel", 8, "--pipeline-parallel", 2, "--micro-batches", 2)
        parallel = plan["parallel"]
        self.assertEqual((parallel["ranks"], len(parallel["stages"])), (16, 2))
        self.assertEqual(set(parallel["traffic"]), {"data", "expert", "pipeline"})
        self.assertEqual(parallel["peak"], max(stage["total"] for stage in parallel["stages"]))
        small = self.json("plan", "gpt2", "--optimizer", "adamw_8bit", "--recompute", "selective")
        usual = self.json("plan", "gpt2")
        self.assertNotIn("parallel", usual)
        self.assertLess(small["memory"]["optimizer"] * 3.9, usual["memory"]["optimizer"])
        self.assertLess(small["memory"]["activations"], usual["memory"]["activations"])
        self.assertEqual(self.json("plan", "llama-2-7b", "--dtype", "q4_k_m")["memory"]["weights"], 4080263168)
        self.assertEqual({c["name"] for c in usual["flops"]["conventions"]},
                         {"causal", "unmasked", "linear", "6n", "palm", "palm_without_embedding", "hardware"})

    def test_refusals(self):
        for arguments, says in [
            ((), ["MODEL"]),
            (("gpt2", "--compare", "llama-3-8b"), ["MODEL"]),
            (("--compare", "no-such*"), ["no-such*", "fits no preset"]),
            (("--compare", "gpt2", "no-such-model"), ["no-such-model"]),
            (("gpt2", "--variants", "--budget", "parameters=1B"), ["ask one of them"]),
            (("gpt2", "--budget", "parameters=1K"), ["smallest model of this form", "1,000"]),
            (("gpt2", "--budget", "parameters=lots"), ["lots"]),
            (("gpt2", "--out", "plan.txt"), ["--out"]),
            (("gpt2", "--published", 0), ["--published"]),
            (("gpt2", "--dtype", "q3"), ["dtype", "q4_k_m"]),
            (("gpt2", "--kv-dtype", "q4_k"), ["kv-dtype"]),
            (("gpt2", "--train-dtype", "f16"), ["train-dtype", "f32, bf16"]),
            (("gpt2", "--optimizer", "sgd"), ["optimizer", "adamw_8bit"]),
            (("gpt2", "--recompute", "some"), ["--recompute"]),
            (("gpt2", "--tensor-parallel", 5, "--zero", 7), ["zero"]),
            (("gpt2", "--tensor-parallel", 5), ["tensor-parallel", "num_attention_heads"]),
            (("gpt2", "--machine", "no-such-machine"), ["no-such-machine"]),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_refused("plan", *arguments, status=2, says=says)


if __name__ == "__main__":
    main()
