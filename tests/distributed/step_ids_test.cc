// SPDX-License-Identifier: Apache-2.0
#include "distributed/master/step_ids.h"

#include <gtest/gtest.h>

#include <set>

namespace tenon {
namespace {

TEST(StepIdsTest, NoneComesTwiceAndNoneIsNegative) {
  std::set<int64_t> seen;
  for (const uint64_t seed : {0, 1}) {
    StepIds ids(seed);
    for (int i = 0; i < 10000; ++i) {
      const int64_t id = ids.Next();
      EXPECT_GE(id, 0);
      EXPECT_LT(id, int64_t{1} << 56);
      EXPECT_TRUE(seen.insert(id).second) << seed << ", " << i;
    }
  }
}

}  // namespace
}  // namespace tenon
