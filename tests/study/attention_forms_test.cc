#include "study/attention_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/throws.h"
#include "support/tolerances.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

// Single precision leaves something, and no more than a float32 kernel may.
const auto kRounding = AllOf(Gt(tolerance::kClosedForm), Lt(tolerance::kKernel));

TEST(AttentionForms, GrowFromOneHeadToGroups) {
  EXPECT_THAT(attention_forms(), ElementsAre("dot_product", "causal", "multi_head", "projected", "grouped"));
}

TEST(AttentionForms, EqualThePaperUpToRounding) {
  ThreadPool pool(2);
  for (const std::string_view form : attention_forms()) {
    for (const auto& [tokens, heads, head_dim] : {std::tuple{2, 1, 1}, {33, 3, 5}, {65, 4, 16}, {100, 2, 64}}) {
      SCOPED_TRACE(std::string(form) + ", " + std::to_string(tokens) + " tokens");
      const AttentionErrors errors = attention_errors(pool, form, tokens, heads, head_dim, 3);
      EXPECT_THAT(errors.output, Lt(tolerance::kKernel));
      EXPECT_THAT(errors.gradient_query, Lt(tolerance::kKernel));
      EXPECT_THAT(errors.gradient_key, Lt(tolerance::kKernel));
      EXPECT_THAT(errors.gradient_value, Lt(tolerance::kKernel));
      if (tokens == 2) continue;
      EXPECT_THAT(errors.output, kRounding);
      EXPECT_THAT(errors.gradient_query, kRounding);
      EXPECT_THAT(errors.gradient_key, kRounding);
      EXPECT_THAT(errors.gradient_value, kRounding);
      EXPECT_EQ(errors.gradient_output_weight.has_value(), form == "projected" || form == "grouped");
      if (errors.gradient_output_weight) {
        EXPECT_THAT(*errors.gradient_output_weight, kRounding);
      }
    }
  }
}

TEST(AttentionForms, DependOnTheSeedAlone) {
  ThreadPool one(1), three(3);
  for (const std::string_view form : attention_forms()) {
    const auto error = [&](ThreadPool& pool, uint64_t seed) {
      return attention_errors(pool, form, 20, 4, 8, seed).gradient_key;
    };
    EXPECT_EQ(error(one, 1), error(three, 1)) << form;
    EXPECT_NE(error(one, 1), error(one, 2)) << form;
  }
}

TEST(AttentionForms, RefuseWhatIsNoForm) {
  ThreadPool pool(1);
  EXPECT_THAT(input_error([&] { attention_errors(pool, "linear", 4, 1, 4, 0); }),
              AllOf(HasSubstr("\"linear\""), HasSubstr("dot_product, causal, multi_head, projected, grouped")));
  EXPECT_THAT(input_error([&] { attention_errors(pool, "causal", 1, 0, -2, 0); }),
              AllOf(HasSubstr("tokens: is 1; give 2 or more"), HasSubstr("heads: is 0; give 1 or more"),
                    HasSubstr("head_dim: is -2; give 1 or more")));
}

}  // namespace
}  // namespace transept
