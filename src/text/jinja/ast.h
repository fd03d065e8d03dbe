// The tree of a template. Its depth is bounded by the parser, so that walking and destroying it cannot end the stack.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/value.h"

namespace transept::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional, more_named;  // *a, **a; or null
};

struct ConstantExpr {
  Value value;
};
struct NameExpr {
  std::string name;
};
struct ListExpr {
  std::vector<ExprPtr> items;
  bool tuple;
};
struct DictExpr {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
enum class Unary { kNot, kMinus, kPlus };
struct UnaryExpr {
  Unary op;
  ExprPtr of;
};
enum class Binary { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
struct BinaryExpr {
  Binary op;
  ExprPtr left, right;
};
struct AndOrExpr {
  bool is_and;
  ExprPtr left, right;
};
enum class Comparison { kEqual, kUnequal, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
struct CompareExpr {
  ExprPtr first;
  std::vector<std::pair<Comparison, ExprPtr>> rest;
};
struct ConcatExpr {
  std::vector<ExprPtr> parts;
};
struct ConditionalExpr {
  ExprPtr condition, then, otherwise;  // otherwise may be null
};
struct AttributeExpr {  // a.b
  ExprPtr of;
  std::string name;
};
struct ItemExpr {  // a[b]
  ExprPtr of, key;
};
struct SliceExpr {  // a[b:c:d], each of them or null
  ExprPtr of, begin, end, step;
};
struct CallExpr {
  ExprPtr callee;
  CallArguments arguments;
};
struct FilterExpr {
  ExprPtr of;  // null: the text of a block
  std::string name;
  CallArguments arguments;
};
struct TestExpr {
  ExprPtr of;
  std::string name;
  CallArguments arguments;
};

struct Expr {
  int line = 0;
  int depth = 1;
  std::variant<ConstantExpr, NameExpr, ListExpr, DictExpr, UnaryExpr, BinaryExpr, AndOrExpr, CompareExpr, ConcatExpr,
               ConditionalExpr, AttributeExpr, ItemExpr, SliceExpr, CallExpr, FilterExpr, TestExpr>
      node;
};

// What a value is assigned to: a name, an attribute of a namespace, or several of them.
struct Target {
  std::string name;
  std::string attribute;      // "": the name itself
  std::vector<Target> parts;  // not empty, or `is_tuple`: these instead
  bool is_tuple = false;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct DataStmt {
  std::string text;
};
struct OutputStmt {
  ExprPtr value;
};
struct IfStmt {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct ForStmt {
  Target target;
  ExprPtr over, condition;  // condition may be null
  Body body, otherwise;
};
struct SetStmt {
  Target target;
  ExprPtr value;
};
struct SetBlockStmt {
  Target target;
  ExprPtr filter;  // FilterExpr, or null
  Body body;
};
// A macro, the body of a call block, or that of a generation block.
struct MacroDefinition {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  bool takes_caller = false, takes_varargs = false, takes_kwargs = false;
  Body body;
};
struct MacroStmt {
  MacroDefinition macro;
};
struct CallBlockStmt {
  ExprPtr call;  // CallExpr; null for a generation block, which is written as it is
  MacroDefinition caller;
};
struct FilterBlockStmt {
  ExprPtr filter;  // FilterExpr
  Body body;
};
struct WithStmt {
  std::vector<std::pair<Target, ExprPtr>> values;
  Body body;
};
struct BreakStmt {};
struct ContinueStmt {};

struct Stmt {
  int line = 0;
  std::variant<DataStmt, OutputStmt, IfStmt, ForStmt, SetStmt, SetBlockStmt, MacroStmt, CallBlockStmt, FilterBlockStmt,
               WithStmt, BreakStmt, ContinueStmt>
      node;
};

}  // namespace transept::jinja
