"""Fewer KV heads: the checkpoint, the receipt of what it cost, and what training it on brings back."""

import json
import math
import signal
import subprocess
import time

from harness import BIN, Case, Npy, Prepared, main

HEADS = 4
SPEC = {"hidden_size": 64, "attention": {"kind": "gqa", "num_attention_heads": HEADS}, "ffn": {"kind": "swiglu", "intermediate_size": 128}}
LAYERS = 2
HEAD_DIM = 16
TOKENS = "3,7,11,15,19,23,27,31"


class ConvertKvHeads(Prepared):
    @classmethod
    def prepare(cls, maker: Case):
        cls.text_file = maker.text(size=60000)
        cls.model = maker.tmp / "run"
        maker.run_ok("train", maker.spec(**SPEC), "--data", cls.text_file, "--out", cls.model, "--steps", 200, "--lr", 0.01, "--batch", 8)

    def convert(self, heads: int, *more, model=None, data: bool = True) -> dict:
        text = ("--data", self.text_file) if data else ()
        return self.json("convert", model or self.model, "--kv-heads", heads, "--out", self.tmp / "out", "--overwrite", *text, *more)

    def logits(self, model) -> list[float]:
        path = self.tmp / "logits.npy"
        self.run_ok("logits", model, "--tokens", TOKENS, "--npy", path)
        return [x for row in Npy(path).rows for x in row]

    def test_receipt(self):
        receipt = self.convert(2)
        on_disk = json.loads((self.tmp / "out/receipt.json").read_text())
        self.assertEqual({key: receipt[key] for key in on_disk}, on_disk)
        self.assertLessEqual({"receipt.json", "receipt.txt", "model.safetensors", "tokenizer.json"}, set(receipt["files"]))
        self.assertEqual(receipt["conversion"] | {"calibration_tokens": 0},
                         {"kind": "kv_heads", "num_key_value_heads": 2, "method": "aligned", "calibration_tokens": 0})
        self.assertGreater(receipt["conversion"]["calibration_tokens"], 16000)
        self.assertEqual(json.loads((self.tmp / "out/config.json").read_text())["num_key_value_heads"], 2)
        # Half of the KV heads: half of the cache, and half of the keys' and values' weights.
        cache = receipt["kv_cache"]["bytes_per_token"]
        self.assertEqual(cache, {"before": 2 * 2 * LAYERS * HEADS * HEAD_DIM, "after": 2 * 2 * LAYERS * 2 * HEAD_DIM})
        for when, model in {"before": self.model, "after": self.tmp / "out"}.items():
            plan = self.json("plan", model, "--kv-dtype", "bf16")
            self.assertEqual(plan["kv_cache"]["bytes_per_token"], cache[when])
            self.assertEqual(plan["parameters"]["total"], receipt["parameters"][when])
        # What eval says of the two models on the part that is held out.
        held_out = self.text_file.read_bytes()[-receipt["data"]["held_out_tokens"]:]
        part = self.file("held_out.txt", held_out)
        for when, model in {"before": self.model, "after": self.tmp / "out"}.items():
            self.assertAlmostEqual(self.json("eval", model, "--data", part)["perplexity"], receipt["perplexity"][when], places=3)
        self.assertGreater(receipt["perplexity"]["after"], receipt["perplexity"]["before"])
        damage = receipt["logits"]["after"]
        self.assertGreater(damage["max_error"], damage["rms_error"])
        for key in ("rms_error", "relative_rms", "kl_nats", "same_choice"):
            self.assertTrue(0 < damage[key] < math.inf, damage)
        self.assertEqual([(x["stack"], x["layer"]) for x in receipt["layers"]], [("decoder", 0), ("decoder", 1)])
        for layer in receipt["layers"]:
            self.assertTrue(0 < layer["attention_error"] < 1, layer)
            self.assertGreater(layer["loss_increase"], 0)
        text = (self.tmp / "out/receipt.txt").read_text()
        self.assertIn(f"{receipt['perplexity']['after']:.3f}", text)
        self.assertIn(text, self.run_ok("convert", self.model, "--kv-heads", 2, "--data", self.text_file, "--out", self.tmp / "again").stdout)

    def test_aligned_costs_less_than_the_mean(self):
        loss = {method: self.convert(1, "--kv-method", method)["loss"]["after"] for method in ("mean", "first", "aligned")}
        self.assertLess(loss["aligned"], loss["mean"])
        self.assertLess(loss["aligned"], loss["first"])
        self.assertEqual(self.convert(1, data=False)["conversion"]["method"], "mean")

    def test_as_many_as_there_are(self):
        right = self.logits(self.model)
        receipt = self.convert(HEADS)
        self.assertEqual(self.logits(self.tmp / "out"), right)
        self.assertEqual(receipt["logits"]["after"]["max_error"], 0)
        self.assertEqual(receipt["perplexity"]["before"], receipt["perplexity"]["after"])
        self.assertEqual(receipt["layers"], [])
        self.assertEqual((self.model / "checkpoint/model.safetensors").read_bytes(), (self.tmp / "out/model.safetensors").read_bytes())

    def test_recover(self):
        receipt = self.convert(1, "--recover", 60, "--recover-lr", 0.003, "--recover-batch", 8)
        self.assertEqual({key: receipt["recovery"][key] for key in ("steps", "tokens", "lr", "teacher")},
                         {"steps": 60, "tokens": 60 * 8 * 64, "lr": 0.003, "teacher": 0.8})
        lost = receipt["loss"]["after"] - receipt["loss"]["before"]
        self.assertLess(receipt["loss"]["recovered"], receipt["loss"]["after"] - 0.3 * lost)
        self.assertLess(receipt["logits"]["recovered"]["kl_nats"], receipt["logits"]["after"]["kl_nats"])
        steps = [json.loads(line) for line in (self.tmp / "out/recovery.jsonl").read_text().splitlines()]
        self.assertEqual(len(steps), 60)
        self.assertAlmostEqual(steps[-1]["val_loss"], receipt["loss"]["recovered"], places=4)
        self.assertFalse((self.tmp / "out/recovery").exists())
        # What was measured is what was written.
        part = self.file("held_out.txt", self.text_file.read_bytes()[-receipt["data"]["held_out_tokens"]:])
        self.assertAlmostEqual(self.json("eval", self.tmp / "out", "--data", part)["loss"], receipt["loss"]["recovered"], places=4)

    def test_a_teacher(self):
        shared = (1, "--recover", 40, "--recover-lr", 0.001, "--recover-batch", 8, "--recover-teacher")
        alone, taught = self.convert(*shared, 0), self.convert(*shared, 1)
        self.assertEqual([receipt["recovery"]["teacher"] for receipt in (alone, taught)], [0, 1])
        self.assertLess(taught["logits"]["recovered"]["kl_nats"], alone["logits"]["recovered"]["kl_nats"])
        self.assertEqual(taught["loss"]["after"], alone["loss"]["after"])

    def stop_while_recovering(self, command: list, out, stop: signal.Signals) -> int:
        """Runs the command until its recovery has done a step more than the log of `out` has, and stops it; the status that it ends with."""
        log = out.with_name(out.name + ".part") / "recovery/metrics.jsonl"
        before = len(log.read_text().splitlines()) if log.exists() else 0
        child = subprocess.Popen([str(BIN), *map(str, command), "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        while child.poll() is None and not (log.exists() and len(log.read_text().splitlines()) > before):
            time.sleep(0.01)
        child.send_signal(stop)
        status = child.wait(60)
        self.assertEqual(child.stdout.read(), b"")
        self.assertFalse(out.exists(), "no model that is not whole")
        return status

    def test_a_stopped_recovery_goes_on(self):
        command = ["convert", self.model, "--kv-heads", 1, "--data", self.text_file, "--recover", 300, "--recover-batch", 4]
        self.run_ok(*command, "--out", self.tmp / "whole")
        for stop, status in ((signal.SIGINT, 130), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
            self.assertEqual(self.stop_while_recovering(command, self.tmp / "stopped", stop), status)
        done = self.run_ok(*command, "--out", self.tmp / "stopped")
        self.assertIn("goes on after step", done.stderr)
        for name in ("model.safetensors", "config.json", "receipt.json"):
            whole, stopped = ((self.tmp / out / name).read_bytes() for out in ("whole", "stopped"))
            if name == "receipt.json":
                whole, stopped = (json.loads(text) for text in (whole, stopped))
                for receipt in (whole, stopped):
                    self.assertGreater(receipt["recovery"].pop("seconds"), 0)
            self.assertEqual(whole, stopped, name)
        self.assertEqual(len((self.tmp / "stopped/recovery.jsonl").read_text().splitlines()), 300)
        self.assertEqual([p.name for p in self.tmp.glob("stopped*")], ["stopped"])

    def test_another_recovery_does_not_go_on(self):
        command = ["convert", self.model, "--kv-heads", 1, "--data", self.text_file, "--recover", 100000]
        self.assertEqual(self.stop_while_recovering(command, self.tmp / "out", signal.SIGINT), 130)
        self.assertTrue((self.tmp / "out.part/recovery/checkpoint").exists())
        self.assertIn("another one", self.run_ok("convert", self.model, "--kv-heads", 2, "--data", self.text_file, "--out", self.tmp / "out", "--recover", 2).stderr)
        self.assertEqual(len((self.tmp / "out/recovery.jsonl").read_text().splitlines()), 2)
        self.assertFalse((self.tmp / "out.part").exists())

    def test_a_form_without_groups(self):
        gpt2 = {"position": {"kind": "learned"}, "norm": {"kind": "layernorm"}, "ffn": {"kind": "gelu_tanh", "intermediate_size": 64, "bias": True},
                "attention": {"kind": "gqa", "num_attention_heads": 4, "qkv_bias": True, "output_bias": True}}
        self.run_ok("train", self.spec(**gpt2), "--data", self.text_file, "--out", self.tmp / "gpt2", "--steps", 3)
        receipt = self.convert(2, "--kv-method", "aligned", model=self.tmp / "gpt2", data=False)
        self.assertEqual(receipt["model_type"], "transept")
        self.assertTrue(any(reason.startswith("gpt2: ") for reason in receipt["reasons"]), receipt["reasons"])
        self.assert_refused("convert", self.tmp / "gpt2", "--kv-heads", 2, "--family", "gpt2", "--out", self.tmp / "no", says=["--family"])

    def test_encoders_and_both(self):
        for topology in ("encoder", "encoder_decoder"):
            with self.subTest(topology=topology):
                stacks = {"encoder": {"num_hidden_layers": 1}, "decoder": {"num_hidden_layers": 2}, "layers": None}
                changes = {"topology": topology, "vocab_size": 400, **(stacks if topology == "encoder_decoder" else {})}
                document = json.loads(self.spec(**{**SPEC, **changes}).read_text())
                spec = self.file("both.json", json.dumps({k: v for k, v in document.items() if v is not None}))
                model = self.tmp / topology
                self.run_ok("train", spec, "--data", self.text_file, "--out", model, "--steps", 3, "--context", 32)
                receipt = self.convert(2, "--context", 32, "--recover", 2, model=model)
                self.assertEqual(receipt["data"]["objective"], "mlm" if topology == "encoder" else "span")
                places = [(x["stack"], x["layer"]) for x in receipt["layers"]]
                if topology == "encoder":
                    self.assertEqual(places, [("encoder", 0), ("encoder", 1)])
                else:
                    self.assertEqual(places, [("encoder", 0), ("decoder", 0), ("decoder", 1)])
                    self.assertEqual(receipt["kv_cache"]["source_elements_per_token"], {"before": 256, "after": 128})
                    self.assertGreater(receipt["layers"][1]["cross_attention_error"], 0)

    def test_refusals(self):
        out = self.tmp / "no"
        for arguments, says in {
            ("--kv-heads", 3): ["layers[0-1].attention: has 4 KV heads, which can't become 3; allowed: 1, 2, 4"],
            ("--kv-heads", 8): ["can't become 8"],
            ("--kv-heads", 0): ["can't become 0"],
            ("--kv-heads", -1): ["can't become -1"],
            ("--kv-heads", 2, "--kv-method", "best"): ["--kv-method", "mean, first and aligned"],
            ("--kv-heads", 2, "--recover", 5): ["--recover", "--data"],
            ("--kv-heads", 2, "--recover-lr", 0.1): ["--recover-lr"],
            ("--kv-heads", 2, "--recover-teacher", 0.5): ["--recover-teacher"],
            ("--kv-heads", 2, "--data", self.text_file, "--recover", 1, "--recover-teacher", 1.5): ["--recover-teacher"],
            ("--kv-heads", 2, "--context", 8): ["--context"],
            ("--kv-method", "mean"): ["--kv-method", "--kv-heads"],
            ("--data", self.text_file): ["--kv-heads"],
            ("--kv-heads", 2, "--data", self.tmp / "absent"): ["absent"],
            ("--kv-heads", 2, "--data", self.file("short.txt", "abc")): ["short.txt"],
        }.items():
            with self.subTest(arguments=arguments):
                self.assert_refused("convert", self.model, "--out", out, *arguments, status=2, says=says)
                self.assertEqual([p.name for p in self.tmp.glob("no*")], [], "nothing is left of it")


if __name__ == "__main__":
    main()
