// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include "core/base/status.h"

namespace tenon::testing {

/// Matches a StatusOr that is OK and whose value matches `value`, or equals it:
/// EXPECT_THAT(session->Run<float>({{"x", 3.0f}}, "y"), Gives(8.0f)).
MATCHER_P(Gives, value, "") {
  if (!arg.ok()) {
    *result_listener << arg.status().ToString();
    return false;
  }
  *result_listener << "gives " << ::testing::PrintToString(*arg);
  return ::testing::ExplainMatchResult(value, *arg, result_listener);
}

}  // namespace tenon::testing
