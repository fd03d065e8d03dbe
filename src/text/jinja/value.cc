#include "text/jinja/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/jinja/arguments.h"
#include "text/jinja/characters.h"
#include "text/utf8.h"

namespace transept::jinja {
namespace {

int depth_of(const Value& value) {
  if (const Sequence* s = as_sequence(value)) return s->depth;
  if (const Dict* d = as_dict(value)) return d->depth;
  return 0;
}

int deeper(int depth, const Value& inner) {
  depth = std::max(depth, 1 + depth_of(inner));
  if (depth > kMaxNesting) throw TemplateError("nests lists and dicts too deeply");
  return depth;
}

Order order_numbers(const Value& a, const Value& b) {
  const auto i = as_integer(a), j = as_integer(b);
  if (i && j) return *i < *j ? Order::kLess : *i == *j ? Order::kEqual : Order::kGreater;
  // An extended double holds every integer of 64 bits.
  const auto wide = [](const Value& v) {
    const auto whole = as_integer(v);
    return whole ? static_cast<long double>(*whole) : static_cast<long double>(std::get<double>(v));
  };
  const long double x = wide(a), y = wide(b);
  if (std::isnan(x) || std::isnan(y)) return Order::kNone;
  return x < y ? Order::kLess : x == y ? Order::kEqual : Order::kGreater;
}

bool set_like(Sequence::Kind kind) { return kind == Sequence::Kind::kKeys || kind == Sequence::Kind::kItems; }

bool equal_sequences(Heap& heap, const Sequence& a, const Sequence& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind == Sequence::Kind::kIterator || a.kind == Sequence::Kind::kValues) return false;
  const auto in_b = [&](const Value& item) {
    return std::any_of(b.items.begin(), b.items.end(), [&](const Value& other) { return equal(heap, item, other); });
  };
  if (set_like(a.kind)) return std::all_of(a.items.begin(), a.items.end(), in_b);
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(heap, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Heap& heap, const Dict& a, const Dict& b) {
  if (&a == &b) return true;
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(heap, key);
    if (!other || !equal(heap, value, *other)) return false;
  }
  return true;
}

std::string repr_text(std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  const auto hex = [&](const char* prefix, int digits, char32_t c) {
    out += prefix;
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[c >> shift & 15];
  };
  for (size_t at = 0; at < text.size(); at += character_bytes(text[at])) {
    const char32_t c = character_at(text, at);
    if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\\' || c == static_cast<unsigned char>(quote))
      (out += '\\') += static_cast<char>(c);
    else if (is_printable(c))
      append_character(out, c);
    else if (c < 0x100)
      hex("\\x", 2, c);
    else if (c < 0x10000)
      hex("\\u", 4, c);
    else
      hex("\\U", 8, c);
  }
  return out + quote;
}

// Writes Python's repr; gives up where it grows beyond what can be printed.
class ReprWriter {
 public:
  explicit ReprWriter(Heap& heap) : heap_(heap) {}
  std::string out;

  void write(const Value& value) {
    if (const std::string* s = as_text(value)) return put(repr_text(*s));
    if (const Sequence* s = as_sequence(value)) return write_sequence(*s);
    if (const Dict* d = as_dict(value)) return write_dict(*d);
    put(is_undefined(value) ? "Undefined" : to_text(heap_, value));
  }

 private:
  void put(std::string_view part) {
    heap_.copied(part.size());
    if (out.size() + part.size() > kMaxOutput) throw TemplateError("makes too long a text");
    out += part;
  }
  void write_items(const Sequence& s) {
    for (size_t i = 0; i < s.items.size(); ++i) {
      if (i > 0) put(", ");
      write(s.items[i]);
    }
  }
  void write_sequence(const Sequence& s) {
    const auto within = [&](const char* open, const char* close) {
      put(open);
      write_items(s);
      put(close);
    };
    switch (s.kind) {
      case Sequence::Kind::kList:
        return within("[", "]");
      case Sequence::Kind::kTuple:
        return within("(", s.items.size() == 1 ? ",)" : ")");
      case Sequence::Kind::kKeys:
        return within("dict_keys([", "])");
      case Sequence::Kind::kValues:
        return within("dict_values([", "])");
      case Sequence::Kind::kItems:
        return within("dict_items([", "])");
      case Sequence::Kind::kRange:
      case Sequence::Kind::kIterator:
        break;
    }
    throw TemplateError("cannot print " + std::string(s.kind == Sequence::Kind::kRange ? "a range" : "an iterator") +
                        ": make it a list");
  }
  void write_dict(const Dict& d) {
    put("{");
    for (size_t i = 0; i < d.entries.size(); ++i) {
      if (i > 0) put(", ");
      write(d.entries[i].first);
      put(": ");
      write(d.entries[i].second);
    }
    put("}");
  }
  Heap& heap_;
};

}  // namespace

Value Object::call(Heap&, Interpreter&, Arguments) {
  throw TemplateError("a " + std::string(type_name()) + " is not callable");
}

Sequence::Sequence(Heap* heap, Kind is, std::vector<Value> values)
    : held(heap, sizeof(Sequence) + values.capacity() * sizeof(Value)), kind(is), items(std::move(values)) {
  for (const Value& item : items) depth = deeper(depth, item);
}

Dict::Dict(Heap* heap, std::vector<std::pair<Value, Value>> pairs)
    : held(heap, sizeof(Dict) + pairs.capacity() * sizeof(pairs[0])), entries(std::move(pairs)) {
  for (const auto& [key, value] : entries) depth = deeper(deeper(depth, key), value);
}

const Value* Dict::find(Heap& heap, const Value& key) const {
  require_hashable(key);
  for (const auto& [k, value] : entries) {
    if (equal(heap, k, key)) return &value;
  }
  return nullptr;
}

const Value* Dict::find(Heap& heap, std::string_view key) const {
  heap.step(16 * entries.size());
  for (const auto& [k, value] : entries) {
    const std::string* name = as_text(k);
    if (name && *name == key) return &value;
  }
  return nullptr;
}

std::optional<Value> Namespace::attribute(Heap& heap, std::string_view name) {
  heap.step(16 * attributes_.size());
  for (const auto& [key, value] : attributes_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(Heap& heap, std::string_view name, Value value) {
  if (name.starts_with('_')) throw TemplateError("a namespace takes no name that begins with an underscore");
  heap.step(16 * attributes_.size());
  for (auto& [key, old] : attributes_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  attributes_.emplace_back(name, std::move(value));
}

Value undefined(std::string why) { return Undefined{std::make_shared<const std::string>(std::move(why))}; }

Value text(Heap& heap, std::string bytes) {
  heap.copied(bytes.size());
  return std::make_shared<const String>(&heap, std::move(bytes));
}

Value list(Heap& heap, std::vector<Value> items, Sequence::Kind kind) {
  heap.step(16 * items.size());
  return std::make_shared<Sequence>(&heap, kind, std::move(items));
}

Value dict(Heap& heap, std::vector<std::pair<Value, Value>> pairs) {
  std::vector<std::pair<Value, Value>> kept;
  for (auto& [key, value] : pairs) {
    require_hashable(key);
    const auto old = std::find_if(kept.begin(), kept.end(), [&](const auto& k) { return equal(heap, k.first, key); });
    if (old == kept.end())
      kept.emplace_back(std::move(key), std::move(value));
    else
      old->second = std::move(value);
  }
  return std::make_shared<const Dict>(&heap, std::move(kept));
}

Value from_json(Heap& heap, const Json& json, int depth) {
  if (depth > kMaxNesting) throw TemplateError("is given variables that nest too deeply");
  heap.step();
  const auto string = [&](const std::string& bytes) {
    if (!is_utf8(bytes)) throw TemplateError("is given a text that is no UTF-8");
    return text(heap, bytes);
  };
  switch (json.type()) {
    case Json::value_t::null:
      return None{};
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<int64_t>();
    case Json::value_t::number_unsigned: {
      const auto wide = json.get<uint64_t>();
      if (wide > static_cast<uint64_t>(INT64_MAX)) throw TemplateError("is given an integer beyond 64 bits");
      return static_cast<int64_t>(wide);
    }
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return string(json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json(heap, item, depth + 1));
      return list(heap, std::move(items));
    }
    case Json::value_t::object: {
      // Its keys differ already.
      std::vector<std::pair<Value, Value>> entries;
      entries.reserve(json.size());
      for (const auto& [key, value] : json.items())
        entries.emplace_back(string(key), from_json(heap, value, depth + 1));
      return std::make_shared<const Dict>(&heap, std::move(entries));
    }
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  throw TemplateError("is given a value that JSON has no form for");
}

bool is_undefined(const Value& value) { return std::holds_alternative<Undefined>(value); }
bool is_none(const Value& value) { return std::holds_alternative<None>(value); }
bool is_number(const Value& value) { return as_integer(value) || std::holds_alternative<double>(value); }

const std::string* as_text(const Value& value) {
  const auto* s = std::get_if<StringPtr>(&value);
  return s ? &(*s)->bytes : nullptr;
}
const Sequence* as_sequence(const Value& value) {
  const auto* s = std::get_if<SequencePtr>(&value);
  return s ? s->get() : nullptr;
}
const Dict* as_dict(const Value& value) {
  const auto* d = std::get_if<DictPtr>(&value);
  return d ? d->get() : nullptr;
}
Object* as_object(const Value& value) {
  const auto* o = std::get_if<ObjectPtr>(&value);
  return o ? o->get() : nullptr;
}
std::optional<int64_t> as_integer(const Value& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b ? 1 : 0;
  if (const int64_t* i = std::get_if<int64_t>(&value)) return *i;
  return std::nullopt;
}
double as_double(const Value& value) {
  const auto whole = as_integer(value);
  return whole ? static_cast<double>(*whole) : std::get<double>(value);
}

std::string kind_name(const Value& value) {
  if (is_none(value)) return "None";
  if (is_undefined(value)) return "undefined value";
  if (std::holds_alternative<bool>(value)) return "bool object";
  if (std::holds_alternative<int64_t>(value)) return "int object";
  if (std::holds_alternative<double>(value)) return "float object";
  if (as_text(value)) return "str object";
  if (as_dict(value)) return "dict object";
  if (Object* object = as_object(value)) return std::string(object->type_name()) + " object";
  switch (as_sequence(value)->kind) {
    case Sequence::Kind::kList:
      return "list object";
    case Sequence::Kind::kTuple:
      return "tuple object";
    case Sequence::Kind::kRange:
      return "range object";
    case Sequence::Kind::kKeys:
      return "dict_keys object";
    case Sequence::Kind::kValues:
      return "dict_values object";
    case Sequence::Kind::kItems:
      return "dict_items object";
    case Sequence::Kind::kIterator:
      break;
  }
  return "iterator";
}

void require_defined(const Value& value) {
  if (const auto* u = std::get_if<Undefined>(&value)) throw TemplateError(u->why ? *u->why : "a value is undefined");
}

// As far as values differ in it: lists and dicts have no hash, nor has a tuple of them.
bool is_hashable(const Value& value) {
  const Sequence* s = as_sequence(value);
  if (as_dict(value) || (s && s->kind == Sequence::Kind::kList)) return false;
  return !s || s->kind != Sequence::Kind::kTuple || std::all_of(s->items.begin(), s->items.end(), is_hashable);
}

void require_hashable(const Value& value) {
  if (!is_hashable(value)) throw TemplateError("a " + kind_name(value) + " cannot be a key");
}

bool truth(const Value& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b;
  if (is_number(value)) return as_double(value) != 0;
  if (const std::string* s = as_text(value)) return !s->empty();
  if (const Sequence* s = as_sequence(value)) return !s->sized() || !s->items.empty();
  if (const Dict* d = as_dict(value)) return !d->entries.empty();
  return as_object(value) != nullptr;
}

bool equal(Heap& heap, const Value& a, const Value& b) {
  heap.step();
  if (is_number(a) && is_number(b)) return order_numbers(a, b) == Order::kEqual;
  if (a.index() != b.index()) return false;
  if (is_undefined(a) || is_none(a)) return true;
  if (const std::string* s = as_text(a)) {
    const std::string& t = *as_text(b);
    if (s->size() == t.size()) heap.copied(s->size());
    return *s == t;
  }
  if (const Sequence* s = as_sequence(a)) return equal_sequences(heap, *s, *as_sequence(b));
  if (const Dict* d = as_dict(a)) return equal_dicts(heap, *d, *as_dict(b));
  return as_object(a) == as_object(b);
}

Order order(Heap& heap, const Value& a, const Value& b) {
  heap.step();
  if (is_number(a) && is_number(b)) return order_numbers(a, b);
  const std::string *s = as_text(a), *t = as_text(b);
  if (s && t) {
    heap.step(std::min(s->size(), t->size()));
    const int c = s->compare(*t);  // bytes of UTF-8 are ordered as characters are
    return c < 0 ? Order::kLess : c == 0 ? Order::kEqual : Order::kGreater;
  }
  const Sequence *x = as_sequence(a), *y = as_sequence(b);
  if (x && y && x->kind == y->kind && (x->kind == Sequence::Kind::kList || x->kind == Sequence::Kind::kTuple)) {
    for (size_t i = 0; i < std::min(x->items.size(), y->items.size()); ++i) {
      if (!equal(heap, x->items[i], y->items[i])) return order(heap, x->items[i], y->items[i]);
    }
    const size_t m = x->items.size(), n = y->items.size();
    return m < n ? Order::kLess : m == n ? Order::kEqual : Order::kGreater;
  }
  require_defined(a);
  require_defined(b);
  throw TemplateError("cannot order a " + kind_name(a) + " and a " + kind_name(b));
}

bool contains(Heap& heap, const Value& container, const Value& item) {
  if (const std::string* s = as_text(container)) {
    const std::string* part = as_text(item);
    if (!part) throw TemplateError("cannot look for a " + kind_name(item) + " in a str object");
    heap.step(s->size() / 4);
    return find_text(*s, *part) != std::string::npos;
  }
  if (const Dict* d = as_dict(container)) return d->find(heap, item) != nullptr;
  const std::vector<Value> items = iterate(heap, container);
  return std::any_of(items.begin(), items.end(), [&](const Value& v) { return equal(heap, v, item); });
}

int64_t length(Heap& heap, const Value& value) {
  if (is_undefined(value)) return 0;
  if (const std::string* s = as_text(value)) {
    heap.copied(s->size());
    return static_cast<int64_t>(count_characters(*s));
  }
  if (const Dict* d = as_dict(value)) return static_cast<int64_t>(d->entries.size());
  if (const Sequence* s = as_sequence(value); s && s->sized()) return static_cast<int64_t>(s->items.size());
  throw TemplateError("a " + kind_name(value) + " has no length");
}

std::vector<Value> iterate(Heap& heap, const Value& value) {
  std::vector<Value> items;
  if (is_undefined(value)) return items;
  if (const auto* s = std::get_if<SequencePtr>(&value)) {
    Sequence& from = **s;
    heap.step(16 * from.items.size());
    if (from.sized()) return from.items;
    items.assign(from.items.begin() + static_cast<std::ptrdiff_t>(from.next), from.items.end());
    from.next = from.items.size();
    if (!from.failure.empty()) throw TemplateError(from.failure);
    return items;
  }
  if (const Dict* d = as_dict(value)) {
    heap.step(16 * d->entries.size());
    for (const auto& [key, ignored] : d->entries) items.push_back(key);
    return items;
  }
  if (const std::string* s = as_text(value)) {
    const Held room(&heap, s->size() * sizeof(std::string_view));
    for (const std::string_view c : characters_of(*s)) items.push_back(text(heap, std::string(c)));
    return items;
  }
  throw TemplateError("a " + kind_name(value) + " is not iterable");
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // The fewest digits that read back the same, as Python has it; in positional form from 1e-4 up to 1e16.
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view whole(buffer, static_cast<size_t>(end - buffer));
  const size_t e = whole.find('e');
  int exponent = 0;
  const size_t sign = whole[e + 1] == '+' ? 2 : 1;
  std::from_chars(whole.data() + e + sign, end, exponent);
  const bool negative = whole[0] == '-';
  std::string digits;
  for (const char c : whole.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  std::string out = negative ? "-" : "";
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (n > 1) out += "." + digits.substr(1);
    const std::string power = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - n), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent + 1)) + "." +
         digits.substr(static_cast<size_t>(exponent + 1));
}

std::string to_text(Heap& heap, const Value& value) {
  if (is_undefined(value)) return {};
  if (is_none(value)) return "None";
  if (const bool* b = std::get_if<bool>(&value)) return *b ? "True" : "False";
  if (const int64_t* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (const double* d = std::get_if<double>(&value)) return float_text(*d);
  if (const std::string* s = as_text(value)) {
    heap.copied(s->size());
    return *s;
  }
  if (const Object* object = as_object(value))
    throw TemplateError("cannot print a " + std::string(object->type_name()));
  return repr(heap, value);
}

std::string repr(Heap& heap, const Value& value) {
  ReprWriter writer(heap);
  writer.write(value);
  return std::move(writer.out);
}

}  // namespace transept::jinja
