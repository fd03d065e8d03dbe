// What a study asserts before it trains anything: that its models differ in the axis alone. Each quantity that the
// definition names is taken from what would really be trained: counted by the planner, read from the sampler, drawn by
// the initializer.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/thread_pool.h"
#include "data/corpus.h"
#include "data/examples.h"
#include "study/study_definition.h"

namespace transept {

// As results.json holds it: {"what", "among", "value", "count"}. InputError lists every model that differs from the
// study's first, with its axes and by how much.
Json check_equality(const StudyDefinition& definition, ThreadPool& pool, const Corpus& corpus,
                    const Vocabulary& vocabulary);

// Each model that is trained from random weights, with the axes that all of its cells share.
struct TrainedModel {
  const TrainStep* step;
  Json axes;
};
std::vector<TrainedModel> trained_models(const StudyDefinition& definition);

}  // namespace transept
