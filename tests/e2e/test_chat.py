"""Conversations: a model's chat template from the command line, and a model that answers by it."""

import json
import os
import signal
import subprocess

from harness import BIN, Case, Prepared, main

TEMPLATE = """{{- bos_token }}
{%- for m in messages %}
    {%- if m.role not in ['system', 'user', 'assistant'] %}
        {{- raise_exception('unknown role ' ~ m.role) }}
    {%- endif %}
    {{- m.role[0]|upper + ': ' + m.content + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- 'A:' }}
{%- endif %}
"""
# One block tag a line, indented by four spaces, and a last line that the generation prompt ends in its middle.
INDENTED = ("{% for m in messages %}\n    {% if m.role == 'user' %}\nU: {{ m.content }}\n    {% else %}\nA: {{ m.content }}\n    {% endif %}\n{% endfor %}\n"
            "    {% if add_generation_prompt %}\nA:\n    {%- endif %}\n")
CONTEXT = 4096
BOS, EOS = 256, 257


class Models(Prepared):
    """A model of bytes, trained for a moment, with a chat template."""

    @classmethod
    def prepare(cls, maker: Case):
        text = maker.tmp / "text.txt"
        maker.run_ok("synth", "--bytes", 20000, "--out", text)
        spec = maker.spec("chat.json", max_position_embeddings=CONTEXT)
        maker.run_ok("train", spec, "--data", text, "--out", maker.tmp / "run", "--steps", 60, "--lr", 0.01, "--batch", 4, "--context", 64)
        cls.run_folder = maker.tmp / "run"
        cls.model = cls.run_folder / "checkpoint"

    def setUp(self):
        super().setUp()
        self.put("chat_template.jinja", TEMPLATE)
        self.put("tokenizer_config.json", json.dumps({"bos_token": "<|bos|>", "eos_token": {"content": "<|eos|>"}}))

    def put(self, name: str, text: str):
        """A file of the model's folder, until the end of the test."""
        path = self.model / name
        before = path.read_bytes() if path.exists() else None
        path.write_text(text, encoding="utf-8")
        self.addCleanup(lambda: path.unlink(missing_ok=True) if before is None else path.write_bytes(before))


class Tokenize(Models):
    def test_ids_and_text(self):
        rendered = "<|bos|>U: hi\nA:"
        document = self.json("tokenize", self.model, "--chat", "--text", "hi")
        self.assertEqual(document["text"], rendered)
        self.assertEqual(document["ids"], [BOS, *b"U: hi\nA:"])
        self.assertEqual(len(document["pieces"]), len(document["ids"]))
        self.assertEqual(self.run_ok("tokenize", self.run_folder, "--chat", "--text", "hi", "--print").stdout, rendered)
        self.assertEqual(self.run_ok("tokenize", self.model, "--chat", "--text", "hi", "--print", "--no-generation-prompt").stdout, rendered[:-2])
        self.assertEqual(self.run_ok("tokenize", self.model, "--chat", "--text", "hi").stdout, ",".join(map(str, document["ids"])) + "\n")

    def test_messages(self):
        messages = self.file("m.json", json.dumps([{"role": "system", "content": "é"}, {"role": "user", "content": "<|eos|>"}]))
        document = self.json("tokenize", self.model, "--chat", "--messages", messages)
        self.assertEqual(document["text"], "<|bos|>S: é\nU: <|eos|>\nA:")
        self.assertEqual(document["ids"], [BOS, *"S: é\nU: ".encode(), EOS, *b"\nA:"])

    def test_white_space_is_as_transformers_has_it(self):
        self.put("chat_template.jinja", INDENTED)
        messages = self.file("m.json", json.dumps([{"role": r, "content": c} for r, c in (("user", "hi"), ("assistant", "yo"), ("user", "x"))]))
        self.assertEqual(self.run_ok("tokenize", self.model, "--chat", "--messages", messages, "--print").stdout, "U: hi\nA: yo\nU: x\nA:")
        self.assertEqual(self.run_ok("tokenize", self.model, "--chat", "--messages", messages, "--print", "--no-generation-prompt").stdout, "U: hi\nA: yo\nU: x\n")

    def test_no_begin_token_that_the_template_does_not_write(self):
        for template, wanted in (("{{ messages[0].content }}", 0), ("{{ bos_token }}{{ messages[0].content }}", 1), ("{{ bos_token }}{{ bos_token }}", 2)):
            self.put("chat_template.jinja", template)
            self.assertEqual(self.json("tokenize", self.model, "--chat", "--text", "hi")["ids"].count(BOS), wanted)

    def test_one_begin_token_where_the_tokenizer_would_add_one(self):
        run = self.tmp / "bpe"
        self.run_ok("train", self.spec(vocab_size=300), "--data", self.text(), "--out", run, "--steps", 1, "--batch", 1, "--context", 16, "--tokenizer", "bpe:300")
        folder = run / "checkpoint"
        config = json.loads((folder / "tokenizer_config.json").read_text())
        (folder / "tokenizer_config.json").write_text(json.dumps({**config, "add_bos_token": True, "bos_token": "<s>"}))
        bos = self.json("tokenize", folder, "--text", "hi")["ids"][0]
        (folder / "chat_template.jinja").write_text(TEMPLATE)
        self.assertEqual(self.json("tokenize", folder, "--chat", "--text", "hi")["ids"].count(bos), 1)
        self.assertEqual(self.json("tokenize", folder, "--chat", "--text", "<s>hi")["ids"].count(bos), 2)
        answer = self.json("chat", folder, "--max-tokens", 1, stdin="hi\n")["answers"][0]
        self.assertEqual(answer["prompt_tokens"], len(self.json("tokenize", folder, "--chat", "--text", "hi")["ids"]))
        (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
        self.assertEqual(self.json("tokenize", folder, "--chat", "--text", "hi")["ids"].count(bos), 0)

    def test_other_templates_and_variables(self):
        other = self.file("other.jinja", "{{ style }}{{ bos_token }}{{ messages[0].content }}")
        self.assertEqual(self.run_ok("tokenize", self.model, "--chat", "--text", "hi", "--print", "--template", other, "--variables", '{"style": "x"}').stdout, "x<|bos|>hi")
        (self.model / "chat_template.jinja").unlink()
        self.put("tokenizer_config.json", json.dumps({"chat_template": "from the configuration"}))
        self.assertEqual(self.run_ok("tokenize", self.model, "--chat", "--text", "hi", "--print").stdout, "from the configuration")
        self.put("tokenizer_config.json", "{}")
        self.assert_refused("tokenize", self.model, "--chat", "--text", "hi", status=2, says=["has no chat template", "--template"])

    def test_refusals(self):
        self.assert_refused("tokenize", self.model, "--chat", "--text", "hi", "--messages", "m.json", status=2, says=["--messages"])
        self.assert_refused("tokenize", self.model, "--chat", status=2, says=["--messages"])
        for flag in (["--print"], ["--no-generation-prompt"], ["--template", "x"], ["--variables", "{}"]):
            self.assert_refused("tokenize", self.model, "--text", "hi", *flag, status=2, says=[flag[0], "--chat"])
        self.assert_refused("tokenize", self.model, "--chat", "--text", "hi", "--no-special", status=2, says=["--no-special"])
        bad = self.file("m.json", '[{"role": "ghost", "content": "x"}]')
        self.assert_refused("tokenize", self.model, "--chat", "--messages", bad, status=2, says=["line 4", "unknown role ghost"])
        self.assert_refused("tokenize", self.model, "--chat", "--messages", self.file("e.json", "[]"), status=2, says=["messages"])
        self.assert_refused("tokenize", self.model, "--chat", "--text", "x", "--variables", "[]", status=2, says=["variables"])
        self.put("chat_template.jinja", "\n{% if %}")
        self.assert_refused("tokenize", self.model, "--chat", "--text", "x", status=2, says=["chat_template.jinja: line 2"])
        self.put("chat_template.jinja", "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}")
        self.assert_refused("tokenize", self.model, "--chat", "--text", "x", status=2, says=["too many steps"])


class Chat(Models):
    def chat(self, *lines, more=()):
        return self.json("chat", self.model, "--temperature", 0, "--max-tokens", 12, *more, stdin="\n".join(lines) + "\n")

    def answer(self, prompt: str) -> dict:
        """What `generate` says to a prompt that is written out."""
        return self.json("generate", self.model, "--prompt", prompt, "--temperature", 0, "--max-tokens", 12)

    def test_a_conversation_is_its_rendered_text(self):
        document = self.chat("hi", "and then?")
        self.assertEqual(set(document), {"messages", "answers"})
        first = self.answer("<|bos|>U: hi\nA:")
        second = self.answer(f"<|bos|>U: hi\nA: {first['text']}\nU: and then?\nA:")
        self.assertEqual([(m["role"], m["content"]) for m in document["messages"]],
                         [("user", "hi"), ("assistant", first["text"]), ("user", "and then?"), ("assistant", second["text"])])
        self.assertEqual([a["tokens"] for a in document["answers"]], [first["tokens"], second["tokens"]])
        for answer in document["answers"]:
            self.assertEqual(set(answer), {"tokens", "finish_reason", "prompt_tokens", "reused_tokens", "timings"})

    def test_a_beginning_in_common_is_not_fed_again(self):
        # The template writes the answer as the model did.
        self.put("chat_template.jinja", "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")
        document = self.chat("ab", "cd")
        first, second = document["answers"]
        self.assertEqual((first["prompt_tokens"], first["reused_tokens"]), (3, 0))
        # All but the last token of the answer has been fed.
        self.assertEqual((second["prompt_tokens"], second["reused_tokens"]), (3 + len(first["tokens"]) + 2, 3 + len(first["tokens"]) - 1))
        text = document["messages"][1]["content"]
        self.assertEqual(second["tokens"], self.answer(f"<|bos|>ab{text}cd")["tokens"])

    def test_commands(self):
        fresh = self.chat("hi")["messages"]
        self.assertEqual(self.chat("first", "/reset", "hi")["messages"], fresh)
        system = [{"role": "system", "content": "Be kind."}]
        self.assertEqual(self.chat("hi", more=("--system", "Be kind."))["messages"][:1], system)
        self.assertEqual(self.chat("x", "/system Be kind.", "hi")["messages"], self.chat("hi", more=("--system", "Be kind."))["messages"])
        self.assertEqual(self.chat("x", "/reset", "hi", more=("--system", "Be kind."))["messages"][:1], system)
        self.assertEqual(self.chat("/system", "hi", more=("--system", "Be kind."))["messages"], fresh)
        self.assertEqual(self.chat("hi", "/exit", "more")["messages"], fresh)
        self.assertEqual(self.chat("", "hi\r")["messages"], fresh)
        self.assertEqual(self.chat("//exit")["messages"][0]["content"], "/exit")
        told = self.run_ok("chat", self.model, stdin="/nothing\n/help\n")
        self.assertIn("/nothing is no command", told.stderr)
        self.assertEqual(told.stderr.count("/reset"), 2)
        self.assertEqual(told.stdout, "")

    def test_streamed(self):
        first, second = (a["content"] for a in self.chat("hi", "so")["messages"][1::2])
        self.assertEqual(self.run_ok("chat", self.model, "--temperature", 0, "--max-tokens", 12, stdin="hi\nso\n").stdout, f"{first}\n{second}\n")

    def test_seeds(self):
        said = [self.json("chat", self.run_folder, "--seed", seed, "--max-tokens", 30, stdin="a\nb\n")["messages"] for seed in (1, 1, 2)]
        self.assertEqual(said[0], said[1])
        self.assertNotEqual(said[0], said[2])
        # The same text gets another answer in the next turn.
        self.put("chat_template.jinja", "{{ messages[-1].content }}")
        messages = self.json("chat", self.run_folder, "--max-tokens", 30, stdin="a\na\n")["messages"]
        self.assertNotEqual(messages[1]["content"], messages[3]["content"])

    def test_end_tokens_of_the_configuration(self):
        whole = self.chat("hi")["answers"][0]["tokens"]
        stop = whole[3]
        for ids in (stop, [999, stop]):
            self.put("generation_config.json", json.dumps({"eos_token_id": ids}))
            answer = self.chat("hi")["answers"][0]
            self.assertEqual((answer["tokens"], answer["finish_reason"]), (whole[:whole.index(stop)], "stop"))
            self.assertEqual(self.answer("<|bos|>U: hi\nA:")["tokens"], answer["tokens"])
        self.put("generation_config.json", json.dumps({"eos_token_id": "x"}))
        self.assert_refused("chat", self.model, status=2, says=["generation_config.json: eos_token_id"])

    def test_refusals(self):
        self.assert_refused("chat", "gpt2", status=2, says=["has no weights"])
        self.assert_refused("chat", self.model, "--max-tokens", 0, status=2, says=["--max-tokens"])
        self.assert_refused("chat", self.model, "--temperature", -1, status=2, says=["temperature"])
        self.assert_refused("chat", self.model, "--context", 20, status=2, says=["conversation", "--context"], stdin="x" * 30 + "\n")
        (self.model / "chat_template.jinja").unlink()
        self.assert_refused("chat", self.model, status=2, says=["has no chat template", "--template"])
        other = self.file("t.jinja", "{{ messages|length }}")
        self.assertEqual(self.json("chat", self.model, "--template", other, "--max-tokens", 1, stdin="x\n")["answers"][0]["prompt_tokens"], 1)
        self.put("chat_template.jinja", "{{ raise_exception('no') }}")
        self.assert_refused("chat", self.model, status=2, says=["refuses the conversation: no"], stdin="x\n")
        tokenizer = self.model / "tokenizer.json"
        kept = tokenizer.read_bytes()
        self.addCleanup(lambda: tokenizer.write_bytes(kept))
        tokenizer.unlink()
        self.assert_refused("chat", self.model, status=2, says=["has no tokenizer"])

    def test_an_interrupt_ends_the_answer_only(self):
        self.put("chat_template.jinja", "{{ bos_token }}{{ messages[-1].content }}")
        whole = self.json("chat", self.model, "--temperature", 0, "--max-tokens", CONTEXT, stdin="The \n")["messages"][1]["content"]
        self.assertGreater(len(whole), 200)
        talk = subprocess.Popen([BIN, "chat", self.model, "--temperature", "0", "--max-tokens", str(CONTEXT), "--threads", "1"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(talk.kill)
        # Its answer is seen to have begun.
        talk.stdin.write(b"The \n")
        talk.stdin.flush()
        begun = os.read(talk.stdout.fileno(), 1)
        talk.send_signal(signal.SIGINT)
        rest, errors = talk.communicate(b"king\n", timeout=60)
        self.assertEqual(talk.returncode, 0, errors)
        first = (begun + rest).split(b"\n")[0]
        self.assertLess(len(first), len(whole.encode()))
        self.assertTrue(whole.encode().startswith(first), first)


if __name__ == "__main__":
    main()
