// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <string>

#include "core/base/status.h"

namespace tenon::testing {

/// The code of most mistakes.
inline constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;

inline const Status& GetStatus(const Status& s) { return s; }
template <typename T>
const Status& GetStatus(const StatusOr<T>& s) {
  return s.status();
}

/// Matches a Status or StatusOr that is OK.
MATCHER(IsOk, negation ? "is an error" : "is OK") {
  *result_listener << GetStatus(arg).ToString();
  return GetStatus(arg).ok();
}

/// Matches an error of that code whose message contains `text`.
MATCHER_P2(IsError, code, text, "is an error of the code with that text") {
  const Status& status = GetStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code && std::string(Message(status)).find(text) != std::string::npos;
}

}  // namespace tenon::testing

#define ASSERT_OK(expression) ASSERT_THAT(expression, ::tenon::testing::IsOk())
#define EXPECT_OK(expression) EXPECT_THAT(expression, ::tenon::testing::IsOk())
