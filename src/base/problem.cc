#include "base/problem.h"

namespace transept {

std::string Problem::to_string() const {
  std::string s = where.empty() ? what : where + ": " + what;
  return mend.empty() ? s : s + "; " + mend;
}

Failure::Failure(Problems problems) : problems_(std::move(problems)) {
  for (const Problem& p : problems_) {
    if (!text_.empty()) text_ += '\n';
    text_ += p.to_string();
  }
}

void throw_if_any(Problems problems) {
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace transept
