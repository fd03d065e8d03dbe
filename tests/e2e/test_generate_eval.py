"""A trained model measured and made to speak; plans, specs, presets and benchmarks: the parts that scripts rely on."""

import json
import math

from harness import Case, Npy, Prepared, main, nats

GPT2 = {"position": {"kind": "learned"}, "norm": {"kind": "layernorm"}, "ffn": {"kind": "gelu_tanh", "intermediate_size": 64, "bias": True},
        "attention": {"kind": "gqa", "num_attention_heads": 4, "num_key_value_heads": 4, "qkv_bias": True, "output_bias": True},
        "tie_word_embeddings": True}
# A form that no Hugging Face architecture has: kept as a spec of ours.
OURS = {"norm": {"kind": "layernorm", "placement": "post"}, "ffn": {"kind": "relu", "intermediate_size": 64}, "layers": [
    {"repeat": 1, "attention": {"sliding_window": 5}}, {"repeat": 1}]}
CONTEXT = 64


class Trained(Prepared):
    """Three models, each trained for a moment."""

    @classmethod
    def prepare(cls, maker: Case):
        cls.text_file = maker.tmp / "text.txt"
        maker.run_ok("synth", "--bytes", 20000, "--out", cls.text_file)
        cls.text = cls.text_file.read_bytes()
        cls.runs, cls.specs, cls.summaries = {}, {}, {}
        for name, changes in {"llama": {}, "gpt2": GPT2, "ours": OURS}.items():
            cls.specs[name], cls.runs[name] = maker.spec(f"{name}.json", **changes), maker.tmp / name
            cls.summaries[name] = maker.json("train", cls.specs[name], "--data", cls.text_file, "--out", cls.runs[name], "--steps", 60, "--lr", 0.01,
                                             "--batch", 4)
        cls.model = cls.runs["llama"] / "checkpoint"


class Generate(Trained):
    def generate(self, *more, prompt="The ", tokens=40):
        return self.json("generate", self.model, "--prompt", prompt, "--max-tokens", tokens, *more)

    def test_keys_and_greedy(self):
        first = self.generate("--temperature", 0)
        self.assertEqual(set(first), {"text", "tokens", "finish_reason", "prompt_tokens", "timings"})
        self.assertEqual(set(first["timings"]), {"load_seconds", "prefill_tokens_per_second", "decode_tokens_per_second"})
        self.assertEqual((first["finish_reason"], len(first["tokens"]), first["prompt_tokens"]), ("length", 40, 4))
        self.assertEqual(first["text"], self.json("detokenize", self.model, "--tokens", ",".join(map(str, first["tokens"])))["text"])
        for more in (("--temperature", 0), ("--temperature", 0, "--seed", 5), ("--top-k", 1), ("--top-p", 1e-9), ("--temperature", 0, "--threads", 1)):
            self.assertEqual(self.generate(*more)["tokens"], first["tokens"], more)
        # Greedy is what the logits say.
        ids = list(b"The ") + first["tokens"]
        self.run_ok("logits", self.model, "--tokens", ",".join(map(str, ids)), "--npy", self.tmp / "a.npy")
        rows = Npy(self.tmp / "a.npy").rows
        for at, token in enumerate(first["tokens"], 3):
            self.assertLess(max(rows[at]) - rows[at][token], 1e-4)

    def test_seeds(self):
        a, b, c = (self.generate("--temperature", 1, "--seed", seed)["tokens"] for seed in (1, 1, 2))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_stop(self):
        text = self.generate("--temperature", 0)["text"]
        stop = text[10:13]
        stopped = self.generate("--temperature", 0, "--stop", stop)
        self.assertEqual((stopped["text"], stopped["finish_reason"]), (text[:text.index(stop)], "stop"))
        both = self.generate("--temperature", 0, "--stop", "never in it", "--stop", stop)
        self.assertEqual(both["text"], stopped["text"])
        self.assertEqual(self.generate("--temperature", 0, "--stop", "never in it")["text"], text)

    def test_no_tokens(self):
        none = self.generate(tokens=0)
        self.assertEqual((none["text"], none["tokens"], none["finish_reason"]), ("", [], "length"))

    def test_streamed(self):
        text = self.generate("--temperature", 0)["text"]
        self.assertEqual(self.run_ok("generate", self.model, "--prompt", "The ", "--max-tokens", 40, "--temperature", 0).stdout, f"The {text}\n")
        prompt = self.file("prompt.txt", "The ")
        self.assertEqual(self.json("generate", self.model, "--prompt-file", prompt, "--max-tokens", 40, "--temperature", 0)["text"], text)
        # The run folder stands for its checkpoint.
        self.assertEqual(self.json("generate", self.runs["llama"], "--prompt", "The ", "--max-tokens", 40, "--temperature", 0)["text"], text)

    def test_context(self):
        self.assert_refused("generate", self.model, "--prompt", "x" * (CONTEXT + 1), status=2, says=["--prompt"])
        self.assert_refused("generate", self.model, "--prompt", "x" * 20, "--context", 19, status=2, says=["--prompt"])
        # The last token is made from a full context, and there it ends.
        self.assertEqual(len(self.generate("--ignore-eos", prompt="x" * CONTEXT, tokens=5)["tokens"]), 1)
        self.assertEqual(len(self.generate("--ignore-eos", prompt="x" * (CONTEXT - 10), tokens=500)["tokens"]), 11)


    def test_beams(self):
        first = self.generate("--beams", 4)
        self.assertEqual(set(first), {"text", "tokens", "finish_reason", "prompt_tokens", "timings", "score", "beams"})
        self.assertEqual(len(first["beams"]), 4)
        for beam in first["beams"]:
            self.assertEqual(set(beam), {"text", "tokens", "finish_reason", "score"})
        self.assertEqual([beam["score"] for beam in first["beams"]], sorted((beam["score"] for beam in first["beams"]), reverse=True))
        self.assertEqual(len({tuple(beam["tokens"]) for beam in first["beams"]}), 4)
        for key in ("text", "tokens", "finish_reason", "score"):
            self.assertEqual(first[key], first["beams"][0][key])
        # The score is what the logits say.
        ids = list(b"The ") + first["tokens"]
        self.run_ok("logits", self.model, "--tokens", ",".join(map(str, ids)), "--npy", self.tmp / "a.npy")
        rows = Npy(self.tmp / "a.npy").rows
        known = 259  # of the model's 260 tokens
        log_p = -sum(nats(rows[at][:known], token) for at, token in enumerate(first["tokens"], 3))
        self.assertEqual(first["finish_reason"], "length")
        self.assertAlmostEqual(first["score"], log_p / ((5 + 40) / 6), places=4)
        plain = self.generate("--beams", 4, "--length-penalty", 0)
        self.assertEqual(plain["tokens"], first["tokens"])  # all are of one length, so the order is the same
        self.assertAlmostEqual(plain["score"], log_p, places=3)
        # It finds what is at least as likely as the greedy answer here.
        greedy = self.generate("--temperature", 0)["tokens"]
        self.run_ok("logits", self.model, "--tokens", ",".join(map(str, list(b"The ") + greedy)), "--npy", self.tmp / "a.npy")
        rows = Npy(self.tmp / "a.npy").rows
        self.assertGreaterEqual(log_p, -sum(nats(rows[at][:known], token) for at, token in enumerate(greedy, 3)) - 1e-4)
        self.assertEqual(self.generate("--beams", 4, "--seed", 3, "--threads", 1)["tokens"], first["tokens"])
        text = self.run_ok("generate", self.model, "--prompt", "The ", "--max-tokens", 40, "--beams", 4).stdout
        self.assertEqual(text, f"The {first['text']}\n")

    def test_beams_with_what_does_not_apply(self):
        call = ("generate", self.model, "--prompt", "x")
        for option, value in {"--temperature": 0.5, "--top-k": 3, "--top-p": 0.5, "--min-p": 0.1}.items():
            self.assert_refused(*call, "--beams", 2, option, value, status=2, says=[option])
        self.assert_refused(*call, "--length-penalty", 1, status=2, says=["--length-penalty"])
        for option, value in (("--beams", 0), ("--beams", 100000), ("--length-penalty", -1), ("--length-penalty", "nan")):
            self.assert_refused(*call, "--beams", 2, option, value, status=2, says=[option])

    def test_prompts(self):
        """Each line as it would be alone, with the next seed."""
        prompts = ["The ", "", "King", "\u00fcber"]
        for line_end in ("\n", "\r\n"):
            path = self.file("prompts.txt", line_end.join(prompts) + line_end)
            out = self.run_ok("generate", self.model, "--prompts", path, "--max-tokens", 10, "--seed", 5).stdout
            lines = [json.loads(line) for line in out.splitlines()]
            self.assertEqual([line["prompt"] for line in lines], prompts)
            for n, line in enumerate(lines):
                alone = self.generate("--seed", 5 + n, prompt=prompts[n], tokens=10)
                self.assertEqual([line[key] for key in ("text", "tokens", "prompt_tokens")], [alone[key] for key in ("text", "tokens", "prompt_tokens")])
        lines = [json.loads(line) for line in self.run_ok("generate", self.model, "--prompts", path, "--max-tokens", 10, "--beams", 2, "--json").stdout.splitlines()]
        self.assertEqual(lines[2]["beams"], self.generate("--beams", 2, prompt="King", tokens=10)["beams"])
        self.assert_refused("generate", self.model, "--prompts", self.file("long.txt", "a\n" + "x" * 65), status=2, says=["long.txt:2"])
        self.assert_refused("generate", self.model, "--prompts", self.file("none.txt", ""), status=2, says=["none.txt"])
        self.assert_refused("generate", self.model, "--prompts", path, "--prompt", "x", status=2, says=["--prompt"])


class Eval(Trained):
    def test_each_token_once(self):
        for context, stride in ((64, 64), (64, 16), (64, 1), (10, 7), (1, 1)):
            data = self.file("part.txt", self.text[:1500])
            with self.subTest(context=context, stride=stride):
                got = self.json("eval", self.model, "--data", data, "--context", context, "--stride", stride, "--by-position")
                self.assertEqual((got["tokens_scored"], got["context"], got["stride"]), (1499, context, stride))
                self.assertEqual((len(got["loss_by_position"]), len(got["tokens_by_position"])), (context, context))
                self.assertEqual(sum(got["tokens_by_position"]), 1499)
                whole = sum(n * x for n, x in zip(got["tokens_by_position"], got["loss_by_position"]) if n)
                self.assertAlmostEqual(whole / 1499, got["loss"], places=9)
                self.assertAlmostEqual(math.exp(got["loss"]), got["perplexity"], places=6)
                self.assertAlmostEqual(got["loss"] / math.log(2), got["bits_per_byte"], places=9)  # a token is a byte
        self.assert_refused("eval", self.model, "--data", data, "--context", 8, "--stride", 9, status=2, says=["--stride"])
        self.assert_refused("eval", self.model, "--data", data, "--context", 1, "--stride", 2, status=2, says=["--stride"])

    def test_against_logits(self):
        """The same number by another way: from the logits of the whole text, in double."""
        for name, run in self.runs.items():
            ids = list(self.text[100:100 + CONTEXT])
            tokens = ",".join(map(str, ids))
            self.run_ok("logits", run, "--tokens", tokens, "--npy", self.tmp / "a.npy")
            rows = Npy(self.tmp / "a.npy").rows
            wanted = sum(nats(row, target) for row, target in zip(rows, ids[1:])) / (CONTEXT - 1)
            got = self.json("eval", run, "--tokens", tokens)
            self.assertEqual(got["tokens_scored"], CONTEXT - 1)
            self.assertLess(abs(got["loss"] / wanted - 1), 1e-5, name)
            text = self.file("same.txt", bytes(ids))
            self.assertEqual(self.json("eval", run, "--data", text)["loss"], got["loss"])

    def test_is_the_validation_loss_of_training(self):
        held_out = self.file("held-out.txt", self.text[int(len(self.text) * 0.9):])
        for name, run in self.runs.items():
            self.assertAlmostEqual(self.json("eval", run, "--data", held_out)["loss"], self.summaries[name]["val_loss"], places=6)

    def test_calls(self):
        self.assert_refused("eval", self.model, status=2, says=["--data"])
        self.assert_refused("eval", self.model, "--data", self.text_file, "--tokens", "1,2", status=2, says=["--data"])
        for tokens in ("5", "1,260", "x"):
            self.assert_refused("eval", self.model, "--tokens", tokens, status=2)


class Logits(Trained):
    def test_incremental_is_one_pass(self):
        ids = list(self.text[:CONTEXT])
        for name, run in self.runs.items():
            tokens = ",".join(map(str, ids))
            whole, piecewise = self.tmp / "whole.npy", self.tmp / "piecewise.npy"
            shape = self.json("logits", run, "--tokens", tokens, "--npy", whole)["shape"]
            self.assertEqual(shape, [CONTEXT, 260])
            wanted = Npy(whole)
            self.assertEqual(wanted.header, {"descr": "<f4", "fortran_order": False, "shape": (CONTEXT, 260)})
            for chunk in (1, 3, 7, CONTEXT):
                with self.subTest(model=name, chunk=chunk):
                    self.run_ok("logits", run, "--tokens", tokens, "--npy", piecewise, "--incremental", "--chunk", chunk)
                    worst = max(abs(a - b) for x, y in zip(wanted.rows, Npy(piecewise).rows) for a, b in zip(x, y))
                    self.assertLess(worst, 1e-4)  # of logits of a size of about 5
            # Causal: what follows changes nothing before it.
            self.run_ok("logits", run, "--tokens", ",".join(map(str, ids[:20] + [0] * 20)), "--npy", piecewise)
            for x, y in zip(wanted.rows[:20], Npy(piecewise).rows):
                self.assertLess(max(abs(a - b) for a, b in zip(x, y)), 1e-4)

    def test_calls(self):
        tokens = ("--tokens", "1,2,3", "--npy", self.tmp / "a.npy")
        self.assert_refused("logits", self.model, *tokens, "--dtype", "f8", status=2, says=["--dtype"])
        self.assert_refused("logits", self.model, *tokens, "--incremental", "--chunk", 0, status=2, says=["--chunk"])
        self.assert_refused("logits", "gpt2", *tokens, status=2, says=["gpt2"])
        self.assert_refused("logits", self.model, *tokens, "--decoder-tokens", 1, status=2, says=["--decoder-tokens"])

    def test_hidden(self):
        ids = list(self.text[:20])
        tokens = ",".join(map(str, ids))
        run, whole, piecewise = self.runs["gpt2"], self.tmp / "whole.npy", self.tmp / "piecewise.npy"
        self.assertEqual(self.json("logits", run, "--tokens", tokens, "--hidden", "--npy", whole)["shape"], [20, 32])
        self.run_ok("logits", run, "--tokens", tokens, "--hidden", "--incremental", "--chunk", 3, "--npy", piecewise)
        hidden = Npy(whole).rows
        self.assertLess(max(abs(a - b) for x, y in zip(hidden, Npy(piecewise).rows) for a, b in zip(x, y)), 1e-4)
        # A decoder's embedding is their mean.
        got = self.json("embed", run, "--text", bytes(ids).decode())
        self.assertEqual(got["tokens"], ids)
        for x, column in zip(got["embedding"], zip(*hidden), strict=True):
            self.assertAlmostEqual(x, sum(column) / 20, places=5)


class Embed(Trained):
    def test_text_is_the_same_numbers(self):
        numbers = self.json("embed", self.model, "--text", "The king")["embedding"]
        lines = self.run_ok("embed", self.model, "--text", "The king").stdout.split()
        self.assertEqual(len(lines), 32)
        for a, b in zip(numbers, lines, strict=True):
            self.assertAlmostEqual(a, float(b), places=6)

    def test_many_texts(self):
        numbers = self.json("embed", self.model, "--text", "The king")["embedding"]
        # Many texts, whatever the batch; vectors of length 1.
        texts = self.tmp / "texts.json"
        texts.write_text(json.dumps(["The king", "a", "apples and pears"]))
        for batch in (1, 2, 32):
            many = self.json("embed", self.model, "--texts", texts, "--batch", batch)
            self.assertEqual(len(many["embeddings"]), 3)
            for x, y in zip(many["embeddings"][0], numbers, strict=True):
                self.assertAlmostEqual(x, y, places=4)
        unit = self.json("embed", self.model, "--text", "The king", "--normalize")["embedding"]
        self.assertAlmostEqual(sum(x * x for x in unit), 1, places=5)
        cls = self.json("embed", self.model, "--text", "The king", "--pooling", "cls")["embedding"]
        self.assertNotEqual(cls, numbers)
        self.assert_refused("embed", self.model, "--text", "x", "--pooling", "max", status=2, says=["mean and cls"])
        texts.write_text(json.dumps(["a", 3]))
        self.assert_refused("embed", self.model, "--texts", texts, status=2, says=["texts.json"])

    def test_calls(self):
        self.assert_refused("embed", self.model, "--text", "", status=2, says=["--text"])
        self.assert_refused("embed", self.model, "--text", "x" * (CONTEXT + 1), status=2, says=["--text"])
        self.assert_refused("embed", "gpt2", "--text", "x", status=2, says=["gpt2"])


class Plans(Trained):
    def test_keys_of_a_plan(self):
        plan = self.json("plan", self.specs["llama"], "--context", 32, "--batch", 2)
        for group, keys in {"parameters": "total active embedding active_without_input_embedding",
                            "kv_cache": "elements_per_token bytes_per_token bytes",
                            "flops": "linear_forward_per_token attention_forward_per_token train_per_token",
                            "memory": "weights gradients optimizer activations peak_training peak_inference",
                            "chinchilla": "tokens", "serving": "bytes_per_decoded_token"}.items():
            self.assertLessEqual(set(keys.split()), set(plan[group]), group)

    def test_known_counts(self):
        for name, total in {"gpt2": 124439808, "llama-2-7b": 6738415616, "llama-3-8b": 8030261248, "mistral-7b": 7241732096}.items():
            self.assertEqual(self.json("plan", name)["parameters"]["total"], total)

    def test_presets(self):
        presets = self.json("presets")
        for preset in presets:
            self.assertLessEqual({"name", "parameters", "layers", "hidden_size", "vocab_size", "max_position_embeddings"}, set(preset))
            self.assertEqual(self.json("plan", preset["name"])["parameters"]["total"], preset["parameters"])
            # What is printed in full is a spec that reads back as itself.
            full = self.json("spec", preset["name"])
            self.assertEqual(self.json("spec", self.file("full.json", json.dumps(full))), full)
        listed = self.run_ok("presets").stdout
        for preset in presets:
            self.assertIn(preset["name"], listed)

    def test_spec(self):
        schema = self.json("spec", "--schema")
        self.assertIn("json-schema.org", schema["$schema"])
        self.assertLessEqual({"vocab_size", "attention", "layers"}, set(schema["properties"]))
        for name, run in self.runs.items():
            given, kept = self.json("spec", self.specs[name]), self.json("spec", run)
            for document in (given, kept):
                document.pop("name", None)
                document.pop("description", None)
            self.assertEqual(kept, given, name)
            self.assertEqual(self.json("plan", run)["parameters"], self.json("plan", self.specs[name])["parameters"])
        # Weights are not needed.
        config = self.file("bare/config.json", (self.model / "config.json").read_bytes())
        self.assertEqual(self.json("plan", config.parent)["parameters"], self.json("plan", self.model)["parameters"])

    def test_tokenize(self):
        text = "Ay, \u00fcber\n"
        got = self.json("tokenize", self.model, "--text", text, "--no-special")
        self.assertEqual((got["ids"], len(got["pieces"])), (list(text.encode()), len(text.encode())))
        self.assertEqual(self.json("tokenize", "byte", "--file", self.file("t.txt", text), "--no-special")["ids"], got["ids"])
        self.assertEqual(self.run_ok("tokenize", "byte", "--text", "ab", "--no-special").stdout, "97,98\n")


class Bench(Trained):
    def bench(self, *command) -> dict:
        got = self.json("bench", *command, "--repeats", 1, "--seconds", 0)
        self.assertLessEqual({"machine", "commit", "instruction_set", "threads", "repeats"}, set(got))
        self.assertLessEqual({"cpu", "processors", "memory_bytes", "system"}, set(got["machine"]))
        self.assertEqual(got["repeats"], 1)
        self.assertGreaterEqual(got["threads"], 1)
        return got

    def test_each(self):
        for measure, key in {
            ("train", self.specs["llama"], "--context", 16, "--batch", 2): "tokens_per_second",
            ("prefill", self.model, "--tokens", 16): "tokens_per_second",
            ("decode", self.model, "--tokens", 8, "--cached", 8): "tokens_per_second",
            ("attention", "--batch", 2, "--heads", 4, "--kv-heads", 2, "--tokens", 33, "--head-dim", 16): "gflops",
            ("attention", "--tokens", 64, "--window", 8, "--backward"): "gflops",
            ("moe", "--tokens", 33, "--hidden", 16, "--intermediate", 40, "--experts", 5, "--top-k", 2): "ratio",
            ("gemm", 64, 32, 48): "gflops",
            ("read",): "gb_per_second",
        }.items():
            with self.subTest(bench=measure[0]):
                self.assertGreater(self.bench(*measure)[key], 0)
        windowed = self.bench("attention", "--tokens", 512, "--window", 64)
        self.assertGreater(windowed["computed_gflops"], 1.1 * windowed["gflops"])
        self.assertEqual(self.bench("gemm", 8, 8, 8, "--threads", 1)["threads"], 1)
        text = self.run_ok("bench", "gemm", 8, 8, 8, "--repeats", 1, "--seconds", 0).stdout
        self.assertRegex(text, r"gflops [\d.]+")

    def test_calls(self):
        for call, word in {("gemm", 0, 8, 8): "M", ("gemm", 8, 8): "N", ("attention", "--heads", 4, "--kv-heads", 3): "--kv-heads",
                           ("prefill", self.model, "--tokens", 0): "--tokens", ("train", "no-such"): "no-such", ("nonsense",): "nonsense",
                           ("gemm", 8, 8, 8, "--repeats", 0): "--repeats", ("moe", "--experts", 4, "--top-k", 5): "--top-k"}.items():
            with self.subTest(call=call):
                self.assert_refused("bench", *call, status=2, says=[word])


if __name__ == "__main__":
    main()
