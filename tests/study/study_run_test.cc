// Studies as files, and their runs: what is read and refused, what must be equal, and that a study which was stopped
// ends as one that was not.
#include "study/study_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "data/synthetic.h"
#include "study/studies.h"
#include "study/study_equality.h"
#include "study/study_report.h"
#include "study/study_store.h"
#include "support/temp_folder.h"

namespace transept {
namespace {

// Two attention forms trained for a few steps, measured at two contexts; one of them with fewer KV heads afterwards.
Json small_study() {
  return Json::parse(R"({
    "name": "small", "question": "?",
    "base": { "topology": "decoder", "vocab_size": 259, "hidden_size": 16, "max_position_embeddings": 16,
              "attention": { "kind": "gqa", "num_attention_heads": 4 }, "ffn": { "kind": "swiglu", "intermediate_size": 24 },
              "num_hidden_layers": 1 },
    "tokenizer": "byte", "val_fraction": 0.1,
    "training": { "context": 16, "batch": 4, "steps": 6, "lr": 1e-2 },
    "seeds": 2,
    "axes": { "position": ["rope", "learned"], "context": [16, 32], "heads": [4, 2] },
    "equal": { "flops": 0, "tokens": 0, "data_order": 0, "initialization": 0 },
    "cells": [
      { "for": ["position", "context"],
        "model": [{ "kind": "train", "spec": { "position": { "kind": "$position" } } }],
        "measure": [{ "kind": "perplexity", "context": "$context" }, { "kind": "cache" }] },
      { "for": ["heads"], "axes": { "position": "rope", "context": 16, "stage": "recovered" },
        "model": [{ "kind": "train", "spec": { "position": { "kind": "rope" } } },
                  { "kind": "kv_heads", "num_key_value_heads": "$heads", "method": "aligned" },
                  { "kind": "uptrain", "steps": 2, "lr": 1e-3, "teacher": 0.5 }],
        "measure": [{ "kind": "perplexity", "context": "$context", "protocol": "sliding" }, { "kind": "cache" }] },
      { "for": ["context"], "axes": { "position": "rope", "stage": "stretched" },
        "model": [{ "kind": "train", "spec": { "position": { "kind": "rope" } } },
                  { "kind": "stretch", "rule": "yarn", "length": "$context" }],
        "measure": [{ "kind": "perplexity", "context": "$context" }] },
      { "axes": { "form": "causal" }, "measure": [{ "kind": "attention_form", "form": "causal", "tokens": 8 }] }
    ],
    "charts": [{ "kind": "lines", "title": "t", "metric": "perplexity", "x": "context", "series": ["position"], "where": {} }],
    "quick": { "seeds": 1, "training": { "steps": 2 } }
  })");
}

StudyDefinition read(const Json& document, StudySize size = StudySize::kFull) {
  return read_study_definition(document, size, "s.json");
}

std::string refusal(const Json& document) {
  try {
    read(document);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

class StudyRunTest : public ::testing::Test {
 protected:
  StudyRunTest()
      : tokenizer_(byte_tokenizer()),
        corpus_({{{"t", synthetic_text(4000, 0)}}, {}}, nullptr, *tokenizer_,
                {.unit = Unit::kStream, .context = 16, .val_fraction = 0.1}) {}

  // Stops after `steps` reports of progress; 0: never.
  Json run(const StudyDefinition& study, const std::filesystem::path& out, int stop_after = 0) {
    std::atomic<bool> stop{false};
    int reports = 0;
    StudyRun how;
    how.out = out;
    how.stop = &stop;
    how.progress = [&](const ProgressState& state) {
      EXPECT_LE(state.step, kStudyProgress);
      EXPECT_GE(state.step, last_);
      last_ = state.step;
      if (++reports == stop_after) stop = true;
    };
    last_ = 0;
    return run_study(study, pool_, corpus_, *tokenizer_, how);
  }

  ThreadPool pool_{2};
  std::unique_ptr<Tokenizer> tokenizer_;
  Corpus corpus_;
  int64_t last_ = 0;
};

TEST(StudyDefinition, TemplatesBecomeCells) {
  const StudyDefinition study = read(small_study());
  ASSERT_EQ(study.cells.size(), 9u);
  EXPECT_EQ(study.cells[1].axes, Json({{"position", "rope"}, {"context", 32}}));
  EXPECT_EQ(std::get<PerplexityMeasurement>(study.cells[1].measurements[0]).context, 32);
  EXPECT_EQ(std::get<KvHeadsStep>(study.cells[5].steps[1]).num_key_value_heads, 2);
  EXPECT_EQ(study.cells[8].steps.size(), 0u);
  EXPECT_EQ(study.training.schedule.total_steps, 6);
  EXPECT_EQ(study.training.schedule.minimum, 1e-3);
  EXPECT_EQ(study.trained_spec(std::get<TrainStep>(study.cells[2].steps[0])).position.index(),
            PositionSpec(LearnedPosition{}).index());
}

TEST(StudyDefinition, TheQuickFormChangesTheDocument) {
  const StudyDefinition quick = read(small_study(), StudySize::kQuick);
  EXPECT_EQ(quick.seeds, 1);
  EXPECT_EQ(quick.training.schedule.total_steps, 2);
  Json without = small_study();
  without.erase("quick");
  EXPECT_THROW(read(without, StudySize::kQuick), InputError);
}

TEST(StudyDefinition, AllProblemsAreTold) {
  Json study = small_study();
  study["sedes"] = 3;
  study["val_fraction"] = 2;
  study["training"]["steps"] = "many";
  study["training"]["stepz"] = 3;
  study["axes"]["context"] = Json::array();
  study["equal"]["tokens"] = 0.5;
  study["cells"][1]["model"][1]["method"] = "median";
  study["cells"][1]["model"][2]["teacher"] = 1.5;
  study["cells"][3]["measure"][0]["kind"] = "perplexity";
  const std::string text = refusal(study);
  for (const char* part :
       {"s.json.sedes", "did you mean \"seeds\"", "val_fraction", "training.steps: got the string \"many\"",
        "training.stepz", "axes.context", "equal.tokens", "cells[1].model[1].method", "\"aligned\"",
        "cells[1].model[2].teacher", "cells[3].measure[0]", "names of axes"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(StudyDefinition, StepsStandInOrder) {
  Json study = small_study();
  study["cells"][1]["model"].erase(0);
  EXPECT_NE(refusal(study).find("comes first, and has no model to work on"), std::string::npos);
  study = small_study();
  study["cells"][1]["model"].push_back({{"kind", "train"}});
  EXPECT_NE(refusal(study).find("only the first step"), std::string::npos);
  study = small_study();
  study["cells"][3]["measure"] = {{{"kind", "cache"}}};
  EXPECT_NE(refusal(study).find("measures a model, and the cell has none"), std::string::npos);
  study = small_study();
  study["cells"][1]["axes"] = {{"position", "rope"}, {"context", 16}};
  study["cells"][1]["for"] = Json::array();
  study["cells"][1]["model"][1]["num_key_value_heads"] = 2;
  EXPECT_NE(refusal(study).find("has the axes of another cell"), std::string::npos);
  study = small_study();
  study["cells"][0]["model"][0]["spec"]["position"]["kind"] = "$positions";
  EXPECT_NE(refusal(study).find("names no axis of the cell"), std::string::npos);
  study = small_study();
  study["base"]["hidden_size"] = 18;
  EXPECT_NE(refusal(study).find("attention"), std::string::npos);
}

TEST(StudyDefinition, ChartsNameValuesOfAxes) {
  Json study = small_study();
  study["charts"][0]["where"] = {{"context", "$context[-1]"}, {"position", "$position[0]"}};
  EXPECT_EQ(read(study).charts[0].at("where"), Json({{"context", 32}, {"position", "rope"}}));
  for (const char* wrong : {"$context[2]", "$context[-3]", "$contexts[0]", "$context[x]", "$context[0]]"}) {
    study["charts"][0]["where"] = {{"context", wrong}};
    EXPECT_NE(refusal(study).find("is no value of an axis"), std::string::npos) << wrong;
  }
}

TEST(Studies, ThoseOfTheProgramAreWhole) {
  const auto listed = list_studies();
  ASSERT_EQ(listed.size(), 3u);
  for (const StudyListing& s : listed) {
    for (const StudySize size : {StudySize::kFull, StudySize::kQuick}) {
      const StudyDefinition study = find_study(s.name, size);
      EXPECT_EQ(study.name, s.name);
      EXPECT_GE(study.seeds, 2);
      EXPECT_FALSE(study.charts.empty());
    }
  }
  try {
    find_study("position", StudySize::kFull);
    FAIL();
  } catch (const InputError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean \"positions\""), std::string::npos);
  }
}

TEST_F(StudyRunTest, CellsAreMeasuredAndSummedUp) {
  const TempFolder folder;
  const StudyDefinition study = read(small_study());
  const Json results = run(study, folder / "out");
  EXPECT_EQ(results.at("cells").size(), 18u);
  EXPECT_EQ(last_, kStudyProgress);
  for (const Json& row : results.at("summary")) {
    double sum = 0, squares = 0;
    int n = 0;
    for (const Json& cell : results.at("cells")) {
      if (cell.at("axes") != row.at("axes")) continue;
      const double x = cell.at("metrics").at(row.at("metric").get<std::string>());
      sum += x, squares += x * x, ++n;
    }
    ASSERT_EQ(n, 2);
    EXPECT_EQ(row.at("n"), 2);
    const double mean = sum / 2;
    EXPECT_NEAR(row.at("mean").get<double>(), mean, 1e-12 * mean);
    EXPECT_NEAR(row.at("sd").get<double>(), std::sqrt(std::max(0.0, squares - 2 * mean * mean)), 1e-6 * mean);
  }
  // The learned table ends at 16; four heads' cache is twice that of two, and of four after conversion.
  const auto cell = [&](size_t i) { return results.at("cells")[i]; };
  EXPECT_NE(cell(3).at("refused").get<std::string>().find("learned positions"), std::string::npos);
  EXPECT_TRUE(cell(3).at("metrics").empty());
  EXPECT_EQ(cell(0).at("metrics").at("cache_bytes_per_token"), 2 * 16 * 4);
  EXPECT_EQ(cell(4).at("metrics").at("cache_bytes_per_token"), 2 * 16 * 4);
  EXPECT_EQ(cell(5).at("metrics").at("cache_bytes_per_token"), 2 * 16 * 4 / 2);
  EXPECT_EQ(results.at("models").size(), 2u);
  EXPECT_EQ(results.at("models")[1].at("differs").at("position.kind"), "learned");
  EXPECT_EQ(
      results.at("models")[1].at("parameters").get<int64_t>() - results.at("models")[0].at("parameters").get<int64_t>(),
      16 * 16);
  EXPECT_EQ(results.at("equal").size(), 4u);
  EXPECT_NO_THROW(study_report_page(results));
}

TEST_F(StudyRunTest, AStoppedStudyEndsAsOneThatWasNot) {
  const TempFolder folder;
  const StudyDefinition study = read(small_study());
  run(study, folder / "whole");
  int runs = 1;
  while (run(study, folder / "cut", 4).is_null()) ++runs;
  EXPECT_GT(runs, 5);
  EXPECT_EQ(read_file(folder / "whole" / "results.json", 1 << 20), read_file(folder / "cut" / "results.json", 1 << 20));
  // And a finished one is not run again.
  EXPECT_EQ(run(study, folder / "cut", 1).is_null(), false);
}

// Its source has hardly learned anything, so that text alone leads far away from it.
TEST_F(StudyRunTest, TheTeacherIsWhatTrainingLeft) {
  const TempFolder folder;
  Json study = small_study();
  study["seeds"] = 1;
  study["axes"] = {{"stage", {"source", "text", "taught"}}};
  study["cells"] = Json::array();
  study["charts"] = Json::array();
  Json recipe = {{{"kind", "train"}}};
  const auto add = [&](const char* stage) {
    study["cells"].push_back(
        {{"axes", {{"stage", stage}}}, {"model", recipe}, {"measure", {{{"kind", "perplexity"}, {"context", 16}}}}});
  };
  add("source");
  recipe.push_back({{"kind", "uptrain"}, {"steps", 100}, {"lr", 1e-2}});
  add("text");
  recipe.push_back({{"kind", "uptrain"}, {"steps", 200}, {"lr", 1e-2}, {"teacher", 1}});
  add("taught");
  const Json results = run(read(study), folder / "out");
  const auto loss = [&](size_t i) { return results.at("cells")[i].at("metrics").at("loss").get<double>(); };
  EXPECT_LT(loss(1), loss(0) - 0.5);
  EXPECT_NEAR(loss(2), loss(0), 0.1);
}

TEST_F(StudyRunTest, AnotherStudyOrTextInTheFolderIsRefused) {
  const TempFolder folder;
  run(read(small_study(), StudySize::kQuick), folder / "out");
  EXPECT_THROW(run(read(small_study()), folder / "out"), InputError);
  std::ofstream(folder / "bad.sqlite") << "this is no database, and long enough to be taken for one: "
                                       << std::string(200, 'x');
  EXPECT_THROW(StudyStore(folder / "bad.sqlite", {}), InputError);
}

TEST_F(StudyRunTest, WhatMustBeEqualIs) {
  const Vocabulary vocabulary = vocabulary_of(*tokenizer_);
  const auto refused = [&](const Json& document) -> std::string {
    try {
      check_equality(read(document), pool_, corpus_, vocabulary);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refused(small_study()), "");
  const auto planted = [](const Json& training, const Json& spec) {
    Json study = small_study();
    study["cells"].push_back({{"axes", {{"position", "planted"}}},
                              {"model", {{{"kind", "train"}, {"spec", spec}, {"training", training}}}},
                              {"measure", {{{"kind", "cache"}}}}});
    return study;
  };
  const Json none = Json::object();
  const std::string tokens = refused(planted({{"steps", 7}}, none));
  EXPECT_NE(tokens.find("planted"), std::string::npos) << tokens;
  EXPECT_NE(tokens.find("has tokens 448, where"), std::string::npos) << tokens;
  EXPECT_NE(refused(planted({{"batch", 8}, {"steps", 3}}, none)).find("data_order"), std::string::npos);
  EXPECT_NE(refused(planted(none, {{"ffn", {{"intermediate_size", 32}}}})).find("flops"), std::string::npos);
  EXPECT_NE(refused(planted(none, {{"initializer_range", 0.5}})).find("initialization"), std::string::npos);
}

}  // namespace
}  // namespace transept
