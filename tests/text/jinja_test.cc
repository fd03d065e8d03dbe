#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/rng.h"
#include "support/goldens.h"
#include "support/throws.h"
#include "text/jinja/template.h"

namespace transept {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string render(std::string_view source, const Json& variables = Json::object()) {
  return JinjaTemplate::parse(source, "chat_template").render(variables);
}
std::string error(std::string_view source, const Json& variables = Json::object()) {
  return input_error([&] { render(source, variables); });
}

const Json& golden() {
  static const Json document = read_json(goldens() / "text/chat_templates.json");
  return document;
}

TEST(Jinja, AgreesWithJinja2) {
  int outputs = 0, errors = 0;
  for (const Json& c : golden().at("cases")) {
    const auto source = golden().at("templates").at(c.at("template").get<size_t>()).get<std::string>();
    const Json& variables = golden().at("variables").at(c.at("variables").get<size_t>());
    if (c.contains("output")) {
      ++outputs;
      std::string got;
      try {
        got = render(source, variables);
      } catch (const InputError& e) {
        got = e.what();
      }
      EXPECT_EQ(got, c.at("output").get<std::string>()) << source;
    } else {
      ++errors;
      EXPECT_THAT(error(source, variables), StartsWith("chat_template: line ")) << source << c.at("error");
    }
  }
  EXPECT_GE(outputs, 300);
  EXPECT_GE(errors, 80);
}

TEST(Jinja, ErrorsSayTheLineAndWhat) {
  EXPECT_EQ(error("a\nb\n{{ 1 / 0 }}"), "chat_template: line 3: a division by zero");
  EXPECT_THAT(error("{% if a %}\n\n{{ b.c }}{% endif %}", {{"a", 1}}),
              AllOf(HasSubstr("line 3"), HasSubstr("\"b\" is undefined")));
  EXPECT_THAT(error("\n{% for x in [1] %}\n  {{ x | nothing }}{% endfor %}"),
              AllOf(HasSubstr("line 3"), HasSubstr("no filter \"nothing\"")));
  EXPECT_THAT(error("\n\n{{ 'a"), AllOf(HasSubstr("line 3"), HasSubstr("not closed")));
  EXPECT_THAT(error("{% if a %}\n\n"), HasSubstr("ends before {% endif %}"));
  EXPECT_THAT(error("{{ a ! b }}"), HasSubstr("\"!\" is not expected"));
}

TEST(Jinja, RaisedMessagesAreTheError) {
  EXPECT_EQ(error("x\n{{ raise_exception('roles must ' ~ 'alternate') }}"),
            "chat_template: line 2: refuses the conversation: roles must alternate");
}

TEST(Jinja, WhatIsNotSupportedIsNamed) {
  for (const char* tag : {"block a", "extends 'a'", "include 'a'", "import 'a' as b", "from 'a' import b",
                          "autoescape true", "do f()", "trans"}) {
    EXPECT_THAT(error("{% " + std::string(tag) + " %}"), HasSubstr("is not supported")) << tag;
  }
  EXPECT_THAT(error("{% for a in b recursive %}{% endfor %}"), HasSubstr("recursive loops are not supported"));
  EXPECT_THAT(error("{{ 9223372036854775807 + 1 }}"), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(error("{{ 99999999999999999999 }}"), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(error("{{ a }}", {{"a", UINT64_MAX}}), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(error("{{ '{:>4}'.format(1) }}"), HasSubstr("not supported"));
}

TEST(Jinja, NothingIsUnbounded) {
  const std::vector<std::string> sources = {
      "{{ range(10**9) }}",
      "{{ 'a' * 10**9 }}",
      "{{ [0] * 10**12 }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ 'a'|indent(10**12) }}",
      "{{ [1]|tojson(indent=10**9) }}",
      "{{ 1|round(10**9) }}{{ 2.5|round(-10**9, 'ceil') }}",
      "{% set ns = namespace(a='aaaaaaaa') %}{% for i in range(90) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(90) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(90) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a }}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(90) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ ns.a|tojson "
      "}}",
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(90) %}{% set ns.a = [ns.a, ns.a] %}"
      "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
      "{% set ns = namespace(a=[1]) %}{% for i in range(1000) %}{% set ns.a = [ns.a] %}{% endfor %}",
      "{% set ns = namespace(a={}) %}{% for i in range(1000) %}{% set ns.a = {'k': ns.a} %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
      "{% macro m() %}{{ caller() }}{% endmacro %}{% macro r() %}{% call m() %}{{ r() }}{% endcall %}{% endmacro %}{{ "
      "r() }}",
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% for a in range(100000) %}{% for b in range(1000) %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
      "{% set a = 'ab' * 10**7 %}{% for i in range(100000) %}{{ (a|upper)[0] }}{% endfor %}",
      "{% set a = 'a' * 10**7 %}{{ a.rfind('b' ~ a) }}{% for i in range(100000) %}{{ a.count('aab') }}{% endfor %}",
      "{% set a = 'a' * 10**7 %}{{ (a ~ 'b').rpartition('c' ~ a)|length }}{{ a|replace('', a) }}",
      "{{ ('a ' * 10**8).split() }}",
      "{{ ('a' * 10**8)|list }}",
      "{% set l = range(100000)|list %}{{ l|unique|list|length }}",
      "{% set l = range(100000)|list %}{% for i in l %}{{ -1 in l }}{% endfor %}",
      "{% set ns = namespace() %}{% for i in range(100000) %}{% set ns.x = namespace(a=ns) %}{% macro m() %}"
      "{% endmacro %}{% endfor %}{% for i in range(100000) %}{% for j in range(100000) %}{{ namespace() }}{% endfor "
      "%}{% endfor %}",
      "{{ strftime_now('%9999d' * 100) }}",
      "{{ 2 ** 10**9 }}",
      "{{ " + std::string(200000, '(') + std::string(200000, ')') + " }}",
      "{{ " + std::string(200000, '[') + " }}",
      "{{ " + std::string(200000, '-') + "1 }}",
      "{{ 1" +
          [] {
            std::string s;
            for (int i = 0; i < 100000; ++i) s += " + 1";
            return s;
          }() +
          " }}",
      "{{ a" +
          [] {
            std::string s;
            for (int i = 0; i < 100000; ++i) s += ".b";
            return s;
          }() +
          " }}",
      "{{ a" +
          [] {
            std::string s;
            for (int i = 0; i < 100000; ++i) s += "|list";
            return s;
          }() +
          " }}",
      [] {
        std::string s;
        for (int i = 0; i < 100000; ++i) s += "{% if a %}";
        return s;
      }(),
      "{{ " +
          [] {
            std::string s;
            for (int i = 0; i < 100000; ++i) s += "not ";
            return s;
          }() +
          "1 }}",
      "{{ 1" +
          [] {
            std::string s;
            for (int i = 0; i < 100000; ++i) s += " if 1 else 1";
            return s;
          }() +
          " }}",
  };
  for (const std::string& source : sources)
    EXPECT_THAT(error(source), StartsWith("chat_template: line ")) << source.substr(0, 200);
}

TEST(Jinja, DeepButSaneTemplatesPass) {
  // As deep as the bounds allow and far deeper than any template: the stack must hold it under sanitizers as well.
  EXPECT_EQ(render("{{ " + std::string(90, '(') + "1" + std::string(90, ')') + " }}"), "1");
  EXPECT_EQ(render("{% macro m(n) %}{% if n %}{{ n }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(50) }}").size(), 91U);
  std::string sum = "{{ 0";
  for (int i = 0; i < 250; ++i) sum += " + 1";
  EXPECT_EQ(render(sum + " }}"), "250");
  std::string branches = "{% if a == 0 %}";
  for (int i = 1; i < 5000; ++i) branches += "{% elif a == " + std::to_string(i) + " %}" + std::to_string(i);
  EXPECT_EQ(render(branches + "{% endif %}", {{"a", 4999}}), "4999");
}

TEST(Jinja, SortingIsStableAndHoldsWhateverItIsTold) {
  EXPECT_EQ(render("{{ [[2, 'a'], [1, 'b'], [2, 'c'], [1, 'd']]|sort(attribute=0)|map(attribute=1)|join }}"), "bdac");
  EXPECT_EQ(
      render("{{ [[2, 'a'], [1, 'b'], [2, 'c'], [1, 'd']]|sort(attribute=0, reverse=true)|map(attribute=1)|join }}"),
      "acbd");
  // Numbers that are none have no order.
  EXPECT_EQ(render("{{ (range(300)|map('float')|list + ['nan'|float] * 300)|sort|length }}"), "600");
  EXPECT_EQ(
      render("{% set ns = namespace(l=[]) %}{% for i in range(400) %}"
             "{% set ns.l = ns.l + ['nan'|float if i is odd else i * 7919 % 400] %}{% endfor %}{{ ns.l|sort|length }}"),
      "400");
}

TEST(Jinja, LongConversationsAreFarFromTheBounds) {
  Json messages = Json::array();
  for (int i = 0; i < 1000; ++i)
    messages.push_back({{"role", i % 2 ? "assistant" : "user"}, {"content", std::string(1000, 'x')}});
  const std::string text = render(
      "{% set ns = namespace(all='') %}{% for m in messages %}{% set ns.all = ns.all + '<|' + m['role'] + '|>' + "
      "m['content']|trim + '\\n' %}{% endfor %}{{ ns.all }}",
      {{"messages", messages}});
  EXPECT_GT(text.size(), 1000000U);
}

TEST(Jinja, TheTimeIsNow) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  EXPECT_EQ(render("{{ strftime_now('%Y') }}"), std::to_string(1900 + parts.tm_year));
  EXPECT_EQ(render("{{ strftime_now('') }}"), "");
}

TEST(Jinja, AnyBytesAreATemplateOrRefused) {
  EXPECT_THAT(error("\xFF"), HasSubstr("UTF-8"));
  EXPECT_THAT(error("{{ a }}", {{"a", "\xC3("}}), HasSubstr("UTF-8"));
  EXPECT_THAT(error("{{ '\\ud800' }}"), HasSubstr("no character"));
  const std::vector<std::string> words = {
      "{{",   "}}",     "{%",    "%}",  "{#",    "#}",       "-",      "+",      " ",    "\n",
      "a",    "if",     "endif", "for", "in",    "x",        "endfor", "set",    "=",    "(",
      ")",    "[",      "]",     "{",   "}",     "'",        "\"",     "|",      "trim", ".",
      "0",    "1e5",    "raw",   "not", "is",    "macro",    "call",   "~",      "*",    ",",
      "else", "endraw", "map",   "**",  "\\u00", "\xC3\xA9", ":",      "tojson", "loop", "namespace"};
  const CounterRng rng(11, Stream::kTest);
  uint64_t draw = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string source;
    for (uint64_t n = rng.below(draw++, 25); n > 0; --n) source += words[rng.below(draw++, words.size())];
    EXPECT_TRUE(loads_or_refuses([&] { render(source, {{"a", {1, "x"}}, {"x", "y"}}); })) << source;
  }
  // Real templates, damaged.
  for (int i = 0; i < 3000; ++i) {
    const Json& templates = golden().at("templates");
    auto source = templates.at(rng.below(draw++, templates.size())).get<std::string>();
    if (source.empty()) continue;
    const size_t at = rng.below(draw++, source.size());
    if (i % 3 == 0)
      source.resize(at);
    else if (i % 3 == 1)
      source.erase(at, 1 + rng.below(draw++, 8));
    else
      source[at] = static_cast<char>(rng.below(draw++, 256));
    EXPECT_TRUE(loads_or_refuses([&] { render(source, golden().at("variables").at(0)); })) << source;
  }
}

}  // namespace
}  // namespace transept
