// The tests behind `is`.

#include "text/jinja/arithmetic.h"
#include "text/jinja/characters.h"
#include "text/jinja/filters.h"

namespace transept::jinja {
namespace {

struct Call {
  Heap& heap;
  const Value& value;
  Taker& take;
};

template <int rest>
bool halves_leave(Call& c) {
  const Value r = binary(c.heap, Binary::kModulo, c.value, int64_t{2});
  return is_number(r) && as_double(r) == rest;
}

bool is_sequence(const Value& v) {
  const Sequence* s = as_sequence(v);
  return is_undefined(v) || as_text(v) || as_dict(v) || (s && s->subscriptable());
}

template <Comparison op>
bool compares(Call& c) {
  return compare(c.heap, op, c.value, c.take.need(""));
}

// Python's `is`, for what has one identity however it came about.
bool same(Call& c) {
  const Value other = c.take.need("");
  if (c.value.index() != other.index()) return false;
  if (const auto* s = std::get_if<SequencePtr>(&c.value)) return *s == std::get<SequencePtr>(other);
  if (const auto* d = std::get_if<DictPtr>(&c.value)) return *d == std::get<DictPtr>(other);
  return equal(c.heap, c.value, other);
}

bool divides(Call& c) {
  const Value r = binary(c.heap, Binary::kModulo, c.value, c.take.need("num"));
  return is_number(r) && as_double(r) == 0;
}

bool has_case(Call& c, bool (*is)(std::string_view)) {
  const std::string s = to_text(c.heap, c.value);
  c.heap.step(s.size());
  return is(s);
}

struct Test {
  std::string_view name;
  bool (*run)(Call&);
};

constexpr Test kTests[] = {
    {"!=", compares<Comparison::kUnequal>},
    {"<", compares<Comparison::kLess>},
    {"<=", compares<Comparison::kLessEqual>},
    {"==", compares<Comparison::kEqual>},
    {">", compares<Comparison::kGreater>},
    {">=", compares<Comparison::kGreaterEqual>},
    {"boolean", [](Call& c) { return std::holds_alternative<bool>(c.value); }},
    {"callable",
     [](Call& c) { return is_undefined(c.value) || (as_object(c.value) && as_object(c.value)->callable()); }},
    {"defined", [](Call& c) { return !is_undefined(c.value); }},
    {"divisibleby", divides},
    {"eq", compares<Comparison::kEqual>},
    {"equalto", compares<Comparison::kEqual>},
    {"even", halves_leave<0>},
    {"false", [](Call& c) { return std::holds_alternative<bool>(c.value) && !std::get<bool>(c.value); }},
    {"float", [](Call& c) { return std::holds_alternative<double>(c.value); }},
    {"ge", compares<Comparison::kGreaterEqual>},
    {"greaterthan", compares<Comparison::kGreater>},
    {"gt", compares<Comparison::kGreater>},
    {"in", compares<Comparison::kIn>},
    {"integer", [](Call& c) { return std::holds_alternative<int64_t>(c.value); }},
    {"iterable",
     [](Call& c) { return is_undefined(c.value) || as_text(c.value) || as_dict(c.value) || as_sequence(c.value); }},
    {"le", compares<Comparison::kLessEqual>},
    {"lessthan", compares<Comparison::kLess>},
    {"lower", [](Call& c) { return has_case(c, is_lower_text); }},
    {"lt", compares<Comparison::kLess>},
    {"mapping", [](Call& c) { return as_dict(c.value) != nullptr; }},
    {"ne", compares<Comparison::kUnequal>},
    {"none", [](Call& c) { return is_none(c.value); }},
    {"number", [](Call& c) { return is_number(c.value); }},
    {"odd", halves_leave<1>},
    {"sameas", same},
    {"sequence", [](Call& c) { return is_sequence(c.value); }},
    {"string", [](Call& c) { return as_text(c.value) != nullptr; }},
    {"true", [](Call& c) { return std::holds_alternative<bool>(c.value) && std::get<bool>(c.value); }},
    {"undefined", [](Call& c) { return is_undefined(c.value); }},
    {"upper", [](Call& c) { return has_case(c, is_upper_text); }},
};

}  // namespace

bool apply_test(Heap& heap, std::string_view name, const Value& value, Arguments arguments) {
  for (const Test& test : kTests) {
    if (test.name != name) continue;
    heap.step();
    Taker taker(test.name, arguments);
    Call c{heap, value, taker};
    const bool result = test.run(c);
    taker.finish();
    return result;
  }
  throw TemplateError("there is no test \"" + std::string(name) + "\"");
}

}  // namespace transept::jinja
