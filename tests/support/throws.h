// What an input error says, as a value: EXPECT_THAT(input_error([&] { ... }), HasSubstr("...")). Anything else, and no
// error at all, gives a text that no expectation holds.
#pragma once

#include <string>

#include "base/problem.h"

namespace transept {

template <class Kind, class Body>
std::string error_of(const Body& body) {
  try {
    body();
  } catch (const Kind& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("(another kind of error) ");
  }
  return "(no error)";
}
template <class Body>
std::string input_error(const Body& body) {
  return error_of<InputError>(body);
}
template <class Body>
std::string environment_error(const Body& body) {
  return error_of<EnvironmentError>(body);
}
// Whether the body either ends well or refuses its input: the rule for mutated files.
template <class Body>
bool loads_or_refuses(const Body& body) {
  try {
    body();
  } catch (const InputError&) {
  }
  return true;
}

}  // namespace transept
