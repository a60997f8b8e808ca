// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/polling/poller.h"

#include <gtest/gtest.h>

#include <chrono>

#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

TEST(PollerTest, NothingWaitsForATaskOfLaterWhenThePollerEnds) {
  ThreadPool pool(1);
  bool soon = false, later = false;
  const auto begin = std::chrono::steady_clock::now();
  {
    Poller poller(std::make_unique<grpc::CompletionQueue>(), pool, MachineClock());
    poller.Post([&soon] { soon = true; });
    poller.PostAfter(std::chrono::minutes(10), [&later] { later = true; });
  }
  EXPECT_TRUE(soon);
  EXPECT_TRUE(later);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
}

}  // namespace
}  // namespace tenon
