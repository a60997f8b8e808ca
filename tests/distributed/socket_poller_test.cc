// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/polling/socket_poller.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "distributed/grpc/peer/local_socket.h"

namespace tenon {
namespace {

class SocketPollerTest : public ::testing::Test {
 protected:
  ~SocketPollerTest() override {
    poller_.End();
    pool_.WaitUntilWatched();
  }
  static void WaitUntil(const std::function<bool()>& holds) {
    while (!holds()) std::this_thread::yield();
  }

  ThreadPool pool_{1};
  Mutex turn_;
  SocketPoller poller_{pool_, turn_};
  std::pair<OwnedFile, OwnedFile> ends_ = NewLocalSockets();
};

TEST_F(SocketPollerTest, WhatIsAskedForIsSaidAndNothingElse) {
  std::atomic<int> reads{0}, writes{0};
  const int own = ends_.first.number();
  const uint64_t number = poller_.Add(own, [&](bool readable, bool writable) {
    if (writable) ++writes;
    std::array<char, 8> bytes;
    if (readable && recv(own, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) ++reads;
  });
  ASSERT_NE(number, 0u);
  const auto say = [&] { EXPECT_EQ(send(ends_.second.number(), "word", 4, 0), 4); };
  say();
  EXPECT_EQ(reads, 0);
  poller_.SetReads(number, true);
  WaitUntil([&] { return reads == 1; });
  EXPECT_EQ(writes, 0);
  poller_.SetReads(number, false);
  poller_.SetWrites(number, true);
  WaitUntil([&] { return writes > 0; });
  poller_.SetWrites(number, false);
  say();
  EXPECT_EQ(reads, 1);
  poller_.SetReads(number, true);
  WaitUntil([&] { return reads == 2; });
  MutexLock turn(turn_);
  poller_.Remove(number);
}

TEST_F(SocketPollerTest, AnEndIsSaidWithoutBeingAskedFor) {
  std::atomic<bool> ended{false};
  uint64_t number = 0;
  {
    MutexLock turn(turn_);
    number = poller_.Add(ends_.first.number(), [&](bool readable, bool writable) {
      EXPECT_TRUE(readable && writable);
      poller_.Remove(number);
      ended = true;
    });
  }
  std::swap(ends_.second, *std::make_unique<OwnedFile>());  // closes it
  WaitUntil([&] { return ended.load(); });
}

TEST_F(SocketPollerTest, NothingIsCalledAfterItWasRemovedInTurn) {
  for (int round = 0; round < 200; ++round) {
    auto ends = NewLocalSockets();
    auto lives = std::make_unique<std::atomic<bool>>(true);
    std::atomic<int> calls{0};
    const uint64_t number = poller_.Add(ends.first.number(), [&](bool, bool) {
      EXPECT_TRUE(*lives);
      ++calls;
    });
    poller_.SetReads(number, true);
    EXPECT_EQ(send(ends.second.number(), "word", 4, 0), 4);  // and nobody reads it
    if (round % 2 == 0) WaitUntil([&] { return calls > 0; });
    MutexLock turn(turn_);
    poller_.Remove(number);
    lives.reset();
  }
}

}  // namespace
}  // namespace tenon
