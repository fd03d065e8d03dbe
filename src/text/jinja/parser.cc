#include "text/jinja/parser.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/problem.h"
#include "text/jinja/lexer.h"

namespace transept::jinja {
namespace {

using Kind = Token::Kind;

// Of the tree: as deep as kMaxCallDepth lets it be evaluated, and no template needs a tenth of it.
constexpr int kMaxTreeDepth = 300;
constexpr int kMaxParserDepth = 200;  // of brackets and blocks in each other

class Parser {
 public:
  Parser(std::string_view source, const std::string& where) : where_(where), tokens_(tokenize(source, where)) {}

  Body run() {
    Body body = statements({});
    if (now().kind != Kind::kEnd) fail("unknown tag " + describe(now()));
    return body;
  }

 private:
  // ---- tokens

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() {
    Token token = std::move(tokens_[at_]);
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool skip_name(std::string_view name) { return now().is_name(name) && (take(), true); }
  bool skip_operator(std::string_view op) { return now().is_operator(op) && (take(), true); }
  void expect(Kind kind, const std::string& what) {
    if (now().kind != kind) fail("expected " + what + ", not " + describe(now()));
    take();
  }
  void expect_operator(std::string_view op) {
    if (!skip_operator(op)) fail("expected \"" + std::string(op) + "\", not " + describe(now()));
  }
  std::string expect_name(const char* what) {
    if (now().kind != Kind::kName) fail(std::string("expected ") + what + ", not " + describe(now()));
    return take().text;
  }
  [[noreturn]] void fail(const std::string& what) const { fail(what, now().line); }
  [[noreturn]] void fail(const std::string& what, int line) const {
    throw InputError(where_ + ": line " + std::to_string(line), what);
  }

  // Counts how deep the parser is in itself.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.level_ > kMaxParserDepth) {
        --parser_.level_;
        parser_.fail("nests too deeply");
      }
    }
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // ---- trees

  static int depth_of(const ExprPtr& e) { return e ? e->depth : 0; }
  static int depth_of(const std::vector<ExprPtr>& all) {
    int depth = 0;
    for (const ExprPtr& e : all) depth = std::max(depth, depth_of(e));
    return depth;
  }
  static int depth_of(const CallArguments& a) {
    int depth = std::max({depth_of(a.positional), depth_of(a.more_positional), depth_of(a.more_named)});
    for (const auto& [name, e] : a.named) depth = std::max(depth, depth_of(e));
    return depth;
  }
  template <class Node>
  ExprPtr make(int line, int inner_depth, Node node) const {
    if (inner_depth >= kMaxTreeDepth) fail("nests too deeply", line);
    auto e = std::make_unique<Expr>();
    e->line = line;
    e->depth = inner_depth + 1;
    e->node = std::move(node);
    return e;
  }
  ExprPtr constant(int line, Value value) const { return make(line, 0, ConstantExpr{std::move(value)}); }

  // ---- statements

  bool at_any(const std::vector<std::string_view>& names) const {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return now().is_name(name); });
  }

  // Up to a tag that begins with one of these names, which is then the next token; without names, to the end.
  Body statements(const std::vector<std::string_view>& ends) {
    const Level level(*this);
    Body body;
    const auto add = [&](int line, auto node) {
      auto s = std::make_unique<Stmt>();
      s->line = line;
      s->node = std::move(node);
      body.push_back(std::move(s));
    };
    while (now().kind != Kind::kEnd) {
      const int line = now().line;
      if (now().kind == Kind::kData) {
        add(line, DataStmt{take().text});
      } else if (now().kind == Kind::kVariableBegin) {
        take();
        ExprPtr value = tuple();
        expect(Kind::kVariableEnd, "the end of the expression");
        add(line, OutputStmt{std::move(value)});
      } else {
        expect(Kind::kBlockBegin, "a tag");
        if (at_any(ends)) return body;
        statement(add);
        expect(Kind::kBlockEnd, "the end of the tag");
      }
    }
    if (!ends.empty()) fail("the template ends before {% " + std::string(ends.back()) + " %}");
    return body;
  }

  // The body of a tag: the end of the tag itself, statements, and the tag that ends them, whose name is given.
  Body block(const std::vector<std::string_view>& ends, std::string* ended_by = nullptr) {
    skip_operator(":");
    expect(Kind::kBlockEnd, "the end of the tag");
    Body body = statements(ends);
    std::string name = take().text;
    if (ended_by) *ended_by = std::move(name);
    return body;
  }

  template <class Add>
  void statement(const Add& add) {
    const int line = now().line;
    if (now().kind != Kind::kName) fail("a tag begins with a name, not with " + describe(now()));
    const std::string tag = take().text;
    if (tag == "if") return add(line, if_statement());
    if (tag == "for") return add(line, for_statement());
    if (tag == "set") return set_statement(line, add);
    if (tag == "macro") return add(line, MacroStmt{macro_definition(expect_name("the macro's name"))});
    if (tag == "call") return add(line, call_block());
    if (tag == "filter") {
      ExprPtr f = filter(nullptr);
      while (skip_operator("|")) f = filter(std::move(f));
      return add(line, FilterBlockStmt{std::move(f), block({"endfilter"})});
    }
    if (tag == "with") return add(line, with_statement());
    if (tag == "print") {
      while (now().kind != Kind::kBlockEnd) {
        add(line, OutputStmt{expression()});
        if (now().kind != Kind::kBlockEnd) expect_operator(",");
      }
      return;
    }
    if (tag == "generation") {
      MacroDefinition body;
      body.name = "caller";
      body.body = function_body("endgeneration");
      return add(line, CallBlockStmt{nullptr, std::move(body)});
    }
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) fail("{% " + tag + " %} is outside of a loop", line);
      if (tag == "break") return add(line, BreakStmt{});
      return add(line, ContinueStmt{});
    }
    constexpr std::array kRefused = {"autoescape", "block", "do", "extends", "from", "import", "include", "trans"};
    if (std::find(kRefused.begin(), kRefused.end(), tag) != kRefused.end())
      fail("{% " + tag + " %} is not supported", line);
    fail("unknown tag \"" + tag + "\"", line);
  }

  IfStmt if_statement() {
    IfStmt s;
    std::string end = "elif";
    while (end == "elif") {
      ExprPtr condition = tuple(false);
      Body body = block({"elif", "else", "endif"}, &end);
      s.branches.emplace_back(std::move(condition), std::move(body));
    }
    if (end == "else") s.otherwise = block({"endif"});
    return s;
  }

  ForStmt for_statement() {
    ForStmt s;
    s.target = target("in", false);
    if (!skip_name("in")) fail("expected \"in\", not " + describe(now()));
    s.over = tuple(false, "recursive");
    if (skip_name("if")) s.condition = expression();
    if (now().is_name("recursive")) fail("recursive loops are not supported");
    std::string end;
    ++loops_;
    s.body = block({"else", "endfor"}, &end);
    --loops_;
    if (end == "else") s.otherwise = block({"endfor"});
    return s;
  }

  template <class Add>
  void set_statement(int line, const Add& add) {
    Target to = target("", true);
    if (skip_operator("=")) return add(line, SetStmt{std::move(to), tuple()});
    ExprPtr f;
    while (skip_operator("|")) f = filter(std::move(f));
    add(line, SetBlockStmt{std::move(to), std::move(f), block({"endset"})});
  }

  WithStmt with_statement() {
    WithStmt s;
    while (now().kind != Kind::kBlockEnd) {
      if (!s.values.empty()) expect_operator(",");
      Target to = target("", false);
      expect_operator("=");
      s.values.emplace_back(std::move(to), expression());
    }
    s.body = block({"endwith"});
    return s;
  }

  void signature(MacroDefinition& m) {
    expect_operator("(");
    while (!now().is_operator(")")) {
      if (!m.parameters.empty()) expect_operator(",");
      std::string name = assignable(expect_name("a parameter"));
      if (std::find(m.parameters.begin(), m.parameters.end(), name) != m.parameters.end())
        fail("the parameter \"" + name + "\" stands twice");
      m.parameters.push_back(std::move(name));
      if (skip_operator("="))
        m.defaults.push_back(expression());
      else if (!m.defaults.empty())
        fail("a parameter without a default follows one with a default");
    }
    expect_operator(")");
  }

  // A body that is a function of its own: a loop around it is not its loop.
  Body function_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Body body = block({end});
    loops_ = loops;
    return body;
  }

  MacroDefinition macro_definition(std::string name) {
    MacroDefinition m;
    m.name = assignable(std::move(name));
    signature(m);
    const std::set<std::string> outer = std::exchange(names_, {});
    m.body = function_body("endmacro");
    m.takes_caller = names_.contains("caller");
    m.takes_varargs = names_.contains("varargs");
    m.takes_kwargs = names_.contains("kwargs");
    names_.insert(outer.begin(), outer.end());
    return m;
  }

  CallBlockStmt call_block() {
    CallBlockStmt s;
    s.caller.name = "caller";
    if (now().is_operator("(")) signature(s.caller);
    const int line = now().line;
    s.call = expression();
    if (!std::holds_alternative<CallExpr>(s.call->node)) fail("{% call %} needs a call", line);
    s.caller.body = function_body("endcall");
    return s;
  }

  // ---- assignment

  std::string assignable(std::string name) const {
    constexpr std::array kConstants = {"true", "false", "none", "True", "False", "None"};
    if (std::find(kConstants.begin(), kConstants.end(), name) != kConstants.end())
      fail("cannot assign to \"" + name + "\"");
    return name;
  }

  Target one_target(bool with_attribute) {
    const Level level(*this);
    Target t;
    if (skip_operator("(")) {
      t = target(")", false);
      expect_operator(")");
      return t;
    }
    t.name = assignable(expect_name("a name to assign to"));
    if (with_attribute && skip_operator(".")) t.attribute = expect_name("an attribute");
    return t;
  }

  // One target or several with commas between; `end`: the name or operator that comes behind them.
  Target target(std::string_view end, bool with_attribute) {
    Target all;
    while (true) {
      if (!all.parts.empty() &&
          (now().is_name(end) || now().is_operator(end) || now().kind == Kind::kBlockEnd || now().is_operator("=")))
        break;
      all.parts.push_back(one_target(with_attribute));
      if (!skip_operator(",")) break;
      all.is_tuple = true;
    }
    if (all.is_tuple) return all;
    Target only = std::move(all.parts.front());
    return only;
  }

  // ---- expressions, the loosest first

  ExprPtr expression(bool conditional = true) {
    const Level level(*this);
    return conditional ? conditional_expression() : or_expression();
  }

  // An expression, or several with commas between, which are a tuple.
  ExprPtr tuple(bool conditional = true, std::string_view end = "", bool in_brackets = false) {
    const int line = now().line;
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    while (true) {
      if (now().kind == Kind::kVariableEnd || now().kind == Kind::kBlockEnd || now().is_operator(")") ||
          (!end.empty() && now().is_name(end)))
        break;
      items.push_back(expression(conditional));
      if (!skip_operator(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && items.size() == 1) return std::move(items.front());
    if (items.empty() && !in_brackets) fail("expected an expression, not " + describe(now()));
    const int depth = depth_of(items);
    return make(line, depth, ListExpr{std::move(items), true});
  }

  ExprPtr conditional_expression() {
    ExprPtr e = or_expression();
    while (now().is_name("if")) {
      const int line = take().line;
      ExprPtr condition = or_expression(), otherwise;
      if (skip_name("else")) {
        const Level level(*this);
        otherwise = conditional_expression();
      }
      const int depth = std::max({depth_of(e), depth_of(condition), depth_of(otherwise)});
      e = make(line, depth, ConditionalExpr{std::move(condition), std::move(e), std::move(otherwise)});
    }
    return e;
  }

  ExprPtr or_expression() {
    ExprPtr e = and_expression();
    while (now().is_name("or")) {
      const int line = take().line;
      ExprPtr right = and_expression();
      const int depth = std::max(depth_of(e), depth_of(right));
      e = make(line, depth, AndOrExpr{false, std::move(e), std::move(right)});
    }
    return e;
  }

  ExprPtr and_expression() {
    ExprPtr e = not_expression();
    while (now().is_name("and")) {
      const int line = take().line;
      ExprPtr right = not_expression();
      const int depth = std::max(depth_of(e), depth_of(right));
      e = make(line, depth, AndOrExpr{true, std::move(e), std::move(right)});
    }
    return e;
  }

  ExprPtr not_expression() {
    if (!now().is_name("not")) return comparison();
    const Level level(*this);
    const int line = take().line;
    ExprPtr e = not_expression();
    const int depth = depth_of(e);
    return make(line, depth, UnaryExpr{Unary::kNot, std::move(e)});
  }

  std::optional<Comparison> comparison_operator() {
    constexpr std::array<std::pair<const char*, Comparison>, 6> kOperators = {{{"==", Comparison::kEqual},
                                                                               {"!=", Comparison::kUnequal},
                                                                               {"<", Comparison::kLess},
                                                                               {"<=", Comparison::kLessEqual},
                                                                               {">", Comparison::kGreater},
                                                                               {">=", Comparison::kGreaterEqual}}};
    for (const auto& [op, comparison] : kOperators) {
      if (skip_operator(op)) return comparison;
    }
    if (skip_name("in")) return Comparison::kIn;
    if (now().is_name("not") && next().is_name("in")) {
      take();
      take();
      return Comparison::kNotIn;
    }
    return std::nullopt;
  }

  ExprPtr comparison() {
    const int line = now().line;
    CompareExpr c{sum(), {}};
    int depth = depth_of(c.first);
    while (const auto op = comparison_operator()) {
      c.rest.emplace_back(*op, sum());
      depth = std::max(depth, depth_of(c.rest.back().second));
    }
    return c.rest.empty() ? std::move(c.first) : make(line, depth, std::move(c));
  }

  // Left-associative operators of one rank, the operands of the next.
  template <size_t N>
  ExprPtr binary(const std::pair<std::string_view, Binary> (&operators)[N], ExprPtr (Parser::*operand)()) {
    ExprPtr e = (this->*operand)();
    while (true) {
      const auto* op = std::find_if(std::begin(operators), std::end(operators),
                                    [&](const auto& o) { return now().is_operator(o.first); });
      if (op == std::end(operators)) return e;
      const int line = take().line;
      ExprPtr right = (this->*operand)();
      const int depth = std::max(depth_of(e), depth_of(right));
      e = make(line, depth, BinaryExpr{op->second, std::move(e), std::move(right)});
    }
  }

  ExprPtr sum() {
    static constexpr std::pair<std::string_view, Binary> kOperators[] = {{"+", Binary::kAdd}, {"-", Binary::kSubtract}};
    return binary(kOperators, &Parser::concatenation);
  }

  ExprPtr concatenation() {
    const int line = now().line;
    std::vector<ExprPtr> parts;
    do {
      parts.push_back(product());
    } while (skip_operator("~"));
    if (parts.size() == 1) return std::move(parts.front());
    const int depth = depth_of(parts);
    return make(line, depth, ConcatExpr{std::move(parts)});
  }

  ExprPtr product() {
    static constexpr std::pair<std::string_view, Binary> kOperators[] = {
        {"*", Binary::kMultiply}, {"/", Binary::kDivide}, {"//", Binary::kFloorDivide}, {"%", Binary::kModulo}};
    return binary(kOperators, &Parser::power);
  }

  ExprPtr power() {
    static constexpr std::pair<std::string_view, Binary> kOperators[] = {{"**", Binary::kPower}};
    return binary(kOperators, &Parser::filtered);
  }

  ExprPtr filtered() { return unary(true); }

  ExprPtr unary(bool with_filters) {
    const Level level(*this);
    ExprPtr e;
    if (now().is_operator("-") || now().is_operator("+")) {
      const Token sign = take();
      e = unary(false);
      const int depth = depth_of(e);
      e = make(sign.line, depth, UnaryExpr{sign.text == "-" ? Unary::kMinus : Unary::kPlus, std::move(e)});
    } else {
      e = primary();
    }
    e = postfix(std::move(e));
    while (with_filters) {
      if (skip_operator("|"))
        e = filter(std::move(e));
      else if (now().is_name("is"))
        e = test(std::move(e));
      else if (now().is_operator("("))
        e = call(std::move(e));
      else
        break;
    }
    return e;
  }

  ExprPtr primary() {
    const Token token = take_primary();
    switch (token.kind) {
      case Kind::kName: {
        if (token.text == "true" || token.text == "True") return constant(token.line, true);
        if (token.text == "false" || token.text == "False") return constant(token.line, false);
        if (token.text == "none" || token.text == "None") return constant(token.line, None{});
        names_.insert(token.text);
        return make(token.line, 0, NameExpr{token.text});
      }
      case Kind::kString: {
        std::string value = token.text;
        while (now().kind == Kind::kString) value += take().text;
        return constant(token.line, std::make_shared<const String>(nullptr, std::move(value)));
      }
      case Kind::kInteger:
        return constant(token.line, token.integer);
      case Kind::kFloat:
        return constant(token.line, token.number);
      default:
        break;
    }
    if (token.text == "(") {
      ExprPtr e = tuple(true, "", true);
      expect_operator(")");
      return e;
    }
    return token.text == "[" ? list_display(token.line) : dict_display(token.line);
  }

  Token take_primary() {
    const bool opens = now().is_operator("(") || now().is_operator("[") || now().is_operator("{");
    const bool atom = now().kind == Kind::kName || now().kind == Kind::kString || now().kind == Kind::kInteger ||
                      now().kind == Kind::kFloat;
    if (!opens && !atom) fail("expected an expression, not " + describe(now()));
    return take();
  }

  ExprPtr list_display(int line) {
    std::vector<ExprPtr> items;
    while (!now().is_operator("]")) {
      if (!items.empty()) {
        expect_operator(",");
        if (now().is_operator("]")) break;
      }
      items.push_back(expression());
    }
    expect_operator("]");
    const int depth = depth_of(items);
    return make(line, depth, ListExpr{std::move(items), false});
  }

  ExprPtr dict_display(int line) {
    DictExpr d;
    int depth = 0;
    while (!now().is_operator("}")) {
      if (!d.entries.empty()) {
        expect_operator(",");
        if (now().is_operator("}")) break;
      }
      ExprPtr key = expression();
      expect_operator(":");
      ExprPtr value = expression();
      depth = std::max({depth, depth_of(key), depth_of(value)});
      d.entries.emplace_back(std::move(key), std::move(value));
    }
    expect_operator("}");
    return make(line, depth, std::move(d));
  }

  ExprPtr postfix(ExprPtr e) {
    while (true) {
      if (now().is_operator("."))
        e = attribute(std::move(e));
      else if (now().is_operator("["))
        e = subscript(std::move(e));
      else if (now().is_operator("("))
        e = call(std::move(e));
      else
        return e;
    }
  }

  ExprPtr attribute(ExprPtr e) {
    const int line = take().line;
    const int depth = depth_of(e);
    if (now().kind == Kind::kInteger) {
      const Token index = take();
      return make(line, depth, ItemExpr{std::move(e), constant(line, index.integer)});
    }
    return make(line, depth, AttributeExpr{std::move(e), expect_name("the name of an attribute")});
  }

  ExprPtr subscript(ExprPtr e) {
    const int line = take().line;
    SliceExpr s;
    bool slice = false;
    if (!now().is_operator(":")) s.begin = expression();
    if (skip_operator(":")) {
      slice = true;
      if (!now().is_operator(":") && !now().is_operator("]")) s.end = expression();
      if (skip_operator(":") && !now().is_operator("]")) s.step = expression();
    }
    if (now().is_operator(",")) fail("a subscript of several parts is not supported");
    expect_operator("]");
    const int depth = std::max({depth_of(e), depth_of(s.begin), depth_of(s.end), depth_of(s.step)});
    if (!slice) return make(line, depth, ItemExpr{std::move(e), std::move(s.begin)});
    s.of = std::move(e);
    return make(line, depth, std::move(s));
  }

  CallArguments call_arguments() {
    const int line = now().line;
    expect_operator("(");
    CallArguments a;
    bool first = true;
    const auto require = [&](bool holds) {
      if (!holds) fail("these arguments are in no valid order", line);
    };
    while (!now().is_operator(")")) {
      if (!std::exchange(first, false)) {
        expect_operator(",");
        if (now().is_operator(")")) break;
      }
      if (skip_operator("*")) {
        require(!a.more_positional && !a.more_named);
        a.more_positional = expression();
      } else if (skip_operator("**")) {
        require(!a.more_named);
        a.more_named = expression();
      } else if (now().kind == Kind::kName && next().is_operator("=")) {
        require(!a.more_named);
        std::string name = take().text;
        take();
        for (const auto& [other, value] : a.named) {
          if (other == name) fail("the argument \"" + name + "\" stands twice");
        }
        a.named.emplace_back(std::move(name), expression());
      } else {
        require(!a.more_positional && !a.more_named && a.named.empty());
        a.positional.push_back(expression());
      }
    }
    expect_operator(")");
    return a;
  }

  ExprPtr call(ExprPtr callee) {
    const int line = now().line;
    CallArguments a = call_arguments();
    const int depth = std::max(depth_of(callee), depth_of(a));
    return make(line, depth, CallExpr{std::move(callee), std::move(a)});
  }

  // Behind the bar, or behind {% filter.
  ExprPtr filter(ExprPtr of) {
    const int line = now().line;
    FilterExpr f{std::move(of), expect_name("the name of a filter"), {}};
    if (now().is_operator("(")) f.arguments = call_arguments();
    const int depth = std::max(depth_of(f.of), depth_of(f.arguments));
    return make(line, depth, std::move(f));
  }

  ExprPtr test(ExprPtr of) {
    const int line = take().line;
    const bool negated = skip_name("not");
    TestExpr t{std::move(of), expect_name("the name of a test"), {}};
    const bool operand = now().kind == Kind::kName || now().kind == Kind::kString || now().kind == Kind::kInteger ||
                         now().kind == Kind::kFloat || now().is_operator("[") || now().is_operator("{");
    if (now().is_operator("(")) {
      t.arguments = call_arguments();
    } else if (operand && !at_any({"else", "or", "and"})) {
      if (now().is_name("is")) fail("tests cannot be chained");
      t.arguments.positional.push_back(postfix(primary()));
    }
    const int depth = std::max(depth_of(t.of), depth_of(t.arguments));
    ExprPtr e = make(line, depth, std::move(t));
    return negated ? make(line, depth + 1, UnaryExpr{Unary::kNot, std::move(e)}) : std::move(e);
  }

  const std::string& where_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int level_ = 0;
  int loops_ = 0;                // around this place, within its function
  std::set<std::string> names_;  // read so far, within the macro
};

}  // namespace

Body parse(std::string_view source, const std::string& where) { return Parser(source, where).run(); }

}  // namespace transept::jinja
