// SPDX-License-Identifier: Apache-2.0
#include "train/glm/formula/factor_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FactorNoticeTest, ColumnsThatAreNearlyNumbersSaySo) {
  EXPECT_EQ(FactorNotice("temp", {{"1", "2", "NA"}, {30, 20, 10}}),
            "temp is taken for a factor of 3 levels: 10 of its 60 values are no numbers, such as "
            "'NA'; --na takes a text for missing");
  EXPECT_EQ(
      FactorNotice("temp", {{"1", "2", "x"}, {1, 1, 1}}),
      "temp is taken for a factor of 3 levels: 1 of its 3 values is no number: 'x'; --na takes "
      "a text for missing");
  EXPECT_EQ(FactorNotice("hour", {{"05", "10"}, {3, 4}}),
            "hour is taken for a factor of 2 levels: numbers such as '05' have a zero before them, "
            "as codes have");
  EXPECT_EQ(FactorNotice("name", {{"1", "a", "b"}, {1, 1, 1}}), "");
  EXPECT_EQ(FactorNotice("name", {{"a", "b"}, {1, 1}}), "");
}

TEST(FactorNoticeTest, AFitWarnsWhereNobodyAskedForAFactor) {
  std::string rows = "x,y\n";
  for (int i = 0; i < 40; ++i)
    StrAppend(&rows, i % 4 == 3 ? "none" : StrCat(i % 3), ",", i % 7, "\n");
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", rows);
  const auto fit = FitGlm("y ~ x", {path});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_THAT(fit->warnings, ElementsAre(HasSubstr("x is taken for a factor of 4 levels: 10 of its "
                                                   "40 values are no numbers, such as 'none'")));
  const auto asked = FitGlm("y ~ C(x)", {path});
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_THAT(asked->warnings, IsEmpty());
}

}  // namespace
}  // namespace tenon
