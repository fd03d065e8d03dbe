// results.json: what a study was, what held, and every cell with its summary over the seeds.
#pragma once

#include "base/json.h"
#include "study/study_definition.h"
#include "study/study_run.h"
#include "study/study_store.h"

namespace transept {

// All cells are in the store. Speeds and times apart, it is the same for the same definition, data and program.
Json study_results(const StudyDefinition& definition, const Json& equal, const StudyStore& store, const StudyRun& run);

}  // namespace transept
