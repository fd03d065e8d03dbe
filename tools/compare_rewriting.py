#!/usr/bin/env python3
"""Compares src/text's normalizers, pre-tokenizers and split patterns with Hugging Face tokenizers, on generated texts.

    python tools/compare_rewriting.py build/release/bin/rewrite_text [--texts 10000] [--only NAME] [--seed N]

Needs pip install tokenizers==0.23.3 (sentencepiece==0.2.3 for the charsmap of a model). Every case runs over texts of all
kinds, and over all code points but the never assigned planes, each in a few neighbourhoods. Compared are the parts and
their source ranges; exit 1 when they differ. Counted, but no failure:
    panics   theirs aborts on the text
    young    a pattern that runs in PCRE2 (10.42, Unicode 14) met characters of Unicode 15 and 16
    known    a charsmap removed characters: theirs then aligns a neighbour, or all that follow, with the wrong ones
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

from goldens.rewriting import Theirs, cases

PINNED = "0.23.3"


def texts(count, seed):
    r = random.Random(seed)
    plane = lambda: chr(r.choice([r.randrange(0x20, 0x250), r.randrange(0x250, 0x3000), r.randrange(0x3000, 0xD800),
                                  r.randrange(0xE000, 0x10000), r.randrange(0x10000, 0x20000), r.randrange(0x20000, 0x110000)]))
    pools = [
        "abcdefghijklmnopqrstuvwxyzABCXYZ", " \t\n\r\u00a0\u3000\u2009\u2028\u0085\u000b\u000c", "0123456789٠١٢٣४५६７８９²½Ⅷ",
        "!?.,;:'\"()[]{}-_/\\@#$%^&*+=<>|~`…—«»、。！？", "éèêëñçüöäåøßæœÉÈÀŐİıſŁ", "\u0301\u0300\u0308\u0323\u0327\u0345\u0591\u05bc\u0f71\u0f72\u3099",
        "абвгдежАБВЁёйЙ", "αβγδΑΒΓΔάέϓς", "العربيةسلام\u064b\u064e\u0651\u0640\u06cc", "हिन्दीमेंक्षत्र\u093c\u094d\u0902",
        "ภาษาไทยกำ", "中文字漢字日本語々〆", "ひらがなカタカナガｶﾞﾊﾟ", "한국어가각\u1100\u1161\u11a8\u1112\u1175\u11ab", "ﬁﬀ①Ａｂ㌔℡ℌ™㍿Ǆǅ",
        "🙂👩💻🏽🇩🇪🇫❤", "\u200d\ufe0f\u200b\u200c\u2060\ufeff\ufffd\u00ad\u0000\u0001\u007f\u2581\u180e",
    ]
    words = ["hello", "World", "I'll", "WE'VE", "don't", "it'S", "1234567", "  ", "\n\n ", "x=1;", "café", "straße", "naïve", "مرحبا", "नमस्ते",
             "👩\u200d💻", "👨\u200d👩\u200d👧\u200d👦", "<s>", "http://a.b/c?d=e", "iPhone", "ABCdef", "don’t", "▁x", "ǅungla", "'ſ", "a\u0301\u0323b"]
    yield from ("", " ", "  ", "\n", "a", " a", "a ", "\r\n", "'", "''s", "\u0301", "\u0301a", "😀")
    for i in range(count):
        kind = i % 8
        if kind == 0:
            yield "".join(plane() for _ in range(r.randrange(1, 20)))
        elif kind == 1:
            yield r.choice([" ", "  ", ""]).join(r.choice(words) for _ in range(r.randrange(1, 12)))
        elif kind == 2:
            pool = r.choice(pools)
            yield "".join(r.choice(pool) for _ in range(r.randrange(1, 40)))
        elif kind == 3:
            yield r.choice(r.choice(pools)) * r.randrange(1, 200) + r.choice(words)
        else:
            out = []
            while len(out) < r.randrange(1, 60):
                pool = r.choice(pools) if r.random() < 0.6 else pools[r.randrange(2)]
                out += [r.choice(pool) for _ in range(r.randrange(1, 5))]
                if r.random() < 0.1:
                    out.append(plane())
            yield "".join(out)


def all_points():
    chunk = []
    for c in list(range(0x32000)) + list(range(0xE0000, 0xE0200)) + list(range(0x32000, 0x110000, 4099)):
        if 0xD800 <= c < 0xE000:
            continue
        x = chr(c)
        chunk.append(f"a{x}b {x}{x} '{x}\u0301")
        if len(chunk) == 32:
            yield "".join(chunk)
            chunk = []
    yield "".join(chunk)


def charsmaps():
    """precompiled_charsmap of models that sentencepiece trains with its built-in rules."""
    try:
        import base64
        import io
        import sentencepiece as spm
    except ImportError:
        print("warning: sentencepiece is not installed; no Precompiled case", file=sys.stderr)
        return {}
    found = {}
    for rule in ("nmt_nfkc", "nfkc_cf"):
        model = io.BytesIO()
        spm.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f g"] * 20), model_writer=model, vocab_size=16,
                                       hard_vocab_limit=False, normalization_rule_name=rule, minloglevel=2)
        from sentencepiece import sentencepiece_model_pb2 as pb
        proto = pb.ModelProto()
        proto.ParseFromString(model.getvalue())
        found[rule] = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    return found


def has_young(text):
    """Characters that PCRE2 10.42, of Unicode 14, does not know: the running Python must be no older."""
    return any(unicodedata.category(c) == "Cn" for c in text)


def has_gap(parts, text):
    ends = [0] + [end for _, _, end in parts]
    begins = [begin for _, begin, _ in parts] + [len(text.encode())]
    return any(begin > end for begin, end in zip(begins, ends))


def compare(program, name, normalizer, pre_tokenizer, foreign, samples):
    head = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "characters": pre_tokenizer is None}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        file.write(json.dumps(head) + "\n" + "".join(json.dumps(t) + "\n" for t in samples))
        file.seek(0)
        result = subprocess.run([program], stdin=file, capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"error: {name}: {program} ended with {result.returncode}: {result.stderr.decode()[-500:]}")
    lines = result.stdout.decode("utf-8").split("\n")[:-1]  # not splitlines: texts hold line ends of all kinds
    if len(lines) != len(samples):
        sys.exit(f"error: {name}: {len(lines)} answers to {len(samples)} texts: {lines[:1]}")
    theirs = Theirs(normalizer, pre_tokenizer)
    parts = ranges = panics = young = known = 0
    shown = []
    for text, line in zip(samples, lines):
        ours = json.loads(line)
        try:
            expected = theirs(text)
        except BaseException as e:  # their panics are no Exception
            if isinstance(e, KeyboardInterrupt):
                raise
            panics += 1
            continue
        if [p[0] for p in ours] != [p[0] for p in expected]:
            if foreign and has_young(text):
                young += 1
                continue
            parts += 1
        elif ours != expected:
            if name.startswith("Precompiled") and has_gap(ours, text):
                known += 1
                continue
            ranges += 1
        else:
            continue
        if len(shown) < 2:
            at = next((i for i, (a, b) in enumerate(zip(ours, expected)) if a != b), min(len(ours), len(expected)))
            shown.append(f"    {text[:60]!r}\n      ours   {ours[max(0, at - 1):at + 3]}\n      theirs {expected[max(0, at - 1):at + 3]}")
    print(f"{name}: {len(samples)} texts, {parts} with other parts, {ranges} with other ranges only, {panics} where they panic, "
          f"{young} young, {known} known", flush=True)
    for line in shown:
        print(line)
    return parts, ranges


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path, help="the built rewrite_text")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    try:
        import tokenizers
    except ImportError:
        sys.exit(f"error: tokenizers: not installed; pip install tokenizers=={PINNED}")
    if tokenizers.__version__ != PINNED:
        print(f"warning: tokenizers is {tokenizers.__version__}, not {PINNED}", file=sys.stderr)
    samples = list(texts(args.texts, args.seed)) + list(all_points())
    bad = 0
    for name, normalizer, pre_tokenizer, foreign in cases(charsmaps()):
        if args.only in name:
            bad += sum(compare(args.program, name, normalizer, pre_tokenizer, foreign, samples)) > 0
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
