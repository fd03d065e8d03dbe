"""Random templates and values: expressions, statements, white space and broken text, of the language of text/jinja."""

NAMES = ["a", "b", "c", "d", "n", "s", "t", "u", "xs", "m", "ms", "missing"]
FILTERS = ["trim", "upper", "lower", "title", "capitalize", "length", "list", "first", "last", "reverse", "string", "tojson", "int", "float", "abs", "sum",
           "min", "max", "sort", "unique", "join", "items", "dictsort", "count", "round", "tojson(indent=2)", "join(', ')", "default('x')",
           "default('', true)", "replace('a', 'bb')", "indent(2)", "indent(3, true)", "map('upper')", "map(attribute='k')", "select", "reject('none')",
           "selectattr('k')", "selectattr('k', 'equalto', 1)", "rejectattr('k', 'defined')", "select('string')", "map(attribute='k', default=0)", "sort(reverse=true)",
           "sort(attribute='k')", "round(1)", "tojson(sort_keys=true)", "tojson(separators=(',', ':'))", "map('length')", "tojson(ensure_ascii=true)", "format(1, 'x')",
           "trim('ab')", "int(default=7)", "int(base=16)", "replace('', '-')", "sum(start=2)", "dictsort(by='value')", "dictsort(reverse=true)", "round(2, 'floor')",
           "unique(case_sensitive=true)", "sort(case_sensitive=true)", "max(attribute='k')", "join('-', attribute='k')"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable", "sequence", "true", "false", "odd", "even", "upper",
         "lower", "equalto 1", "in [1, 'a']", "divisibleby 2", "sameas none", "eq('a')", "ne 2", "gt 1", "lt 'b'", "callable"]
METHODS = ["strip()", "lstrip()", "rstrip()", "upper()", "lower()", "title()", "capitalize()", "split()", "split('a')", "split(' ', 1)", "rsplit(None, 1)", "rsplit('a', 1)",
           "splitlines()", "startswith('a')", "endswith(('b', ' '))", "replace('a', 'c')", "replace('a', '', 1)", "find('b')", "rfind('a')", "count('a')", "strip('ab')",
           "join(['x', 'y'])", "items()", "keys()", "values()", "get('k')", "get('z', 5)", "index('a')", "partition('a')", "rpartition('a')", "removeprefix('a')",
           "isdigit()", "isspace()", "isupper()", "islower()", "append(1)", "pop()", "format(1, k=2)", "copy()", "removesuffix('b')", "update({})"]
STRINGS = ["''", "'a'", "'ab a'", "\" b\\n\"", "'\\'q\\\"'", "'é日本😀'", "'1'", "'-2.5'", "'%s|%5.2f'", "'{}-{k}'", "'x\\ty'", "'Ab cD-ef'", "'ß\\x00\\u00a0'", "'a\\nb\\n\\nc'"]
NUMBERS = ["0", "1", "2", "-1", "7", "3.5", "1e3", "-0.25", "1_000", "0x1F", "1e16", "1e-5", "100000000000"]
TEXT_FILTERS = ["trim", "upper", "lower", "title", "capitalize", "string", "replace('a', 'bb')", "replace('', '-')", "indent(2)", "indent(3, true)", "trim('ab')",
                "indent('> ', blank=true)", "reverse", "default('x', true)", "replace('a', '', 1)", "format(1, 'x')"]
TEXT_METHODS = ["strip()", "lstrip()", "rstrip()", "upper()", "lower()", "title()", "capitalize()", "replace('a', 'c')", "replace('', '.')", "strip('ab')", "join(['x', 'y'])",
                "removeprefix('a')", "removesuffix('b')", "strip(' \\n')", "split('a')[0]", "split()[-1]", "rstrip('\\n')", "partition(' ')[2]", "rpartition('a')[0]"]
LIST_FILTERS = ["reverse", "unique", "map('string')", "map('length')", "select", "reject('none')", "select('string')", "select('defined')", "map('upper')", "reject('number')", "sort",
                "select('in', [1, 'a', 'b'])", "map('default', 'x', true)", "map('trim')", "map('tojson')", "unique(case_sensitive=true)", "select('equalto', 1)", "sort(reverse=true)"]
MESSAGE_FILTERS = ["selectattr('role', 'equalto', 'user')", "rejectattr('role', 'equalto', 'user')", "map(attribute='role')", "map(attribute='k')", "selectattr('k')", "selectattr('z', 'defined')",
                   "rejectattr('k', 'none')", "map(attribute='z', default='?')", "selectattr('role', 'in', ['user'])", "sort(attribute='role')", "unique(attribute='role')", "map('items')|map('list')",
                   "groupby('role')", "selectattr('k', 'string')", "map('tojson')"]
FORMATS = ["'%s-%s' % (a, n)", "'%5.2f|%-4d|%04d' % (n, 3, 12)", "'{}-{}'.format(s, n)", "'{1}{0}'.format(1, s)", "'{k}'.format(k=s)", "'%s' % s", "'%r' % s", "'%x %o %e' % (255, 8, 0.5)",
           "'%(k)s' % m", "'%%%s' % (xs,)", "'%.1s|%6s' % (s, s)", "'%+d % d' % (3, 4)", "'%g' % 0.0001"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


class RandomTemplates:
    def __init__(self, rng):
        self.rng = rng

    def one(self, *choices):
        return self.rng.choice(choices)

    def value(self, depth=0):
        rng = self.rng
        kind = rng.randrange(10 if depth < 3 else 6)
        if kind == 0:
            return None
        if kind == 1:
            return rng.random() < 0.5
        if kind == 2:
            return rng.choice([0, 1, 2, -3, 17, 10**12])
        if kind == 3:
            return rng.choice([0.0, 1.0, -2.5, 0.1, 1e20, 1.5e-7, 123456.789, 2.675])
        if kind in (4, 5):
            return rng.choice(["", "a", "b", "ab", " a b ", "B", "Éa", "日本", "it's", "\"q\"", "1", "a\nb", "<b>&", "x\u2028y", "\x07", "ǆ straße"])
        if kind in (6, 7):
            return [self.value(depth + 1) for _ in range(rng.randrange(4))]
        return {rng.choice(["k", "a", "z", "name", "items", "é"]): self.value(depth + 1) for _ in range(rng.randrange(4))}

    def variables(self):
        rng = self.rng
        made = {name: self.value() for name in ["a", "b", "c", "d"]}
        made.update(n=rng.choice([0, 1, 3, -2, 2.5]), s=rng.choice(["", "ab", " A b\n", "Éa日"]), t=True, u=None,
                    xs=[rng.choice([1, 2, 3, 0.5]) for _ in range(rng.randrange(5))] if rng.random() < 0.7 else [rng.choice(["b", "a", "B", "c"]) for _ in range(4)],
                    m={key: self.value(1) for key in rng.sample(["k", "a", "z", "items"], rng.randrange(1, 4))},
                    ms=[{"k": rng.choice([1, 2, "a", None]), "role": rng.choice(["user", "assistant"])} for _ in range(rng.randrange(4))])
        return made

    def atom(self, kind):
        rng = self.rng
        if kind == "text":
            return rng.choice(STRINGS) if rng.random() < 0.6 else "s"
        if kind == "number":
            return rng.choice(NUMBERS) if rng.random() < 0.7 else "n"
        if kind == "list":
            return self.one("xs", "xs", "ms", "[]", "[1, 2]", "['b', 'A', 'a']", "range(3)|list", "()", "(1, 'a')")
        if kind == "dict":
            return self.one("m", "m", "{}", "{'k': 1, 'a': 'b'}", "dict(k=1)", "dict(m, z=2)")
        if kind == "truth":
            return self.one("true", "false", "t", "none")
        return rng.choice(NAMES)

    def expression(self, depth=0, kind=None):
        """Mostly of the kind that is asked for, so that most templates get past their first expression."""
        rng = self.rng
        kind = kind or self.one("text", "text", "number", "list", "dict", "truth", "any")
        if depth > 3 or rng.random() < 0.2:
            return self.atom(kind)
        if rng.random() < 0.06:
            return self.wild(depth)
        of = lambda wanted: self.expression(depth + 1, wanted)  # noqa: E731
        anything = lambda: of(self.one("text", "number", "list", "dict", "truth", "any"))  # noqa: E731
        if rng.random() < 0.1:
            return f"({of(kind)} if {of('truth')} else {of(kind)})"
        if kind == "text":
            return rng.choice([
                lambda: f"({of('text')})|{self.one(*TEXT_FILTERS)}", lambda: f"({of('text')}).{self.one(*TEXT_METHODS)}", lambda: f"({of('text')} + {of('text')})",
                lambda: f"({anything()} ~ {anything()})", lambda: f"({of('list')})|join({self.one('', repr('-'), 's')})",
                lambda: f"({anything()})|{self.one('tojson', 'tojson(indent=2)', 'string', 'tojson(sort_keys=false)', 'tojson(ensure_ascii=true)')}",
                lambda: f"({of('text')})[{self.slice()}]", lambda: f"({of('text')} * {self.one('0', '1', '3', '-1')})",
                lambda: f"({self.one(*FORMATS)})", lambda: f"({of('text')} or {of('text')})"])()
        if kind == "number":
            return rng.choice([
                lambda: f"({of('number')} {self.one('+', '-', '*', '/', '//', '%', '+', '-')} {of('number')})", lambda: f"({self.one('-', '+')}{of('number')})",
                lambda: f"({of(self.one('text', 'list', 'dict'))})|{self.one('length', 'count')}", lambda: f"({of('text')}).{self.one('count', 'find', 'rfind')}({self.one(*STRINGS)})",
                lambda: f"({of(self.one('text', 'number'))})|{self.one('int', 'float', 'int(5)', 'float(1.5)', 'int(base=16)', 'int(base=2)')}",
                lambda: f"({of('number')})|{self.one('abs', 'round', 'round(1)', 'round(2)', 'round(-1)', 'round(1, repr)').replace('repr', repr('ceil'))}",
                lambda: f"xs|{self.one('sum', 'min', 'max', 'first', 'last')}", lambda: f"({of('number')} ** {self.one('2', '0', '3', '-1', '0.5')})"])()
        if kind == "list":
            return rng.choice([
                lambda: "[" + ", ".join(anything() for _ in range(rng.randrange(4))) + "]", lambda: f"({of('list')})[{self.slice()}]", lambda: f"({of('list')} + {of('list')})",
                lambda: f"({of('text')}).{self.one('split()', 'splitlines()', 'split(chr)', 'rsplit(chr, 1)', 'split(none, 1)', 'partition(chr)').replace('chr', repr('a'))}",
                lambda: f"({of('list')})|{self.one(*LIST_FILTERS)}|list", lambda: f"({of('dict')})|{self.one('list', 'dictsort', 'items|list', 'dictsort(reverse=true)')}",
                lambda: f"({of('dict')}).{self.one('keys', 'values', 'items')}()|list", lambda: f"ms|{self.one(*MESSAGE_FILTERS)}|list", lambda: f"({of('text')})|list",
                lambda: f"({anything()}, {anything()})", lambda: f"range({self.one('3', '1, 4', '5, 0, -2', '0', '2, 9, 3')})|list"])()
        if kind == "dict":
            return "{" + ", ".join(f"{self.one(*STRINGS, *NUMBERS, 'none', 'true')}: {anything()}" for _ in range(rng.randrange(3))) + "}"
        if kind == "truth":
            return rng.choice([
                lambda: f"({of('number')} {self.one('<', '<=', '>', '>=', '==', '!=')} {of('number')})", lambda: f"({of('text')} {self.one('<', '==', '!=', '>=')} {of('text')})",
                lambda: f"({anything()} {self.one('==', '!=')} {anything()})", lambda: f"({of('text')} {self.one('in', 'not in')} {of(self.one('text', 'list', 'dict'))})",
                lambda: f"({anything()} is {self.one('', 'not ')}{self.one(*TESTS)})", lambda: f"(not {of('truth')})", lambda: f"({of('truth')} {self.one('and', 'or')} {of('truth')})",
                lambda: f"({of('text')}).{self.one('startswith', 'endswith')}({self.one(*STRINGS)})", lambda: f"({of('number')} < {of('number')} <= {of('number')})"])()
        return rng.choice([
            lambda: f"{self.one('m', 'a', 'ms[0]', 'missing')}.{self.one('k', 'a', 'items', 'z')}", lambda: f"({of('list')})[{self.one('0', '1', '-1', '9')}]",
            lambda: f"({of('dict')})[{self.one(*STRINGS)}]", lambda: f"({of('dict')}).get({self.one(*STRINGS)}{self.one('', ', 1')})", lambda: f"({of('list')})|{self.one('first', 'last')}",
            lambda: f"({anything()})|default({of('text')}{self.one('', ', true')})", lambda: f"({anything()} {self.one('and', 'or')} {anything()})",
            lambda: f"({of('text')})[{self.one('0', '-1', '99')}]", lambda: f"missing|default({anything()})"])()

    def wild(self, depth):
        """Of any kind, with anything done to it."""
        deeper = lambda: self.expression(depth + 1)  # noqa: E731
        pick = self.rng.randrange(8)
        if pick < 2:
            return f"{deeper()}|{self.rng.choice(FILTERS)}"
        if pick == 2:
            return f"{deeper()} {self.rng.choice(OPERATORS)} {deeper()}"
        if pick == 3:
            return f"({deeper()}).{self.rng.choice(METHODS)}"
        if pick == 4:
            return f"{deeper()} if {deeper()}"
        if pick == 5:
            return f"{self.rng.choice(NAMES)}[{deeper()}]"
        if pick == 6:
            return f"{self.one('not', '-', '+')} {deeper()}"
        return f"{self.rng.choice(NAMES)}.{self.one('k', 'a', 'items', 'z', '0', 'role', 'append', 'update')}"

    def slice(self):
        bound = lambda: self.one("", "0", "1", "-1", "2", "-3", "10")  # noqa: E731
        return f"{bound()}:{bound()}" + self.one("", ":", ":-1", ":2", ":-2", ":1", ":0")

    def text(self):
        return self.one("", " ", "\n", "x", "  \n  ", "\n\n", "a b", "\t", "é\r\n", "} %", "{ ", "  y\n")

    def tag(self, inside):
        return "{%" + self.one("", "", "", "-", "-", "+") + " " + inside + " " + self.one("", "", "", "-", "-", "+") + "%}"

    def statements(self, depth=0):
        return "".join(self.text() + self.statement(depth) + self.text() for _ in range(self.rng.randrange(1, 3 if depth < 2 else 2)))

    def statement(self, depth):
        rng = self.rng
        pick = rng.randrange(16 if depth < 3 else 6)
        body = lambda: self.statements(depth + 1)  # noqa: E731
        if pick < 4:
            return "{{" + self.one("", "-") + " " + self.expression() + " " + self.one("", "-") + "}}"
        if pick == 4:
            return self.tag(f"set {self.one('x', 'y', 'ns.q', 'x, y')} = {self.expression(1)}")
        if pick == 5:
            return self.one("{# note #}", "{#- note -#}", "{# a\n b #}\n", "{% raw %} {{ x }} {% endraw %}", "{%- raw -%}\n {% y %}\n{%- endraw -%}", "  {%+ if a %}x{% endif +%}\n")
        if pick < 9:
            more = self.tag(f"elif {self.expression(2, 'truth')}") + body() if rng.random() < 0.3 else ""
            more += self.tag("else") + body() if rng.random() < 0.5 else ""
            return self.tag(f"if {self.expression(1, 'truth')}") + body() + more + self.tag("endif")
        if pick < 12:
            over = self.one("xs", "xs", "ms", "ms", "ms", "m", "m.items()", "range(3)", "s", "a", "xs[::-1]", "ms|selectattr('k', 'eq', 1)", "m|dictsort")
            target = self.one("x", "x", "k, v", "y")
            loop = "{{ loop." + self.one("index", "index0", "first", "last", "length", "revindex", "previtem", "nextitem", "cycle('p', 'q')", "changed(x)", "depth") + " }}"
            stop = self.tag(f"if {self.expression(2, 'truth')}") + self.tag(self.one("break", "continue")) + self.tag("endif") if rng.random() < 0.3 else ""
            end = self.tag("else") + body() if rng.random() < 0.2 else ""
            return self.tag(f"for {target} in {over}" + (f" if {self.expression(2, 'truth')}" if rng.random() < 0.2 else "")) + loop + stop + body() + end + self.tag("endfor")
        if pick == 12:
            return self.tag(f"set x" + self.one("", " | upper", "|trim|length")) + body() + self.tag("endset") + "{{ x }}"
        if pick == 13:
            call = self.one("f(1)", "f(1, q=2)", "f()", "f(q=a)", "f(1, 2)", "f(1, 2, 3)", "f(z=1)", "f(*xs)", "f(**m)")
            return self.tag(f"macro f(p, q={self.one('5', 'a', 'p')})") + "{{ p }}-{{ q }}" + self.one("", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}") + body() + self.tag(
                "endmacro") + self.one("{{ " + call + " }}", self.tag(f"call {call}") + "inner{{ p }}" + self.tag("endcall"))
        if pick == 14:
            return self.tag(f"with x = {self.expression(2)}, y = x") + "{{ x }}{{ y }}" + body() + self.tag("endwith")
        return self.tag("set ns = namespace(q=0)") + self.tag("for x in xs") + self.tag("set ns.q = ns.q + x") + self.tag("endfor") + "{{ ns.q }}" + self.one(
            "", self.tag("filter upper") + body() + self.tag("endfilter"), self.tag("generation") + body() + self.tag("endgeneration"))

    def case(self):
        template = self.statements()
        if self.rng.random() < 0.1:  # broken somewhere
            at = self.rng.randrange(len(template) + 1)
            template = template[:at] + self.rng.choice(["{%", "}}", "'", "(", "|", ".", "end", "{{", "", " ", "#}", "\\", "%"]) + template[at + self.rng.randrange(3):]
        return {"template": template, "variables": self.variables()}
