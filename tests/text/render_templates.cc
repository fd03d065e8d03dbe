// Renders templates for tools/make_chat_goldens.py: on each line of stdin a JSON object with `template` and
// `variables`; on each line of stdout one with `output`, or with `error`.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/problem.h"
#include "text/jinja/template.h"

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    transept::Json answer;
    try {
      const transept::Json asked = transept::Json::parse(line);
      answer["output"] = transept::JinjaTemplate::parse(asked.at("template").get<std::string>(), "template")
                             .render(asked.at("variables"));
    } catch (const transept::InputError& e) {
      answer["error"] = e.what();
    }
    std::cout << answer.dump() << std::endl;
  }
}
