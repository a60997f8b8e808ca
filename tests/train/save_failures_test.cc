// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/simulated_clock.h"
#include "tests/testing/status_matchers.h"
#include "train/sessions/hooks.h"

namespace tenon::testing {
namespace {

using std::chrono::milliseconds;

TEST(SaveFailuresTest, FiveInARowOverSomeTimeAreTooMany) {
  std::vector<std::string> lines;
  SaveFailures failures([&](const std::string& line) { lines.push_back(line); }, milliseconds(200));
  const Status full = ResourceExhausted("no space left");
  Clock::Time now{};
  for (int i = 0; i < 9; ++i) EXPECT_OK(failures.Count(full, i, now));  // so soon
  EXPECT_EQ(lines.size(), 9u);
  now += milliseconds(250);
  EXPECT_THAT(failures.Count(full, 9, now),
              IsError(StatusCode::kResourceExhausted,
                      "10 saves in a row have failed, the last one: no space left"));
  EXPECT_OK(failures.Count(OkStatus(), 10, now));
  for (int i = 0; i < 4; ++i) {
    EXPECT_OK(failures.Count(full, i, now));  // few
    now += milliseconds(70);
  }
  EXPECT_THAT(failures.Count(full, 4, now), IsError(StatusCode::kResourceExhausted, "5 saves"));
}

TEST(SaveFailuresTest, TheLastSaveIsTriedForAWhile) {
  SaveFailures failures(nullptr, milliseconds(0), milliseconds(2500));
  SimulatedClock clock;
  int tries = 0;
  const auto save = [&](const Status& status) {
    return failures.Insist(1, clock, [&] { return ++tries, status; });
  };
  EXPECT_THAT(save(ResourceExhausted("full")), IsError(StatusCode::kResourceExhausted, ""));
  EXPECT_EQ(tries, 2);
  EXPECT_FALSE(save(Unavailable("a task has died")).ok());  // which the session recovers from
  EXPECT_EQ(tries, 3);
  EXPECT_OK(save(OkStatus()));
}

}  // namespace
}  // namespace tenon::testing
