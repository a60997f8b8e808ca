// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/step_graph.h"

namespace tenon {
namespace {

TEST(StepSignatureTest, NamesThatJoinAlikeHaveDifferentKeys) {
  EXPECT_NE((StepSignature{{}, {"a"}, {"b/c"}}.Key()), (StepSignature{{}, {"a/b"}, {"c"}}.Key()));
  EXPECT_NE((StepSignature{{}, {"a", "b"}, {}}.Key()), (StepSignature{{}, {"a,b"}, {}}.Key()));
}

}  // namespace
}  // namespace tenon
