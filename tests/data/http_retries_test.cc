// SPDX-License-Identifier: Apache-2.0
#include "data/http/retries.h"

#include <gtest/gtest.h>

#include "tests/testing/simulated_clock.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::SimulatedClock;

StatusOr<HttpResponse> OfStatus(int status, const std::string& retry_after = "") {
  HttpResponse response;
  response.status = status;
  if (!retry_after.empty()) response.headers["retry-after"] = retry_after;
  return response;
}

TEST(RetriesTest, OnlyWhatMayPassIsTransient) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    EXPECT_TRUE(IsTransient(OfStatus(status))) << status;
  }
  for (const int status : {200, 206, 301, 400, 403, 404, 412, 416, 501}) {
    EXPECT_FALSE(IsTransient(OfStatus(status))) << status;
  }
  EXPECT_TRUE(IsTransient(Unavailable("reset")));
  EXPECT_TRUE(IsTransient(FailedPrecondition("nobody listens")));
  EXPECT_FALSE(IsTransient(InvalidArgument("a certificate nobody trusts")));
  EXPECT_FALSE(IsTransient(Cancelled("")));
}

TEST(RetriesTest, PausesDoubleUpToTheLongestLessARandomPart) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimulatedClock clock;
    const RetryPolicy policy{.attempts = 10};
    Retries retries(policy, clock, seed);
    std::vector<milliseconds> wanted;
    for (const int ms : {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000}) {
      wanted.emplace_back(ms);
    }
    for (const milliseconds pause : wanted) {
      const Clock::Time begin = clock.Now();
      ASSERT_TRUE(retries.Wait(OfStatus(503)));
      const auto waited = clock.Now() - begin;
      EXPECT_GE(waited, pause / 2);
      EXPECT_LE(waited, pause);
    }
    const Clock::Time end = clock.Now();
    EXPECT_FALSE(retries.Wait(OfStatus(503)));
    EXPECT_EQ(clock.Now(), end);
    EXPECT_EQ(retries.attempts(), 10);
  }
}

TEST(RetriesTest, TwoProcessesDoNotComeBackAtOnce) {
  const auto waited = [](uint64_t seed) {
    SimulatedClock clock;
    const Clock::Time begin = clock.Now();
    EXPECT_TRUE(Retries({}, clock, seed).Wait(OfStatus(500)));
    return clock.Now() - begin;
  };
  EXPECT_NE(waited(1), waited(2));
}

TEST(RetriesTest, WhereNobodyListensItEndsSooner) {
  SimulatedClock clock;
  Retries retries({}, clock, 1);
  int waits = 0;
  while (retries.Wait(FailedPrecondition("connection refused"))) ++waits;
  EXPECT_EQ(waits, 3);
}

TEST(RetriesTest, AServerMaySayHowLong) {
  SimulatedClock clock;
  Retries retries({}, clock, 1);
  const Clock::Time begin = clock.Now();
  EXPECT_TRUE(retries.Wait(OfStatus(503, "7")));
  EXPECT_EQ(clock.Now() - begin, seconds(7));
  // A Retry-After that is no small number of seconds is not obeyed.
  for (const char* const text : {"100000", "-5", "soon", "Fri, 27 Nov 2026 20:47:13 GMT"}) {
    const Clock::Time then = clock.Now();
    EXPECT_TRUE(retries.Wait(OfStatus(503, text)));
    EXPECT_LE(clock.Now() - then, seconds(4)) << text;
  }
}

TEST(RetriesTest, ACancelledWaitEndsSoon) {
  SimulatedClock clock;
  std::atomic<bool> cancelled{false};
  Retries retries({.first_pause = seconds(10)}, clock, 1);
  clock.CallAfter(seconds(1), [&] { cancelled = true; });
  const Clock::Time begin = clock.Now();
  EXPECT_FALSE(retries.Wait(OfStatus(503), &cancelled));
  EXPECT_LE(clock.Now() - begin, milliseconds(1100));
}

}  // namespace
}  // namespace tenon
