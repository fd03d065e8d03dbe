#include "text/jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "text/jinja/access.h"
#include "text/jinja/arithmetic.h"
#include "text/jinja/characters.h"
#include "text/jinja/format.h"
#include "text/jinja/sorting.h"

namespace transept::jinja {
namespace {

struct Call {
  Heap& heap;
  const Value& value;
  Taker& take;
  Arguments& arguments;

  std::string text() const { return to_text(heap, value); }
  Value make(std::string bytes) const { return jinja::text(heap, std::move(bytes)); }
};

// What a lazy filter of jinja2 gives: it is read once, and an error waits until it is met.
template <class Fill>
Value iterator(Call& c, const Fill& fill) {
  std::vector<Value> items;
  std::string failure;
  try {
    fill(items);
  } catch (const TemplateError& e) {
    failure = e.what();
  }
  const auto sequence = std::make_shared<Sequence>(&c.heap, Sequence::Kind::kIterator, std::move(items));
  sequence->failure = std::move(failure);
  c.arguments = {};
  return sequence;
}

// ---- text

template <std::string (*map)(std::string_view)>
Value mapped_text(Call& c) {
  const std::string s = c.text();
  c.heap.step(8 * s.size());  // several look-ups a character
  return c.make(map(s));
}

// jinja2's own: a word begins at the start and behind - white space ( { [ <.
Value title_filter(Call& c) {
  const std::string s = c.text();
  c.heap.step(s.size());
  std::string out;
  const auto begins = [](char32_t ch) {
    return is_space(ch) || ch == '-' || ch == '(' || ch == '{' || ch == '[' || ch == '<';
  };
  for (size_t at = 0; at < s.size();) {
    size_t end = at;
    while (end < s.size() && begins(character_at(s, end))) end += character_bytes(s[end]);
    out.append(s, at, end - at);
    if (end >= s.size()) break;
    at = end + character_bytes(s[end]);
    out += upper(std::string_view(s).substr(end, at - end));
    for (end = at; end < s.size() && !begins(character_at(s, end));) end += character_bytes(s[end]);
    out += lower(std::string_view(s).substr(at, end - at));
    at = end;
  }
  return c.make(std::move(out));
}

Value trim_filter(Call& c) {
  const std::optional<Value> set = c.take.take("chars");
  const std::string s = c.text();
  if (!set || is_none(*set)) return c.make(std::string(strip(s)));
  const std::string* characters = as_text(*set);
  if (!characters) throw TemplateError("trim needs a string, not a " + kind_name(*set));
  c.heap.step(s.size() * std::max<size_t>(characters->size(), 1));
  return c.make(std::string(strip_left(strip_right(s, *characters), *characters)));
}

Value replace_filter(Call& c) {
  const std::string s = c.text(), from = to_text(c.heap, c.take.need("old")), to = to_text(c.heap, c.take.need("new"));
  const std::optional<Value> limit = c.take.take("count");
  const auto most = limit ? as_integer(*limit) : std::nullopt;
  if (limit && !is_none(*limit) && !most) throw TemplateError("replace: \"count\" must be an integer");
  return c.make(replaced(c.heap, s, from, to, most.value_or(-1)));
}

Value escape_filter(Call& c) {
  std::string out;
  const std::string s = c.text();
  c.heap.step(s.size());
  for (const char ch : s) {
    switch (ch) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += ch;
    }
  }
  return c.make(std::move(out));
}

Value indent_filter(Call& c) {
  const std::optional<Value> width = c.take.take("width");
  const bool first = c.take.flag("first", false), blank = c.take.flag("blank", false);
  const std::string* given = width ? as_text(*width) : nullptr;
  std::string indention = given ? *given : "";
  if (!given) {
    const std::optional<int64_t> n = width ? as_integer(*width) : std::optional<int64_t>(4);
    if (!n) throw TemplateError("indent needs an integer or a string, not a " + kind_name(*width));
    if (*n > static_cast<int64_t>(kMaxOutput)) throw TemplateError("makes too long a text");
    indention.assign(static_cast<size_t>(std::max<int64_t>(*n, 0)), ' ');
  }
  require_defined(c.value);
  if (!as_text(c.value)) throw TemplateError("indent needs a string, not a " + kind_name(c.value));
  const std::string s = c.text() + "\n";
  const Held room(&c.heap, s.size() * sizeof(std::string_view));
  std::string out = first ? indention : "";
  bool begun = false;
  for (const std::string_view line : split_lines(s)) {
    if (begun) {
      out += '\n';
      if (blank || !line.empty()) out += indention;
    }
    begun = true;
    out += line;
    c.heap.step(line.size() + indention.size());
    if (out.size() > kMaxOutput) throw TemplateError("makes too long a text");
  }
  return c.make(std::move(out));
}

Value format_filter(Call& c) {
  const std::string s = c.text();
  Value values;
  if (!c.arguments.named.empty()) {
    if (!c.arguments.positional.empty()) throw TemplateError("format takes values or named values, not both");
    std::vector<std::pair<Value, Value>> entries;
    for (auto& [name, value] : c.arguments.named) entries.emplace_back(jinja::text(c.heap, name), std::move(value));
    values = dict(c.heap, std::move(entries));
  } else {
    values = list(c.heap, std::move(c.arguments.positional), Sequence::Kind::kTuple);
  }
  c.arguments = {};
  return c.make(percent_format(c.heap, s, values));
}

Value join_filter(Call& c) {
  const std::optional<Value> d = c.take.take("d"), path = c.take.take("attribute");
  const std::string between = d ? to_text(c.heap, *d) : "";
  std::string out;
  bool first = true;
  for (const Value& item : iterate(c.heap, c.value)) {
    if (!std::exchange(first, false)) out += between;
    out += to_text(c.heap, path ? at_path(c.heap, item, *path) : item);
    c.heap.step(between.size());
    if (out.size() > kMaxOutput) throw TemplateError("makes too long a text");
  }
  return c.make(std::move(out));
}

Value tojson_filter(Call& c) {
  JsonStyle style;
  style.ascii = c.take.flag("ensure_ascii", false);
  const std::optional<Value> indent = c.take.take("indent"), separators = c.take.take("separators");
  style.sort_keys = c.take.flag("sort_keys", false);
  if (indent && !is_none(*indent)) {
    const auto n = as_integer(*indent);
    const std::string* s = as_text(*indent);
    if (!n && !s) throw TemplateError("tojson: \"indent\" must be an integer or a string, not a " + kind_name(*indent));
    if (n && *n > 1000) throw TemplateError("tojson: \"indent\" is too large");
    style.indent = s ? *s : std::string(static_cast<size_t>(std::max<int64_t>(*n, 0)), ' ');
    style.item_separator = ",";
  }
  if (separators && !is_none(*separators)) {
    const std::vector<Value> pair = iterate(c.heap, *separators);
    if (pair.size() != 2 || !as_text(pair[0]) || !as_text(pair[1]))
      throw TemplateError("tojson: \"separators\" must be two strings");
    style.item_separator = *as_text(pair[0]);
    style.key_separator = *as_text(pair[1]);
  }
  return c.make(json_text(c.heap, c.value, style));
}

// ---- numbers

std::optional<int64_t> parse_integer(std::string_view s, int64_t base) {
  s = strip(s);
  const bool minus = s.starts_with('-');
  if (minus || s.starts_with('+')) s.remove_prefix(1);
  std::string plain;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '_' && (i == 0 || i + 1 == s.size() || s[i - 1] == '_')) return std::nullopt;
    if (s[i] != '_') plain += s[i];
  }
  const auto prefixed = [&](char letter, int64_t of) {
    if (base != of || plain.size() < 2 || plain[0] != '0' || (plain[1] | 0x20) != letter) return;
    plain.erase(0, 2);
  };
  prefixed('x', 16);
  prefixed('o', 8);
  prefixed('b', 2);
  if (minus) plain.insert(0, 1, '-');
  int64_t value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value, static_cast<int>(base));
  if (error == std::errc::result_out_of_range) throw TemplateError("an integer goes beyond 64 bits");
  if (plain.empty() || error != std::errc() || end != plain.data() + plain.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_float(std::string_view s) {
  std::string plain;
  s = strip(s);
  for (size_t i = 0; i < s.size(); ++i) {
    const bool digits =
        i > 0 && i + 1 < s.size() && s[i - 1] >= '0' && s[i - 1] <= '9' && s[i + 1] >= '0' && s[i + 1] <= '9';
    if (s[i] == '_' && !digits) return std::nullopt;
    if (s[i] != '_') plain += s[i];
  }
  const std::string word = lower(plain.substr(plain.starts_with('-') || plain.starts_with('+') ? 1 : 0));
  const bool named = word == "inf" || word == "infinity" || word == "nan";
  if (!named && (plain.empty() || plain.find_first_not_of("0123456789+-.eE") != plain.npos)) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  return end == plain.c_str() + plain.size() ? std::optional(value) : std::nullopt;
}

Value int_filter(Call& c) {
  const std::optional<Value> fallback = c.take.take("default");
  const int64_t base = c.take.integer("base", 10);
  require_defined(c.value);
  const auto truncated = [&](double d) -> Value {
    if (!std::isfinite(d)) return fallback.value_or(int64_t{0});
    if (!(std::abs(d) < 9.2e18)) throw TemplateError("an integer goes beyond 64 bits");
    return static_cast<int64_t>(d);
  };
  if (const auto i = as_integer(c.value)) return *i;
  if (const double* d = std::get_if<double>(&c.value)) {
    // Python's int(inf) raises an OverflowError, which jinja2 lets through.
    if (std::isinf(*d)) throw TemplateError("infinity is no integer");
    return truncated(*d);
  }
  if (const std::string* s = as_text(c.value)) {
    if (base != 2 && base != 8 && base != 10 && base != 16) throw TemplateError("int: base must be 2, 8, 10 or 16");
    if (const auto i = parse_integer(*s, base)) return *i;
    if (const auto d = parse_float(*s)) return truncated(*d);
  }
  return fallback.value_or(int64_t{0});
}

Value float_filter(Call& c) {
  const std::optional<Value> fallback = c.take.take("default");
  require_defined(c.value);
  if (is_number(c.value)) return as_double(c.value);
  const std::string* s = as_text(c.value);
  if (const auto d = s ? parse_float(*s) : std::nullopt) return *d;
  return fallback.value_or(0.0);
}

Value abs_filter(Call& c) {
  require_defined(c.value);
  if (!is_number(c.value)) throw TemplateError("a " + kind_name(c.value) + " has no absolute value");
  if (const double* d = std::get_if<double>(&c.value)) return std::abs(*d);
  const int64_t i = *as_integer(c.value);
  return i < 0 ? negative(c.value) : Value(i);
}

// Python's round: to the nearest, halves to the even digit, as the decimal digits of the number itself have it.
double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 320) return value;
  if (digits < -310) return std::copysign(0.0, value);
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  char buffer[1024];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, static_cast<int>(digits));
  return std::strtod(std::string(buffer, end).c_str(), nullptr);
}

Value round_filter(Call& c) {
  const int64_t digits = c.take.integer("precision", 0);
  const std::string method = c.take.string("method").value_or("common");
  require_defined(c.value);
  if (method != "common" && method != "ceil" && method != "floor")
    throw TemplateError("round: method must be common, ceil or floor");
  if (!is_number(c.value)) throw TemplateError("cannot round a " + kind_name(c.value));
  if (method == "common") {
    if (std::holds_alternative<double>(c.value)) return rounded(std::get<double>(c.value), digits);
    const int64_t i = *as_integer(c.value);
    if (digits >= 0) return i;
    if (digits < -18) return int64_t{0};
    int64_t unit = 1;
    for (int64_t d = digits; d < 0; ++d) unit *= 10;
    const int64_t down = std::get<int64_t>(binary(c.heap, Binary::kFloorDivide, i, unit)), rest = i - down * unit;
    const bool up = rest * 2 > unit || (rest * 2 == unit && down % 2 != 0);
    return binary(c.heap, Binary::kMultiply, up ? down + 1 : down, unit);
  }
  const double unit = std::pow(10.0, static_cast<double>(digits)), scaled = as_double(c.value) * unit;
  const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  if (!std::isfinite(scaled) || unit == 0) throw TemplateError("cannot round that number");
  return whole / unit;
}

// ---- sequences

Value first_filter(Call& c) {
  const auto* s = std::get_if<SequencePtr>(&c.value);
  if (s && !(*s)->sized() && (*s)->next < (*s)->items.size()) return (*s)->items[(*s)->next++];
  const std::vector<Value> items = iterate(c.heap, c.value);
  return items.empty() ? undefined("there is no first item: the sequence is empty") : items.front();
}

Value last_filter(Call& c) {
  if (const Sequence* s = as_sequence(c.value); s && !s->sized())
    throw TemplateError("an iterator has no last item: make it a list");
  const std::vector<Value> items = iterate(c.heap, c.value);
  return items.empty() ? undefined("there is no last item: the sequence is empty") : items.back();
}

Value reverse_filter(Call& c) {
  if (const std::string* s = as_text(c.value)) {
    c.heap.step(s->size());
    const Held room(&c.heap, s->size() * sizeof(std::string_view));
    const auto characters = characters_of(*s);
    std::string out;
    for (auto it = characters.rbegin(); it != characters.rend(); ++it) out += *it;
    return c.make(std::move(out));
  }
  const Sequence* s = as_sequence(c.value);
  std::vector<Value> items = iterate(c.heap, c.value);
  std::reverse(items.begin(), items.end());
  // What cannot be walked backwards becomes a list in jinja2.
  if (s && !s->sized()) return list(c.heap, std::move(items));
  return iterator(c, [&](std::vector<Value>& out) { out = std::move(items); });
}

Value items_filter(Call& c) {
  return iterator(c, [&](std::vector<Value>& out) {
    if (is_undefined(c.value)) return;
    const Dict* d = as_dict(c.value);
    if (!d) throw TemplateError("items needs a dict, not a " + kind_name(c.value));
    for (const auto& [key, value] : d->entries) out.push_back(list(c.heap, {key, value}, Sequence::Kind::kTuple));
  });
}

Value map_filter(Call& c) {
  return iterator(c, [&](std::vector<Value>& out) {
    if (!truth(c.value)) return;
    if (c.arguments.positional.empty()) {
      const Value path = c.take.need("attribute");
      const std::optional<Value> fallback = c.take.take("default");
      c.take.finish();
      for (const Value& item : iterate(c.heap, c.value))
        out.push_back(at_path(c.heap, item, path, fallback ? &*fallback : nullptr));
      return;
    }
    Arguments rest = std::exchange(c.arguments, {});
    const Value name = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    if (!as_text(name)) throw TemplateError("map needs the name of a filter");
    for (const Value& item : iterate(c.heap, c.value)) out.push_back(apply_filter(c.heap, *as_text(name), item, rest));
  });
}

// select, reject, selectattr, rejectattr.
template <bool keep, bool by_path>
Value choose(Call& c) {
  return iterator(c, [&](std::vector<Value>& out) {
    if (!truth(c.value)) return;
    const Value path = by_path ? c.take.need("") : Value(None{});
    const std::optional<std::string> test = c.take.string("");
    Arguments rest;
    while (auto more = c.take.take("")) rest.positional.push_back(std::move(*more));
    rest.named = std::exchange(c.arguments.named, {});
    for (Value& item : iterate(c.heap, c.value)) {
      const Value seen = by_path ? at_path(c.heap, item, path) : item;
      if ((test ? apply_test(c.heap, *test, seen, rest) : truth(seen)) == keep) out.push_back(std::move(item));
    }
  });
}

// What items are ordered and told apart by: an attribute, and lower case unless case matters.
class Keys {
 public:
  Keys(Heap& heap, bool case_sensitive, std::optional<Value> path)
      : heap_(heap), case_sensitive_(case_sensitive), path_(std::move(path)) {}
  Value of(const Value& item) const { return folded(path_ ? at_path(heap_, item, *path_) : item); }
  Value folded(Value v) const {
    const std::string* s = case_sensitive_ ? nullptr : as_text(v);
    return s ? text(heap_, lower(*s)) : v;
  }

 private:
  Heap& heap_;
  bool case_sensitive_;
  std::optional<Value> path_;
};

// Places of the keys in ascending order; equal ones stay as they are, also when it is turned.
std::vector<size_t> sorted(Heap& heap, const std::vector<Value>& keys, bool descending) {
  return sorted_places(keys.size(), [&](size_t a, size_t b) {
    return order(heap, keys[descending ? b : a], keys[descending ? a : b]) == Order::kLess;
  });
}

Value sort_filter(Call& c) {
  const bool descending = c.take.flag("reverse", false), case_sensitive = c.take.flag("case_sensitive", false);
  const std::optional<Value> path = c.take.take("attribute");
  // One attribute, or several with commas between: the keys are lists of them.
  std::vector<Keys> parts;
  const std::string* names = path ? as_text(*path) : nullptr;
  for (std::string_view rest = names ? *names : std::string_view();;) {
    const size_t comma = rest.find(',');
    parts.emplace_back(c.heap, case_sensitive,
                       names ? std::optional(c.make(std::string(rest.substr(0, comma)))) : path);
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  const std::vector<Value> items = iterate(c.heap, c.value);
  std::vector<Value> by, out;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const Keys& part : parts) key.push_back(part.of(item));
    by.push_back(list(c.heap, std::move(key)));
  }
  for (const size_t place : sorted(c.heap, by, descending)) out.push_back(items[place]);
  return list(c.heap, std::move(out));
}

Value dictsort_filter(Call& c) {
  const bool case_sensitive = c.take.flag("case_sensitive", false);
  const std::string by = c.take.string("by").value_or("key");
  const bool descending = c.take.flag("reverse", false);
  if (by != "key" && by != "value") throw TemplateError("dictsort: \"by\" must be \"key\" or \"value\"");
  const Dict* d = as_dict(c.value);
  require_defined(c.value);
  if (!d) throw TemplateError("dictsort needs a dict, not a " + kind_name(c.value));
  const Keys keys(c.heap, case_sensitive, std::nullopt);
  std::vector<Value> seen, out;
  for (const auto& [key, value] : d->entries) seen.push_back(keys.folded(by == "key" ? key : value));
  for (const size_t place : sorted(c.heap, seen, descending)) {
    const auto& [key, value] = d->entries[place];
    out.push_back(list(c.heap, {key, value}, Sequence::Kind::kTuple));
  }
  return list(c.heap, std::move(out));
}

Value unique_filter(Call& c) {
  const bool case_sensitive = c.take.flag("case_sensitive", false);
  const Keys keys(c.heap, case_sensitive, c.take.take("attribute"));
  return iterator(c, [&](std::vector<Value>& out) {
    std::vector<Value> seen;
    for (Value& item : iterate(c.heap, c.value)) {
      Value key = keys.of(item);
      require_hashable(key);
      if (std::any_of(seen.begin(), seen.end(), [&](const Value& v) { return equal(c.heap, v, key); })) continue;
      seen.push_back(std::move(key));
      out.push_back(std::move(item));
    }
  });
}

template <Order wanted>
Value extreme(Call& c) {
  const bool case_sensitive = c.take.flag("case_sensitive", false);
  const Keys keys(c.heap, case_sensitive, c.take.take("attribute"));
  Value best = undefined("there is no such item: the sequence is empty");
  std::optional<Value> best_key;
  for (Value& item : iterate(c.heap, c.value)) {
    Value key = keys.of(item);
    if (best_key && order(c.heap, key, *best_key) != wanted) continue;
    best_key = std::move(key);
    best = std::move(item);
  }
  return best;
}

Value sum_filter(Call& c) {
  const std::optional<Value> path = c.take.take("attribute"), start = c.take.take("start");
  Value total = start.value_or(int64_t{0});
  if (as_text(total)) throw TemplateError("sum does not add strings; use join");
  for (const Value& item : iterate(c.heap, c.value))
    total = binary(c.heap, Binary::kAdd, total, path ? at_path(c.heap, item, *path) : item);
  return total;
}

Value default_filter(Call& c) {
  const std::optional<Value> fallback = c.take.take("default_value");
  const bool also_false = c.take.flag("boolean", false);
  if (is_undefined(c.value) || (also_false && !truth(c.value))) return fallback ? *fallback : c.make("");
  return c.value;
}

struct Filter {
  std::string_view name;
  Value (*run)(Call&);
};

Value length_filter(Call& c) { return length(c.heap, c.value); }
Value string_filter(Call& c) { return c.make(c.text()); }

constexpr Filter kFilters[] = {
    {"abs", abs_filter},
    {"capitalize", mapped_text<capitalize>},
    {"count", length_filter},
    {"d", default_filter},
    {"default", default_filter},
    {"dictsort", dictsort_filter},
    {"e", escape_filter},
    {"escape", escape_filter},
    {"first", first_filter},
    {"float", float_filter},
    {"forceescape", escape_filter},
    {"format", format_filter},
    {"indent", indent_filter},
    {"int", int_filter},
    {"items", items_filter},
    {"join", join_filter},
    {"last", last_filter},
    {"length", length_filter},
    {"list", [](Call& c) { return list(c.heap, iterate(c.heap, c.value)); }},
    {"lower", mapped_text<lower>},
    {"map", map_filter},
    {"max", extreme<Order::kGreater>},
    {"min", extreme<Order::kLess>},
    {"reject", choose<false, false>},
    {"rejectattr", choose<false, true>},
    {"replace", replace_filter},
    {"reverse", reverse_filter},
    {"round", round_filter},
    {"safe", string_filter},
    {"select", choose<true, false>},
    {"selectattr", choose<true, true>},
    {"sort", sort_filter},
    {"string", string_filter},
    {"sum", sum_filter},
    {"title", title_filter},
    {"tojson", tojson_filter},
    {"trim", trim_filter},
    {"unique", unique_filter},
    {"upper", mapped_text<upper>},
};

}  // namespace

Value apply_filter(Heap& heap, std::string_view name, const Value& value, Arguments arguments) {
  for (const Filter& filter : kFilters) {
    if (filter.name != name) continue;
    heap.step();
    Taker taker(filter.name, arguments);
    Call c{heap, value, taker, arguments};
    Value result = filter.run(c);
    taker.finish();
    return result;
  }
  throw TemplateError("there is no filter \"" + std::string(name) + "\"");
}

}  // namespace transept::jinja
