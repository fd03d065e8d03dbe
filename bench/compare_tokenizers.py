#!/usr/bin/env python3
"""Tokenizers beside Hugging Face's package tokenizers: the same ids on awkward strings, and the time of one thread on plain text.

Each kind (tools/goldens/tokenizer_kinds.py) is trained on the plain text, saved as tokenizer.json, and read by both sides. Of --strings
generated ones (all Unicode planes, runs of white space, digits, emoji with joiners, Arabic, Devanagari, special tokens inside the text)
every id and every offset is compared; ill-formed UTF-8 cannot be handed to the package. Then both encode --megabytes of text, as a list of
documents, in interleaved rounds; each side gets the documents in memory and a tokenizer that has seen no text yet (`tokenize --count`).

Text: .cache/plays (tools/fetch_plays.py) where it is there, else made up.
"""

import harness  # first: it says where the repository is

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
TOKENIZERS = "0.23.3"
sys.path.insert(0, str(harness.ROOT / "tools" / "goldens"))


def import_kinds():
    try:
        import tokenizers
    except ImportError:
        harness.fail(f"tokenizers: not installed; pip install tokenizers=={TOKENIZERS}")
    if tokenizers.__version__ != TOKENIZERS:
        print(f"warning: tokenizers is {tokenizers.__version__}, ours follows {TOKENIZERS}", file=sys.stderr)
    import tokenizer_kinds

    return tokenizer_kinds


def plain_text(kinds, size):
    """About `size` bytes of text in documents of a few kilobytes."""
    plays = harness.ROOT / ".cache" / "plays"
    files = sorted(p for p in plays.rglob("*") if p.is_file()) if plays.is_dir() else []
    text = "\n".join(p.read_text(errors="replace") for p in files)
    if not text:
        text = "\n".join(kinds.made_text(size // 60))
    while len(text.encode()) < size:
        text += text
    documents, length = [], 0
    for begin in range(0, len(text), 4000):
        documents.append(text[begin:begin + 4000])
        length += len(documents[-1].encode())
        if length >= size:
            break
    return documents


def charsmap_of(kinds, text):
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(kinds.sentencepiece_model(text, 200, "unigram", normalization_rule_name="nmt_nfkc"))
    return model.normalizer_spec.precompiled_charsmap


def call(args, *words):
    done = subprocess.run([str(args.transept), *map(str, words), "--json", "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        harness.fail(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr.decode().strip()}")
    return done.stdout


def compare_ids(args, kinds, tokenizer, path, strings, strings_path):
    """The number of strings with other ids, and with other offsets; the first of each is shown."""
    ours = json.loads(call(args, "tokenize", path, "--texts", strings_path, "--offsets"))["texts"]
    wrong_ids = wrong_offsets = 0
    for text, got in zip(strings, ours, strict=True):
        encoding = tokenizer.encode(text)
        if got["ids"] != encoding.ids:
            wrong_ids += 1
            if wrong_ids == 1:
                print(f"{path.parent.name}: {text!r}: {got['ids']}, not {encoding.ids}", file=sys.stderr)
        elif got["offsets"] != kinds.byte_offsets(text, encoding.offsets):
            wrong_offsets += 1
            if wrong_offsets == 1:
                print(f"{path.parent.name}: {text!r}: other offsets", file=sys.stderr)
    return wrong_ids, wrong_offsets


def measure_ours(args, path, documents_path, megabytes):
    def measure():
        answer = json.loads(call(args, "tokenize", path, "--texts", documents_path, "--count"))
        return megabytes / harness.field(answer, "timings", "encode_seconds")

    return measure


def measure_theirs(tokenizer_path, documents, megabytes):
    from tokenizers import Tokenizer

    def measure():
        tokenizer = Tokenizer.from_file(str(tokenizer_path))
        begin = time.perf_counter()
        for document in documents:
            tokenizer.encode(document).ids  # noqa: B018
        return megabytes / (time.perf_counter() - begin)

    return measure


def main():
    parser = harness.parser(__doc__)
    parser.add_argument("--kinds", nargs="+", help="only these kinds")
    parser.add_argument("--strings", type=harness.at_least_one, default=10000, help="awkward strings a kind (default: 10000)")
    parser.add_argument("--seed", type=int, default=11, help="of the awkward strings (default: 11)")
    parser.add_argument("--vocab", type=harness.at_least_one, default=8000, help="vocabulary size (default: 8000)")
    parser.add_argument("--megabytes", type=float, default=5, help="plain text (default: 5)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each side; 0 compares ids alone (default: 3)")
    args = parser.parse_args()
    args.threads = 1
    kinds = import_kinds()
    documents = plain_text(kinds, int(args.megabytes * 1e6))
    training = [line for d in documents[:250] for line in d.splitlines()] + kinds.made_text(300)
    strings = kinds.awkward_texts(args.strings, args.seed)
    makers = dict(kinds.KINDS) | {"unigram-precompiled": lambda t, size: kinds.precompiled(t, size, charsmap_of(kinds, t))}
    result = {"machine": harness.machine(args), "unit": "MB/s", "strings": len(strings), "kinds": {}}
    rows, bad = [], False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "strings.json").write_text(json.dumps(strings))
        (folder / "documents.json").write_text(json.dumps(documents))
        megabytes = sum(len(d.encode()) for d in documents) / 1e6
        for kind in args.kinds or makers:
            path = folder / kind / "tokenizer.json"
            path.parent.mkdir()
            tokenizer = makers[kind](training, args.vocab)
            tokenizer.save(str(path))
            wrong_ids, wrong_offsets = compare_ids(args, kinds, tokenizer, path, strings, folder / "strings.json")
            bad = bad or wrong_ids > 0
            figures = {}
            if args.rounds > 0:
                contenders = {"transept": measure_ours(args, path, folder / "documents.json", megabytes),
                              "tokenizers": measure_theirs(path, documents, megabytes)}
                rounds = harness.interleave(contenders, args.rounds, kind)
                figures = {n: statistics.median(v) for n, v in rounds.items()}
            ratio = figures["transept"] / figures["tokenizers"] if figures else None
            result["kinds"][kind] = {"pieces": tokenizer.get_vocab_size(), "wrong_ids": wrong_ids, "wrong_offsets": wrong_offsets,
                                     "medians": figures, "ratio": ratio}
            rows.append([kind, tokenizer.get_vocab_size(), wrong_ids, wrong_offsets, figures.get("transept"), figures.get("tokenizers"), ratio])
    print(f"{len(strings)} strings a kind; MB/s of one thread on {args.megabytes} MB of text")
    harness.print_table(["kind", "pieces", "other ids", "other offsets", "transept", "tokenizers", "ratio"], rows)
    harness.write_json(args, result)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
