"""What `transept spec MODEL --positions` prints: the numbers that follow from a spec's position kind, by form of layer."""

import json
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

    def test_positions_that_differ_by_layer(self):
        # Gemma 3: full layers with a linear factor of 8 and theta 1e6, sliding ones plain
        full = {"kind": "rope", "theta": 1e6, "scaling": {"kind": "linear", "factor": 8}}
        layers = [{"position": full}, {"repeat": 2}]
        entries = self.positions({"kind": "rope"}, attention={"num_attention_heads": 2, "head_dim": 4}, layers=layers)
        self.assertEqual([e["layers"] for e in entries], [[0], [1, 2]])
        for entry, right in zip(entries, ([0.125, 0.000125], [1, 0.01]), strict=True):
            for got, value in zip(entry["inverse_frequencies"], right, strict=True):
                self.assertAlmostEqual(got, value, places=12)

    def test_both_stacks(self):
        stack = {"layers": [{"repeat": 2}]}
        path = self.spec(topology="encoder_decoder", position={"kind": "t5"}, encoder=stack, decoder=stack)
        document = json.loads(path.read_text())
        del document["layers"]
        path.write_text(json.dumps(document))
        entries = self.json("spec", path, "--positions")["positions"]
        self.assertEqual([(e["stack"], e["causal"]) for e in entries], [("encoder", False), ("decoder", True)])

    def test_alibi(self):
        (entry,) = self.positions({"kind": "alibi"}, **self.heads({"num_attention_heads": 6}))
        self.assertEqual(entry["slopes"], [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125])

    def test_t5(self):
        t5 = {"kind": "t5", "num_buckets": 8, "max_distance": 16}
        (decoder,) = self.positions(t5, **self.heads({}))
        (encoder,) = self.positions(t5, topology="encoder", **self.heads({}))
        self.assertEqual([(e["stack"], e["causal"]) for e in (decoder, encoder)], [("decoder", True), ("encoder", False)])

        def bucket(runs: list[dict], distance: int) -> int:
            (found,) = [run["bucket"] for run in runs
                        if (run["from"] is None or run["from"] <= distance) and (run["to"] is None or distance <= run["to"])]
            return found

        self.assertEqual([bucket(decoder["buckets"], 5 - key) for key in range(6)], [4, 4, 3, 2, 1, 0])
        self.assertEqual([bucket(encoder["buckets"], 0 - key) for key in range(6)], [0, 5, 6, 6, 6, 6])
        self.assertEqual([bucket(encoder["buckets"], away) for away in (-10**6, 10**6)], [7, 3])

    def test_text(self):
        result = self.run_ok("spec", self.spec(position={"kind": "alibi"}, **self.heads({"num_attention_heads": 4}, {}, {})), "--positions")
        self.assertIn("decoder layers 0\n", result.stdout)
        self.assertIn("decoder layers 1-2\n", result.stdout)
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
