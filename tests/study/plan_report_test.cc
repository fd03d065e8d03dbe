// Pages of plans hold what was planned.
#include "study/plan_report.h"

#include <gtest/gtest.h>

#include "page_checker.h"
#include "spec/presets.h"

namespace transept {
namespace {

TEST(PlanReport, OneModel) {
  const Plan plan = make_plan(preset("mistral-7b"), {.context = 32768, .dtype = "bf16"});
  const CheckedPage page = check_page(render_report(plan_page(plan)));
  EXPECT_TRUE(page.problems.empty());
  EXPECT_EQ(page.all("figure", "chart").size(), 3u);
  const std::string html = render_report(plan_page(plan));
  for (const char* part : {"7,241,732,096", "512 MiB", "palm_without_embedding", "Window"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  // An encoder caches nothing.
  EXPECT_EQ(check_page(render_report(plan_page(make_plan(preset("bert-base"), {})))).all("figure", "chart").size(), 2u);
}

TEST(PlanReport, FewModelsByNameAndManyAsPoints) {
  std::vector<Plan> models;
  for (const std::string& name : preset_names()) {
    models.push_back(make_plan(preset(name), {}));
    if (models.size() != 3) continue;
    const CheckedPage few = check_page(render_report(comparison_page(models, "Three")));
    EXPECT_TRUE(few.problems.empty());
    EXPECT_EQ(few.all("figure", "bars").size(), 3u);
    EXPECT_EQ(few.all("figure", "lines").size(), 1u);
  }
  const CheckedPage many = check_page(render_report(comparison_page(models, "All")));
  EXPECT_TRUE(many.problems.empty());
  EXPECT_EQ(many.all("figure", "points").size(), 2u);
  EXPECT_GT(many.all("th").size(), models.size());
}

}  // namespace
}  // namespace transept
