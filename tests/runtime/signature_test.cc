// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "runtime/compile/step_graph.h"

namespace tenon {
namespace {

TEST(SignatureTest, NamesThatJoinAlikeHaveDifferentKeys) {
  EXPECT_NE((Signature{{}, {"a"}, {"b/c"}}.Key()), (Signature{{}, {"a/b"}, {"c"}}.Key()));
  EXPECT_NE((Signature{{}, {"a", "b"}, {}}.Key()), (Signature{{}, {"a,b"}, {}}.Key()));
}

}  // namespace
}  // namespace tenon
