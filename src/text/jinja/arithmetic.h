// Python's operators on values. Integers have 64 bits: what does not fit is an error, never another number.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

namespace transept::jinja {

Value binary(Heap& heap, Binary op, const Value& a, const Value& b);
Value negative(const Value& value);
Value positive(const Value& value);
bool compare(Heap& heap, Comparison op, const Value& a, const Value& b);

}  // namespace transept::jinja
