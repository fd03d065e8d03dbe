"""Wrong calls, wrong input and failing machines: each ends with `error: WHERE: WHAT; HOW TO MEND` and status 2 (call or input) or 1 (machine)."""

import json
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path

from harness import Case, Prepared, main, run


class Calls(Case):
    def test_unknown_command_and_none(self):
        self.assert_refused("frobnicate", status=2, says=["frobnicate"])
        self.assert_refused(status=2)

    def test_unknown_option_and_missing_argument(self):
        self.assert_refused("plan", self.spec(), "--bogus", status=2, says=["--bogus"])
        self.assert_refused("plan", self.spec(), "--context", status=2, says=["--context"])
        self.assert_refused("plan", status=2)
        self.assert_refused("train", self.spec(), "--out", self.tmp / "out", status=2, says=["--data"])

    def test_numbers(self):
        train = ("train", self.spec(), "--data", self.text(), "--out", self.tmp / "out")
        for value in ("-3", "0", "three", "1.5", "", "99999999999999999999"):
            with self.subTest(steps=value):
                self.assert_refused(*train, "--steps", value, status=2, says=["--steps"])
                self.assertFalse((self.tmp / "out").exists(), "a refused call left its folder behind")
        for value in ("-1", "0", "many"):
            with self.subTest(threads=value):
                self.assert_refused(*train, "--steps", 1, "--threads", value, status=2, says=["--threads"])
        for value in ("-1", "1.5", "99999999999999999999"):
            with self.subTest(seed=value):
                self.assert_refused(*train, "--steps", 1, "--seed", value, status=2, says=["--seed"])
        for option in ("--context", "--batch"):
            for value in ("-1", "0", "1e99", "99999999999999999999"):
                with self.subTest(option=option, value=value):
                    self.assert_refused("plan", self.spec(), option, value, status=2, says=[option])


class Specs(Case):
    def refused(self, content, says=(), name="spec.json"):
        return self.assert_refused("plan", self.file(name, content), status=2, says=says)

    def test_missing_file(self):
        self.assert_refused("plan", self.tmp / "nosuch.json", status=2, says=["nosuch.json"])
        self.assert_refused("plan", "no-such-preset", status=2, says=["no-such-preset"])
        self.assert_refused("plan", self.tmp, status=2, says=[str(self.tmp)])  # a folder that holds no model

    def test_not_json(self):
        for content in ("", "{", "nonsense", "{\"name\": }", b"\x00\x01\xff\xfe", "{} {}", "[" * 200000, '{"a":' * 200000):
            with self.subTest(content=content[:20]):
                self.refused(content, says=["spec.json"])

    def test_json_of_another_form(self):
        for content in ("[]", "3", "null", '"decoder"', "{}"):
            with self.subTest(content=content):
                self.refused(content, says=["spec.json"])

    def test_all_problems_at_once(self):
        path = self.spec(vocab_size=-5, hidden_size="wide", tie_word_embeddings="yes", dropout=1.5, hiden_size=32, norm={"kind": "nope"},
                         position={"kind": "rope", "theta": "x"}, ffn={"kind": "swiglu", "intermediate_size": 0},
                         layers=[{"repeat": 2, "atention": {}}])
        wrong = ["vocab_size", "hidden_size", "tie_word_embeddings", "dropout", "hiden_size", "norm.kind", "position.theta",
                 "ffn.intermediate_size", "layers[0].atention"]
        result = self.assert_refused("plan", path, status=2, says=wrong)
        self.assertGreaterEqual(len(result.errors()), len(wrong), str(result))

    def test_values_that_contradict_each_other(self):
        gqa = {"kind": "gqa", "num_attention_heads": 4, "num_key_value_heads": 3, "head_dim": 8}
        self.assert_refused("plan", self.spec(attention=gqa), status=2, says=["num_key_value_heads"])
        self.assert_refused("plan", self.spec(attention={"kind": "gqa", "num_attention_heads": 3}), status=2, says=["head"])
        odd = {"kind": "gqa", "num_attention_heads": 2, "head_dim": 7}  # rotary positions turn pairs
        self.assert_refused("plan", self.spec(attention=odd), status=2, says=["head_dim"])

    def test_no_size_makes_it_allocate(self):
        self.assert_refused("plan", self.spec(layers=[{"repeat": 10**12}]), status=2, says=["layers[0].repeat"])
        self.assert_refused("plan", self.spec(layers=[{"repeat": 4000}] * 4000), status=2, says=["layers"])
        self.assert_refused("plan", self.spec(vocab_size=10**18), status=2, says=["vocab_size"])
        self.assert_refused("plan", self.spec(vocab_size=10**30), status=2, says=["vocab_size"])
        self.assert_refused("plan", self.spec(layers=[]), status=2, says=["layers"])

    def test_extends(self):
        self.refused('{"extends": "no-such-preset"}', says=["no-such-preset"])
        self.refused('{"extends": 3}', says=["extends"])


class Data(Case):
    def train(self, *data):
        return self.assert_refused("train", self.spec(), "--data", *data, "--out", self.tmp / "out", "--steps", 1, status=2, says=[str(data[0])])

    def test_missing(self):
        self.train(self.tmp / "nosuch.txt")

    def test_empty_and_too_short(self):
        self.train(self.file("empty.txt", ""))
        self.train(self.file("short.txt", "a"))

    def test_binary(self):
        self.train(self.file("random.bin", random.Random(1).randbytes(50000)))
        self.train(self.file("zeros.bin", bytes(50000)))
        self.train(self.file("late.txt", b"plain text at first\n" * 5000 + bytes(1000)))

    def test_folder_without_text(self):
        (self.tmp / "void").mkdir()
        self.train(self.tmp / "void")

    def test_not_regular(self):
        for device in ("/dev/zero", "/dev/null"):
            self.train(device)
        os.mkfifo(self.tmp / "pipe")
        self.train(self.tmp / "pipe")

    def test_a_good_file_does_not_cover_for_a_missing_one(self):
        self.assert_refused("train", self.spec(), "--data", self.text(), self.tmp / "nosuch.txt", "--out", self.tmp / "out", "--steps", 1,
                            status=2, says=["nosuch.txt"])


class Trained(Prepared):
    """Cases that need a checkpoint: made once."""

    @classmethod
    def prepare(cls, maker: Case):
        cls.spec_file, cls.data = maker.spec(), maker.text()
        cls.out = maker.tmp / "out"
        maker.run_ok("train", cls.spec_file, "--data", cls.data, "--out", cls.out, "--steps", 2)
        cls.checkpoint = cls.out / "checkpoint"

    def copy(self) -> Path:
        return Path(shutil.copytree(self.checkpoint, self.tmp / "checkpoint"))


class Models(Trained):
    def test_missing(self):
        gone = self.tmp / "gone"
        for command in (("eval", gone, "--data", self.data), ("generate", gone, "--prompt", "x"), ("logits", gone, "--tokens", "1", "--npy", self.tmp / "a")):
            with self.subTest(command=command[0]):
                self.assert_refused(*command, status=2, says=["gone"])

    def test_eval_data(self):
        self.assert_refused("eval", self.checkpoint, "--data", self.tmp / "nosuch.txt", status=2, says=["nosuch.txt"])
        self.assert_refused("eval", self.checkpoint, "--data", self.file("empty.txt", ""), status=2, says=["empty.txt"])
        for option in ("--context", "--stride"):
            for value in ("0", "-4", "x"):
                self.assert_refused("eval", self.checkpoint, "--data", self.data, option, value, status=2, says=[option])

    def test_tokens(self):
        for tokens in ("", "1,x", "-1", "1,,2", "260", "99999999999999999999"):
            with self.subTest(tokens=tokens[:20]):
                self.assert_refused("logits", self.checkpoint, "--tokens", tokens, "--npy", self.tmp / "a.npy", status=2, says=["--tokens"])
                self.assertFalse((self.tmp / "a.npy").exists())

    def test_more_tokens_than_positions(self):
        # A rotation has no end; a table of learned positions has.
        learned = self.spec("learned.json", position={"kind": "learned"}, max_position_embeddings=16)
        self.run_ok("train", learned, "--data", self.data, "--out", self.tmp / "run", "--steps", 1, "--batch", 1)
        for tokens in (16, 17):
            command = ("logits", self.tmp / "run", "--tokens", ",".join(["1"] * tokens), "--npy", self.tmp / "a.npy")
            if tokens == 16:
                self.run_ok(*command)
            else:
                self.assert_refused(*command, status=2, says=["--tokens"])
                self.assert_refused(*command, "--incremental", status=2, says=["--tokens"])

    def test_sampling(self):
        for option, values in {"--max-tokens": ("-1", "x"), "--temperature": ("-0.5", "nan", "x"), "--top-k": ("-1",),
                               "--top-p": ("-0.1", "1.5", "nan"), "--min-p": ("-0.1", "1.5")}.items():
            for value in values:
                with self.subTest(option=option, value=value):
                    self.assert_refused("generate", self.checkpoint, "--prompt", "x", option, value, status=2, says=[option])

    def broken(self, says=()):
        self.assert_refused("generate", self.tmp / "checkpoint", "--prompt", "x", "--max-tokens", 1, status=2, says=says)

    def test_damaged_weights(self):
        weights = self.copy() / "model.safetensors"
        whole = weights.read_bytes()
        header = struct.unpack("<Q", whole[:8])[0]
        damages = {
            "gone": None, "empty": b"", "cut in the length": whole[:5], "cut in the header": whole[:8 + header // 2], "cut in the data": whole[:-7],
            "endless header": struct.pack("<Q", 2**63) + whole[8:], "longer header": struct.pack("<Q", len(whole)) + whole[8:],
            "not JSON": whole[:8] + b"x" * header + whole[8 + header:], "too much": whole + bytes(64),
        }
        for name, content in damages.items():
            with self.subTest(damage=name):
                weights.unlink(missing_ok=True)
                if content is not None:
                    weights.write_bytes(content)
                self.broken(says=["model.safetensors"])

    def test_damaged_header_entries(self):
        weights = self.copy() / "model.safetensors"
        whole = weights.read_bytes()
        length = struct.unpack("<Q", whole[:8])[0]
        header, data = json.loads(whole[8:8 + length]), whole[8 + length:]
        name = next(n for n in header if n != "__metadata__")

        def damaged(**changes):
            text = json.dumps({**header, name: {**header[name], **changes}}).encode()
            weights.write_bytes(struct.pack("<Q", len(text)) + text + data)
            self.broken(says=["model.safetensors"])

        damaged(shape=[2**62, 2**62])
        damaged(shape=[-1])
        damaged(dtype="F99")
        damaged(data_offsets=[0, 2**63])
        damaged(data_offsets=[8, 0])
        damaged(data_offsets="x")

    def test_damaged_config(self):
        config = self.copy() / "config.json"
        for content in ("", "{", "[]", "{}", '{"model_type": "no-such-type"}'):
            with self.subTest(content=content):
                config.write_text(content)
                self.broken(says=["config.json"])

    def test_config_and_weights_that_disagree(self):
        config = self.copy() / "config.json"
        document = json.loads(config.read_text())
        document["vocab_size"] += 1
        config.write_text(json.dumps(document))
        self.broken()


class Machine(Trained):
    def train(self, out, **options):
        return self.assert_refused("train", self.spec_file, "--data", self.data, "--out", out, "--steps", 2, status=1, **options)

    def test_unwritable_folder(self):
        # Even root cannot make a folder below a regular file, nor in /proc.
        for out in (self.file("plain", "x") / "out", Path("/proc/transept-out")):
            self.train(out, says=[str(out)])
            self.assert_refused("logits", self.checkpoint, "--tokens", "1", "--npy", out, status=1, says=[str(out)])

    if os.geteuid() != 0:  # root may write anywhere

        def test_folder_without_permission(self):
            locked = self.tmp / "locked"
            locked.mkdir(mode=0o555)
            self.train(locked / "out", says=[str(locked)])

    def test_full_device(self):
        # Through a link, so that a program that renames over its target cannot harm the device.
        (self.tmp / "full.npy").symlink_to("/dev/full")
        self.assert_refused("logits", self.checkpoint, "--tokens", "1,2,3", "--npy", self.tmp / "full.npy", status=1, says=["full.npy"])
        with open("/dev/full", "wb") as full:
            result = run("presets", stdout=full)
        self.assertEqual(result.status, 1, str(result))
        self.assertTrue(result.errors(), str(result))

    def test_disk_that_fills_up(self):
        self.train(self.tmp / "new", file_limit=16384, says=["new"])
        # A full disk takes no former checkpoint with it.
        out = Path(shutil.copytree(self.out, self.tmp / "out"))
        before = {p.name: p.read_bytes() for p in (out / "checkpoint").iterdir()}
        result = run("train", self.spec_file, "--data", self.data, "--out", out, "--steps", 4, "--resume", file_limit=16384)
        self.assertEqual(result.status, 1, str(result))
        self.assertTrue(result.errors(), str(result))
        self.assertEqual({p.name: p.read_bytes() for p in (out / "checkpoint").iterdir()}, before)
        self.run_ok("train", self.spec_file, "--data", self.data, "--out", out, "--steps", 4, "--resume")

    def test_small_disk(self):
        disk = self.tmp / "disk"
        disk.mkdir()
        # A mount of our own, seen by this one process and gone with it. Where namespaces are forbidden, file_limit above stands for it.
        mounted = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"', str(disk)]
        if shutil.which("unshare") is None or subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
            return
        self.train(disk / "out", prefix=mounted, says=[str(disk)])


if __name__ == "__main__":
    main()
