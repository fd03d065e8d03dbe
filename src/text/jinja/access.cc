#include "text/jinja/access.h"

#include <algorithm>
#include <charconv>

#include "text/jinja/characters.h"
#include "text/jinja/methods.h"

namespace transept::jinja {
namespace {

Value missing(const Value& of, const std::string& name) {
  return undefined("a " + kind_name(of) + " has no attribute or item \"" + name + "\"");
}

// An attribute in the narrow sense: a method, or one of an object's own.
std::optional<Value> own_attribute(Heap& heap, const Value& of, std::string_view name) {
  if (Object* object = as_object(of)) return object->attribute(heap, name);
  if (name.starts_with('_')) return std::nullopt;
  return method(of, name);
}

std::optional<size_t> index_of(int64_t index, size_t size) {
  const auto n = static_cast<int64_t>(size);
  if (index < 0) index += n;
  return index >= 0 && index < n ? std::optional(static_cast<size_t>(index)) : std::nullopt;
}

// What `of[key]` gives in Python; nothing where it raises a TypeError or a LookupError.
std::optional<Value> own_item(Heap& heap, const Value& of, const Value& key) {
  if (const Dict* d = as_dict(of)) {
    if (!is_hashable(key)) return std::nullopt;
    const Value* found = as_text(key) ? d->find(heap, *as_text(key)) : d->find(heap, key);
    return found ? std::optional(*found) : std::nullopt;
  }
  const std::optional<int64_t> index = as_integer(key);
  if (!index) return std::nullopt;
  if (const Sequence* s = as_sequence(of); s && s->subscriptable()) {
    const auto at = index_of(*index, s->items.size());
    return at ? std::optional(s->items[*at]) : std::nullopt;
  }
  if (const std::string* s = as_text(of)) {
    heap.step(s->size());
    const size_t size = count_characters(*s);
    const auto at = index_of(*index, size);
    if (!at) return std::nullopt;
    size_t byte = 0;
    for (size_t i = 0; i < *at; ++i) byte += character_bytes((*s)[byte]);
    return text(heap, s->substr(byte, character_bytes((*s)[byte])));
  }
  return std::nullopt;
}

std::string name_of(Heap& heap, const Value& key) {
  const std::string* s = as_text(key);
  if (s) return *s;
  return is_none(key) || is_number(key) ? to_text(heap, key) : kind_name(key);
}

}  // namespace

Value attribute(Heap& heap, const Value& of, std::string_view name) {
  heap.step();
  require_defined(of);
  if (auto found = own_attribute(heap, of, name)) return *found;
  if (const Dict* d = as_dict(of)) {
    if (const Value* found = d->find(heap, name)) return *found;
  }
  return missing(of, std::string(name));
}

Value item(Heap& heap, const Value& of, const Value& key) {
  heap.step();
  require_defined(of);
  if (auto found = own_item(heap, of, key)) return *found;
  if (const std::string* name = as_text(key)) {
    if (auto found = own_attribute(heap, of, *name)) return *found;
  }
  return missing(of, name_of(heap, key));
}

Value slice(Heap& heap, const Value& of, const Value& begin, const Value& end, const Value& step) {
  heap.step();
  require_defined(of);
  const auto bound = [](const Value& v) -> std::optional<int64_t> {
    if (is_none(v)) return std::nullopt;
    if (const auto i = as_integer(v)) return i;
    require_defined(v);
    throw TemplateError("a slice needs integers, not a " + kind_name(v));
  };
  const int64_t by = bound(step).value_or(1);
  if (by == 0) throw TemplateError("a slice cannot have a step of 0");
  const std::string* s = as_text(of);
  const Sequence* all = as_sequence(of);
  if (!s && !(all && all->subscriptable())) throw TemplateError("a " + kind_name(of) + " has no slices");
  const int64_t size = s ? length(heap, of) : static_cast<int64_t>(all->items.size());
  // Python's rules (PySlice_AdjustIndices).
  const int64_t low = by < 0 ? -1 : 0, high = by < 0 ? size - 1 : size;
  const auto clamp = [&](std::optional<int64_t> v, int64_t fallback) {
    if (!v) return fallback;
    if (*v < 0) return std::max(*v + size, low);
    return std::min(*v, high);
  };
  const int64_t from = clamp(bound(begin), by < 0 ? high : 0), to = clamp(bound(end), by < 0 ? -1 : size);
  const auto wanted = [&](const auto& use) {
    // The last step would leave the range of integers when it is large.
    const int64_t distance = by > 0 ? to - from : from - to;
    for (int64_t taken = 0; taken < distance;) {
      use(static_cast<size_t>(by > 0 ? from + taken : from - taken));
      const uint64_t stride = by > 0 ? static_cast<uint64_t>(by) : uint64_t{0} - static_cast<uint64_t>(by);
      if (stride >= static_cast<uint64_t>(distance - taken)) break;
      taken += static_cast<int64_t>(stride);
    }
  };
  if (s) {
    heap.step(s->size());
    const Held room(&heap, s->size() * sizeof(std::string_view));
    const std::vector<std::string_view> characters = characters_of(*s);
    std::string out;
    wanted([&](size_t i) { out += characters[i]; });
    return text(heap, std::move(out));
  }
  std::vector<Value> items;
  wanted([&](size_t i) { items.push_back(all->items[i]); });
  return list(heap, std::move(items), all->kind);
}

Value at_path(Heap& heap, const Value& of, const Value& path, const Value* fallback) {
  const auto step = [&](const Value& from, const Value& key) {
    Value next = item(heap, from, key);
    return fallback && is_undefined(next) ? *fallback : next;
  };
  const std::string* names = as_text(path);
  if (!names) return is_none(path) ? of : step(of, path);
  Value value = of;
  for (std::string_view rest = *names;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = !part.empty() && part[0] != '-' && error == std::errc() && end == part.data() + part.size();
    value = step(value, number ? Value(index) : text(heap, std::string(part)));
    if (dot == rest.npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

}  // namespace transept::jinja
