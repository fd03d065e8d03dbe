"""Tokenizers of every kind, trained on made-up text, and what the packages tokenizers and sentencepiece make of awkward strings.

Only the two packages are used, so that bench/compare_tokenizers.py can take the kinds from here and train larger ones.
"""

import collections
import io
import json
import math
import os
import pathlib
import random
import shutil

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
]
GPT4O = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])

WORDS = ("the king queen lost found crown road silver winter rose where has had not would it's we've I'll can't naïve café étude Straße "
         "über ring sings singing singer 1984 12 7 2024 3.14 корона зима дорога серебро 冬天 道路 国王 王冠 ありがとう カメラ राजा रास्ता الملك "
         "الطريق 한국 겨울 if for while return value() x_y a/b www https:// .json").split()
SEPARATORS = [" "] * 12 + [", ", ".\n", "\n\n", "  ", "\t", "! ", "? ", "    ", "; ", ": "]
SPECIALS = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "<|endoftext|>", "<|im_start|>", "<|im_end|>",
            "<tool>", "</tool>", "Hello", "WORD", "▁▁▁"]


def made_text(lines, seed=1):
    rng = random.Random(seed)
    return ["".join(rng.choice(WORDS) + rng.choice(SEPARATORS) for _ in range(rng.randint(3, 20))) for _ in range(lines)]


def any_character(rng):
    """A character of any plane; assigned ones in the middle of known scripts more often than not."""
    while True:
        top = rng.choice([0x80, 0x250, 0x3000, 0xFFFF, 0x1FFFF, 0x10FFFF])
        point = rng.randint(1, top)
        if not 0xD800 <= point <= 0xDFFF:
            return chr(point)


def awkward_text(rng):
    pieces = []
    for _ in range(rng.randint(1, 8)):
        kind = rng.randint(0, 15)
        if kind <= 3:
            pieces.append(rng.choice(WORDS) + rng.choice(SEPARATORS))
        elif kind == 4:
            pieces.append("".join(rng.choice(" \t\n\r\u00a0\u3000\u2028\u200b") for _ in range(rng.randint(1, 6))))
        elif kind == 5:
            pieces.append("".join(rng.choice("0123456789१२३४٠١٢¼Ⅷ²") for _ in range(rng.randint(1, 9))))
        elif kind == 6:
            pieces.append("".join(rng.choice(["🙂", "👩\u200d💻", "👨\u200d👩\u200d👧", "🇫🇷", "👍🏽", "❤\ufe0f", "\u200d"]) for _ in range(rng.randint(1, 4))))
        elif kind == 7:
            pieces.append("".join(chr(rng.randint(0x600, 0x6FF)) for _ in range(rng.randint(1, 6))))
        elif kind == 8:
            pieces.append("".join(chr(rng.randint(0x900, 0x97F)) for _ in range(rng.randint(1, 6))))
        elif kind == 9:
            pieces.append(rng.choice(["", " ", "  "]) + rng.choice(SPECIALS) + rng.choice(["", " ", "\n"]))
        elif kind == 10:
            pieces.append("".join(any_character(rng) for _ in range(rng.randint(1, 4))))
        elif kind == 11:
            pieces.append(rng.choice(["e\u0301", "a\u0308\u0323", "ﬁ", "Å", "ẛ̣", "ﷺ", "ｈｅｌｌｏ", "①", "가", "İ", "ß", "ǅ", "ﬀ", "½"]))
        elif kind == 12:
            pieces.append("".join(chr(rng.randint(32, 126)) for _ in range(rng.randint(1, 10))))
        elif kind == 13:
            pieces.append(rng.choice(["'s", "'LL", "'ve", "’s", "I'M ", "don'T"]))
        elif kind == 14:
            pieces.append(rng.choice("▁_-'\"#@\x00\x01\x7f\ufffd\ufeff") * rng.randint(1, 3))
        else:
            pieces.append(rng.choice("abcxyz ") * rng.randint(1, 40))
    return "".join(pieces)


def awkward_texts(count, seed):
    rng = random.Random(seed)
    return ["", " ", "a", "  a  "] + [awkward_text(rng) for _ in range(count - 4)]


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def byte_level_bpe(text, size, splitters, specials, use_regex=False, prefix_space=False, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    last = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=use_regex)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splitters, last]) if splitters else last
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(text, trainer)
    return tokenizer


def gpt2(text, size):
    tokenizer = byte_level_bpe(text, size, [], ["<|endoftext|>"], use_regex=True)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def roberta(text, size):
    tokenizer = byte_level_bpe(text, size, [], ["<s>", "<pad>", "</s>", "<unk>"], use_regex=True, prefix_space=True)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")),
                                                            trim_offsets=True, add_prefix_space=True)
    return tokenizer


def llama3(text, size):
    tokenizer = byte_level_bpe(text, size, [split(LLAMA3)], ["<s>"], ignore_merges=True)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    template = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def qwen2(text, size):
    tokenizer = byte_level_bpe(text, size, [split(QWEN2)], [], normalizer=normalizers.NFC())
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("</tool>", normalized=False, rstrip=True),
                          AddedToken("WORD", single_word=True), AddedToken("Hello", normalized=True, lstrip=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    return tokenizer


def deepseek(text, size):
    return byte_level_bpe(text, size, [split(p) for p in DEEPSEEK], ["<s>", "</s>"])


def gpt4o(text, size):
    return byte_level_bpe(text, size, [split(GPT4O)], ["<|endoftext|>"])


BYTES = [f"<0x{b:02X}>" for b in range(256)]


def merged_vocabulary(text, size, first):
    """A BPE vocabulary of words that begin with ▁, behind the given pieces."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(text, trainers.BpeTrainer(vocab_size=max(60, size - len(first)), show_progress=False))
    model = json.loads(trained.to_str())["model"]
    pieces = first + [p for p in model["vocab"] if p not in first]
    return {p: i for i, p in enumerate(pieces)}, [tuple(m) for m in model["merges"]]


def llama2(text, size):
    vocab, merges = merged_vocabulary(text, size, ["<unk>", "<s>", "</s>", *BYTES])
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def gemma(text, size):
    vocab, merges = merged_vocabulary(text, size, ["<pad>", "</s>", "<s>", "<unk>", *BYTES])
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.add_special_tokens(["<pad>", "</s>", "<s>", "<unk>"])
    tokenizer.add_tokens([AddedToken("▁▁▁", normalized=False), AddedToken("\n\n", normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 1)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


def common_parts(text, size, mark):
    """Characters of words that begin with `mark`, and their most common parts: (part, count, whether it begins the word).

    Counted, not trained: the trainers of these vocabularies break ties in the order of a hash table.
    """
    parts = collections.Counter()
    for word, count in collections.Counter(w for line in text for w in line.split()).items():
        word = mark + word
        for begin in range(len(word)):
            for end in range(begin + 1, min(len(word), begin + 12) + 1):
                parts[word[begin:end], begin == 0] += count
    characters = sorted(p for p in parts if len(p[0]) == 1)
    rest = sorted((p for p in parts if len(p[0]) > 1), key=lambda p: (-parts[p] * (len(p[0]) - 1), p))
    return [(part, parts[part, first], first) for part, first in characters + rest[: max(0, size - len(characters))]]


def unigram_vocabulary(text, size, first):
    merged = collections.Counter()
    for part, count, _ in common_parts(text, size - len(first), "▁"):
        merged[part] += count
    total = sum(merged.values())
    return first + [(p, round(math.log(n / total), 3)) for p, n in sorted(merged.items(), key=lambda e: (-e[1], e[0]))]


def unigram(text, size):
    vocab = unigram_vocabulary(text, size, [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)])
    tokenizer = Tokenizer(models.Unigram(vocab, 2, False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def unigram_bytes(text, size):
    vocab = unigram_vocabulary(text, size, [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *((b, 0.0) for b in BYTES)])
    tokenizer = Tokenizer(models.Unigram(vocab, 0, True))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first", split=False)])
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer


def sentencepiece_model(text, size, kind, **options):
    """The bytes of a trained sentencepiece model; a small table of rules instead of the built-in ones of 200 KB."""
    import sentencepiece

    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text), model_writer=out, vocab_size=size, model_type=kind, minloglevel=2,
                                             character_coverage=0.99, hard_vocab_limit=False, num_threads=1, **options)
    return out.getvalue()


RULES = {"\ufb01": "fi", "\u212b": "\u00c5", "\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\u200b": " ",
         "e\u0301": "\u00e9", "\u2460": "1", "\u00bd": "1\u20442", "\uff48": "h", "\uff45": "e", "\uff4c": "l", "\uff4f": "o",
         "\ufeff": " ", "\u2026": "...", "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647"}


def write_rules(path):
    path.write_text("".join(" ".join(f"{ord(c):X}" for c in k) + "\t" + " ".join(f"{ord(c):X}" for c in v) + "\n" for k, v in RULES.items()))
    return str(path)


def precompiled(text, size, charsmap):
    vocab = unigram_vocabulary(text, size, [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)])
    tokenizer = Tokenizer(models.Unigram(vocab, 3, False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer


def wordpiece(text, size):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    normalizer = normalizers.BertNormalizer()
    pieces = [p if begins else "##" + p for p, _, begins in common_parts([normalizer.normalize_str(t) for t in text], size - 5, "")]
    tokenizer = Tokenizer(models.WordPiece({p: i for i, p in enumerate(specials + sorted(pieces))}, unk_token="[UNK]", max_input_chars_per_word=30))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(specials)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def wordlevel(text, size):
    words = sorted({w for line in text for w in line.lower().split()})[: size - 1]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["[UNK]", *words])}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["[UNK]"])
    return tokenizer


def suffixed(text, size):
    """BPE of whole words with an end-of-word suffix, as the first GPT's and CLIP's; the package's trainer breaks ties by chance here."""
    normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    splitter = pre_tokenizers.BertPreTokenizer()
    counts = collections.Counter(w for line in text for w, _ in splitter.pre_tokenize_str(normalizer.normalize_str(line)))
    # Counting anew after each merge takes its time: the most common words, and not many merges.
    words = {tuple(w[:-1]) + (w[-1] + "</w>",): n for w, n in counts.most_common(2000)}
    size = min(size, 800)
    pieces, merges = sorted({p for w in words for p in w} | {p.replace("</w>", "") for w in words for p in w}), []
    while len(pieces) + 2 < size:
        pairs = collections.Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += n
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        if "".join(best) not in pieces:
            pieces.append("".join(best))
        merged = {}
        for word, n in words.items():
            out = []
            for p in word:
                if out and (out[-1], p) == best:
                    out[-1] += p
                else:
                    out.append(p)
            merged[tuple(out)] = n
        words = merged
    tokenizer = Tokenizer(models.BPE({p: i for i, p in enumerate(["<unk>", "<pad>", *pieces])}, merges, unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.BPEDecoder("</w>")
    tokenizer.add_special_tokens(["<unk>", "<pad>"])
    return tokenizer


KINDS = {
    "bpe-gpt2": gpt2,
    "bpe-roberta": roberta,
    "bpe-llama3": llama3,
    "bpe-qwen2": qwen2,
    "bpe-deepseek": deepseek,
    "bpe-gpt4o": gpt4o,
    "bpe-llama2": llama2,
    "bpe-gemma": gemma,
    "bpe-suffix": suffixed,
    "unigram": unigram,
    "unigram-bytes": unigram_bytes,
    "wordpiece": wordpiece,
    "wordlevel": wordlevel,
}
# Trained by the sentencepiece package: its options.
MODELS = {
    "spm-bpe": {"kind": "bpe", "byte_fallback": True, "normalization_rule_name": "identity"},
    "spm-unigram": {"kind": "unigram", "user_defined_symbols": ["<tool>", "WORD"]},
    "spm-unigram-bytes": {"kind": "unigram", "byte_fallback": True, "remove_extra_whitespaces": False},
}


def byte_offsets(text, offsets):
    """Offsets in characters as offsets in UTF-8 bytes."""
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[b], at[e]] for b, e in offsets]


def write(path, document):
    path.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")


def answers(tokenizer, texts):
    """Of each text: [ids with the tokenizer's own tokens, their byte offsets, ids of the text as mere text]; what is added has offset 0, 0."""
    results = []
    for text in texts:
        tokenizer.encode_special_tokens = False
        encoding = tokenizer.encode(text)
        offsets = [x for pair in byte_offsets(text, encoding.offsets) for x in pair]
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        results.append([encoding.ids, offsets, plain])
    tokenizer.encode_special_tokens = False
    return results


def generate(out):
    """Writes a folder a kind: its files, and answers.json."""
    import sentencepiece

    out = out.absolute()
    out.mkdir(parents=True)
    text, texts = made_text(400), awkward_texts(240, 7)
    write(out / "texts.json", texts)
    before = os.getcwd()
    os.chdir(out)  # the name of the rules' file stands in the models
    rules = write_rules(pathlib.Path("rules.tsv"))
    charsmap = None
    manifest = {"texts": len(texts)}
    for name, options in MODELS.items():
        folder = out / name
        folder.mkdir()
        options = dict(options)
        kind = options.pop("kind")
        if "normalization_rule_name" not in options:
            options["normalization_rule_tsv"] = rules
        model = sentencepiece_model(text, 400 if options.get("byte_fallback") else 200, kind, **options)
        (folder / "tokenizer.model").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        write(folder / "answers.json", [processor.encode(t) for t in texts])
        if name == "spm-unigram":
            from sentencepiece import sentencepiece_model_pb2
            proto = sentencepiece_model_pb2.ModelProto()
            proto.ParseFromString(model)
            charsmap = proto.normalizer_spec.precompiled_charsmap
        manifest[name] = processor.get_piece_size()
    os.chdir(before)
    (out / "rules.tsv").unlink()
    kinds = dict(KINDS) | {"unigram-precompiled": lambda t, size: precompiled(t, size, charsmap)}
    for name, make in kinds.items():
        folder = out / name
        folder.mkdir()
        tokenizer = make(text, 420)
        write(folder / "tokenizer.json", json.loads(tokenizer.to_str()))
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        results = answers(tokenizer, texts)
        decoded = [tokenizer.decode(r[0]) for r in results]
        write(folder / "answers.json", {"encoded": results, "decoded": decoded})
        manifest[name] = tokenizer.get_vocab_size()
    return manifest


if __name__ == "__main__":
    import sys

    place = pathlib.Path(sys.argv[1])
    shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(generate(place), indent=1))
