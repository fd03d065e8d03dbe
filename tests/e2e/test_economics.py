"""What a plan costs: machines, training runs, serving."""

import json

from harness import Case, main

MACHINE = {"name": "mine", "kind": "gpu", "flops_per_second": {"bf16": 1e15}, "memory_bytes": 1 << 36, "memory_bytes_per_second": 2e12}


class Machines(Case):
    def machine(self, **changes):
        return self.file("machine.json", json.dumps({**MACHINE, **changes}))

    def test_listing(self):
        machines = self.json("machines")
        by_name = {m["name"]: m for m in machines}
        self.assertEqual(by_name["a100-80gb"]["flops_per_second"]["bf16"], 312e12)
        text = self.run_ok("machines").stdout
        for name in by_name:
            self.assertIn(name, text)
        # What is printed is what is read.
        again = self.json("machines", self.file("all.json", json.dumps(machines)))
        self.assertEqual(again, machines)

    def test_own_machine(self):
        path = self.machine(usd_per_hour=2)
        economics = self.json("plan", "llama-2-7b", "--machine", path)["economics"]
        self.assertEqual(economics["machine"], {**MACHINE, "usd_per_hour": 2})
        listed = self.file("list.json", json.dumps([MACHINE, {"name": "other", "extends": "mine", "usd_per_hour": 3}]))
        for argument, price in {f"{listed}:other": 3, "h100-sxm": 4, path: 2}.items():
            machine = self.json("plan", "gpt2", "--machine", argument)["economics"]["machine"]
            self.assertEqual(machine["usd_per_hour"], price)
        self.assert_refused("plan", "gpt2", "--machine", listed, status=2, says=["holds 2 machines", "list.json:mine"])
        self.assert_refused("plan", "gpt2", "--machine", f"{listed}:third", status=2, says=["it holds mine, other"])
        self.assert_refused("plan", "gpt2", "--machine", "h100-sxl", status=2, says=["did you mean \"h100-sxm\"?"])

    def test_every_problem_of_a_file(self):
        path = self.machine(kind="toaster", memory_bytes=-1, wats=3)
        self.assert_refused("machines", path, status=2, says=["kind: got \"toaster\"", "memory_bytes: got -1", "did you mean \"watts\"?"])
        for text in ("", "[]", "nan", '{"name": 1e999}', "[" * 100):
            with self.subTest(text=text):
                self.assert_refused("machines", self.file("bad.json", text), status=2, says=["bad.json"])


class Training(Case):
    def test_published_runs(self):
        # arXiv:2302.13971 table 15; arXiv:2307.09288 table 2
        for preset, tokens, hours, mfu in (("llama-7b", "1e12", 82432, 42.8), ("llama-2-70b", "2e12", 1720320, 42.7)):
            training = self.json("plan", preset, "--machine", "a100-80gb", "--train-tokens", tokens, "--machine-hours", hours)["economics"]["training"]
            self.assertEqual(round(100 * training["mfu_by_count"]["linear"], 1), mfu)
            self.assertAlmostEqual(training["machine_hours"] / hours, 1, places=12)
            back = self.json("plan", preset, "--machine", "a100-80gb", "--train-tokens", tokens, "--mfu", training["mfu"])["economics"]["training"]
            self.assertAlmostEqual(back["machine_hours"] / hours, 1, places=12)

    def test_throughput(self):
        # 65 billion parameters at "around 380" tokens a second on each of 2,048: arXiv:2302.13971 section 2.4. The exact 380.4 gives 47.6.
        training = self.json("plan", "llama-65b", "--machine", "a100-80gb", "--machines", 2048, "--tokens-per-second", 380 * 2048,
                             "--flop-count", "linear", "--train-tokens", "1.4e12")["economics"]["training"]
        self.assertEqual(round(100 * training["mfu"], 1), 47.5)
        self.assertAlmostEqual(training["hours"] / 24, 1.4e12 / (380 * 2048) / 86400, places=9)

    def test_text(self):
        text = self.run_ok("plan", "llama-7b", "--machine", "a100-80gb", "--machines", 2048, "--train-tokens", "1e12", "--machine-hours", 82432).stdout
        self.assertIn("linear 42.8 %", text)
        self.assertIn("Training on 2,048 of a100-80gb", text)
        self.assertIn("largest batch that fits", text)

    def test_default_tokens(self):
        plan = self.json("plan", "gpt2", "--machine", "l4")
        self.assertEqual(plan["economics"]["training"]["tokens"], 20 * plan["parameters"]["total"])
        self.assertNotIn("economics", self.json("plan", "gpt2"))


class Serving(Case):
    def test_terms(self):
        plan = self.json("plan", "llama-3-8b", "--machine", "h100-sxm", "--dtype", "bf16", "--context", 4096, "--batch", 16)
        decode = plan["economics"]["decode"]
        serving = plan["serving"]
        self.assertEqual(decode["bytes"], 16 * serving["bytes_per_decoded_token"])
        self.assertEqual(decode["flops"], 16 * serving["flops_per_decoded_token"])
        self.assertAlmostEqual(decode["seconds"] * 3350e9 / decode["bytes"], 1, places=12)
        self.assertEqual(decode["binds"], "memory")
        self.assertEqual(plan["economics"]["prefill"]["binds"], "compute")
        self.assertAlmostEqual(decode["usd_per_million_tokens"], 4 / 3600 / decode["tokens_per_second"] * 1e6, places=9)
        cheaper = self.json("plan", "llama-3-8b", "--machine", "h100-sxm", "--dtype", "bf16", "--context", 4096, "--batch", 16,
                            "--price-per-hour", 2)["economics"]["decode"]
        self.assertAlmostEqual(cheaper["usd_per_million_tokens"], decode["usd_per_million_tokens"] / 2, places=9)

    def test_models_of_each_topology(self):
        for preset, decodes in (("bert-base", False), ("t5-small", True), ("mixtral-8x7b", True), ("deepseek-v2-lite", True)):
            economics = self.json("plan", preset, "--machine", "h100-sxm", "--dtype", "bf16", "--batch", 2)["economics"]
            self.assertEqual("decode" in economics, decodes, preset)
            self.assertGreater(economics["prefill"]["seconds"], 0)
            self.run_ok("plan", preset, "--machine", "h100-sxm")

    def test_too_large_for_one(self):
        one, eight = (self.json("plan", "llama-3-70b", "--machine", "h100-sxm", "--dtype", "bf16", "--serve-tensor-parallel", n)["economics"]["decode"]
                      for n in (1, 8))
        self.assertEqual(one["largest_batch"], 0)
        self.assertNotIn("at_largest_batch", one)
        self.assertGreater(eight["largest_batch"], 0)
        self.assertGreater(eight["communication_seconds"], 0)
        self.assert_refused("plan", "gpt2", "--machine", "m3-max", "--serve-tensor-parallel", 2, status=2, says=["--serve-tensor-parallel"])

    def test_hostile_numbers(self):
        for flag in ("--machines", "--train-tokens", "--mfu", "--price-per-hour", "--serve-tensor-parallel", "--machine-hours", "--tokens-per-second"):
            for value in ("0", "-1", "nan", "inf", "1e308", "1e-320", "99999999999999999999", "x"):
                with self.subTest(flag=flag, value=value):
                    self.assert_refused("plan", "gpt2", "--machine", "h100-sxm", f"{flag}={value}", status=2, says=[flag])
            self.assert_refused("plan", "gpt2", flag, 1, status=2, says=[flag, "--machine"])
        self.assert_refused("plan", "gpt2", "--machine", "h100-sxm", "--machines", 0, "--mfu", 2, status=2, says=["--machines"])
        self.assert_refused("plan", "gpt2", "--machine", "h100-sxm", "--mfu", 0.4, "--machine-hours", 3, status=2, says=["--mfu"])
        self.assert_refused("plan", "gpt2", "--machine", "h100-sxm", "--machine-hours", 1e-6, status=2, says=["no machine does more than its peak"])
        # Numbers at the ends of what is allowed.
        economics = self.json("plan", "gpt2", "--machine", "h100-sxm", "--train-tokens", "1e18", "--machines", 10000000, "--mfu", 1e-6)["economics"]
        self.assertGreater(economics["training"]["machine_hours"], 0)


class ThisMachine(Case):
    def test_description(self):
        path = self.tmp / "here.json"
        printed = self.json("bench", "machine", "--out", path, "--repeats", 1, "--seconds", 0, "--name", "here", "--price-per-hour", 0.5)
        self.assertEqual(json.loads(path.read_text()), printed)
        self.assertEqual(self.json("machines", path), [printed])
        economics = self.json("plan", "small-10m", "--machine", path)["economics"]
        self.assertEqual(economics["machine"], printed)
        self.assertGreater(economics["decode"]["tokens_per_second"], 0)
        self.assert_refused("bench", "machine", "--repeats", 1, "--seconds", 0, "--name", "a b", status=2, says=["name"])
        self.assertGreater(self.json("bench", "read", "--bytes", 1 << 20, "--repeats", 1, "--seconds", 0)["gb_per_second"], 0)
        self.assert_refused("bench", "read", "--bytes", 1, status=2, says=["--bytes"])


if __name__ == "__main__":
    main()
