// Errors. Three kinds, and nothing else:
//  - InputError: what a person or a file handed in is wrong. Carries every problem found, each with its place, what is
//  wrong and how
//    to mend it. Exit code 2.
//  - EnvironmentError: the machine failed us (disk, memory, permissions). Exit code 1.
//  - TRANSEPT_CHECK (base/check.h): our own bug. No input may reach it.
// Functions that validate collect into a Problems list, so that all are reported at once, and throw at the end.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace transept {

// One line for a person: "WHERE: WHAT; MEND". `mend` may be empty where nothing can be advised.
struct Problem {
  std::string where;
  std::string what;
  std::string mend;
  std::string to_string() const;
};

using Problems = std::vector<Problem>;

class Failure : public std::exception {
 public:
  explicit Failure(Problems problems);
  const char* what() const noexcept override { return text_.c_str(); }  // one problem a line
  const Problems& problems() const { return problems_; }
  virtual int exit_code() const = 0;

 private:
  Problems problems_;
  std::string text_;
};

class InputError : public Failure {
 public:
  explicit InputError(Problems problems) : Failure(std::move(problems)) {}
  InputError(std::string where, std::string what, std::string mend = {})
      : Failure({{std::move(where), std::move(what), std::move(mend)}}) {}
  int exit_code() const override { return 2; }
};

class EnvironmentError : public Failure {
 public:
  EnvironmentError(std::string where, std::string what, std::string mend = {})
      : Failure({{std::move(where), std::move(what), std::move(mend)}}) {}
  int exit_code() const override { return 1; }
};

// Throws InputError when the list holds anything.
void throw_if_any(Problems problems);

}  // namespace transept
