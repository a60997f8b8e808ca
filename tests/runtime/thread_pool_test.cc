// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

namespace tenon {
namespace {

/// What a pool under test watches: runs what is pushed, in order, until Close.
class Events {
 public:
  void Push(std::function<void()> event) {
    MutexLock lock(mu_);
    events_.push_back(std::move(event));
    changed_.NotifyOne();
  }
  void Close() {
    MutexLock lock(mu_);
    closed_ = true;
    changed_.NotifyOne();
  }
  bool HandleOne() {
    std::function<void()> event;
    {
      MutexLock lock(mu_);
      while (events_.empty() && !closed_) changed_.Wait(mu_);
      if (events_.empty()) return false;
      event = std::move(events_.front());
      events_.pop_front();
    }
    event();
    return true;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> events_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

/// Something that happens once.
class Signal {
 public:
  void Give() {
    MutexLock lock(mu_);
    given_ = true;
    changed_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(mu_);
    while (!given_) changed_.Wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool given_ ABSL_GUARDED_BY(mu_) = false;
};

TEST(ThreadPoolTest, WhatWasSubmittedRunsBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    ThreadPool pool(3);
    for (int i = 0; i < 1000; ++i) pool.Submit([&] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

TEST(ThreadPoolTest, AnEventsTaskRunsOnItsThreadWhileAnotherOneWatches) {
  ThreadPool pool(1);
  Events events;
  pool.StartWatching([&] { return events.HandleOne(); });
  constexpr int kRounds = 40;
  int same_thread = 0;
  for (int i = 0; i < kRounds; ++i) {
    Signal second_event, task_over;
    std::thread::id event_thread, task_thread;
    events.Push([&] {
      event_thread = std::this_thread::get_id();
      pool.Submit([&] {
        task_thread = std::this_thread::get_id();
        second_event.Wait();
        task_over.Give();
      });
    });
    events.Push([&] { second_event.Give(); });
    task_over.Wait();
    if (event_thread == task_thread) ++same_thread;
    // The other thread may take the task where it is awake: just begun, or from its last round.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GT(same_thread, kRounds / 2);
  events.Close();
  pool.WaitUntilWatched();
}

TEST(ThreadPoolTest, EventsAreHandledOneByOneAndNoMoreTasksRunThanThereAreThreads) {
  ThreadPool pool(2);
  Events events;
  std::atomic<int> watching{0}, running{0}, ran{0};
  std::atomic<bool> too_many{false};
  pool.StartWatching([&] {
    if (++watching > 1) too_many = true;
    const bool more = events.HandleOne();
    --watching;
    return more;
  });
  const auto task = [&] {
    if (++running > 2) too_many = true;
    std::this_thread::yield();
    --running;
    ++ran;
  };
  for (int i = 0; i < 2000; ++i) {
    events.Push([&] {
      for (int k = 0; k < 3; ++k) pool.Submit(task);
    });
    pool.Submit(task);
  }
  events.Close();
  pool.WaitUntilWatched();
  while (ran < 2000 * 4) std::this_thread::yield();
  EXPECT_FALSE(too_many);
}

TEST(ThreadPoolTest, WhatIsWatchedInTwoWaysIsWatchedBesideATask) {
  std::array<Events, 2> events;
  std::array<Signal, 2> begun, seen, again;
  ThreadPool pool(1);
  for (Events& one : events) {
    pool.StartWatching([&] { return one.HandleOne(); });
  }
  for (const size_t i : {0, 1}) {
    events[i].Push([&, i] {
      pool.Submit([&, i] {
        begun[i].Give();
        again[i].Wait();
      });
    });
    begun[i].Wait();
    events[1 - i].Push([&, i] { seen[i].Give(); });
    seen[i].Wait();
    events[i].Push([&, i] { again[i].Give(); });
  }
  for (Events& one : events) one.Close();
  pool.WaitUntilWatched();
}

TEST(ThreadPoolTest, TwoEventsThatMakeTasksAtOnceLeaveNothingUnwatched) {
  for (int round = 0; round < 200; ++round) {
    std::array<Events, 2> events;
    std::atomic<int> submitted{0}, seen{0};
    ThreadPool pool(2);
    for (Events& one : events) {
      pool.StartWatching([&] { return one.HandleOne(); });
      one.Push([&] {
        pool.Submit([&] {
          while (seen < 2) std::this_thread::yield();
        });
        ++submitted;
        while (submitted < 2) std::this_thread::yield();
      });
    }
    while (submitted < 2) std::this_thread::yield();
    for (Events& one : events) one.Push([&] { ++seen; });
    while (seen < 2) std::this_thread::yield();
    for (Events& one : events) one.Close();
    pool.WaitUntilWatched();
  }
}

TEST(ThreadPoolTest, APoolThatHasWatchedEndsWhenThereAreMoreTasksThanThreads) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    {
      Events events;
      ThreadPool pool(1);
      pool.StartWatching([&] { return events.HandleOne(); });
      events.Close();
      pool.WaitUntilWatched();
      // The thread that watched waits while the other one is busy with the first task.
      for (int i = 0; i < 3; ++i) {
        pool.Submit([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          ++ran;
        });
      }
    }
    EXPECT_EQ(ran, 3);
  }
}

TEST(ThreadPoolTest, ATaskForAFreeThreadDoesNotWaitBehindOthers) {
  Signal go, ran;
  std::atomic<int> at_work = 0;
  ThreadPool pool(2);  // runs what it has to its end before the others go
  const auto work = [&] {
    ++at_work;
    go.Wait();
  };
  std::function<void()> task = [&] { ran.Give(); };
  EXPECT_TRUE(pool.SubmitIfFree(task));
  ran.Wait();
  pool.Submit(work);
  while (at_work < 1) std::this_thread::yield();
  pool.Submit(work);
  while (at_work < 2) std::this_thread::yield();
  task = [] { FAIL() << "no thread was free"; };
  EXPECT_FALSE(pool.SubmitIfFree(task));
  EXPECT_TRUE(task);
  pool.Submit(work);
  go.Give();
}

}  // namespace
}  // namespace tenon
