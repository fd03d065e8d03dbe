// What a study has finished, in DIR/study.sqlite: every cell is put down in one transaction when it is done, so a
// killed study loses the one it was at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "study/study_definition.h"

struct sqlite3;

namespace transept {

class StudyStore {
 public:
  // Opens or creates. `identity` is what all cells have in common (base, training, the data); InputError when the file
  // is of another study, or no such file at all; EnvironmentError when it can't be written.
  StudyStore(const std::filesystem::path& path, const Json& identity);
  ~StudyStore();
  StudyStore(const StudyStore&) = delete;
  StudyStore& operator=(const StudyStore&) = delete;

  // What was measured, once it is.
  std::optional<Json> cell(const DefinedCell& cell, int64_t seed) const;
  void put_cell(const DefinedCell& cell, int64_t seed, const Json& result, double seconds);

  // Whether the recipe's model of that seed is trained: its weights lie in models/NAME.
  bool has_model(const std::string& name) const;
  void put_model(const std::string& name, const Json& recipe, int64_t seed, double seconds);

 private:
  std::unique_ptr<sqlite3, void (*)(sqlite3*)> database_;
  std::string path_;
};

}  // namespace transept
