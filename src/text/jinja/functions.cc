#include "text/jinja/functions.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

#include "text/jinja/arguments.h"
#include "text/jinja/interpreter.h"

namespace transept::jinja {
namespace {

using Function = Value (*)(Heap&, Interpreter&, Taker&, Arguments&);

Value range(Heap& heap, Interpreter&, Taker& take, Arguments&) {
  std::array<int64_t, 3> bounds{};
  size_t given = 0;
  while (auto v = take.take("")) {
    const auto i = as_integer(*v);
    require_defined(*v);
    if (!i || given == 3) throw TemplateError("range takes one to three integers");
    bounds[given++] = *i;
  }
  if (given == 0) throw TemplateError("range takes one to three integers");
  const int64_t begin = given == 1 ? 0 : bounds[0], end = given == 1 ? bounds[0] : bounds[1];
  const int64_t by = given == 3 ? bounds[2] : 1;
  if (by == 0) throw TemplateError("range cannot have a step of 0");
  std::vector<Value> items;
  for (int64_t i = begin; by > 0 ? i < end : i > end;) {
    if (static_cast<int64_t>(items.size()) == kMaxRange)
      throw TemplateError("a range has more than " + std::to_string(kMaxRange) + " items");
    items.emplace_back(i);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return list(heap, std::move(items), Sequence::Kind::kRange);
}

// The entries that dict(...) and namespace(...) are called with: a dict or pairs, and names.
std::vector<std::pair<Value, Value>> entries_of(Heap& heap, Taker& take, Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (const auto from = take.take("")) {
    if (const Dict* d = as_dict(*from)) {
      entries = d->entries;
    } else {
      require_defined(*from);
      for (const Value& pair : iterate(heap, *from)) {
        std::vector<Value> two = iterate(heap, pair);
        if (two.size() != 2) throw TemplateError("a dict is made of pairs");
        entries.emplace_back(std::move(two[0]), std::move(two[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.named) entries.emplace_back(text(heap, name), std::move(value));
  arguments.named.clear();
  return entries;
}

Value make_dict(Heap& heap, Interpreter&, Taker& take, Arguments& arguments) {
  return dict(heap, entries_of(heap, take, arguments));
}

Value make_namespace(Heap& heap, Interpreter& interpreter, Taker& take, Arguments& arguments) {
  const auto entries = entries_of(heap, take, arguments);
  Namespace& made = interpreter.new_namespace();
  for (const auto& [key, value] : entries) {
    const std::string* name = as_text(key);
    if (!name) throw TemplateError("a namespace is made of names");
    made.set(heap, *name, value);
  }
  return ObjectPtr(std::shared_ptr<void>(), &made);
}

Value raise_exception(Heap& heap, Interpreter&, Taker& take, Arguments&) {
  throw RaisedError(to_text(heap, take.need("message")));
}

// The local time, in the form of C's strftime.
Value strftime_now(Heap& heap, Interpreter&, Taker& take, Arguments&) {
  const std::string format = take.string("format").value_or("");
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  if (!localtime_r(&now, &parts)) throw TemplateError("the time is not known");
  std::array<char, 4096> buffer;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  // A space more, so that 0 can only mean that it did not fit.
  const size_t n = std::strftime(buffer.data(), buffer.size(), (format + " ").c_str(), &parts);
#pragma GCC diagnostic pop
  if (n == 0) throw TemplateError("strftime_now makes too long a text");
  return text(heap, std::string(buffer.data(), n - 1));
}

class BuiltIn final : public Object {
 public:
  BuiltIn(std::string_view name, Function run) : name_(name), run_(run) {}
  std::string_view type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Heap& heap, Interpreter& interpreter, Arguments arguments) override {
    Taker taker(name_, arguments);
    Value result = run_(heap, interpreter, taker, arguments);
    taker.finish();
    return result;
  }

 private:
  std::string_view name_;
  Function run_;
};

constexpr std::pair<std::string_view, Function> kFunctions[] = {{"dict", make_dict},
                                                                {"namespace", make_namespace},
                                                                {"raise_exception", raise_exception},
                                                                {"range", range},
                                                                {"strftime_now", strftime_now}};

}  // namespace

std::optional<Value> global(std::string_view name) {
  const auto* f =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const auto& g) { return g.first == name; });
  if (f == std::end(kFunctions)) return std::nullopt;
  return std::make_shared<BuiltIn>(f->first, f->second);
}

}  // namespace transept::jinja
