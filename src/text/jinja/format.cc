#include "text/jinja/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "text/jinja/access.h"
#include "text/jinja/characters.h"
#include "text/jinja/sorting.h"

namespace transept::jinja {
namespace {

constexpr int kMaxWidth = 1000;  // of a field

struct Field {
  bool left = false, zero = false, plus = false, blank = false, alternate = false;
  int width = 0, precision = -1;
};

std::string padded(std::string body, const Field& field, size_t sign_length) {
  const size_t have = count_characters(body), want = static_cast<size_t>(field.width);
  if (have >= want) return body;
  if (field.left) return body + std::string(want - have, ' ');
  if (field.zero) return body.insert(sign_length, want - have, '0');
  return std::string(want - have, ' ') + body;
}

std::string integer_field(int64_t value, char type, const Field& field) {
  char digits[72];
  const uint64_t size = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : 10;
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, size, base);
  std::string body(digits, end);
  if (type == 'X') body = upper(body);
  if (static_cast<int>(body.size()) < field.precision)
    body.insert(0, static_cast<size_t>(field.precision) - body.size(), '0');
  std::string sign = value < 0 ? "-" : field.plus ? "+" : field.blank ? " " : "";
  if (field.alternate && base != 10) sign += base == 8 ? "0o" : type == 'X' ? "0X" : "0x";
  return padded(sign + body, field, sign.size());
}

std::string float_field(double value, char type, const Field& field) {
  const std::string pattern = std::string("%") + (field.alternate ? "#" : "") + ".*" + type;
  const int precision = field.precision < 0 ? 6 : field.precision;
  std::string body(512 + static_cast<size_t>(precision), '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  body.resize(
      static_cast<size_t>(std::snprintf(body.data(), body.size(), pattern.c_str(), precision, std::abs(value))));
#pragma GCC diagnostic pop
  const std::string sign = std::signbit(value) && !std::isnan(value) ? "-" : field.plus ? "+" : field.blank ? " " : "";
  return padded(sign + body, field, sign.size());
}

class PercentFormatter {
 public:
  PercentFormatter(Heap& heap, std::string_view format, const Value& values)
      : heap_(heap), format_(format), values_(values), tuple_(as_sequence(values)) {
    if (tuple_ && tuple_->kind != Sequence::Kind::kTuple) tuple_ = nullptr;
  }

  std::string run() {
    while (at_ < format_.size()) {
      if (out_.size() > kMaxOutput) throw TemplateError("makes too long a text");
      heap_.step();
      if (format_[at_] != '%') {
        const size_t end = std::min(format_.find('%', at_), format_.size());
        out_ += format_.substr(at_, end - at_);
        at_ = end;
      } else {
        ++at_;
        conversion();
      }
    }
    // Python takes whatever has items, but no tuple and no string, for a mapping, of which some may be left.
    const bool mapping = !tuple_ && (as_dict(values_) || as_sequence(values_) || is_undefined(values_));
    if (next_ < (tuple_ ? tuple_->items.size() : 1) && !mapping)
      throw TemplateError("the format has fewer fields than there are values");
    return std::move(out_);
  }

 private:
  char take() {
    if (at_ >= format_.size()) throw TemplateError("the format ends inside a field");
    return format_[at_++];
  }

  Value next_value() {
    if (tuple_ ? next_ >= tuple_->items.size() : next_ > 0)
      throw TemplateError("the format has more fields than there are values");
    return tuple_ ? tuple_->items[next_++] : (++next_, values_);
  }

  int number() {
    int value = 0;
    while (at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9') {
      value = value * 10 + (format_[at_++] - '0');
      if (value > kMaxWidth) throw TemplateError("the format has a field of more than " + std::to_string(kMaxWidth));
    }
    return value;
  }

  void conversion() {
    std::optional<Value> value;
    if (at_ < format_.size() && format_[at_] == '(') {
      const size_t end = format_.find(')', at_);
      const Dict* d = as_dict(values_);
      if (end == format_.npos || !d) throw TemplateError("the format names a field, but is not given a dict");
      const std::string_view name = format_.substr(at_ + 1, end - at_ - 1);
      const Value* found = d->find(heap_, name);
      if (!found) throw TemplateError("the format has no value for \"" + std::string(name) + "\"");
      value = *found;
      at_ = end + 1;
    }
    Field field;
    for (bool flags = true; flags && at_ < format_.size();) {
      switch (format_[at_]) {
        case '-':
          field.left = true;
          break;
        case '0':
          field.zero = true;
          break;
        case '+':
          field.plus = true;
          break;
        case ' ':
          field.blank = true;
          break;
        case '#':
          field.alternate = true;
          break;
        default:
          flags = false;
      }
      at_ += flags;
    }
    field.width = number();
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      field.precision = number();
    }
    const char type = take();
    if (type == '%') {
      out_ += '%';
      return;
    }
    out_ += converted(type, value ? *value : next_value(), field);
  }

  std::string converted(char type, const Value& value, Field field) {
    if (type == 's' || type == 'r') {
      field.zero = false;
      std::string body = type == 's' ? to_text(heap_, value) : repr(heap_, value);
      if (field.precision >= 0) {
        size_t end = 0;
        for (int i = 0; i < field.precision && end < body.size(); ++i) end += character_bytes(body[end]);
        body.resize(end);
      }
      return padded(std::move(body), field, 0);
    }
    require_defined(value);
    const bool whole = type == 'd' || type == 'i' || type == 'u' || type == 'x' || type == 'X' || type == 'o';
    const bool real = type == 'f' || type == 'F' || type == 'e' || type == 'E' || type == 'g' || type == 'G';
    if (!whole && !real) throw TemplateError("the format has an unknown field %" + std::string(1, type));
    if (!is_number(value))
      throw TemplateError("%" + std::string(1, type) + " needs a number, not a " + kind_name(value));
    if (real) return float_field(as_double(value), type, field);
    const double d = as_double(value);
    const auto i = as_integer(value);
    if (!i && (type == 'x' || type == 'X' || type == 'o' || !(std::abs(d) < 9e18)))
      throw TemplateError("%" + std::string(1, type) + " needs an integer");
    return integer_field(i ? *i : static_cast<int64_t>(d), type, field);
  }

  Heap& heap_;
  std::string_view format_;
  const Value& values_;
  const Sequence* tuple_;
  size_t at_ = 0, next_ = 0;
  std::string out_;
};

class JsonWriter {
 public:
  JsonWriter(Heap& heap, const JsonStyle& style) : heap_(heap), style_(style) {}
  std::string out;

  void write(const Value& value, int level = 0) {
    if (is_none(value)) return put("null");
    if (const std::string* s = as_text(value)) return quoted(*s);
    if (is_number(value)) return put(number(value));
    if (const Dict* d = as_dict(value)) return object(*d, level);
    if (const Sequence* s = as_sequence(value);
        s && (s->kind == Sequence::Kind::kList || s->kind == Sequence::Kind::kTuple))
      return array(*s, level);
    require_defined(value);
    throw TemplateError("a " + kind_name(value) + " has no form in JSON");
  }

 private:
  void put(std::string_view part) {
    heap_.copied(part.size());
    if (out.size() + part.size() > kMaxOutput) throw TemplateError("makes too long a text");
    out += part;
  }

  static std::string number(const Value& value) {
    if (const bool* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
    if (const int64_t* i = std::get_if<int64_t>(&value)) return std::to_string(*i);
    const double d = std::get<double>(value);
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
    return float_text(d);
  }

  void new_line(int level) {
    if (!style_.indent) return;
    put("\n");
    for (int i = 0; i < level; ++i) put(*style_.indent);
  }

  void quoted(std::string_view text) {
    heap_.step(text.size());
    std::string s = "\"";
    const auto hex = [&](char32_t unit) {
      s += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) s += "0123456789abcdef"[unit >> shift & 15];
    };
    for (size_t at = 0; at < text.size(); at += character_bytes(text[at])) {
      const char32_t c = character_at(text, at);
      constexpr std::string_view kSpecial = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
      if (const size_t i = c < 0x80 ? kSpecial.find(static_cast<char>(c)) : kSpecial.npos; i != kSpecial.npos) {
        (s += '\\') += kLetters[i];
      } else if (c < 0x20 || (style_.ascii && c >= 0x7F && c < 0x10000)) {
        if (c == 0x7F)
          s += '\x7F';
        else
          hex(c);
      } else if (style_.ascii && c >= 0x10000) {
        hex(0xD800 + ((c - 0x10000) >> 10));
        hex(0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        append_character(s, c);
      }
    }
    put(s + "\"");
  }

  void array(const Sequence& s, int level) {
    if (s.items.empty()) return put("[]");
    put("[");
    for (size_t i = 0; i < s.items.size(); ++i) {
      if (i > 0) put(style_.item_separator);
      new_line(level + 1);
      write(s.items[i], level + 1);
    }
    new_line(level);
    put("]");
  }

  void key(const Value& k) {
    if (const std::string* s = as_text(k)) return quoted(*s);
    if (is_none(k)) return quoted("null");
    if (is_number(k)) return quoted(number(k));
    throw TemplateError("a " + kind_name(k) + " is no key in JSON");
  }

  void object(const Dict& d, int level) {
    if (d.entries.empty()) return put("{}");
    const std::vector<size_t> places = sorted_places(d.entries.size(), [&](size_t a, size_t b) {
      return style_.sort_keys && order(heap_, d.entries[a].first, d.entries[b].first) == Order::kLess;
    });
    put("{");
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& [name, value] = d.entries[places[i]];
      if (i > 0) put(style_.item_separator);
      new_line(level + 1);
      key(name);
      put(style_.key_separator);
      write(value, level + 1);
    }
    new_line(level);
    put("}");
  }

  Heap& heap_;
  const JsonStyle& style_;
};

}  // namespace

std::string percent_format(Heap& heap, std::string_view format, const Value& values) {
  return PercentFormatter(heap, format, values).run();
}

std::string brace_format(Heap& heap, std::string_view format, const Arguments& values) {
  std::string out;
  size_t automatic = 0;
  bool counted = false, numbered = false;
  for (size_t at = 0; at < format.size(); ++at) {
    heap.step();
    if (out.size() > kMaxOutput) throw TemplateError("makes too long a text");
    const char c = format[at];
    if ((c == '{' || c == '}') && at + 1 < format.size() && format[at + 1] == c) {
      out += c;
      ++at;
      continue;
    }
    if (c == '}') throw TemplateError("the format has a single \"}\"");
    if (c != '{') {
      out += c;
      continue;
    }
    const size_t end = format.find('}', at);
    if (end == format.npos) throw TemplateError("the format has a single \"{\"");
    const std::string_view field = format.substr(at + 1, end - at - 1);
    at = end;
    if (field.find_first_of(":!{") != field.npos)
      throw TemplateError("a format field with a conversion (\"" + std::string(field) + "\") is not supported");
    const size_t name_end = std::min(field.find_first_of(".["), field.size());
    const std::string_view name = field.substr(0, name_end);
    if (name_end < field.size())
      throw TemplateError("a format field with an attribute (\"" + std::string(field) + "\") is not supported");
    size_t index = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool number = !name.empty() && error == std::errc() && stop == name.data() + name.size();
    if (name.empty()) index = automatic++;
    counted = counted || name.empty();
    numbered = numbered || number;
    if (counted && numbered) throw TemplateError("the format numbers some of its fields only");
    if (name.empty() || number) {
      if (index >= values.positional.size()) throw TemplateError("the format has more fields than there are values");
      out += to_text(heap, values.positional[index]);
      continue;
    }
    const auto found =
        std::find_if(values.named.begin(), values.named.end(), [&](const auto& n) { return n.first == name; });
    if (found == values.named.end()) throw TemplateError("the format has no value for \"" + std::string(name) + "\"");
    out += to_text(heap, found->second);
  }
  return out;
}

std::string replaced(Heap& heap, std::string_view s, std::string_view from, std::string_view to, int64_t limit) {
  std::string out;
  size_t begin = 0, search = 0;
  heap.step(s.size());
  for (; limit != 0 && search <= s.size(); --limit) {
    const size_t at = find_text(s, from, search);
    if (at == s.npos) break;
    out += s.substr(begin, at - begin);
    out += to;
    begin = at + from.size();
    // An empty text stands before every character and at the end.
    search = begin + (!from.empty() ? 0 : at < s.size() ? character_bytes(s[at]) : 1);
    heap.copied(to.size());
    if (out.size() > kMaxBytes) throw TemplateError("takes too much memory");
  }
  out += s.substr(begin);
  return out;
}

std::string json_text(Heap& heap, const Value& value, const JsonStyle& style) {
  JsonWriter writer(heap, style);
  writer.write(value);
  return std::move(writer.out);
}

}  // namespace transept::jinja
