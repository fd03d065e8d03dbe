// transept plan: counts and estimates of any model, without its weights.
#include "plan/plan.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "cli/command.h"
#include "cli/model_argument.h"

namespace transept {
void register_plan(Registry&) {}
}
