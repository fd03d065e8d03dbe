// Values of a template: Python's, as jinja2 shows them. All but namespaces are immutable, as in its
// ImmutableSandboxedEnvironment, so that values are shared freely and never hold themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/jinja/heap.h"

namespace transept::jinja {

class Interpreter;
struct Arguments;
struct String;
struct Sequence;
struct Dict;
class Object;

// What a missing name or key gives: prints as nothing, and most uses of it are errors, which say `why`.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};
using StringPtr = std::shared_ptr<const String>;
using SequencePtr = std::shared_ptr<Sequence>;
using DictPtr = std::shared_ptr<const Dict>;
using ObjectPtr = std::shared_ptr<Object>;
using Value = std::variant<Undefined, None, bool, int64_t, double, StringPtr, SequencePtr, DictPtr, ObjectPtr>;

struct String {
  String(Heap* heap, std::string text) : held(heap, sizeof(String) + text.capacity()), bytes(std::move(text)) {}
  Held held;
  std::string bytes;  // valid UTF-8
};

struct Sequence {
  enum class Kind { kList, kTuple, kRange, kKeys, kValues, kItems, kIterator };
  Sequence(Heap* heap, Kind is, std::vector<Value> values);
  Held held;
  Kind kind;
  std::vector<Value> items;
  size_t next = 0;      // kIterator: what comes next; it is read once
  std::string failure;  // kIterator: what is wrong behind its last item; "": nothing
  int depth = 1;        // of nesting
  // Whether it has a length and can be read more than once.
  bool sized() const { return kind != Kind::kIterator; }
  bool subscriptable() const { return kind == Kind::kList || kind == Kind::kTuple || kind == Kind::kRange; }
};

struct Dict {
  Dict(Heap* heap, std::vector<std::pair<Value, Value>> pairs);  // of different keys
  const Value* find(Heap& heap, const Value& key) const;
  const Value* find(Heap& heap, std::string_view key) const;
  Held held;
  std::vector<std::pair<Value, Value>> entries;  // as they were put in
  int depth = 1;
};

// What has attributes of its own or can be called.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;
  virtual std::optional<Value> attribute(Heap&, std::string_view) { return std::nullopt; }
  virtual bool callable() const { return false; }
  virtual Value call(Heap& heap, Interpreter& interpreter, Arguments arguments);
};

// Of namespace(): the one thing that a template can change from inside a loop. Owned by the interpreter, since it may
// hold itself.
class Namespace final : public Object {
 public:
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(Heap& heap, std::string_view name) override;
  void set(Heap& heap, std::string_view name, Value value);

 private:
  std::vector<std::pair<std::string, Value>> attributes_;
};

Value undefined(std::string why);
Value text(Heap& heap, std::string bytes);
Value list(Heap& heap, std::vector<Value> items, Sequence::Kind kind = Sequence::Kind::kList);
// Later values of a key win, at the place of the first. TemplateError for a key that cannot be one.
Value dict(Heap& heap, std::vector<std::pair<Value, Value>> pairs);
// TemplateError for an integer beyond 64 bits, and for text that is no UTF-8.
Value from_json(Heap& heap, const Json& json, int depth = 0);

bool is_undefined(const Value& value);
bool is_none(const Value& value);
bool is_number(const Value& value);              // bool included, as in Python
const std::string* as_text(const Value& value);  // null: no string
const Sequence* as_sequence(const Value& value);
const Dict* as_dict(const Value& value);
Object* as_object(const Value& value);
std::optional<int64_t> as_integer(const Value& value);  // bool included
double as_double(const Value& value);                   // of a number

// "dict object", "str object", "None": as jinja2's messages name a value's kind.
std::string kind_name(const Value& value);
// TemplateError when the value is undefined, saying why.
void require_defined(const Value& value);

// Whether it can be a key of a dict; TemplateError when it cannot.
bool is_hashable(const Value& value);
void require_hashable(const Value& value);

bool truth(const Value& value);
bool equal(Heap& heap, const Value& a, const Value& b);
// Negative, 0, positive; TemplateError when Python would not order them. A number that is none is neither.
enum class Order { kLess, kEqual, kGreater, kNone };
Order order(Heap& heap, const Value& a, const Value& b);
bool contains(Heap& heap, const Value& container, const Value& item);
int64_t length(Heap& heap, const Value& value);  // TemplateError when it has none
// The items that a loop over it sees: characters, items, keys. Empties an iterator. TemplateError when there are none.
std::vector<Value> iterate(Heap& heap, const Value& value);

std::string to_text(Heap& heap, const Value& value);  // Python's str
std::string repr(Heap& heap, const Value& value);
std::string float_text(double value);

}  // namespace transept::jinja
