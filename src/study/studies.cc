#include "study/studies.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/problem.h"
#include "spec/nearest.h"
#include "spec/text.h"
#include "study/studies_data.h"

namespace transept {

std::vector<StudyListing> list_studies() {
  std::vector<StudyListing> studies;
  for (const EmbeddedDocument& document : studies_data()) {
    const Json study = parse_json(document.text, std::string(document.name));
    studies.push_back(
        {std::string(document.name), study.at("title").get<std::string>(), study.at("question").get<std::string>()});
  }
  return studies;
}

StudyDefinition find_study(const std::string& name_or_file, StudySize size) {
  std::vector<std::string> names;
  for (const EmbeddedDocument& document : studies_data()) {
    names.emplace_back(document.name);
    if (document.name == name_or_file)
      return read_study_definition(parse_json(document.text, name_or_file), size, name_or_file);
  }
  std::error_code code;
  if (std::filesystem::exists(name_or_file, code))
    return read_study_definition(read_json(name_or_file), size, name_or_file);
  const std::string near = nearest_name(name_or_file, names);
  throw InputError(name_or_file, "is no study and no file",
                   near.empty() ? "studies: " + join(names) : "did you mean " + in_quotes(near) + "?");
}

}  // namespace transept
