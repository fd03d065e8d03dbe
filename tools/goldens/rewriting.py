"""Blocks of tokenizer.json that rewrite and split text, and what Hugging Face tokenizers makes of texts by them."""

import json

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
            " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+")
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"


def regex(pattern, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def literal(text, behavior, invert=False):
    return {"type": "Split", "pattern": {"String": text}, "behavior": behavior, "invert": invert}


def metaspace(scheme, split=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def pre(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def norm(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def bert(lowercase, accents, clean=True, chinese=True):
    return {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": accents,
            "lowercase": lowercase}


def cases(charsmaps):
    """(name, normalizer, pre_tokenizer, whether the pattern runs in PCRE2)."""
    behaviors = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
    for name in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"):
        yield name, {"type": name}, None, False
    yield "Strip", {"type": "Strip", "strip_left": True, "strip_right": True}, None, False
    yield "StripRight", {"type": "Strip", "strip_left": False, "strip_right": True}, None, False
    yield "Prepend", {"type": "Prepend", "prepend": "▁x"}, None, False
    yield "ReplaceString", {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, None, False
    yield "ReplaceAway", {"type": "Replace", "pattern": {"String": "ab"}, "content": ""}, None, False
    yield "ReplaceRegex", {"type": "Replace", "pattern": {"Regex": " {2,}|[a-c]+"}, "content": "<>"}, None, True
    yield "BertNormalizer", bert(True, None), None, False
    yield "BertCased", bert(False, None), None, False
    yield "BertAccents", bert(True, False), None, False
    yield "BertStripOnly", bert(False, True, clean=False, chinese=False), None, False
    yield "Llama2", norm({"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}), None, False
    yield "NfkdStripLower", norm({"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}), None, False
    for name, charsmap in charsmaps.items():
        yield f"Precompiled-{name}", {"type": "Precompiled", "precompiled_charsmap": charsmap}, None, False
    yield "ByteLevelGpt2", None, {**BYTE_LEVEL, "use_regex": True}, False
    yield "ByteLevelPrefix", None, {**BYTE_LEVEL, "use_regex": True, "add_prefix_space": True}, False
    yield "Llama3", None, pre(regex(LLAMA3), BYTE_LEVEL), False
    yield "Qwen2", {"type": "NFC"}, pre(regex(LLAMA3.replace("{1,3}", "")), BYTE_LEVEL), False
    yield "O200k", None, pre(regex(O200K), BYTE_LEVEL), False
    yield "Tekken", None, regex(TEKKEN), False
    yield "DeepSeek3", None, pre(regex(r"\p{N}{1,3}"), regex("[一-龥぀-ゟ゠-ヿ]+"), regex(DEEPSEEK), BYTE_LEVEL), False
    yield "DeepSeek3Alone", None, regex(DEEPSEEK), False
    yield "O200kRemovedInverted", None, regex(O200K, "Removed", True), False
    for behavior in behaviors:
        for invert in (False, True):
            yield f"SplitString{behavior}{invert}", None, literal("a", behavior, invert), False
        yield f"SplitRegex{behavior}", None, regex(r"[a-c0-9]{1,2}|\s+", behavior), True
        yield f"Punctuation{behavior}", None, {"type": "Punctuation", "behavior": behavior}, False
    for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer"):
        yield name, None, {"type": name}, False
    for scheme in ("always", "first", "never"):
        yield f"Metaspace-{scheme}", None, metaspace(scheme), False
    yield "MetaspaceWhole", None, metaspace("always", False), False
    yield "MetaspaceAfterWords", None, pre({"type": "WhitespaceSplit"}, metaspace("first")), False
    yield "MetaspaceAfterStrip", {"type": "Strip", "strip_left": True, "strip_right": True}, metaspace("first"), False
    yield "Digits", None, {"type": "Digits", "individual_digits": False}, False
    yield "DigitsSingle", None, {"type": "Digits", "individual_digits": True}, False
    yield "CharDelimiterSplit", None, {"type": "CharDelimiterSplit", "delimiter": "a"}, False
    yield "BertAll", bert(True, None), {"type": "BertPreTokenizer"}, False
    yield "Bloom", None, pre(regex(BLOOM), BYTE_LEVEL), True
    yield "Falcon", None, pre({"type": "Punctuation", "behavior": "Contiguous"}, {**BYTE_LEVEL, "use_regex": True},
                              {"type": "Digits", "individual_digits": False}, regex("[0-9][0-9][0-9]")), True
    yield "WordRegex", None, regex(r"\b\w+\b|[^\w\s]"), True
    yield "NotRegex", None, regex(r"\W|[^\S\n]+$|^[\D]"), True
    yield "Scripts", None, regex(r"\p{Han}+|\p{Greek}+|\P{^Cyrillic}|\p{^L}"), True
    yield "Empties", None, regex("x*|$"), True
    yield "NestedClass", None, regex(r"[a-f[0-9\-[xyz]]é]+"), True
    yield "AnyCase", None, regex(r"(?i:stra|k)+|(?i:é)"), True


class Theirs:
    def __init__(self, normalizer, pre_tokenizer):
        import tokenizers
        shell = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
                 "pre_tokenizer": pre_tokenizer, "post_processor": None, "decoder": None,
                 "model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}}
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(shell))
        self.normalizer, self.pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer
        self.string = tokenizers.PreTokenizedString
        self.each = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]"), "isolated")

    def __call__(self, text):
        string = self.string(text)
        if self.normalizer is not None:
            string.normalize(self.normalizer.normalize)
        if self.pre_tokenizer is not None:
            self.pre_tokenizer.pre_tokenize(string)
        else:
            self.each.pre_tokenize(string)
        return [[part, *offsets] for part, offsets, _ in string.get_splits(offset_referential="original", offset_type="byte")]


TEXTS = [
    "", " ", "Hello, World!  I'll can't WE'VE x=1;y+=2\n", "  leading and trailing  ", "a\n\n  b \n", "tab\there\r\nnew\u2028line\u00a0nb\u3000wide",
    "1234567 12 ½²Ⅷ १२३४ ٣٤ 𝟘𝟙", "Kantō lǜshì 中文 a\0b\u00a0c", "Crème brûlée, naïve Ångström", "Cre\u0300me a\u0323\u0307 q\u0307\u0323 \u0344",
    "한국어 가각 \u1112\u1161\u11ab\u1100\u1161", "ﬁ ﬀ ① Ａｂｃ ㌔ ℡ ™ ㎏", "İstanbul ΣΊΣΥΦΟΣ ЁЖ ǅ ſ 'ſ Straße", "العربية مُحَمَّد ، سلام", "नमस्ते हिन्दी में क्ष",
    "ภาษาไทย กำ", "日本語のテキスト。カタカナ ｶﾞ 漢字々", "👩\u200d💻 👨\u200d👩\u200d👧 🏽 🇩🇪🇫🇷 ❤\ufe0f", "abcABC aXbX iPhone ABCdef camelCaseX's", "http://a.b/c?d=e&f=g#h <s></s>",
    "!!! ... --- «quoted» (x) [y] {z} ``''", "▁x ▁▁y", "\u200b\u200d\ufeff\ufffd\u00ad\u0001\u007f\u180e", "a" * 30 + " " * 20 + "1" * 10 + "!" * 10, "x\n", "\r\n\r\n a", "'s 'S ''s 'll",
]


def small_charsmap():
    """The precompiled_charsmap that sentencepiece makes of a few rules: a ligature, a pair, a deletion, blanks."""
    import base64
    import io
    import os
    import tempfile

    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    rules = {"ﬁ": "fi", "e\u0301": "é", "\u00ad": "", "\t": " ", "\r\n": " ", "①": "1", "Ａ": "A", "㌔": "キロ", "...": "…", "👩\u200d": "w"}
    hexes = lambda text: " ".join(f"{ord(c):X}" for c in text)
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rules.tsv")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{hexes(source)}\t{hexes(target)}\n" for source, target in rules.items())
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f g"] * 20), model_writer=model, vocab_size=16, hard_vocab_limit=False,
            normalization_rule_tsv=path, minloglevel=2)
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()


def generate(path):
    """Writes {"texts", "cases": [{name, normalizer, pre_tokenizer, answers: for each text its parts [text, begin, end]}]};
    where there is no pre-tokenizer, a part is a character."""
    answers = []
    for name, normalizer, pre_tokenizer, _ in cases({"small": small_charsmap()}):
        theirs = Theirs(normalizer, pre_tokenizer)
        answers.append({"name": name, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
                        "answers": [theirs(text) for text in TEXTS]})
    # One case a line.
    lines = ",\n".join(json.dumps(a, ensure_ascii=False, separators=(",", ":")) for a in answers)
    texts = json.dumps(TEXTS, ensure_ascii=False, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"texts":{texts},\n"cases":[\n{lines}\n]}}\n', encoding="utf-8")
    return {"cases": len(answers), "texts": len(TEXTS)}
