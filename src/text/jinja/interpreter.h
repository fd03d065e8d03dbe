// Walks a tree and writes its text. Scopes are jinja2's: the body of a loop, a macro, a call block or a with block has
// one of its own, in which what is set is gone at its end; `if` and set blocks have none.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/jinja/arguments.h"
#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace transept::jinja {

struct Scope {
  std::shared_ptr<Scope> parent;
  std::map<std::string, Value, std::less<>> values;
};

class Interpreter {
 public:
  // `variables`: an object.
  Interpreter(Heap& heap, const Json& variables);
  // TemplateError: line() is then where.
  std::string run(const Body& body);
  int line() const { return line_; }

  // Lives as long as the interpreter.
  Namespace& new_namespace();
  // The text of its body, in a scope within `outer`.
  Value call_macro(const MacroDefinition& macro, const std::shared_ptr<Scope>& outer, Arguments arguments);

 private:
  enum class Flow { kOn, kBreak, kContinue };
  class Capture;
  class Level;
  class Within;

  Flow execute(const Body& body);
  Flow execute(const DataStmt& s);
  Flow execute(const OutputStmt& s);
  Flow execute(const IfStmt& s);
  Flow execute(const ForStmt& s);
  Flow execute(const SetStmt& s);
  Flow execute(const SetBlockStmt& s);
  Flow execute(const MacroStmt& s);
  Flow execute(const CallBlockStmt& s);
  Flow execute(const FilterBlockStmt& s);
  Flow execute(const WithStmt& s);
  Flow execute(const BreakStmt&) { return Flow::kBreak; }
  Flow execute(const ContinueStmt&) { return Flow::kContinue; }

  Value evaluate(const Expr& e);
  Value evaluate(const ConstantExpr& e) { return e.value; }
  Value evaluate(const NameExpr& e);
  Value evaluate(const ListExpr& e);
  Value evaluate(const DictExpr& e);
  Value evaluate(const UnaryExpr& e);
  Value evaluate(const BinaryExpr& e);
  Value evaluate(const AndOrExpr& e);
  Value evaluate(const CompareExpr& e);
  Value evaluate(const ConcatExpr& e);
  Value evaluate(const ConditionalExpr& e);
  Value evaluate(const AttributeExpr& e);
  Value evaluate(const ItemExpr& e);
  Value evaluate(const SliceExpr& e);
  Value evaluate(const CallExpr& e);
  Value evaluate(const FilterExpr& e);
  Value evaluate(const TestExpr& e);

  Arguments evaluate_arguments(const CallArguments& a);
  Value call(const Value& callee, Arguments arguments);
  Value filtered(const FilterExpr& e, const Value* block);
  void assign(const Target& target, const Value& value);
  Value assigned(const Target& target);  // in this scope; a tuple of several
  void write(std::string_view part);
  // Owns it to the end: it may hold itself.
  template <class T>
  T& keep(std::unique_ptr<T> object);

  Heap& heap_;
  std::vector<std::unique_ptr<Object>> kept_;
  std::shared_ptr<Scope> scope_;
  std::string* out_ = nullptr;
  size_t written_ = 0;  // bytes of all texts being written
  int depth_ = 0;
  int line_ = 1;
};

}  // namespace transept::jinja
