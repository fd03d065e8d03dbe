"""Encoders and encoder-decoders from outside: one that learns to reverse strings of digits, and what each answers to every command."""

import json
import math

from harness import Case, Npy, Prepared, main, nats

HELD_OUT = 200
SPEC = {"vocab_size": 259, "hidden_size": 64, "max_position_embeddings": 16, "norm": {"kind": "layernorm"}, "position": {"kind": "learned"},
        "attention": {"num_attention_heads": 4}, "ffn": {"kind": "gelu", "intermediate_size": 128}}
BEGIN, END = 256, 257  # of the byte tokenizer


def stacks(maker: Case, name: str, topology: str):
    path = maker.spec(name, topology=topology, **SPEC)
    document = json.loads(path.read_text())
    del document["layers"]
    layers = {"num_hidden_layers": 2}
    path.write_text(json.dumps({**document, **({"encoder": layers, "decoder": layers} if topology == "encoder_decoder" else layers)}))
    return path


class Reversal(Prepared):
    @classmethod
    def prepare(cls, maker: Case):
        spec = stacks(maker, "both.json", "encoder_decoder")
        data, other = maker.tmp / "pairs.tsv", maker.tmp / "other.tsv"
        maker.run_ok("synth", "--task", "reverse", "--lines", 20000, "--seed", 1, "--out", data)
        maker.run_ok("synth", "--task", "reverse", "--lines", 2 * HELD_OUT, "--seed", 2, "--out", other)
        seen = {line.split("\t")[0] for line in data.read_text().splitlines()}
        pairs = [line.split("\t") for line in other.read_text().splitlines()]
        cls.pairs = [(source, target) for source, target in pairs if source not in seen][:HELD_OUT]
        cls.prompts = maker.file("prompts.txt", "".join(source + "\n" for source, _ in cls.pairs))
        cls.runs = []
        for seed in (1, 2):
            cls.runs.append(maker.tmp / f"run{seed}")
            maker.run_ok("train", spec, "--data", data, "--out", cls.runs[-1], "--steps", 1000, "--batch", 64, "--lr", 2e-3, "--warmup", 100,
                         "--seed", seed)

    def test_exact_match_on_held_out_strings(self):
        self.assertEqual(len(self.pairs), HELD_OUT)
        for seed, run in enumerate(self.runs, 1):
            for options in (("--beams", 1, "--temperature", 0), ("--beams", 4)):
                out = self.run_ok("generate", run, "--prompts", self.prompts, *options).stdout
                answers = [json.loads(line) for line in out.splitlines()]
                self.assertEqual([answer["prompt"] for answer in answers], [source for source, _ in self.pairs])
                right = sum(answer["text"] == target for answer, (_, target) in zip(answers, self.pairs, strict=True))
                print(f"seed {seed}, {options[1]} beams: {right / HELD_OUT:.1%} of {HELD_OUT} held-out strings reversed exactly")
                self.assertGreaterEqual(right, 0.99 * HELD_OUT)
                # They end by themselves, not at a limit.
                self.assertGreaterEqual(sum(answer["finish_reason"] == "stop" for answer in answers), 0.99 * HELD_OUT)

    def test_generate(self):
        run, (source, _) = self.runs[0], max(self.pairs, key=lambda pair: len(pair[0]))
        greedy = self.json("generate", run, "--prompt", source, "--temperature", 0)
        self.assertEqual(set(greedy), {"text", "tokens", "finish_reason", "prompt_tokens", "timings"})
        self.assertEqual(greedy["prompt_tokens"], len(source) + 1)  # with the end token
        self.assertEqual(greedy["text"], self.json("detokenize", run, "--tokens", ",".join(map(str, greedy["tokens"])))["text"])
        # The source is not part of the answer.
        self.assertEqual(self.run_ok("generate", run, "--prompt", source, "--temperature", 0).stdout, greedy["text"] + "\n")
        short = self.json("generate", run, "--prompt", source, "--temperature", 0, "--max-tokens", 3)
        self.assertEqual((short["tokens"], short["finish_reason"]), (greedy["tokens"][:3], "length"))
        # An empty source is an end token alone.
        self.assertEqual(self.json("generate", run, "--prompt", "", "--temperature", 0)["prompt_tokens"], 1)
        self.assert_refused("generate", run, "--prompt", "1" * 16, status=2, says=["--prompt"])

    def test_score_is_what_the_logits_say(self):
        source = self.pairs[0][0]
        got = self.json("generate", self.runs[0], "--prompt", source, "--beams", 4, "--length-penalty", 0.6)
        self.assertEqual(got["finish_reason"], "stop")
        for beam in got["beams"]:
            targets = beam["tokens"] + [END] * (beam["finish_reason"] == "stop")
            self.run_ok("logits", self.runs[0], "--tokens", ",".join(map(str, [*source.encode(), END])), "--decoder-tokens",
                        ",".join(map(str, [BEGIN, *targets[:-1]])), "--npy", self.tmp / "a.npy")
            log_p = -sum(nats(row, target) for row, target in zip(Npy(self.tmp / "a.npy").rows, targets, strict=True))
            self.assertLess(abs(beam["score"] - log_p / ((5 + len(targets)) / 6) ** 0.6), 1e-4 * (1 + abs(log_p)))

    def test_logits(self):
        run, source, target = self.runs[0], [*b"31415", END], [BEGIN, *b"5141"]
        call = ("logits", run, "--tokens", ",".join(map(str, source)), "--decoder-tokens", ",".join(map(str, target)))
        for more, width in (((), 259), (("--hidden",), 64)):
            whole, piecewise = self.tmp / "whole.npy", self.tmp / "piecewise.npy"
            self.assertEqual(self.json(*call, *more, "--npy", whole)["shape"], [len(target), width])
            for chunk in (1, 2):
                self.run_ok(*call, *more, "--incremental", "--chunk", chunk, "--npy", piecewise)
                worst = max(abs(a - b) for x, y in zip(Npy(whole).rows, Npy(piecewise).rows, strict=True) for a, b in zip(x, y))
                self.assertLess(worst, 1e-3)  # of logits of a size of about 20
        self.assert_refused("logits", run, "--tokens", "1", "--npy", self.tmp / "b.npy", status=2, says=["--decoder-tokens"])
        for tokens in ("1,259", "x", ",".join(["1"] * 17)):
            self.assert_refused("logits", run, "--tokens", "1", "--decoder-tokens", tokens, "--npy", self.tmp / "b.npy", status=2, says=["--decoder-tokens"])
            self.assert_refused("logits", run, "--tokens", tokens, "--decoder-tokens", "1", "--npy", self.tmp / "b.npy", status=2, says=["--tokens"])

    def test_embed(self):
        """By the encoder alone, which reads the text as a source."""
        got = self.json("embed", self.runs[0], "--text", "314")
        self.assertEqual((got["tokens"], len(got["embedding"])), ([*b"314", END], 64))
        self.assertNotEqual(got["embedding"], self.json("embed", self.runs[0], "--text", "413")["embedding"])


class Encoder(Prepared):
    @classmethod
    def prepare(cls, maker: Case):
        cls.model = maker.tmp / "run"
        path = stacks(maker, "encoder.json", "encoder")
        path.write_text(json.dumps({**json.loads(path.read_text()), "vocab_size": 260}))
        maker.run_ok("train", path, "--data", maker.text(), "--out", cls.model, "--steps", 3, "--batch", 4)

    def test_does_not_continue_text(self):
        for more in ((), ("--beams", 2)):
            self.assert_refused("generate", self.model, "--prompt", "x", *more, status=2, says=["names masked tokens", "does not continue text", "embed"])
        self.assert_refused("logits", self.model, "--tokens", "1,2", "--incremental", "--npy", self.tmp / "a.npy", status=2, says=["--incremental"])
        self.assert_refused("logits", self.model, "--tokens", "1", "--decoder-tokens", "1", "--npy", self.tmp / "a.npy", status=2, says=["--decoder-tokens"])

    def test_logits_and_embedding(self):
        ids = list(b"line 3")
        call = ("logits", self.model, "--tokens", ",".join(map(str, ids)))
        self.assertEqual(self.json(*call, "--npy", self.tmp / "a.npy")["shape"], [6, 260])
        self.assertEqual(self.json(*call, "--hidden", "--npy", self.tmp / "h.npy")["shape"], [6, 64])
        got = self.json("embed", self.model, "--text", "line 3")
        self.assertEqual(got["tokens"], ids)
        for x, column in zip(got["embedding"], zip(*Npy(self.tmp / "h.npy").rows), strict=True):
            self.assertTrue(math.isclose(x, sum(column) / 6, abs_tol=1e-5))
        # It reads both ways: the last token tells on the first row.
        self.run_ok("logits", self.model, "--tokens", ",".join(map(str, ids[:-1] + [7])), "--npy", self.tmp / "b.npy")
        self.assertNotEqual(Npy(self.tmp / "a.npy").rows[0], Npy(self.tmp / "b.npy").rows[0])


if __name__ == "__main__":
    main()
