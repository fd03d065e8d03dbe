"""transept tokenize and detokenize on tokenizers of other libraries: files of every kind, special tokens, offsets, many texts at once."""

import json
import shutil

from harness import ROOT, Case, main, run

GOLDENS = ROOT / "tests/goldens/text/tokenizers"


class Tokenize(Case):
    def test_every_kind_of_file(self):
        texts = json.loads((GOLDENS / "texts.json").read_text())
        for kind in ("bpe-llama3", "bpe-llama2", "unigram", "wordpiece"):
            answers = json.loads((GOLDENS / kind / "answers.json").read_text())
            got = self.json("tokenize", GOLDENS / kind / "tokenizer.json", "--texts", GOLDENS / "texts.json", "--offsets")["texts"]
            self.assertEqual([g["ids"] for g in got], [e[0] for e in answers["encoded"]], kind)
            self.assertEqual([sum(g["offsets"], []) for g in got], [e[1] for e in answers["encoded"]], kind)
            self.assertEqual([len(g["pieces"]) for g in got], [len(g["ids"]) for g in got], kind)
            for ids, text in list(zip((g["ids"] for g in got), answers["decoded"], strict=True))[5:12]:
                self.assertEqual(self.json("detokenize", GOLDENS / kind, "--tokens", ",".join(map(str, ids)))["text"], text, kind)
        model = GOLDENS / "spm-bpe/tokenizer.model"
        got = self.json("tokenize", model, "--texts", GOLDENS / "texts.json", "--no-special")["texts"]
        self.assertEqual([g["ids"] for g in got], json.loads((GOLDENS / "spm-bpe/answers.json").read_text()))
        self.assertEqual(len(texts), len(got))

    def test_vocabulary_files(self):
        self.file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nking\n##s\n")
        self.assertEqual(self.json("tokenize", self.tmp / "vocab.txt", "--text", "Kings")["pieces"], ["[CLS]", "king", "##s", "[SEP]"])
        self.file("vocab.json", json.dumps({"h": 0, "i": 1, "hi": 2, "<|endoftext|>": 3}))
        self.file("merges.txt", "#version: 0.2\nh i\n")
        self.assertEqual(self.json("tokenize", self.tmp, "--text", "hi<|endoftext|>")["ids"], [2, 3])

    def test_special_tokens(self):
        folder = GOLDENS / "bpe-llama3"
        begin = self.json("tokenize", folder, "--text", "")["ids"]
        self.assertEqual(len(begin), 1)  # one bos, no more
        got = self.json("tokenize", folder, "--text", "<s>king")
        self.assertEqual((got["ids"][:2], got["pieces"][:2]), (begin * 2, ["<s>", "<s>"]))
        plain = self.json("tokenize", folder, "--text", "<s>king", "--no-special")
        self.assertNotIn(begin[0], plain["ids"])
        self.assertEqual(self.json("detokenize", folder, "--tokens", ",".join(map(str, plain["ids"])))["text"], "<s>king")

    def test_forms_of_output(self):
        folder = GOLDENS / "bpe-gpt2"
        self.file("texts.json", json.dumps(["king", "", "the \u00e9"]))
        one = self.json("tokenize", folder, "--text", "the \u00e9", "--offsets")
        many = self.json("tokenize", folder, "--texts", self.tmp / "texts.json", "--offsets")["texts"]
        self.assertEqual(many[2], one)
        self.assertEqual(many[1], {"ids": [], "pieces": [], "offsets": []})
        counted = self.json("tokenize", folder, "--texts", self.tmp / "texts.json", "--count")
        self.assertEqual(counted["counts"], [len(m["ids"]) for m in many])
        self.assertGreaterEqual(counted["timings"]["encode_seconds"], 0)
        lines = self.run_ok("tokenize", folder, "--texts", self.tmp / "texts.json").stdout.splitlines()
        self.assertEqual(lines, [",".join(map(str, m["ids"])) for m in many])
        begin, end = self.run_ok("tokenize", folder, "--text", "king", "--offsets").stdout.strip().split("\t")[1].split(",")[0].split("-")
        self.assertEqual((begin, end), tuple(map(str, many[0]["offsets"][0])))
        self.assertEqual(self.json("tokenize", folder, "--text", ""), {"ids": [], "pieces": []})

    def test_refusals(self):
        folder = GOLDENS / "bpe-gpt2"
        self.assert_refused("tokenize", folder, status=2, says=["--text", "--texts"])
        self.assert_refused("tokenize", folder, "--text", "a", "--file", self.file("a.txt", "a"), status=2, says=["only one"])
        self.assert_refused("tokenize", folder, "--texts", self.file("texts.json", '["a", 1]'), status=2, says=["JSON array of texts"])
        self.assert_refused("tokenize", folder, "--texts", self.file("texts.json", '{"a": 1}'), status=2, says=["JSON array of texts"])
        self.assert_refused("detokenize", folder, "--tokens", "99999", status=2, says=["outside the vocabulary"])
        self.assert_refused("tokenize", self.tmp / "none", "--text", "a", status=2)
        (self.tmp / "empty").mkdir()
        self.assert_refused("tokenize", self.tmp / "empty", "--text", "a", status=2, says=["holds no tokenizer"])
        # All that is wrong with a file at once, each with its path.
        shutil.copy(folder / "tokenizer.json", self.tmp / "tokenizer.json")
        document = json.loads((folder / "tokenizer.json").read_text())
        document["normalizer"], document["decoder"] = {"type": "Upper"}, {"type": "CTC"}
        document["model"]["dropout"] = 0.1
        path = self.file("tokenizer.json", json.dumps(document))
        self.assert_refused("tokenize", path, "--text", "a", status=2, says=["normalizer", "decoder.type", "model.dropout"])

    def test_what_is_not_applied_is_said(self):
        document = json.loads((GOLDENS / "wordlevel/tokenizer.json").read_text())
        document["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
        result = run("tokenize", self.file("tokenizer.json", json.dumps(document)), "--text", "the king the king the king", "--json")
        self.assertEqual((result.status, len(json.loads(result.stdout)["ids"])), (0, 6))
        self.assertIn("truncation is not applied", result.stderr)


if __name__ == "__main__":
    main()
