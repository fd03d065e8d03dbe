// Studies by name: those of the program, and files of the same form.
#pragma once

#include <string>
#include <vector>

#include "study/study_definition.h"

namespace transept {

struct StudyListing {
  std::string name, title, question;
};
std::vector<StudyListing> list_studies();

// A study of the program, or of a file. InputError naming the closest names when it is neither.
StudyDefinition find_study(const std::string& name_or_file, StudySize size);

}  // namespace transept
