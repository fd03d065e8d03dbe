"""transept study: files that define one, killed runs, refusals, and the three studies of the program made small enough for a test, each with
its page in a browser."""

import json
import os
import signal
import subprocess
import time

from browser import Browser
from harness import BIN, ROOT, Case, main, run
from test_pages import PageCase

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "ffn": {"intermediate_size": 48}}


def program_study(name: str, changes: dict) -> dict:
    """A study of the program in its quick form, with `changes` laid over it as a merge patch."""

    def merge(base, patch):
        if not isinstance(base, dict) or not isinstance(patch, dict):
            return patch
        merged = dict(base)
        for key, value in patch.items():
            merged[key] = merge(merged.get(key), value)
        return merged

    study = json.loads((ROOT / f"src/study/studies/{name}.json").read_text())
    return merge(merge(study, study.pop("quick")), changes)


class StudyCase(Case):
    def write(self, study: dict, name: str = "study.json"):
        return self.file(name, json.dumps(study))


class Study(StudyCase):
    def small(self) -> dict:
        return {
            "name": "small", "title": "Two positions",
            "base": {"vocab_size": 259, "max_position_embeddings": 32, "attention": {"num_attention_heads": 4}, **SMALL},
            "training": {"context": 32, "batch": 8, "steps": 120, "lr": 0.01}, "seeds": 2,
            "axes": {"position": ["rope", "learned", "none"], "context": [32, 64]},
            "equal": {"tokens": 0, "data_order": 0, "initialization": 0},
            "cells": [{"for": ["position", "context"], "model": [{"kind": "train", "spec": {"position": {"kind": "$position"}}}],
                       "measure": [{"kind": "perplexity", "context": "$context"}]}],
        }

    def test_list(self):
        studies = self.json("study", "--list")
        self.assertEqual([s["name"] for s in studies], ["attention", "kv-heads", "positions"])
        listed = self.run_ok("study", "--list").stdout
        for study in studies:
            self.assertIn(study["title"], listed)

    def test_a_killed_study_ends_with_the_same_bits(self):
        study, text = self.write(self.small()), self.text(size=60000)
        arguments = ["study", study, "--data", text, "--out", "out", "--threads", "2"]
        whole, cut = self.tmp / "whole", self.tmp / "cut"
        whole.mkdir(), cut.mkdir()
        self.run_ok(*arguments, cwd=whole)
        kills = 0
        while kills < 8:
            process = subprocess.Popen([BIN, *map(str, arguments)], cwd=cut, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(0.25 + 0.1 * kills)
                break
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL if kills % 2 == 0 else signal.SIGINT)
                # An interrupt that comes before the program listens ends it as well.
                self.assertIn(process.wait(60), (-signal.SIGKILL, -signal.SIGINT, 130, 0))
                kills += 1
        self.assertGreater(kills, 1)
        self.run_ok(*arguments, cwd=cut)
        for name in ("results.json", "report.html"):
            self.assertEqual((whole / "out" / name).read_bytes(), (cut / "out" / name).read_bytes(), name)
        again = time.monotonic()
        self.run_ok(*arguments, cwd=cut)
        self.assertLess(time.monotonic() - again, 30)
        results = json.loads((cut / "out" / "results.json").read_text())
        self.assertEqual(len(results["cells"]), 12)
        refused = [cell for cell in results["cells"] if "refused" in cell]
        self.assertEqual({(c["axes"]["position"], c["axes"]["context"]) for c in refused}, {("learned", 64)})
        self.assertIn("learned positions", refused[0]["refused"])

    def test_a_planted_difference_is_refused(self):
        study = self.small()
        study["cells"].append({"axes": {"position": "planted", "context": 32}, "measure": [{"kind": "perplexity", "context": 32}],
                               "model": [{"kind": "train", "training": {"steps": 121}}]})
        result = run("study", self.write(study), "--data", self.text(size=60000), "--out", self.tmp / "out")
        self.assertEqual(result.status, 2)
        self.assertIn('"planted"', result.stderr)
        self.assertIn("tokens 30,976, where", result.stderr)
        self.assertFalse((self.tmp / "out" / "models").exists())

    def test_a_study_may_grow(self):
        study, out = self.small(), self.tmp / "out"
        study["training"]["steps"] = 4
        arguments = ["--data", self.text(size=60000), "--out", out]
        self.run_ok("study", self.write(study), *arguments)
        trained = {p: p.stat().st_mtime_ns for p in (out / "models").glob("*/metrics.jsonl")}
        self.assertEqual(len(trained), 6)
        study["seeds"] = 3
        study["axes"]["context"] = [32, 64, 48]
        results = self.json("study", self.write(study), *arguments)
        self.assertEqual(len(results["cells"]), 27)
        now = {p: p.stat().st_mtime_ns for p in (out / "models").glob("*/metrics.jsonl")}
        self.assertEqual(len(now), 9)
        self.assertEqual({p: now[p] for p in trained}, trained)

    def test_masked_language_models(self):
        study = self.small()
        study["training"].update(steps=8, objective="mlm")
        study["axes"].update(position=["rope", "alibi"], context=[32])
        decoders = run("study", self.write(study), "--data", self.text(size=60000), "--out", self.tmp / "out")
        self.assertEqual(decoders.status, 2)
        self.assertIn("mlm", decoders.stderr)
        study["base"].update(topology="encoder", vocab_size=320)
        results = self.json("study", self.write(study), "--data", self.text(size=60000), "--out", self.tmp / "out")
        losses = [cell["metrics"]["loss"] for cell in results["cells"]]
        self.assertEqual(len(set(losses)), 4)
        self.assertTrue(all(2 < loss < 6 for loss in losses), losses)

    def test_refusals(self):
        text, out = self.text(size=60000), self.tmp / "out"
        for arguments, words in [
            (["study"], ["NAME", "--list", "--out"]),
            (["study", "postions", "--out", out], ["did you mean \"positions\""]),
            (["study", "positions", "--quick", "--full", "--out", out], ["cannot both"]),
            (["study", self.write(self.small()), "--quick", "--data", text, "--out", out], ["no quick form"]),
            (["study", self.file("broken.json", "{"), "--out", out], ["broken.json"]),
        ]:
            result = run(*arguments)
            self.assertEqual(result.status, 2, result)
            for word in words:
                self.assertIn(word, result.stderr)
        study = self.small()
        study["training"]["steps"] = 2
        self.run_ok("study", self.write(study), "--data", text, "--out", out)
        study["training"]["steps"] = 3
        other = run("study", self.write(study), "--data", text, "--out", out)
        self.assertEqual(other.status, 2)
        self.assertIn("holds another study", other.stderr)
        self.run_ok("study", self.write(study), "--data", text, "--out", out, "--overwrite")


class ProgramStudies(PageCase, StudyCase):
    def run_small(self, name: str, changes: dict):
        study = self.write(program_study(name, changes), f"{name}.json")
        out = self.tmp / name
        self.run_ok("study", study, "--data", self.text(size=60000), "--out", out, timeout=600)
        return json.loads((out / "results.json").read_text()), out / "report.html"

    def value(self, results, metric, **axes):
        rows = [r for r in results["summary"] if r["metric"] == metric and axes.items() <= r["axes"].items()]
        self.assertEqual(len(rows), 1, axes)
        return rows[0]["mean"]

    def test_positions(self):
        results, page = self.run_small("positions", {
            "base": {**SMALL, "max_position_embeddings": 32}, "training": {"context": 32, "batch": 8, "steps": 20},
            "axes": {"context": [32, 48, 64, 128, 256]}, "val_fraction": 0.15, "seeds": 2})
        for scaling in ("linear", "ntk", "dynamic", "yarn"):
            at_length = self.value(results, "perplexity", position="rope", scaling=scaling, context=32, protocol="disjoint")
            plain = self.value(results, "perplexity", position="rope", scaling="none", context=32, protocol="disjoint")
            self.assertEqual(at_length, plain)  # a factor of one changes nothing
            beyond = self.value(results, "perplexity", position="rope", scaling=scaling, context=64, protocol="disjoint")
            self.assertNotEqual(beyond, self.value(results, "perplexity", position="rope", scaling="none", context=64, protocol="disjoint"))
        refused = {c["axes"]["context"] for c in results["cells"] if "refused" in c and c["axes"]["position"] == "learned"}
        self.assertEqual(refused, {48, 64, 128, 256})
        with Browser() as browser:
            self.check(browser, page, {".chart": 5, ".lines .plot path.line": 6 + 5 + 6 + 5 + 5 - 2})

    def test_kv_heads(self):
        results, page = self.run_small("kv-heads", {
            "base": {**SMALL, "max_position_embeddings": 1024, "attention": {"num_attention_heads": 8, "head_dim": 8}},
            "training": {"context": 32, "batch": 8, "steps": 40}, "val_fraction": 0.15,
            "axes": {"uptraining": [2], "evaluated_at": [32]}})
        source = dict(num_key_value_heads=8, attention="gqa", method="scratch", stage="source")
        bytes_of = lambda **axes: self.value(results, "cache_bytes_per_token", **axes)
        self.assertEqual(bytes_of(**source), 4 * bytes_of(num_key_value_heads=2, method="mean", stage="converted"))
        loss = self.value(results, "loss", **source)
        for method in ("mean", "first", "aligned"):
            self.assertEqual(self.value(results, "loss", num_key_value_heads=8, method=method, stage="converted"), loss)
        with Browser() as browser:
            self.check(browser, page, {".chart": 5})

    def test_attention(self):
        results, page = self.run_small("attention", {
            "base": SMALL, "training": {"context": 32, "batch": 8, "steps": 20}, "val_fraction": 0.15, "seeds": 2})
        self.assertLess(max(r["mean"] for r in results["summary"] if r["metric"].startswith("error_")), 1e-5)
        self.assertAlmostEqual(self.value(results, "score_deviation", head_dim=1024, scale="1"), 32, delta=1)
        self.assertAlmostEqual(self.value(results, "score_deviation", head_dim=1024, scale="1/sqrt(d_k)"), 1, delta=0.05)
        with Browser() as browser:
            self.check(browser, page, {".chart": 6, ".maps": 1, ".map": 8})


if __name__ == "__main__":
    main()
