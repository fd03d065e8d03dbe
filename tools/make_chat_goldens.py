#!/usr/bin/env python3
"""Writes tests/goldens/text/chat_templates.json: templates, variables, and what jinja2 makes of them with transformers' settings.

    python tools/make_chat_goldens.py                        # writes the file
    python tools/make_chat_goldens.py --check                # makes it again and compares
    python tools/make_chat_goldens.py --compare PROGRAM [--cases N] [--seed S] [--templates FILE]
        # random templates and values through build/release/bin/render_templates and through jinja2; FILE: a JSON list of
        # chat templates to compare as well, each with several conversations

Needs the packages of PINNED (pip install transformers==5.24.0 jinja2==3.1.6); the tests that read the file need none of them.
The templates are ours, in the manner of those that models are published with.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
import warnings
from pathlib import Path

PINNED = {"transformers": "5.24.0", "jinja2": "3.1.6"}
PATH = Path(__file__).resolve().parent.parent / "tests/goldens/text/chat_templates.json"

warnings.simplefilter("ignore")  # of Python about the code that jinja2 makes
sys.path.insert(0, str(Path(__file__).resolve().parent))
from goldens.chat_templates import CHATS, CONSTRUCTS, CONVERSATIONS, FAMILIES, TOOLS  # noqa: E402
from goldens.random_templates import RandomTemplates  # noqa: E402


def rendered(template, variables):
    from transformers.utils.chat_template_utils import _compile_jinja_template

    try:
        return {"output": _compile_jinja_template(template).render(**variables)}
    except Exception as error:  # whatever it is: the template or the values are refused
        return {"error": f"{type(error).__name__}: {error}"}


def chat_rendered(case):
    """A conversation as tokenizer.apply_chat_template renders it."""
    from transformers.utils import chat_template_utils as utils

    more = dict(case["more"])
    texts, _ = utils.render_jinja_template(
        conversations=[utils._normalize_chat_messages(case["messages"])], tools=more.pop("tools", None), documents=more.pop("documents", None),
        chat_template=case["template"], add_generation_prompt=case["add_generation_prompt"], **more)
    return texts[0]


def variables_of(conversation, tools, generation):
    return {"messages": conversation, "tools": tools, "documents": None, "add_generation_prompt": generation, "bos_token": "<s>", "eos_token": "</s>"}


def conversations_with(template):
    """Every conversation, with and without tools and a generation prompt; tools only where the template looks at them."""
    for conversation, generation in itertools.product(CONVERSATIONS, (True, False)):
        for tools in (None, TOOLS) if "tools" in template else (None,):
            yield variables_of(conversation, tools, generation)


def document():
    cases = []
    for name, template in FAMILIES.items():
        seen = set()
        for variables in conversations_with(template):
            answer = rendered(template, variables)
            # One case an outcome: most families answer several conversations in the same way.
            if json.dumps(answer) not in seen:
                seen.add(json.dumps(answer))
                cases.append({"name": name, "template": template, "variables": variables, **answer})
    for template, variables in CONSTRUCTS:
        cases.append({"name": "construct", "template": template, "variables": variables, **rendered(template, variables)})
    chats = [{**case, "output": chat_rendered(case)} for case in CHATS]
    return {"made_with": PINNED, "cases": cases, "chats": chats}


def written():
    # Templates and variables of a family repeat: they stand once each, and the cases name them by their place.
    made = document()
    templates, variables = [], []
    for case in made["cases"]:
        for key, store in (("template", templates), ("variables", variables)):
            if case[key] not in store:
                store.append(case[key])
            case[key] = store.index(case[key])
    return json.dumps({**made, "templates": templates, "variables": variables}, ensure_ascii=False, indent=1) + "\n"


# What the interpreter says where it knowingly does less than jinja2.
LESS = ("complex number", "beyond 64 bits", "not supported", "cannot print", "too many steps", "too long a text", "too much memory", "too deeply", "there is no filter", "there is no test",
        "has no attribute or item \"__")


def compare(program, cases):
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run([program], input=lines, capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.split("\n")[:-1]]
    if done.returncode != 0:
        crashed = cases[len(answers)] if len(answers) < len(cases) else None
        sys.exit(f"error: {program}: ended with status {done.returncode} at {json.dumps(crashed)}\n{done.stderr}")
    different = refused = errors = 0
    for case, answer in zip(cases, answers, strict=True):
        if any(part in answer.get("error", "") for part in LESS):
            refused += 1
            continue
        wanted = rendered(case["template"], case["variables"])
        if "TemplateAssertionError" in wanted.get("error", "") and "output" in answer:
            refused += 1  # a name that only jinja2 looks at, since its place is never reached
            continue
        errors += "error" in wanted
        if ("error" in wanted) != ("error" in answer) or wanted.get("output") != answer.get("output"):
            different += 1
            if different <= 20:
                print(json.dumps({**case, "wanted": wanted, "got": answer}, ensure_ascii=False))
    print(f"{len(cases)} cases: {different} differ; {errors} are errors for both; {refused} ask for what is not supported")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--compare", metavar="PROGRAM")
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.compare:
        made = RandomTemplates(random.Random(arguments.seed))
        cases = [made.case() for _ in range(arguments.cases)]
        if arguments.templates:
            for template in json.loads(Path(arguments.templates).read_text(encoding="utf-8")):
                cases += [{"template": template, "variables": v} for v in conversations_with(template)]
        sys.exit(1 if compare(arguments.compare, cases) else 0)
    if arguments.check:
        sys.exit(0 if PATH.read_text(encoding="utf-8") == written() else f"error: {PATH}: differs from what these versions make")
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(written(), encoding="utf-8")


if __name__ == "__main__":
    main()
