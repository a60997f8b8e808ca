// SPDX-License-Identifier: Apache-2.0
#include "core/base/cancellation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

TEST(CancellationTest, TheFirstReasonWinsAndReachesEveryCallback) {
  Cancellation cancellation;
  EXPECT_OK(cancellation.status());
  Status seen;
  const auto token = cancellation.Register([&](const Status& why) { seen = why; });
  EXPECT_GE(token, 0);
  cancellation.Cancel(Aborted("first"));
  cancellation.Cancel(Aborted("second"));
  EXPECT_TRUE(cancellation.cancelled());
  EXPECT_EQ(Message(seen), "first");
  EXPECT_EQ(Message(cancellation.status()), "first");
}

TEST(CancellationTest, ADeregisteredCallbackDoesNotRun) {
  Cancellation cancellation;
  bool ran = false;
  const auto token = cancellation.Register([&](const Status&) { ran = true; });
  EXPECT_TRUE(cancellation.Deregister(token));
  cancellation.Cancel(Cancelled("x"));
  EXPECT_FALSE(ran);
}

TEST(CancellationTest, ACallbackMayDeregisterAnotherThatHasNotRun) {
  Cancellation cancellation;
  int ran = 0;
  Cancellation::Token tokens[2];
  for (int i = 0; i < 2; ++i) {
    tokens[i] = cancellation.Register([&, i](const Status&) {
      ++ran;
      EXPECT_TRUE(cancellation.Deregister(tokens[1 - i]));
    });
  }
  cancellation.Cancel(Cancelled("test"));
  EXPECT_EQ(ran, 1);
}

TEST(CancellationTest, ACallbackMayDeregisterItself) {
  Cancellation cancellation;
  Cancellation::Token token = 0;
  bool deregistered = true;
  token =
      cancellation.Register([&](const Status&) { deregistered = cancellation.Deregister(token); });
  cancellation.Cancel(Cancelled("test"));
  EXPECT_FALSE(deregistered);
}

TEST(CancellationTest, DeregisterWaitsForTheCallbackThatRuns) {
  Cancellation cancellation;
  std::atomic<bool> started = false, release = false, ended = false;
  const auto token = cancellation.Register([&](const Status&) {
    started = true;
    while (!release) std::this_thread::yield();
    ended = true;
  });
  std::jthread canceller([&] { cancellation.Cancel(Cancelled("test")); });
  while (!started) std::this_thread::yield();
  std::jthread releaser([&] { release = true; });
  EXPECT_FALSE(cancellation.Deregister(token));
  EXPECT_TRUE(ended);
}

TEST(CancellationTest, RegisterTellsWhenItIsTooLate) {
  Cancellation cancellation;
  cancellation.Cancel(Aborted("first"));
  cancellation.Cancel(Aborted("second"));
  EXPECT_EQ(cancellation.Register([](const Status&) { FAIL(); }), Cancellation::kAlreadyCancelled);
  EXPECT_EQ(cancellation.status(), Aborted("first"));
}

}  // namespace
}  // namespace tenon
