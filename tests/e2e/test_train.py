"""Training seen from outside: what it writes, what it shows, what its flags do, and that it learns."""

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

from harness import BIN, Case, main

METRICS = {"step", "tokens", "loss", "lr", "grad_norm", "tokens_per_second", "flops_per_second", "seconds", "peak_memory_bytes"}
SUMMARY = {"out", "checkpoint", "step", "steps_done", "tokens", "loss", "val_loss", "seconds", "tokens_per_second", "flops_per_second", "interrupted",
           "parameters", "flops", "memory", "plan"}


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (raw[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 128:
            return value, at


def fields(raw: bytes) -> list[tuple[int, object]]:
    """A protocol-buffers message as (number, value)."""
    found, at = [], 0
    while at < len(raw):
        key, at = varint(raw, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(raw, at)
        else:
            size, at = varint(raw, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = raw[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def scalars(path: Path) -> dict[str, dict[int, float]]:
    """tag -> step -> value of a TensorBoard event file."""
    raw, at, found = path.read_bytes(), 0, {}
    while at < len(raw):
        size = struct.unpack_from("<Q", raw, at)[0]
        event = fields(raw[at + 12:at + 12 + size])
        at += size + 16
        step = next((v for n, v in event if n == 2), 0)
        for summary in (v for n, v in event if n == 5):
            for value in (fields(v) for n, v in fields(summary) if n == 1):
                tag = next(v for n, v in value if n == 1).decode()
                found.setdefault(tag, {})[step] = struct.unpack("<f", next(v for n, v in value if n == 2))[0]
    return found


class Train(Case):
    def setUp(self):
        super().setUp()
        self.spec_file, self.data, self.out = self.spec(), self.tmp / "text.txt", self.tmp / "out"
        self.run_ok("synth", "--bytes", 40000, "--out", self.data)

    def command(self, *more, spec=None, data=None, out=None) -> tuple:
        data = data if isinstance(data, tuple) else (data or self.data,)
        return ("train", spec or self.spec_file, "--data", *data, "--out", out or self.out, *more)


class Writes(Train):
    def test_all_it_writes(self):
        result = self.run_ok(*self.command("--steps", 12, "--batch", 2, "--eval-every", 5, "--sample-every", 6, "--json", "--sample-prompt", "The"))
        summary = json.loads(result.stdout)
        self.assertLessEqual(SUMMARY, set(summary))
        self.assertEqual((summary["step"], summary["steps_done"], summary["interrupted"]), (12, 12, False))
        self.assertEqual(summary["tokens"], 12 * 2 * 64)

        log = lines_of(self.out / "metrics.jsonl")
        self.assertEqual([m["step"] for m in log], list(range(1, 13)))
        for m in log:
            self.assertEqual(set(m), METRICS | ({"val_loss"} if m["step"] in (5, 10, 12) else set()))
            self.assertEqual(m["tokens"], m["step"] * 2 * 64)
        self.assertEqual((log[-1]["loss"], log[-1]["val_loss"]), (summary["loss"], summary["val_loss"]))

        events = list((self.out / "tensorboard").glob("events.out.tfevents.*"))
        self.assertEqual(len(events), 1)
        seen = scalars(events[0])
        self.assertLessEqual({"loss", "lr", "grad_norm", "val_loss"}, set(seen))
        for tag in ("loss", "val_loss"):
            for m in log:
                if tag in m:
                    self.assertAlmostEqual(seen[tag][m["step"]], m[tag], places=5)

        samples = lines_of(self.out / "samples.jsonl")
        self.assertEqual([s["step"] for s in samples], [6, 12])
        for sample in samples:
            self.assertTrue(sample["text"].startswith("The"))

        for name in ("config.json", "model.safetensors", "tokenizer.json", "training_state.safetensors"):
            self.assertTrue((self.out / "checkpoint" / name).is_file(), name)
        self.assertFalse((self.out / "checkpoint.partial").exists())

    def test_report(self):
        summary = self.json(*self.command("--steps", 4, "--report"))
        page = Path(summary["report"]).read_text()
        self.assertIn("</html>", page)
        for outside in ('src="http', 'href="http', "@import", "url(http"):
            self.assertNotIn(outside, page)


class Shows(Train):
    def test_lines_where_there_is_no_terminal(self):
        result = self.run_ok(*self.command("--steps", 8))
        self.assertNotIn("\r", result.stderr)
        self.assertNotIn("\x1b", result.stderr)
        self.assertRegex(result.stderr, r"(?m)^step 8/8  loss \d+\.\d+  val \d+\.\d+  [\d.]+[kM]? tok/s  took \d+s$")
        self.assertRegex(result.stdout, r"step 8: loss \d")

    def on_terminal(self, columns: int, *more, env: dict) -> str:
        """What a terminal of so many columns receives."""
        ours, theirs = pty.openpty()
        with contextlib.closing(os.fdopen(ours, "rb", buffering=0)) as screen:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "TERM")}
            child = subprocess.Popen([str(BIN), *map(str, self.command(*more))], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
                                     env={**clean, **env})
            os.close(theirs)
            received = b""
            with contextlib.suppress(OSError):  # the terminal hangs up when its last user goes
                while piece := screen.read(65536):
                    received += piece
            self.assertEqual(child.wait(60), 0, received)
        return received.decode()

    def frames(self, text: str) -> list[str]:
        """What stood on the line, one redraw after the other."""
        return [re.sub(r"\x1b\[[\d;]*[mK]", "", f) for f in re.findall(r"\r([^\r\n]*)\x1b\[K", text)]

    def test_bar_on_a_terminal(self):
        # Some hundred steps and a checkpoint now and then: long enough for many redraws at ten a second.
        more = ("--steps", 400, "--batch", 8, "--checkpoint-every", 40)
        text = self.on_terminal(100, *more, env={"TERM": "xterm", "LANG": "C.UTF-8"})
        self.assertIn("\x1b[32m", text)
        frames = self.frames(text)
        self.assertGreaterEqual(len(frames), 3, text)
        for frame in frames[:-1]:
            self.assertRegex(frame, r"━.* \d+/400  loss \d+\.\d+  eta \w+ .*tok/s$")
        self.assertRegex(frames[-1], r"400/400  loss")
        self.assertLess(max(map(len, frames)), 100)
        done = [int(re.search(r"(\d+)/400", frame)[1]) for frame in frames]
        self.assertEqual(done, sorted(done))
        self.assertTrue(text.endswith("\n"))

    def test_plain_and_narrow_terminals(self):
        text = self.on_terminal(24, "--steps", 100, "--batch", 8, "--checkpoint-every", 20, env={"TERM": "xterm", "NO_COLOR": "1", "LANG": "C"})
        self.assertNotIn("\x1b[3", text)
        self.assertTrue(text.isascii())
        self.assertTrue(all(len(frame) < 24 for frame in self.frames(text)), self.frames(text))
        text = self.on_terminal(80, "--steps", 20, "--overwrite", env={"TERM": "dumb"})
        self.assertNotIn("\x1b", text)


class Flags(Train):
    def test_minutes(self):
        result = self.run_ok(*self.command("--minutes", 0.005, "--json"))
        steps = int(re.search(r": (\d+) steps in 0.005 minutes", result.stderr)[1])
        self.assertGreaterEqual(steps, 1)
        self.assertEqual(json.loads(result.stdout)["step"], steps)
        self.assert_refused(*self.command("--minutes", 1, "--steps", 3, out=self.tmp / "other"), status=2, says=["--minutes"])

    def test_lines(self):
        data = self.file("lines.txt", "".join(f"line {n}: {'x' * (n % 50)}\n" for n in range(300)))
        summary = self.json(*self.command("--lines", "--steps", 3, "--batch", 4, data=data))
        log = lines_of(self.out / "metrics.jsonl")
        # Rows are as long as their lines: fewer tokens than whole windows have, and not the same number a step.
        self.assertLess(summary["tokens"], 3 * 4 * 64)
        self.assertGreater(len({b["tokens"] - a["tokens"] for a, b in zip([{"tokens": 0}] + log, log)}), 1)

    def test_bpe(self):
        spec = self.spec("bpe.json", vocab_size=420)
        self.run_ok(*self.command("--tokenizer", "bpe:400", "--steps", 3, spec=spec))
        text = "The words of a play, and \u00fcmlauts: \U0001f989\n"
        tokens = self.json("tokenize", self.out, "--text", text, "--no-special")
        self.assertLess(len(tokens["ids"]), len(text.encode()))
        self.assertLess(max(tokens["ids"]), 400)
        self.assertEqual(self.json("detokenize", self.out, "--tokens", ",".join(map(str, tokens["ids"])))["text"], text)
        self.assertEqual(self.json("generate", self.out, "--prompt", "The", "--max-tokens", 5)["finish_reason"] in ("length", "stop"), True)
        self.assert_refused(*self.command("--tokenizer", "bpe:440", spec=spec, out=self.tmp / "large"), status=2, says=["--tokenizer"])
        # 256 bytes, the specials and the letters of the text leave no place for a single pair.
        self.assert_refused(*self.command("--tokenizer", "bpe:300", spec=spec, out=self.tmp / "small"), status=2, says=["300 pieces"])
        for choice, word in {"bpe:x": "--tokenizer", "bpe:": "--tokenizer", "bpe:-5": "-5", "bpe:1": "size of 1", "nonsense": "nonsense"}.items():
            with self.subTest(tokenizer=choice):
                self.assert_refused(*self.command("--tokenizer", choice, out=self.tmp / "bad"), status=2, says=[word])

    def test_val_data(self):
        val = self.file("val.txt", "zq" * 500)
        with_val = self.json(*self.command("--val-data", val, "--steps", 30, "--lr", 0.01))
        # Of text that is nothing like what was learnt.
        self.assertGreater(with_val["val_loss"], with_val["loss"] + 0.5)
        self.assert_refused(*self.command("--val-data", self.tmp / "gone.txt", out=self.tmp / "other"), status=2, says=["gone.txt"])

    def test_folders(self):
        self.file("texts/a/one.txt", self.data.read_bytes()[:20000])
        self.file("texts/b.txt", self.data.read_bytes()[20000:])
        self.file("texts/picture.bin", bytes(1000))
        self.file("texts/.hidden", "not this\n" * 1000)
        result = self.run_ok(*self.command("--steps", 2, "--json", data=self.tmp / "texts"))
        self.assertIn("picture.bin: left out", result.stderr)
        whole = int(re.search(r"(\d+) training tokens, (\d+) held out", result.stderr)[1])
        self.assertEqual(whole, int(40001 * 0.9))  # bytes, and one token between the files

    def test_init(self):
        self.run_ok(*self.command("--steps", 60, "--lr", 0.01))
        first = lines_of(self.out / "metrics.jsonl")[0]["loss"]
        self.run_ok(*self.command("--steps", 1, "--init", self.out / "checkpoint", out=self.tmp / "second"))
        self.assertLess(lines_of(self.tmp / "second/metrics.jsonl")[0]["loss"], first - 1)
        self.assert_refused(*self.command("--steps", 1, "--init", self.tmp / "gone", out=self.tmp / "third"), status=2, says=["gone"])

    def test_accumulation(self):
        """The sampler numbers sequences, not batches: 4 at once are the same 4 as 2 and 2."""
        runs = {}
        for batch, accumulate in ((4, 1), (2, 2), (1, 4)):
            out = self.tmp / f"out{batch}"
            self.run_ok(*self.command("--batch", batch, "--accumulate", accumulate, "--steps", 10, out=out))
            runs[batch] = lines_of(out / "metrics.jsonl")
        for batch in (2, 1):
            for one, split in zip(runs[4], runs[batch]):
                self.assertEqual(one["tokens"], split["tokens"])
                for key in ("loss", "grad_norm"):
                    # Sums of float32 in another order; the difference grows with the steps taken.
                    self.assertLess(abs(one[key] / split[key] - 1), 1e-6 if one["step"] == 1 else 1e-4, (batch, one["step"], key))
        self.run_ok(*self.command("--batch", 2, "--accumulate", 1, "--steps", 1, out=self.tmp / "half"))
        self.assertGreater(abs(lines_of(self.tmp / "half/metrics.jsonl")[0]["loss"] - runs[4][0]["loss"]), 1e-4)


class Learns(Train):
    def test_loss_falls(self):
        # Byte by byte, text of a small grammar: from ln 260 = 5.6 nats to well below the 3 nats of single letters' frequencies.
        summary = self.json(*self.command("--steps", 300, "--batch", 8, "--lr", 0.01))
        log = lines_of(self.out / "metrics.jsonl")
        self.assertAlmostEqual(log[0]["loss"], 5.56, delta=0.3)
        self.assertLess(summary["loss"], 2.3)
        self.assertLess(summary["val_loss"], 2.3)

    def test_divergence(self):
        result = self.assert_refused(*self.command("--steps", 50, "--lr", 1e9, "--warmup", 2, "--checkpoint-every", 1), status=1,
                                     says=["not finite", str(self.out / "checkpoint")])
        step, place = re.search(r"error: step (\d+): (.*?): is not finite", result.errors()[0]).groups()
        self.assertRegex(place, r"layer \d+|parameter \w+|gradient of \w+|norm|loss")
        good = int(re.search(r"last good checkpoint, of step (\d+)", result.errors()[0])[1])
        self.assertEqual(good, int(step) - 1)
        self.assertEqual([m["step"] for m in lines_of(self.out / "metrics.jsonl")], list(range(1, int(step))))
        # It is a checkpoint, and good: it can be gone on from, which fails at the same step in the same way.
        again = self.assert_refused(*self.command("--resume"), status=1)
        self.assertEqual(again.errors(), result.errors())

    def test_divergence_before_any_checkpoint(self):
        self.assert_refused(*self.command("--steps", 50, "--lr", 1e9, "--warmup", 0), status=1, says=["no checkpoint yet"])


if __name__ == "__main__":
    main()
