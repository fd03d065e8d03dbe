// Options of `plan` that say on which machines a model is trained and served.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "plan/economics.h"

namespace transept {

// Adds the options to the subcommand. The function that it gives, called once the command line is read, says what the
// plan costs; nothing without --machine. InputError as make_economics, and when other options of this kind come without
// --machine.
using EconomicsOf = std::function<std::optional<Economics>(const ArchSpec& spec, const PlanOptions& plan)>;
EconomicsOf add_machine_options(CLI::App& sub);

}  // namespace transept
