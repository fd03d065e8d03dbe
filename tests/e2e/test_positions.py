"""What `transept spec MODEL --positions` prints: the numbers that follow from a spec's position kind, by form of layer."""

import math

from harness import Case, main


class Positions(Case):
    def positions(self, position: dict, *options, **changes) -> list[dict]:
        return self.json("spec", self.spec(position=position, **changes), "--positions", *options)["positions"]

    def heads(self, *layers: dict) -> dict:
        """Changes of the spec: layers that override two heads of 4 elements."""
        return {"attention": {"num_attention_heads": 2, "head_dim": 4}, "layers": [{"attention": layer} for layer in layers]}

    def test_yarn(self):
        # theta 10000, factor 4, trained length 16, heads of 4
        yarn = {"kind": "yarn", "factor": 4, "original_max_position_embeddings": 16}
        (entry,) = self.positions({"kind": "rope", "scaling": yarn}, **self.heads({}))
        self.assertEqual((entry["layers"], entry["kind"], entry["scaling"], entry["rotated"]), ([0], "rope", "yarn", 4))
        self.assertAlmostEqual(entry["amplitude"], 0.1 * math.log(4) + 1, places=12)
        for got, right in zip(entry["inverse_frequencies"], [1, 0.0025], strict=True):
            self.assertAlmostEqual(got, right, places=12)

    def test_length_decides_where_the_rule_looks_at_it(self):
        dynamic = {"kind": "rope", "scaling": {"kind": "dynamic", "factor": 2, "original_max_position_embeddings": 8}}
        layers = self.heads({"head_dim": 8})
        (short,) = self.positions(dynamic, "--length", 6, **layers)
        (long,) = self.positions(dynamic, "--length", 12, **layers)
        for got, right in zip(short["inverse_frequencies"], [1, 0.1, 0.01, 0.001], strict=True):
            self.assertAlmostEqual(got, right, places=12)
        for got, right in zip(long["inverse_frequencies"], [1, 0.079370052, 0.0062996051, 0.0005], strict=True):
            self.assertAlmostEqual(got, right, places=8)

    def test_one_entry_for_each_form_of_layer(self):
        entries = self.positions({"kind": "rope", "partial_rotary_factor": 0.5}, **self.heads({}, {"head_dim": 8}, {}))
        self.assertEqual([e["layers"] for e in entries], [[0, 2], [1]])
        self.assertEqual([e["rotated"] for e in entries], [2, 4])

    def test_alibi(self):
        (entry,) = self.positions({"kind": "alibi"}, **self.heads({"num_attention_heads": 6}))
        self.assertEqual(entry["slopes"], [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125])

    def test_t5(self):
        (entry,) = self.positions({"kind": "t5", "num_buckets": 8, "max_distance": 16}, **self.heads({}))

        def bucket(runs: list[dict], distance: int) -> int:
            (found,) = [run["bucket"] for run in runs
                        if (run["from"] is None or run["from"] <= distance) and (run["to"] is None or distance <= run["to"])]
            return found

        self.assertEqual([bucket(entry["causal"], 5 - key) for key in range(6)], [4, 4, 3, 2, 1, 0])
        self.assertEqual([bucket(entry["bidirectional"], 0 - key) for key in range(6)], [0, 5, 6, 6, 6, 6])
        self.assertEqual([bucket(entry["bidirectional"], away) for away in (-10**6, 10**6)], [7, 3])

    def test_text(self):
        result = self.run_ok("spec", self.spec(position={"kind": "alibi"}, **self.heads({"num_attention_heads": 4}, {}, {})), "--positions")
        self.assertIn("layers 0\n", result.stdout)
        self.assertIn("layers 1-2\n", result.stdout)
        self.assertIn("0.00390625", result.stdout)

    def test_refusals(self):
        self.assert_refused("spec", self.spec(), "--length", 5, status=2, says=["--positions"])
        wide = self.heads({"num_attention_heads": 1 << 21, "head_dim": 2})
        self.assert_refused("spec", self.spec(position={"kind": "alibi"}, **wide), "--positions", status=2, says=["--positions"])
        bad = {"kind": "rope", "scaling": {"kind": "yarn", "factor": 0, "betafast": 1}}
        self.assert_refused("spec", self.spec(position=bad), status=2, says=[
            "position.scaling.factor", "position.scaling.betafast", "position.scaling.original_max_position_embeddings"])


if __name__ == "__main__":
    main()
