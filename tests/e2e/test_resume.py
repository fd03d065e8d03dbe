"""A run that is killed or stopped and resumed ends with the bits of one that never stopped; what would change its numbers is refused."""

import json
import random
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

from harness import BIN, Case, Prepared, main

STEPS = 240
# Dropout, accumulation, clipping, a schedule that moves, and a checkpoint interval that divides nothing: state of every kind.
FLAGS = {"--steps": STEPS, "--context": 64, "--batch": 4, "--accumulate": 2, "--lr": 3e-3, "--seed": 7, "--checkpoint-every": 17,
         "--eval-every": 50, "--eval-tokens": 2000, "--sample-every": 100, "--threads": 2}
STATE = ("model.safetensors", "training_state.safetensors")
SAME = ("step", "tokens", "loss", "lr", "grad_norm", "val_loss")  # of a line of metrics: what is computed, not measured
KILLS = 20


def metrics(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def steps_logged(out: Path) -> int:
    try:
        return (out / "metrics.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def tensors(path: Path) -> dict:
    """Name to bytes."""
    raw = path.read_bytes()
    at = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:at])
    header.pop("__metadata__", None)
    return {name: raw[at + entry["data_offsets"][0]:at + entry["data_offsets"][1]] for name, entry in header.items()}


class Runs(Prepared):
    """One run without interruption, made once, to which others are compared."""

    SPEC: dict = {}  # keys beside the common ones

    @classmethod
    def prepare(cls, maker: Case):
        cls.spec_file = maker.spec(dropout=0.1, hidden_size=64, **cls.SPEC)
        cls.data = maker.tmp / "text.txt"
        maker.run_ok("synth", "--bytes", 60000, "--out", cls.data)
        cls.whole = maker.tmp / "whole"
        maker.run_ok(*cls.command(cls.whole))

    @classmethod
    def command(cls, out: Path, *more, **changes) -> tuple:
        """`changes` replace flags: min_lr=0.1."""
        flags = {**FLAGS, **{"--" + name.replace("_", "-"): value for name, value in changes.items()}}
        return ("train", cls.spec_file, "--data", cls.data, "--out", out, *(word for flag in flags.items() for word in flag), *more)

    def start(self, out: Path, *more, **changes) -> subprocess.Popen:
        child = subprocess.Popen([str(BIN), *map(str, self.command(out, *more, **changes))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def assert_same_run(self, out: Path):
        for name in STATE:
            self.assertEqual((out / "checkpoint" / name).read_bytes() == (self.whole / "checkpoint" / name).read_bytes(), True, f"{name} differs")
        got, wanted = metrics(out), metrics(self.whole)
        self.assertEqual([m["step"] for m in got], list(range(1, STEPS + 1)))
        self.assertEqual([{k: m.get(k) for k in SAME} for m in got], [{k: m.get(k) for k in SAME} for m in wanted])
        self.assertEqual((out / "samples.jsonl").read_text(), (self.whole / "samples.jsonl").read_text())

    def await_steps(self, child: subprocess.Popen, out: Path, goal: int):
        while steps_logged(out) < goal and child.poll() is None:
            time.sleep(0.001)

    def kill(self, child: subprocess.Popen) -> bool:
        """Whether the process was still at work."""
        alive = child.poll() is None
        child.kill()
        return child.wait() == -signal.SIGKILL and alive


class Killed(Runs):
    def test_the_run_has_state_of_every_kind(self):
        """What the comparisons below rest on: the same command gives the same bits, and another seed gives others."""
        self.run_ok(*self.command(self.tmp / "again"))
        self.assert_same_run(self.tmp / "again")
        for name, change in {"seed": 8, "accumulate": 1, "lr": 2e-3}.items():
            self.run_ok(*self.command(self.tmp / name, **{name: change}))
            with self.assertRaises(AssertionError):
                self.assert_same_run(self.tmp / name)

    def test_killed_again_and_again(self):
        """One run, killed at random moments all along its way, often while a checkpoint is being written."""
        dice = random.Random(20)
        out = self.tmp / "out"
        alive, while_saving = 0, 0
        for n in range(KILLS):
            # Every other run saves after every step, so that most of its time is spent saving.
            child = self.start(out, "--resume", checkpoint_every=1 if n % 2 else FLAGS["--checkpoint-every"])
            self.await_steps(child, out, int((n + dice.random()) * STEPS / (KILLS + 4)))
            time.sleep(dice.uniform(0, 0.01))
            alive += self.kill(child)
            while_saving += (out / "checkpoint.partial").exists()
        self.assertGreaterEqual(alive, KILLS * 3 // 4, "most kills must meet a run at work")
        print(f"{KILLS} kills: {alive} met a run at work, {while_saving} a checkpoint in the making")
        self.assertGreaterEqual(while_saving, 1, "some kill must meet a checkpoint in the making")
        self.run_ok(*self.command(out, "--resume"))
        self.assert_same_run(out)

    def test_killed_once_anywhere(self):
        """Runs of their own, each killed once, the moments spread over a whole run, its start included; then resumed to the end."""
        dice = random.Random(21)
        alive = 0
        for n in range(KILLS):
            out = self.tmp / f"out{n}"
            child = self.start(out)
            # By steps, not by the clock: how fast a machine is at this moment says nothing of the next.
            self.await_steps(child, out, int((n + dice.random()) * STEPS / (KILLS + 2)))
            time.sleep(dice.uniform(0, 0.02))
            alive += self.kill(child)
            self.run_ok(*self.command(out, "--resume"))
            self.assert_same_run(out)
            shutil.rmtree(out)
        self.assertGreaterEqual(alive, KILLS * 3 // 4, "most kills must meet a run at work")

    def test_interrupted(self):
        # The number of threads is no part of the numbers: the second run goes on with another.
        for number, threads in ((signal.SIGINT, 2), (signal.SIGTERM, 1)):
            with self.subTest(signal=number):
                out = self.tmp / number.name
                child = self.start(out)
                self.await_steps(child, out, 23)
                child.send_signal(number)
                self.assertEqual(child.wait(60), 130)
                stopped_at = steps_logged(out)
                self.assertLess(stopped_at, STEPS)
                result = self.run_ok(*self.command(out, "--resume", "--json", threads=threads))
                summary = json.loads(result.stdout)
                # Nothing done is done again: it was saved at the very step at which it stopped.
                self.assertEqual((summary["step"], summary["steps_done"]), (STEPS, STEPS - stopped_at))
                self.assert_same_run(out)

    def test_overwritten_and_killed(self):
        """Nothing of the run before is resumed."""
        out = self.tmp / "out"
        self.run_ok(*self.command(out, steps=20))
        child = self.start(out, "--overwrite")
        while not 1 <= steps_logged(out) < 17 and child.poll() is None:
            pass
        self.assertTrue(self.kill(child))
        self.run_ok(*self.command(out, "--resume"))
        self.assert_same_run(out)


class WithExperts(Runs):
    """Routers with a state of their own: biases that move by load, and noise on what they read."""

    SPEC = {"moe": {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "scoring_func": "sigmoid", "norm_topk_prob": True,
                    "selection_bias": True, "bias_update_speed": 0.01, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.1,
                    "shared_expert_intermediate_size": 16}}

    def test_killed_again_and_again(self):
        dice = random.Random(22)
        out = self.tmp / "out"
        alive = 0
        for n in range(5):
            child = self.start(out, "--resume")
            self.await_steps(child, out, int((n + dice.random()) * STEPS / 7))
            time.sleep(dice.uniform(0, 0.01))
            alive += self.kill(child)
        self.assertGreaterEqual(alive, 3)
        self.run_ok(*self.command(out, "--resume"))
        self.assert_same_run(out)
        biases = [t for name, t in tensors(out / "checkpoint" / STATE[0]).items() if name.endswith("selection_bias")]
        self.assertEqual(len(biases), 2)
        for bias in biases:
            self.assertGreater(max(struct.unpack("<8f", bias)), 0)
        lines = metrics(out)
        for key in ("max_violation", "router_entropy", "dropped", "idle_experts"):
            self.assertIn(f"layers.1.ffn.{key}", lines[0])


class Settled(Runs):
    """What a resume allows and refuses: on copies of a finished run."""

    def setUp(self):
        super().setUp()
        self.out = Path(shutil.copytree(self.whole, self.tmp / "out"))
        self.newest, self.before = self.out / "checkpoint", self.out / "checkpoint.previous"

    def test_no_run_is_overwritten_unasked(self):
        self.assert_refused(*self.command(self.out), status=2, says=["--resume", "--overwrite"])
        self.assert_refused(*self.command(self.out, "--resume", "--overwrite"), status=2, says=["--resume"])
        self.assert_same_run(self.out)
        self.run_ok(*self.command(self.out, "--overwrite", seed=8))
        with self.assertRaises(AssertionError):
            self.assert_same_run(self.out)

    def test_nothing_left_to_do(self):
        summary = self.json(*self.command(self.out, "--resume"))
        self.assertEqual((summary["step"], summary["steps_done"], summary["loss"]), (STEPS, 0, None))
        self.assert_same_run(self.out)

    def test_fixed_flags(self):
        changes = {"context": 32, "batch": 8, "accumulate": 1, "schedule": "linear", "lr": 1e-3, "min_lr": 1e-5, "warmup": 3, "decay_steps": 7,
                   "beta1": 0.8, "beta2": 0.9, "eps": 1e-6, "weight_decay": 0.5, "clip": 2, "seed": 8, "tokenizer": "bpe:260"}
        for name, value in changes.items():
            with self.subTest(flag=name):
                self.assert_refused(*self.command(self.out, "--resume", **{name: value}), status=2, says=["--" + name.replace("_", "-")])
        # All of them at once, each named.
        self.assert_refused(*self.command(self.out, "--resume", lr=1e-3, batch=8, seed=8), status=2, says=["--lr", "--batch", "--seed"])
        self.assert_same_run(self.out)

    def test_free_flags(self):
        self.run_ok(*self.command(self.out, "--resume", "--recompute", eval_every=7, eval_tokens=100, sample_every=9, checkpoint_every=5, threads=1))
        # Flags that are left out are as they were.
        self.run_ok("train", self.spec_file, "--data", self.data, "--out", self.out, "--resume")
        self.assert_same_run(self.out)

    def test_other_data_and_spec(self):
        other = self.file("other.txt", self.data.read_bytes()[:-1] + b"!")
        self.assert_refused("train", self.spec_file, "--data", other, "--out", self.out, "--resume", status=2, says=["--data"])
        self.assert_refused(*self.command(self.out, "--resume", val_fraction=0.2), status=2, says=["--data"])
        spec = self.spec("other.json", dropout=0.2, hidden_size=64)
        self.assert_refused("train", spec, "--data", self.data, "--out", self.out, "--resume", status=2, says=["SPEC"])

    def test_more_steps(self):
        """With a rate that does not depend on the end, a run that is lengthened is one that was long from the start; wherever it is lengthened."""
        flags = {"schedule": "constant", "warmup": 5, "min_lr": 0, "decay_steps": 1}
        self.run_ok(*self.command(self.tmp / "long", **flags, steps=60))
        wanted = metrics(self.tmp / "long")
        for steps in (1, 2, 19, 34, 59):
            with self.subTest(steps=steps):
                out = self.tmp / f"from{steps}"
                self.run_ok(*self.command(out, **flags, steps=steps))
                self.run_ok(*self.command(out, "--resume", **flags, steps=60))
                for name in STATE:
                    self.assertTrue(tensors(out / "checkpoint" / name) == tensors(self.tmp / "long/checkpoint" / name), name)
                self.assertEqual([m["loss"] for m in metrics(out)], [m["loss"] for m in wanted])

    def damage(self, checkpoint: Path, name: str, keep: float | None):
        path = checkpoint / name
        if keep is None:
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:int(path.stat().st_size * keep)])

    def test_damaged_checkpoint(self):
        for name in STATE:
            for keep in (None, 0, 0.01, 0.9):
                with self.subTest(damaged=name, keep=keep):
                    shutil.rmtree(self.out)
                    shutil.copytree(self.whole, self.out)
                    self.damage(self.newest, name, keep)
                    result = self.run_ok(*self.command(self.out, "--resume"))
                    notes = [line for line in result.stderr.splitlines() if "going on from" in line]
                    self.assertEqual(len(notes), 1, str(result))
                    self.assertIn(name, notes[0])
                    self.assertIn(str(self.before), notes[0])
                    self.assert_same_run(self.out)

    def test_no_whole_checkpoint(self):
        for checkpoint in (self.newest, self.before):
            self.damage(checkpoint, STATE[1], 0.5)
        self.assert_refused(*self.command(self.out, "--resume"), status=2, says=[str(self.out)])
        self.run_ok(*self.command(self.out, "--overwrite"))
        self.assert_same_run(self.out)

    def test_torn_metrics(self):
        shutil.rmtree(self.newest)
        log = self.out / "metrics.jsonl"
        log.write_bytes(log.read_bytes()[:-40])
        self.run_ok(*self.command(self.out, "--resume"))
        self.assert_same_run(self.out)

    def test_resume_of_nothing(self):
        result = self.run_ok(*self.command(self.tmp / "new", "--resume"))
        self.assertIn("no checkpoint yet", result.stderr)
        self.assert_same_run(self.tmp / "new")


if __name__ == "__main__":
    main()
