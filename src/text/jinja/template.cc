#include "text/jinja/template.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/problem.h"
#include "text/jinja/functions.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace transept {

struct JinjaTemplate::Parsed {
  std::string where;
  jinja::Body body;
};

JinjaTemplate::JinjaTemplate(std::unique_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;
JinjaTemplate::~JinjaTemplate() = default;

JinjaTemplate JinjaTemplate::parse(std::string_view source, const std::string& where) {
  return JinjaTemplate(std::make_unique<const Parsed>(Parsed{where, jinja::parse(source, where)}));
}

std::string JinjaTemplate::render(const Json& variables) const {
  TRANSEPT_CHECK(variables.is_object());
  jinja::Heap heap;
  std::optional<jinja::Interpreter> interpreter;
  const auto place = [&] {
    return parsed_->where + (interpreter ? ": line " + std::to_string(interpreter->line()) : "");
  };
  try {
    interpreter.emplace(heap, variables);
    return interpreter->run(parsed_->body);
  } catch (const jinja::RaisedError& e) {
    throw InputError(place(), std::string("refuses the conversation: ") + e.what());
  } catch (const jinja::TemplateError& e) {
    throw InputError(place(), e.what());
  }
}

}  // namespace transept
