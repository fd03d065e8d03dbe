#include "text/jinja/interpreter.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/jinja/access.h"
#include "text/jinja/arithmetic.h"
#include "text/jinja/filters.h"
#include "text/jinja/functions.h"

namespace transept::jinja {
namespace {

class Macro final : public Object {
 public:
  Macro(const MacroDefinition& definition, std::shared_ptr<Scope> scope)
      : definition_(definition), scope_(std::move(scope)) {}
  std::string_view type_name() const override { return "macro"; }
  bool callable() const override { return true; }
  std::optional<Value> attribute(Heap& heap, std::string_view name) override {
    return name == "name" ? std::optional(text(heap, definition_.name)) : std::nullopt;
  }
  Value call(Heap&, Interpreter& interpreter, Arguments arguments) override {
    return interpreter.call_macro(definition_, scope_, std::move(arguments));
  }

 private:
  const MacroDefinition& definition_;
  std::shared_ptr<Scope> scope_;
};

// `loop` in the body of a loop.
class Loop final : public Object, public std::enable_shared_from_this<Loop> {
 public:
  explicit Loop(SequencePtr items) : items_(std::move(items)) {}
  void go_to(size_t index) { at_ = index; }
  std::string_view type_name() const override { return "loop"; }
  std::optional<Value> attribute(Heap& heap, std::string_view name) override;
  Value cycle(const Arguments& arguments) const {
    if (arguments.positional.empty()) throw TemplateError("loop.cycle needs values");
    return arguments.positional[at_ % arguments.positional.size()];
  }
  Value changed(Heap& heap, Arguments arguments) {
    Value now = list(heap, std::move(arguments.positional), Sequence::Kind::kTuple);
    const bool differs = !seen_ || !equal(heap, *seen_, now);
    seen_ = std::move(now);
    return differs;
  }

 private:
  SequencePtr items_;
  size_t at_ = 0;
  std::optional<Value> seen_;
};

class LoopMethod final : public Object {
 public:
  LoopMethod(std::shared_ptr<Loop> loop, bool cycles) : loop_(std::move(loop)), cycles_(cycles) {}
  std::string_view type_name() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Heap& heap, Interpreter&, Arguments arguments) override {
    if (!arguments.named.empty()) throw TemplateError("a method of loop takes no named arguments");
    return cycles_ ? loop_->cycle(arguments) : loop_->changed(heap, std::move(arguments));
  }

 private:
  std::shared_ptr<Loop> loop_;
  bool cycles_;
};

std::optional<Value> Loop::attribute(Heap&, std::string_view name) {
  const auto size = static_cast<int64_t>(items_->items.size()), at = static_cast<int64_t>(at_);
  if (name == "index") return at + 1;
  if (name == "index0") return at;
  if (name == "revindex") return size - at;
  if (name == "revindex0") return size - at - 1;
  if (name == "first") return at == 0;
  if (name == "last") return at + 1 == size;
  if (name == "length") return size;
  if (name == "depth") return int64_t{1};
  if (name == "depth0") return int64_t{0};
  if (name == "previtem") return at > 0 ? items_->items[at_ - 1] : undefined("there is no previous item");
  if (name == "nextitem") return at + 1 < size ? items_->items[at_ + 1] : undefined("there is no next item");
  if (name == "cycle" || name == "changed") return std::make_shared<LoopMethod>(shared_from_this(), name == "cycle");
  return std::nullopt;
}

}  // namespace

// One level deeper, until the end of its life.
class Interpreter::Level {
 public:
  explicit Level(Interpreter& in) : in_(in) {
    if (++in_.depth_ > kMaxCallDepth) {
      --in_.depth_;
      throw TemplateError("calls and nests too deeply");
    }
  }
  ~Level() { --in_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Interpreter& in_;
};

// A scope of its own, until the end of its life.
class Interpreter::Within {
 public:
  Within(Interpreter& in, std::shared_ptr<Scope> outer) : in_(in), before_(in.scope_), held_(&in.heap_, sizeof(Scope)) {
    in_.scope_ = std::make_shared<Scope>(Scope{std::move(outer), {}});
  }
  ~Within() { in_.scope_ = std::move(before_); }
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  Interpreter& in_;
  std::shared_ptr<Scope> before_;
  Held held_;
};

// What is written goes into a text of its own, until the end of its life.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& in) : in_(in), before_(std::exchange(in.out_, &text_)) {}
  ~Capture() {
    in_.out_ = before_;
    in_.written_ -= text_.size();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Value value() const { return text(in_.heap_, text_); }
  const std::string& bytes() const { return text_; }

 private:
  Interpreter& in_;
  std::string text_;
  std::string* before_;
};

Interpreter::Interpreter(Heap& heap, const Json& variables) : heap_(heap), scope_(std::make_shared<Scope>()) {
  for (const auto& [name, value] : variables.items()) scope_->values.emplace(name, from_json(heap_, value));
}

std::string Interpreter::run(const Body& body) {
  const Capture capture(*this);
  const Within own(*this, scope_);
  execute(body);
  return capture.bytes();
}

template <class T>
T& Interpreter::keep(std::unique_ptr<T> object) {
  heap_.take(256);  // of it, its scope and its place; given back with the heap
  T& out = *object;
  kept_.push_back(std::move(object));
  return out;
}

Namespace& Interpreter::new_namespace() { return keep(std::make_unique<Namespace>()); }

void Interpreter::write(std::string_view part) {
  heap_.copied(part.size());
  if (written_ + part.size() > kMaxOutput) throw TemplateError("writes too long a text");
  written_ += part.size();
  *out_ += part;
}

// ---- statements

Interpreter::Flow Interpreter::execute(const Body& body) {
  const Level level(*this);
  for (const auto& s : body) {
    heap_.step();
    line_ = s->line;
    const Flow flow = std::visit([this](const auto& node) { return execute(node); }, s->node);
    if (flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const DataStmt& s) {
  write(s.text);
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const OutputStmt& s) {
  const Value value = evaluate(*s.value);
  if (const std::string* plain = as_text(value))
    write(*plain);
  else
    write(to_text(heap_, value));
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const IfStmt& s) {
  for (const auto& [condition, body] : s.branches) {
    if (truth(evaluate(*condition))) return execute(body);
  }
  return execute(s.otherwise);
}

Interpreter::Flow Interpreter::execute(const ForStmt& s) {
  std::vector<Value> items = iterate(heap_, evaluate(*s.over));
  if (s.condition) {
    const Held room(&heap_, items.capacity() * sizeof(Value));
    const Within own(*this, scope_);
    std::vector<Value> kept;
    for (const Value& item : items) {
      assign(s.target, item);
      if (truth(evaluate(*s.condition))) kept.push_back(s.target.is_tuple ? assigned(s.target) : item);
    }
    items = std::move(kept);
  }
  const SequencePtr sequence = std::make_shared<Sequence>(&heap_, Sequence::Kind::kTuple, std::move(items));
  const auto loop = std::make_shared<Loop>(sequence);
  bool finished = false;  // a round that was neither broken off nor cut short
  for (size_t i = 0; i < sequence->items.size(); ++i) {
    heap_.step();
    const Within own(*this, scope_);
    loop->go_to(i);
    scope_->values.emplace("loop", ObjectPtr(loop));
    assign(s.target, sequence->items[i]);
    const Flow flow = execute(s.body);
    finished = finished || flow == Flow::kOn;
    if (flow == Flow::kBreak) break;
  }
  if (finished) return Flow::kOn;
  const Within own(*this, scope_);
  return execute(s.otherwise);
}

Interpreter::Flow Interpreter::execute(const SetStmt& s) {
  assign(s.target, evaluate(*s.value));
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const SetBlockStmt& s) {
  Value value;
  {
    const Capture capture(*this);
    const Within own(*this, scope_);
    if (const Flow flow = execute(s.body); flow != Flow::kOn) return flow;
    value = capture.value();
  }
  if (s.filter) value = filtered(std::get<FilterExpr>(s.filter->node), &value);
  assign(s.target, value);
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const MacroStmt& s) {
  Macro& macro = keep(std::make_unique<Macro>(s.macro, scope_));
  scope_->values.insert_or_assign(s.macro.name, ObjectPtr(std::shared_ptr<void>(), &macro));
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const CallBlockStmt& s) {
  if (!s.call) {  // a generation block
    const Value body = call_macro(s.caller, scope_, {});
    write(*as_text(body));
    return Flow::kOn;
  }
  const CallExpr& e = std::get<CallExpr>(s.call->node);
  const Value callee = evaluate(*e.callee);
  Arguments arguments = evaluate_arguments(e.arguments);
  Macro& caller = keep(std::make_unique<Macro>(s.caller, scope_));
  arguments.named.emplace_back("caller", ObjectPtr(std::shared_ptr<void>(), &caller));
  write(to_text(heap_, call(callee, std::move(arguments))));
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const FilterBlockStmt& s) {
  Value value;
  {
    const Capture capture(*this);
    const Within own(*this, scope_);
    if (const Flow flow = execute(s.body); flow != Flow::kOn) return flow;
    value = capture.value();
  }
  write(to_text(heap_, filtered(std::get<FilterExpr>(s.filter->node), &value)));
  return Flow::kOn;
}

Interpreter::Flow Interpreter::execute(const WithStmt& s) {
  std::vector<Value> values;
  for (const auto& [target, value] : s.values) values.push_back(evaluate(*value));
  const Within own(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) assign(s.values[i].first, values[i]);
  return execute(s.body);
}

void Interpreter::assign(const Target& target, const Value& value) {
  heap_.step();
  if (target.is_tuple) {
    require_defined(value);
    const std::vector<Value> items = iterate(heap_, value);
    if (items.size() != target.parts.size()) {
      throw TemplateError("cannot assign " + std::to_string(items.size()) + " values to " +
                          std::to_string(target.parts.size()) + " names");
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) {
    scope_->values.insert_or_assign(target.name, value);
    return;
  }
  const Value to = evaluate(NameExpr{target.name});
  auto* space = dynamic_cast<Namespace*>(as_object(to));
  if (!space) throw TemplateError("cannot assign to an attribute of \"" + target.name + "\": it is no namespace");
  space->set(heap_, target.attribute, value);
}

Value Interpreter::assigned(const Target& target) {
  if (!target.is_tuple) return scope_->values.at(target.name);
  std::vector<Value> items;
  for (const Target& part : target.parts) items.push_back(assigned(part));
  return list(heap_, std::move(items), Sequence::Kind::kTuple);
}

Value Interpreter::call_macro(const MacroDefinition& m, const std::shared_ptr<Scope>& outer, Arguments arguments) {
  const Level level(*this);
  const Within own(*this, outer);
  std::map<std::string, Value, std::less<>>& values = scope_->values;
  const size_t parameters = m.parameters.size(), given = arguments.positional.size();
  const auto refuse = [&](const std::string& what) { throw TemplateError("macro \"" + m.name + "\" " + what); };
  std::vector<Value> more;
  for (size_t i = 0; i < given; ++i) {
    if (i < parameters)
      values.emplace(m.parameters[i], std::move(arguments.positional[i]));
    else
      more.push_back(std::move(arguments.positional[i]));
  }
  if (!more.empty() && !m.takes_varargs) refuse("takes at most " + std::to_string(parameters) + " arguments");
  std::vector<std::pair<Value, Value>> named;
  for (auto& [name, value] : arguments.named) {
    if (std::find(m.parameters.begin(), m.parameters.end(), name) != m.parameters.end()) {
      if (!values.emplace(name, std::move(value)).second) refuse("got \"" + name + "\" twice");
    } else if (name == "caller" && m.takes_caller) {
      values.emplace(name, std::move(value));
    } else if (m.takes_kwargs) {
      named.emplace_back(text(heap_, name), std::move(value));
    } else {
      refuse("takes no argument \"" + name + "\"");
    }
  }
  for (size_t i = 0; i < parameters; ++i) {
    if (values.contains(m.parameters[i])) continue;
    const size_t required = parameters - m.defaults.size();
    values.emplace(m.parameters[i], i < required ? undefined("parameter \"" + m.parameters[i] + "\" was not provided")
                                                 : evaluate(*m.defaults[i - required]));
  }
  if (m.takes_varargs) values.emplace("varargs", list(heap_, std::move(more), Sequence::Kind::kTuple));
  if (m.takes_kwargs) values.emplace("kwargs", dict(heap_, std::move(named)));
  if (m.takes_caller) values.emplace("caller", undefined("no caller defined"));
  const Capture capture(*this);
  execute(m.body);
  return capture.value();
}

// ---- expressions

Value Interpreter::evaluate(const Expr& e) {
  const Level level(*this);
  heap_.step();
  line_ = e.line;
  return std::visit([this](const auto& node) { return evaluate(node); }, e.node);
}

Value Interpreter::evaluate(const NameExpr& e) {
  for (const Scope* s = scope_.get(); s; s = s->parent.get()) {
    if (const auto found = s->values.find(e.name); found != s->values.end()) return found->second;
  }
  if (auto function = global(e.name)) return *function;
  return undefined("\"" + e.name + "\" is undefined");
}

Value Interpreter::evaluate(const ListExpr& e) {
  std::vector<Value> items;
  for (const ExprPtr& item : e.items) items.push_back(evaluate(*item));
  return list(heap_, std::move(items), e.tuple ? Sequence::Kind::kTuple : Sequence::Kind::kList);
}

Value Interpreter::evaluate(const DictExpr& e) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : e.entries) {
    Value k = evaluate(*key);
    entries.emplace_back(std::move(k), evaluate(*value));
  }
  return dict(heap_, std::move(entries));
}

Value Interpreter::evaluate(const UnaryExpr& e) {
  const Value of = evaluate(*e.of);
  if (e.op == Unary::kNot) return !truth(of);
  return e.op == Unary::kMinus ? negative(of) : positive(of);
}

Value Interpreter::evaluate(const BinaryExpr& e) {
  const Value left = evaluate(*e.left), right = evaluate(*e.right);
  return binary(heap_, e.op, left, right);
}

Value Interpreter::evaluate(const AndOrExpr& e) {
  Value left = evaluate(*e.left);
  return truth(left) == e.is_and ? evaluate(*e.right) : left;
}

Value Interpreter::evaluate(const CompareExpr& e) {
  Value left = evaluate(*e.first);
  for (const auto& [op, operand] : e.rest) {
    Value right = evaluate(*operand);
    if (!compare(heap_, op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate(const ConcatExpr& e) {
  std::string out;
  for (const ExprPtr& part : e.parts) {
    out += to_text(heap_, evaluate(*part));
    if (out.size() > kMaxBytes) throw TemplateError("takes too much memory");
  }
  return text(heap_, std::move(out));
}

Value Interpreter::evaluate(const ConditionalExpr& e) {
  if (truth(evaluate(*e.condition))) return evaluate(*e.then);
  if (e.otherwise) return evaluate(*e.otherwise);
  return undefined("an inline if without an else was false");
}

Value Interpreter::evaluate(const AttributeExpr& e) { return attribute(heap_, evaluate(*e.of), e.name); }

Value Interpreter::evaluate(const ItemExpr& e) {
  const Value of = evaluate(*e.of);
  return item(heap_, of, evaluate(*e.key));
}

Value Interpreter::evaluate(const SliceExpr& e) {
  const auto part = [&](const ExprPtr& p) { return p ? evaluate(*p) : Value(None{}); };
  const Value of = evaluate(*e.of), begin = part(e.begin), end = part(e.end), step = part(e.step);
  return slice(heap_, of, begin, end, step);
}

Value Interpreter::evaluate(const CallExpr& e) {
  const int line = line_;
  const Value callee = evaluate(*e.callee);
  Arguments arguments = evaluate_arguments(e.arguments);
  line_ = line;
  return call(callee, std::move(arguments));
}

Value Interpreter::call(const Value& callee, Arguments arguments) {
  require_defined(callee);
  Object* object = as_object(callee);
  if (!object) throw TemplateError("a " + kind_name(callee) + " is not callable");
  return object->call(heap_, *this, std::move(arguments));
}

Value Interpreter::evaluate(const FilterExpr& e) { return filtered(e, nullptr); }

Value Interpreter::filtered(const FilterExpr& e, const Value* block) {
  // In a block the innermost filter has nothing before it.
  const auto* inner = e.of ? std::get_if<FilterExpr>(&e.of->node) : nullptr;
  const Value of = !e.of ? *block : inner && block ? filtered(*inner, block) : evaluate(*e.of);
  Arguments arguments = evaluate_arguments(e.arguments);
  return apply_filter(heap_, e.name, of, std::move(arguments));
}

Value Interpreter::evaluate(const TestExpr& e) {
  const Value of = evaluate(*e.of);
  Arguments arguments = evaluate_arguments(e.arguments);
  return apply_test(heap_, e.name, of, std::move(arguments));
}

Arguments Interpreter::evaluate_arguments(const CallArguments& a) {
  Arguments out;
  for (const ExprPtr& e : a.positional) out.positional.push_back(evaluate(*e));
  for (const auto& [name, e] : a.named) out.named.emplace_back(name, evaluate(*e));
  if (a.more_positional) {
    const Value more = evaluate(*a.more_positional);
    for (Value& v : iterate(heap_, more)) out.positional.push_back(std::move(v));
  }
  if (a.more_named) {
    const Value more = evaluate(*a.more_named);
    const Dict* d = as_dict(more);
    if (!d) throw TemplateError("** needs a dict, not a " + kind_name(more));
    for (const auto& [key, value] : d->entries) {
      const std::string* name = as_text(key);
      if (!name) throw TemplateError("** needs a dict of names");
      const auto same = [&](const auto& n) { return n.first == *name; };
      if (std::any_of(out.named.begin(), out.named.end(), same))
        throw TemplateError("\"" + *name + "\" is given twice");
      out.named.emplace_back(*name, value);
    }
  }
  return out;
}

}  // namespace transept::jinja
