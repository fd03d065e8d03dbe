#include "text/jinja/arithmetic.h"

#include <cmath>

#include "text/jinja/format.h"

namespace transept::jinja {
namespace {

constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void refuse(Binary op, const Value& a, const Value& b) {
  require_defined(a);
  require_defined(b);
  throw TemplateError(std::string("cannot compute a ") + kind_name(a) + " " + kSigns[static_cast<int>(op)] + " a " +
                      kind_name(b));
}

[[noreturn]] void overflow() { throw TemplateError("an integer goes beyond 64 bits"); }
[[noreturn]] void division_by_zero() { throw TemplateError("a division by zero"); }

int64_t multiplied(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) overflow();
  return out;
}

int64_t floor_divided(int64_t a, int64_t b) {
  if (b == 0) division_by_zero();
  if (a == INT64_MIN && b == -1) overflow();
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) division_by_zero();
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// Python's float_divmod: the remainder has the sign of the divisor, and the quotient is floored.
double modulo(double a, double b) {
  if (b == 0) division_by_zero();
  double r = std::fmod(a, b);
  if (r != 0) {
    if ((b < 0) != (r < 0)) r += b;
  } else {
    r = std::copysign(0.0, b);
  }
  return r;
}

double floor_divided(double a, double b) {
  const double r = modulo(a, b);
  const double quotient = (a - r) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) division_by_zero();
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1) return exponent == 0 ? int64_t{1} : base;
  if (base == -1) return exponent % 2 == 0 ? int64_t{1} : int64_t{-1};
  int64_t out = 1;
  for (; exponent > 0; --exponent) out = multiplied(out, base);  // ends within 64 rounds
  return out;
}

Value integers(Binary op, int64_t a, int64_t b) {
  int64_t out = 0;
  switch (op) {
    case Binary::kAdd:
      if (__builtin_add_overflow(a, b, &out)) overflow();
      return out;
    case Binary::kSubtract:
      if (__builtin_sub_overflow(a, b, &out)) overflow();
      return out;
    case Binary::kMultiply:
      return multiplied(a, b);
    case Binary::kDivide:
      if (b == 0) division_by_zero();
      return static_cast<double>(a) / static_cast<double>(b);
    case Binary::kFloorDivide:
      return floor_divided(a, b);
    case Binary::kModulo:
      return modulo(a, b);
    case Binary::kPower:
      break;
  }
  return power(a, b);
}

Value floats(Binary op, double a, double b) {
  switch (op) {
    case Binary::kAdd:
      return a + b;
    case Binary::kSubtract:
      return a - b;
    case Binary::kMultiply:
      return a * b;
    case Binary::kDivide:
      if (b == 0) division_by_zero();
      return a / b;
    case Binary::kFloorDivide:
      return floor_divided(a, b);
    case Binary::kModulo:
      return modulo(a, b);
    case Binary::kPower:
      break;
  }
  if (a == 0 && b < 0) division_by_zero();
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b))
    throw TemplateError("a power that is a complex number");
  const double out = std::pow(a, b);
  if (std::isinf(out) && std::isfinite(a) && std::isfinite(b)) throw TemplateError("a power is too large");
  return out;
}

bool plain_sequence(const Sequence* s) {
  return s && (s->kind == Sequence::Kind::kList || s->kind == Sequence::Kind::kTuple);
}

// Text or list, `count` times.
Value repeated(Heap& heap, const Value& value, int64_t count) {
  const auto times = static_cast<size_t>(std::max<int64_t>(count, 0));
  const std::string* s = as_text(value);
  const size_t unit = s ? s->size() : as_sequence(value)->items.size() * sizeof(Value);
  if (unit > 0 && times > kMaxBytes / unit) throw TemplateError("takes too much memory");
  heap.copied(unit * times);
  if (s) {
    std::string out;
    out.reserve(unit * times);
    for (size_t i = 0; unit > 0 && i < times; ++i) out += *s;
    return text(heap, std::move(out));
  }
  const Sequence& from = *as_sequence(value);
  std::vector<Value> items;
  items.reserve(from.items.size() * times);
  for (size_t i = 0; unit > 0 && i < times; ++i) items.insert(items.end(), from.items.begin(), from.items.end());
  return list(heap, std::move(items), from.kind);
}

}  // namespace

Value binary(Heap& heap, Binary op, const Value& a, const Value& b) {
  heap.step();
  const auto i = as_integer(a), j = as_integer(b);
  if (i && j) return integers(op, *i, *j);
  if (is_number(a) && is_number(b)) return floats(op, as_double(a), as_double(b));
  const std::string *s = as_text(a), *t = as_text(b);
  const Sequence *x = as_sequence(a), *y = as_sequence(b);
  if (op == Binary::kAdd && s && t) {
    heap.copied(s->size() + t->size());
    return text(heap, *s + *t);
  }
  if (op == Binary::kAdd && plain_sequence(x) && plain_sequence(y) && x->kind == y->kind) {
    heap.step(16 * (x->items.size() + y->items.size()));
    std::vector<Value> items = x->items;
    items.insert(items.end(), y->items.begin(), y->items.end());
    return list(heap, std::move(items), x->kind);
  }
  if (op == Binary::kMultiply && j && (s || plain_sequence(x))) return repeated(heap, a, *j);
  if (op == Binary::kMultiply && i && (t || plain_sequence(y))) return repeated(heap, b, *i);
  if (op == Binary::kModulo && s) return text(heap, percent_format(heap, *s, b));
  refuse(op, a, b);
}

Value negative(const Value& value) {
  if (const auto i = as_integer(value)) {
    if (*i == INT64_MIN) overflow();
    return -*i;
  }
  if (const double* d = std::get_if<double>(&value)) return -*d;
  require_defined(value);
  throw TemplateError("a " + kind_name(value) + " has no negative");
}

Value positive(const Value& value) {
  if (const auto i = as_integer(value)) return *i;
  if (std::holds_alternative<double>(value)) return value;
  require_defined(value);
  throw TemplateError("a " + kind_name(value) + " takes no sign");
}

bool compare(Heap& heap, Comparison op, const Value& a, const Value& b) {
  switch (op) {
    case Comparison::kEqual:
      return equal(heap, a, b);
    case Comparison::kUnequal:
      return !equal(heap, a, b);
    case Comparison::kIn:
      return contains(heap, b, a);
    case Comparison::kNotIn:
      return !contains(heap, b, a);
    default:
      break;
  }
  const Order o = order(heap, a, b);
  switch (op) {
    case Comparison::kLess:
      return o == Order::kLess;
    case Comparison::kLessEqual:
      return o == Order::kLess || o == Order::kEqual;
    case Comparison::kGreater:
      return o == Order::kGreater;
    default:
      return o == Order::kGreater || o == Order::kEqual;
  }
}

}  // namespace transept::jinja
