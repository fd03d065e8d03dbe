"""transept scale: published figures, inverses, fits of files, over-training, pages, and what is refused."""

import json
import math
import random

from harness import Case, main

LAW = {"E": 1.8172, "A": 482.01, "B": 2085.43, "alpha": 0.3478, "beta": 0.3658}


def loss(params: float, tokens: float) -> float:
    return LAW["E"] + LAW["A"] / params ** LAW["alpha"] + LAW["B"] / tokens ** LAW["beta"]


def runs(noise: float = 0.0):
    rng = random.Random(1)
    for flops in (6e18, 3e19, 1e20, 6e20, 3e21):
        for step in range(-4, 5):
            params = math.sqrt(flops / 120) * 1.5 ** step
            tokens = flops / (6 * params)
            yield params, tokens, loss(params, tokens) * math.exp(noise * rng.gauss(0, 1))


class Scale(Case):
    def fits(self, *arguments) -> dict:
        return {f["name"]: f for f in self.json("scale", *arguments)["fits"]}

    def csv(self, noise: float = 0.0, name: str = "runs.csv"):
        return self.file(name, "params,tokens,loss\n" + "".join(f"{p!r},{t!r},{y!r}\n" for p, t, y in runs(noise)))

    def test_rule_of_thumb(self):
        for params, tokens in (("1B", 20e9), ("7B", 140e9), ("13B", 260e9), ("7e10", 1.4e12)):
            rule = self.fits("--params", params)["rule-of-thumb"]
            self.assertEqual((rule["tokens"], rule["tokens_per_param"]), (tokens, 20))

    def test_tokens_a_parameter_of_each_set(self):
        figures = {
            "chinchilla-3-body": (25.7, 32.1, 50.1, 92.7, 139), "chinchilla-3-tex": (18.6, 22.7, 33.9, 58.9, 84.8),
            "besiroglu": (25.7, 24.3, 21.6, 18.4, 16.6),
        }
        for i, flops in enumerate(("1e18", "1e19", "1e21", "5.76e23", "3.8e25")):
            fits = self.fits("--flops", flops)
            for name, ratios in figures.items():
                self.assertAlmostEqual(fits[name]["tokens_per_param"] / ratios[i], 1, delta=5e-3, msg=f"{name} at {flops}")
            for fit in fits.values():
                self.assertLessEqual({"name", "params", "tokens", "tokens_per_param", "loss"}, fit.keys())
                self.assertAlmostEqual(6 * fit["params"] * fit["tokens"] / float(flops), 1, places=9)

    def test_inverses(self):
        for name, fit in self.fits("--flops", "1e22").items():
            for flag in ("params", "tokens"):
                self.assertAlmostEqual(self.fits(f"--{flag}", repr(fit[flag]))[name]["flops"] / 1e22, 1, places=9)
        by_loss = self.fits("--loss", repr(self.fits("--flops", "1e22")["besiroglu"]["loss"]))
        self.assertAlmostEqual(by_loss["besiroglu"]["flops"] / 1e22, 1, places=8)
        self.assertNotIn("kaplan", by_loss)
        answer = self.json("scale", "--loss", "1.75")
        self.assertEqual([f["name"] for f in answer["fits"]], ["chinchilla-3-body", "chinchilla-3-tex"])
        self.assertIn("no budget reaches", {i["name"]: i["why"] for i in answer["impossible"]}["besiroglu"])

    def test_fit(self):
        answer = self.json("scale", "--fit", self.csv(), "--flops", "5.76e23", "--bootstrap", 10)
        for key, value in LAW.items():
            self.assertAlmostEqual(answer["fit"]["figures"][key] / value, 1, delta=1e-3)
        self.assertAlmostEqual({f["name"]: f for f in answer["fits"]}["fit"]["tokens_per_param"], 18.4, delta=0.1)
        noisy = self.csv(0.005, "noisy.csv")
        one, two = (self.json("scale", "--fit", noisy, "--bootstrap", 20, "--threads", n)["fit"] for n in (1, 2))
        self.assertEqual(one, two)
        self.assertEqual(one["bootstrap"]["resamples"], 20)
        self.assertEqual(len(one["residuals"]), one["runs"])
        self.assertNotEqual(one["bootstrap"], self.json("scale", "--fit", noisy, "--bootstrap", 20, "--seed", 1)["fit"]["bootstrap"])
        # The same runs in the other forms of a file.
        rows = [{"params": p, "flops": 6 * p * t, "loss": y} for p, t, y in runs(0.005)]
        lines = self.file("runs.jsonl", "\n".join(map(json.dumps, rows)))
        array = self.file("runs.json", json.dumps(rows))
        for path in (lines, array):
            other = self.json("scale", "--fit", path, "--bootstrap", 0)["fit"]
            self.assertIsNone(other["bootstrap"])
            self.assertAlmostEqual(other["figures"]["alpha"] / one["figures"]["alpha"], 1, places=6)
        text = self.run_ok("scale", "--fit", noisy, "--bootstrap", 20).stdout
        for word in ("45 runs", "tokens_per_param", "less 5 highest", "less one run", "besiroglu"):
            self.assertIn(word, text)

    def test_break_even(self):
        answer = self.json("scale", "--flops", "1e22", "--smaller", "3B", "--serve", "10T")
        entries = {b["name"]: b for b in answer["break_even"]}
        entry = entries["besiroglu"]
        smaller, optimal = entry["smaller"], entry["optimal"]
        self.assertAlmostEqual(loss(smaller["params"], smaller["tokens"]), entry["loss"], places=9)
        lives = [6 * m["params"] * m["tokens"] + 2 * m["params"] * entry["served_tokens"] for m in (smaller, optimal)]
        self.assertAlmostEqual(lives[0] / lives[1], 1, places=9)
        serving = {s["name"]: s for s in answer["serving"]}["besiroglu"]
        self.assertLess(serving["params"], optimal["params"])
        self.assertTrue(0 < serving["saving"] < 1)
        priced = self.json("scale", "--flops", "1e22", "--smaller", "3B", "--set", "besiroglu", "--price-ratio", 2)["break_even"]
        self.assertEqual([b["name"] for b in priced], ["besiroglu"])
        self.assertAlmostEqual(priced[0]["served_tokens"] / entry["served_tokens"], 0.5, places=9)
        text = self.run_ok("scale", "--flops", "1e22", "--smaller", "3B", "--serve", "10T").stdout
        self.assertIn("trained longer", text)
        self.assertIn("Cheapest model", text)

    def test_page(self):
        page = self.tmp / "page.html"
        self.run_ok("scale", "--flops", "1e22", "--smaller", "3B", "--fit", self.csv(0.005), "--bootstrap", 5, "--out", page)
        text = page.read_text()
        for word in ("IsoFLOP curves", "Over-training", "The fit", "Constants, errors, sources", "transept scale --flops 1e22"):
            self.assertIn(word, text)
        self.run_ok("scale", "--params", "7B", "--set", "chinchilla-3-tex", "--out", page)
        self.assertIn("curves by chinchilla-3-tex", page.read_text())

    def test_help(self):
        text = self.run_ok("scale", "--help").stdout
        for word in ("--flops", "--smaller", "--fit", "transept scale --flops 5.76e23"):
            self.assertIn(word, text)

    def test_refusals(self):
        def refused(*arguments, says):
            self.assert_refused("scale", *arguments, status=2, says=says)

        refused(says=["--flops"])
        refused("--flops", "1e20", "--params", "7B", says=["stands beside --flops"])
        for value in ("", "0", "-1", "nan", "inf", "1e999", "7Q", "seven", "1e41", "1"):
            for flag in ("--flops", "--params", "--tokens", "--smaller", "--serve"):
                if value == "1" and flag != "--flops":
                    continue
                others = ("--flops", "1e22") if flag in ("--smaller", "--serve") else ()
                with self.subTest(flag=flag, value=value):
                    refused(*others, f"{flag}={value}", says=[flag])
        for value in ("0", "-1", "nan", "inf", "x", "1e308", ""):
            refused(f"--loss={value}", says=["--loss"])
        refused("--loss", "1.5", says=["besiroglu: no budget reaches a loss of 1.5"])
        refused("--flops", "1e22", "--set", "nobody", says=["known are chinchilla-3-body"])
        refused("--flops", "1e22", "--set", "kaplan", says=["predicts no loss"])
        refused("--flops", "1e22", "--smaller", "1M", says=["no number of tokens brings 1.00M parameters", "give more than"])
        refused("--flops", "1e22", "--smaller", "1T", says=["not fewer than the compute-optimal"])
        refused("--flops", "1e22", "--smaller", "3B", "--train-mfu", "1e-300", says=["--train-mfu"])
        refused("--flops", "1e22", "--smaller", "3B", "--serve-mfu=nan", says=["--serve-mfu"])
        refused("--flops", "1e22", "--smaller", "3B", "--price-ratio=-1", says=["--price-ratio"])
        refused("--flops", "1e22", "--train-mfu", "0.4", says=["give --smaller"])
        refused("--flops", "1e22", "--bootstrap", "-1", says=["--bootstrap"])
        refused("--fit", self.tmp / "none.csv", says=["none.csv"])
        refused("--fit", self.tmp, says=[str(self.tmp)])
        refused("--fit", self.file("bad.csv", "params,tokens,loss\n1B,20B,nan\n1B,x,2\n"), says=["bad.csv:2: loss", "bad.csv:3: tokens"])
        refused("--fit", self.file("few.csv", "params,tokens,loss\n1B,20B,3\n"), says=["holds 1 different runs"])
        refused("--fit", self.file("raw", b"\x00\xff" * 1000), says=["lacks a column"])
        self.assert_refused("scale", "--flops", "1e22", "--out", self.tmp / "no" / "page.html", status=1, says=["page.html"])


if __name__ == "__main__":
    main()
