// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/blocking_calls.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <semaphore>
#include <set>
#include <thread>

#include "runtime/device/machine_clock.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::IsError;

TEST(BlockingCallsTest, ThreadsAreBoundedAndWhatWaitsRunsLater) {
  std::atomic<int> running = 0, most = 0, done = 0;
  std::atomic<bool> go = false;
  constexpr int kCalls = 3 * BlockingCalls::kMaxThreads;
  {
    BlockingCalls calls(MachineClock());
    for (int i = 0; i < kCalls; ++i) {
      ASSERT_OK(calls.Run([&] {
        const int now = ++running;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        while (!go) std::this_thread::yield();
        --running;
        ++done;
      }));
    }
    while (running < BlockingCalls::kMaxThreads) std::this_thread::yield();
    go = true;
  }
  EXPECT_EQ(most, BlockingCalls::kMaxThreads);
  EXPECT_EQ(done, kCalls);
}

TEST(BlockingCallsTest, CallsOneAfterTheOtherNeedOneThread) {
  BlockingCalls calls(MachineClock());
  std::set<pid_t> seen;  // a std::thread::id may come again
  for (int i = 0; i < 100; ++i) {
    std::binary_semaphore done(0);
    ASSERT_OK(calls.Run([&] {
      seen.insert(gettid());
      done.release();
    }));
    done.acquire();
    // It has to come back to be idle; a call that comes before gets a thread of its own.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LT(seen.size(), 50u);
}

TEST(BlockingCallsTest, AThreadWithoutWorkEnds) {
  BlockingCalls calls(MachineClock());
  std::binary_semaphore begun(0);
  std::atomic<bool> ended = false;
  struct AtEnd {
    ~AtEnd() { *ended = true; }
    std::atomic<bool>* ended = nullptr;
  };
  ASSERT_OK(calls.Run([&] {
    static thread_local AtEnd at_end;
    at_end.ended = &ended;
    begun.release();
  }));
  begun.acquire();
  const auto limit = std::chrono::steady_clock::now() + 20 * BlockingCalls::kIdle;
  while (!ended && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(ended);
}

TEST(BlockingCallsTest, MoreThanMayWaitAreRefused) {
  std::atomic<bool> go = false;
  std::atomic<size_t> done = 0;
  size_t accepted = 0;
  {
    BlockingCalls calls(MachineClock());
    Status last;
    while (last.ok()) {
      last = calls.Run([&] {
        while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++done;
      });
      if (last.ok()) ++accepted;
    }
    EXPECT_THAT(last, IsError(StatusCode::kResourceExhausted, "try again later"));
    EXPECT_GE(accepted, BlockingCalls::kMaxWaiting);
    EXPECT_LE(accepted, BlockingCalls::kMaxWaiting + BlockingCalls::kMaxThreads);
    go = true;
  }
  EXPECT_EQ(done, accepted);
}

}  // namespace
}  // namespace tenon
