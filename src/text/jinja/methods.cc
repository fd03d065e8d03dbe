#include "text/jinja/methods.h"

#include <algorithm>
#include <array>

#include "text/jinja/arguments.h"
#include "text/jinja/characters.h"
#include "text/jinja/format.h"

namespace transept::jinja {
namespace {

struct Call {
  Heap& heap;
  const Value& self;
  const std::string& text;  // of a string
  Taker& take;
  Arguments& arguments;
};

Value make_text(Call& c, std::string_view bytes) { return jinja::text(c.heap, std::string(bytes)); }

template <class F>
Value make_list(Call& c, const std::vector<std::string_view>& parts, const F& last, bool has_last) {
  std::vector<Value> items;
  for (const std::string_view part : parts) items.push_back(make_text(c, part));
  if (has_last) items.push_back(make_text(c, last));
  return list(c.heap, std::move(items));
}
Value make_list(Call& c, const std::vector<std::string_view>& parts) { return make_list(c, parts, "", false); }

std::string need_text(Call& c, std::string_view parameter) {
  auto s = c.take.string(parameter);
  if (!s) throw TemplateError("a method needs an argument \"" + std::string(parameter) + "\"");
  return std::move(*s);
}

Value cased(Call& c, std::string (*map)(std::string_view)) {
  c.heap.step(8 * c.text.size());  // several look-ups a character
  return jinja::text(c.heap, map(c.text));
}

enum class Side { kLeft, kRight, kBoth };
template <Side side>
Value strip_method(Call& c) {
  std::optional<Value> given = c.take.take("");
  std::string_view s = c.text;
  if (!given || is_none(*given)) {
    if (side != Side::kLeft) s = strip_right(s);
    if (side != Side::kRight) s = strip_left(s);
    return make_text(c, s);
  }
  const std::string* set = as_text(*given);
  if (!set) throw TemplateError("strip needs a string, not a " + kind_name(*given));
  c.heap.step(s.size() * std::max<size_t>(set->size(), 1));
  if (side != Side::kLeft) s = strip_right(s, *set);
  if (side != Side::kRight) s = strip_left(s, *set);
  return make_text(c, s);
}

// Parts between white space; at most `limit` splits, -1: all. What is left of a limited split keeps its end.
std::vector<std::string_view> split_at_space(std::string_view s, int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  const auto trim = [&] { s = from_right ? strip_right(s) : strip_left(s); };
  for (trim(); !s.empty(); trim()) {
    if (limit == 0) {
      parts.push_back(from_right ? strip_right(s) : s);
      break;
    }
    --limit;
    size_t end = 0;
    if (from_right) {
      end = s.size();
      while (end > 0) {
        size_t before = end - 1;
        while ((static_cast<unsigned char>(s[before]) & 0xC0) == 0x80) --before;
        if (is_space(character_at(s, before))) break;
        end = before;
      }
      parts.push_back(s.substr(end));
      s = s.substr(0, end);
    } else {
      while (end < s.size() && !is_space(character_at(s, end))) end += character_bytes(s[end]);
      parts.push_back(s.substr(0, end));
      s.remove_prefix(end);
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool from_right>
Value split_method(Call& c) {
  const std::optional<Value> given = c.take.take("sep");
  const int64_t limit = c.take.integer("maxsplit", -1);
  c.heap.step(c.text.size());
  const Held room(&c.heap, c.text.size() / 2 * sizeof(std::string_view));
  if (!given || is_none(*given)) return make_list(c, split_at_space(c.text, limit, from_right));
  const std::string* by = as_text(*given);
  if (!by) throw TemplateError("split needs a string, not a " + kind_name(*given));
  if (by->empty()) throw TemplateError("split needs a separator that is not empty");
  const std::string_view s = c.text;
  std::vector<std::string_view> parts;
  std::vector<size_t> places;
  if (from_right) {
    c.heap.step(s.size() * by->size());
    for (size_t end = s.size(); limit < 0 || static_cast<int64_t>(places.size()) < limit;) {
      if (end < by->size()) break;
      const size_t at = s.substr(0, end).rfind(*by);
      if (at == s.npos) break;
      places.push_back(at);
      end = at;
    }
    std::reverse(places.begin(), places.end());
  } else {
    for (size_t at = 0; limit < 0 || static_cast<int64_t>(places.size()) < limit; at += by->size()) {
      at = find_text(s, *by, at);
      if (at == s.npos) break;
      places.push_back(at);
    }
  }
  size_t begin = 0;
  for (const size_t at : places) {
    parts.push_back(s.substr(begin, at - begin));
    begin = at + by->size();
  }
  return make_list(c, parts, s.substr(begin), true);
}

// Whether the string begins, or ends, with the argument or one of a tuple of them.
template <bool end>
Value affix_method(Call& c) {
  const Value affix = c.take.need("");
  const auto fits = [&](const Value& v) {
    const std::string* s = as_text(v);
    if (!s) throw TemplateError("startswith and endswith need strings, not a " + kind_name(v));
    return end ? c.text.ends_with(*s) : c.text.starts_with(*s);
  };
  const Sequence* several = as_sequence(affix);
  if (!several || several->kind != Sequence::Kind::kTuple) return fits(affix);
  return std::any_of(several->items.begin(), several->items.end(), fits);
}

Value replace_method(Call& c) {
  const std::string from = need_text(c, ""), to = need_text(c, "");
  const int64_t limit = c.take.integer("", -1);
  return make_text(c, replaced(c.heap, c.text, from, to, limit));
}

template <bool last, bool required>
Value find_method(Call& c) {
  const std::string part = need_text(c, "");
  c.heap.step(c.text.size());
  size_t at = find_text(c.text, part);
  if (last && at != std::string::npos) {
    c.heap.step(c.text.size() * (part.size() + 1));
    at = c.text.rfind(part);
  }
  if (at == std::string::npos) {
    if (required) throw TemplateError("the text to find is not there");
    return int64_t{-1};
  }
  return static_cast<int64_t>(count_characters(std::string_view(c.text).substr(0, at)));
}

Value count_method(Call& c) {
  const std::string part = need_text(c, "");
  c.heap.step(c.text.size());
  if (part.empty()) return static_cast<int64_t>(count_characters(c.text)) + 1;
  int64_t count = 0;
  for (size_t at = find_text(c.text, part); at != std::string::npos; at = find_text(c.text, part, at + part.size()))
    ++count;
  return count;
}

Value join_method(Call& c) {
  std::string out;
  bool first = true;
  for (const Value& v : iterate(c.heap, c.take.need(""))) {
    const std::string* s = as_text(v);
    if (!s) throw TemplateError("join needs strings, not a " + kind_name(v));
    if (!std::exchange(first, false)) out += c.text;
    out += *s;
    c.heap.copied(c.text.size() + s->size());
    if (out.size() > kMaxBytes) throw TemplateError("takes too much memory");
  }
  return make_text(c, out);
}

template <bool last>
Value partition_method(Call& c) {
  const std::string by = need_text(c, "");
  if (by.empty()) throw TemplateError("partition needs a separator that is not empty");
  c.heap.step(c.text.size() * (last ? by.size() : 1));
  const std::string_view s = c.text;
  const size_t at = last ? s.rfind(by) : find_text(s, by);
  std::vector<Value> parts;
  if (at == s.npos) {
    parts = {make_text(c, last ? "" : s), make_text(c, ""), make_text(c, last ? s : "")};
  } else {
    parts = {make_text(c, s.substr(0, at)), make_text(c, by), make_text(c, s.substr(at + by.size()))};
  }
  return list(c.heap, std::move(parts), Sequence::Kind::kTuple);
}

template <bool end>
Value remove_affix_method(Call& c) {
  const std::string affix = need_text(c, "");
  std::string_view s = c.text;
  if (end ? s.ends_with(affix) : s.starts_with(affix))
    s = end ? s.substr(0, s.size() - affix.size()) : s.substr(affix.size());
  return make_text(c, s);
}

Value format_method(Call& c) {
  std::string out = brace_format(c.heap, c.text, c.arguments);
  c.arguments = {};
  return jinja::text(c.heap, std::move(out));
}

Value split_lines_method(Call& c) {
  if (c.take.flag("keepends", false)) throw TemplateError("splitlines with keepends is not supported");
  return make_list(c, split_lines(c.text));
}

// Every character is such a one, and there is one.
template <class Is>
bool all_characters(const std::string& s, const Is& is) {
  for (size_t at = 0; at < s.size(); at += character_bytes(s[at])) {
    if (!is(character_at(s, at))) return false;
  }
  return !s.empty();
}

Value get_method(Call& c) {
  const Value key = c.take.need("");
  const std::optional<Value> fallback = c.take.take("");
  const Value* found = as_dict(c.self)->find(c.heap, key);
  return found ? *found : fallback.value_or(None{});
}

template <Sequence::Kind kind>
Value view_method(Call& c) {
  std::vector<Value> items;
  for (const auto& [key, value] : as_dict(c.self)->entries) {
    if (kind == Sequence::Kind::kKeys) items.push_back(key);
    if (kind == Sequence::Kind::kValues) items.push_back(value);
    if (kind == Sequence::Kind::kItems) items.push_back(list(c.heap, {key, value}, Sequence::Kind::kTuple));
  }
  return list(c.heap, std::move(items), kind);
}

Value count_item_method(Call& c) {
  const Value wanted = c.take.need("");
  const auto& items = as_sequence(c.self)->items;
  return static_cast<int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& v) { return equal(c.heap, v, wanted); }));
}

Value index_item_method(Call& c) {
  const Value wanted = c.take.need("");
  const auto& items = as_sequence(c.self)->items;
  const auto at = std::find_if(items.begin(), items.end(), [&](const Value& v) { return equal(c.heap, v, wanted); });
  if (at == items.end()) throw TemplateError("the item to find is not there");
  return static_cast<int64_t>(at - items.begin());
}

struct Method {
  std::string_view name;
  Value (*run)(Call&);
};

constexpr Method kTextMethods[] = {
    {"capitalize", [](Call& c) { return cased(c, capitalize); }},
    {"count", count_method},
    {"endswith", affix_method<true>},
    {"find", find_method<false, false>},
    {"format", format_method},
    {"index", find_method<false, true>},
    {"isdigit",
     [](Call& c) -> Value { return all_characters(c.text, [](char32_t d) { return d >= '0' && d <= '9'; }); }},
    {"islower", [](Call& c) -> Value { return is_lower_text(c.text); }},
    {"isspace", [](Call& c) -> Value { return all_characters(c.text, is_space); }},
    {"isupper", [](Call& c) -> Value { return is_upper_text(c.text); }},
    {"join", join_method},
    {"lower", [](Call& c) { return cased(c, lower); }},
    {"lstrip", strip_method<Side::kLeft>},
    {"partition", partition_method<false>},
    {"removeprefix", remove_affix_method<false>},
    {"removesuffix", remove_affix_method<true>},
    {"replace", replace_method},
    {"rfind", find_method<true, false>},
    {"rindex", find_method<true, true>},
    {"rpartition", partition_method<true>},
    {"rsplit", split_method<true>},
    {"rstrip", strip_method<Side::kRight>},
    {"split", split_method<false>},
    {"splitlines", split_lines_method},
    {"startswith", affix_method<false>},
    {"strip", strip_method<Side::kBoth>},
    {"title", [](Call& c) { return cased(c, title); }},
    {"upper", [](Call& c) { return cased(c, upper); }},
};
constexpr Method kDictMethods[] = {
    {"copy", [](Call& c) { return c.self; }},         {"get", get_method},
    {"items", view_method<Sequence::Kind::kItems>},   {"keys", view_method<Sequence::Kind::kKeys>},
    {"values", view_method<Sequence::Kind::kValues>},
};
constexpr Method kListMethods[] = {
    {"copy", [](Call& c) { return c.self; }},
    {"count", count_item_method},
    {"index", index_item_method},
};
constexpr Method kTupleMethods[] = {
    {"count", count_item_method},
    {"index", index_item_method},
};
constexpr std::array kChangeDicts = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::array kChangeLists = {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};

class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, const Method& method) : self_(std::move(self)), method_(method) {}
  std::string_view type_name() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Heap& heap, Interpreter&, Arguments arguments) override {
    Taker taker(method_.name, arguments);
    static const std::string kNone;
    const std::string* s = as_text(self_);
    if (s) heap.step(s->size());
    Call c{heap, self_, s ? *s : kNone, taker, arguments};
    Value result = method_.run(c);
    taker.finish();
    return result;
  }

 private:
  Value self_;
  const Method& method_;
};

template <size_t N>
std::optional<Value> bound(const Value& self, std::string_view name, const Method (&methods)[N]) {
  const auto* m = std::find_if(std::begin(methods), std::end(methods), [&](const Method& x) { return x.name == name; });
  if (m == std::end(methods)) return std::nullopt;
  return std::make_shared<BoundMethod>(self, *m);
}

template <size_t N>
std::optional<Value> refused(const Value& self, std::string_view name, const std::array<const char*, N>& names) {
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return undefined("templates change no values: a " + kind_name(self) + " has no \"" + std::string(name) + "\" here");
}

}  // namespace

std::optional<Value> method(const Value& of, std::string_view name) {
  if (as_text(of)) return bound(of, name, kTextMethods);
  if (as_dict(of)) {
    auto m = bound(of, name, kDictMethods);
    return m ? m : refused(of, name, kChangeDicts);
  }
  const Sequence* s = as_sequence(of);
  if (s && s->kind == Sequence::Kind::kTuple) return bound(of, name, kTupleMethods);
  if (!s || s->kind != Sequence::Kind::kList) return std::nullopt;
  auto m = bound(of, name, kListMethods);
  return m ? m : refused(of, name, kChangeLists);
}

}  // namespace transept::jinja
