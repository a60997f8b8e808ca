// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/graph_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using namespace std::chrono_literals;

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const DTypeVector kOneFloat = {DType::kFloat};
const std::vector<PartialShape> kScalars = {Shape{}};

/// A queue of scalars, and a session on its operations.
class QueueOpsTest : public ::testing::Test {
 protected:
  QueueOpsTest() : building_(graph_) {}

  /// Builds the operations on `handle`, after which nothing may be built.
  void Use(const Output& handle) {
    enqueue_ = QueueEnqueueV2(handle, {value_});
    enqueue_many_ = QueueEnqueueManyV2(handle, {values_});
    dequeue_ = QueueDequeueV2(handle, kOneFloat)[0];
    dequeue_many_ = QueueDequeueManyV2(handle, n_, kOneFloat)[0];
    dequeue_up_to_ = QueueDequeueUpToV2(handle, n_, kOneFloat)[0];
    close_ = QueueCloseV2(handle);
    cancel_ = QueueCloseV2(handle, {.cancel_pending_enqueues = true});
    size_ = QueueSizeV2(handle);
    is_closed_ = QueueIsClosedV2(handle);
    Open();
  }
  void Open() {
    auto session = MakeLocalSession(graph_);
    ASSERT_OK(session);
    session_ = *std::move(session);
  }

  Status Enqueue(float x) { return session_->Run({{value_, x}}, {}, {enqueue_}).status(); }
  Status EnqueueMany(const std::vector<float>& xs) {
    return session_->Run({{values_, Tensor::Vector(xs)}}, {}, {enqueue_many_}).status();
  }
  StatusOr<std::vector<double>> Fetch(const Output& what, int32_t n = 0) {
    TENON_ASSIGN_OR_RETURN(const auto values, session_->Run({{n_, n}}, {what}));
    return Numbers(values[0]);
  }
  std::vector<double> Take(const Output& what, int32_t n = 0) {
    const auto values = Fetch(what, n);
    EXPECT_TRUE(values.ok()) << values.status();
    return values.ok() ? *values : std::vector<double>();
  }
  Status Close(bool cancel = false) {
    return session_->Run({}, {}, {cancel ? cancel_ : close_}).status();
  }
  bool IsClosed() { return (*session_->Run({}, {is_closed_}))[0].scalar<bool>(); }
  int Size() { return static_cast<int>(Take(size_)[0]); }

  /// Runs in a thread of its own, and gives that time to wait.
  template <typename Fn>
  auto Meanwhile(Fn fn) {
    auto result = std::async(std::launch::async, fn);
    std::this_thread::sleep_for(200ms);
    return result;
  }
  template <typename Future>
  static bool Waits(const Future& future) {
    return future.wait_for(0s) == std::future_status::timeout;
  }

  Graph graph_{AllOps()};
  GraphBuilding building_;
  Output value_ = Placeholder(DType::kFloat, Shape{}), values_ = Placeholder(DType::kFloat, {-1});
  Output n_ = Placeholder(DType::kInt32, Shape{});
  Node *enqueue_ = nullptr, *enqueue_many_ = nullptr, *close_ = nullptr, *cancel_ = nullptr;
  Output dequeue_, dequeue_many_, dequeue_up_to_, size_, is_closed_;
  std::unique_ptr<Session> session_;
};

TEST_F(QueueOpsTest, GivesElementsInTheirOrderAcrossSteps) {
  Use(FIFOQueueV2(kOneFloat, {.shapes = kScalars}));
  ASSERT_OK(EnqueueMany({1, 2, 3, 4}));
  ASSERT_OK(Enqueue(5));
  EXPECT_EQ(Size(), 5);
  EXPECT_THAT(Take(dequeue_), ElementsAre(1));
  EXPECT_THAT(Take(dequeue_many_, 3), ElementsAre(2, 3, 4));
  EXPECT_THAT(Take(dequeue_many_, 0), IsEmpty());
  EXPECT_THAT(Take(dequeue_), ElementsAre(5));
  EXPECT_EQ(Size(), 0);
}

TEST_F(QueueOpsTest, AnEnqueueWaitsForRoomAndADequeueForElements) {
  Use(FIFOQueueV2(kOneFloat, {.shapes = kScalars, .capacity = 2}));
  auto many = Meanwhile([&] { return EnqueueMany({1, 2, 3, 4, 5}); });
  EXPECT_TRUE(Waits(many));
  EXPECT_EQ(Size(), 2);
  auto behind = Meanwhile([&] { return Enqueue(6); });
  // More than fit at once: it takes what is there, which makes room.
  EXPECT_THAT(Take(dequeue_many_, 4), ElementsAre(1, 2, 3, 4));
  ASSERT_OK(many.get());
  ASSERT_OK(behind.get());
  auto first = Meanwhile([&] { return Fetch(dequeue_many_, 3); });
  auto second = Meanwhile([&] { return Fetch(dequeue_); });
  EXPECT_TRUE(Waits(first) && Waits(second));
  ASSERT_OK(EnqueueMany({7, 8}));
  EXPECT_THAT(*first.get(), ElementsAre(5, 6, 7));
  EXPECT_THAT(*second.get(), ElementsAre(8));
}

TEST_F(QueueOpsTest, AClosedQueueGivesWhatIsLeft) {
  Use(FIFOQueueV2(kOneFloat, {.shapes = kScalars, .name = "q"}));
  ASSERT_OK(EnqueueMany({1, 2, 3}));
  auto too_many = Meanwhile([&] { return Fetch(dequeue_many_, 4); });
  EXPECT_FALSE(IsClosed());
  ASSERT_OK(Close());
  EXPECT_TRUE(IsClosed());
  EXPECT_THAT(too_many.get(),
              IsError(StatusCode::kOutOfRange,
                      "_q' is closed and has insufficient elements (requested 4, current size 3)"));
  EXPECT_THAT(Enqueue(4), IsError(StatusCode::kCancelled, "_q' is closed."));
  EXPECT_THAT(Close(), IsError(StatusCode::kCancelled, "is already closed"));
  EXPECT_THAT(Take(dequeue_), ElementsAre(1));
  EXPECT_THAT(Take(dequeue_up_to_, 4), ElementsAre(2, 3));
  EXPECT_THAT(Fetch(dequeue_up_to_, 1), IsError(StatusCode::kOutOfRange, "current size 0"));
  EXPECT_THAT(Fetch(dequeue_), IsError(StatusCode::kOutOfRange, "(requested 1, current size 0)"));
}

TEST_F(QueueOpsTest, CloseWaitsForTheEnqueuesBeforeItOrEndsThem) {
  for (const bool cancel : {false, true}) {
    Use(FIFOQueueV2(kOneFloat, {.shapes = kScalars, .capacity = 1}));
    ASSERT_OK(Enqueue(1));
    auto waiting = Meanwhile([&] { return Enqueue(2); });
    auto close = Meanwhile([&] { return Close(cancel); });
    EXPECT_EQ(Waits(close), !cancel);
    EXPECT_EQ(Waits(waiting), !cancel);
    EXPECT_THAT(Take(dequeue_), ElementsAre(1));
    ASSERT_OK(close.get());
    if (cancel) {
      EXPECT_THAT(waiting.get(),
                  IsError(StatusCode::kCancelled, "Enqueue operation was cancelled"));
    } else {
      ASSERT_OK(waiting.get());
      EXPECT_THAT(Take(dequeue_), ElementsAre(2));
    }
    EXPECT_THAT(Fetch(dequeue_), IsError(StatusCode::kOutOfRange, "is closed"));
  }
}

TEST_F(QueueOpsTest, ACancelledDequeueLosesNothing) {
  Use(FIFOQueueV2(kOneFloat, {.shapes = kScalars}));
  ASSERT_OK(EnqueueMany({1, 2}));
  EXPECT_THAT(session_->Run({{n_, 5}}, {dequeue_many_}, {}, {.timeout = 50ms}),
              IsError(StatusCode::kDeadlineExceeded, ""));
  EXPECT_EQ(Size(), 2);
  EXPECT_THAT(Take(dequeue_many_, 2), ElementsAre(1, 2));
}

TEST_F(QueueOpsTest, ClosingTheSessionEndsThoseWhoWait) {
  Use(FIFOQueueV2(kOneFloat, {.shapes = kScalars}));
  auto waiting = Meanwhile([&] { return Fetch(dequeue_); });
  ASSERT_OK(session_->Close());
  EXPECT_THAT(waiting.get(), IsError(StatusCode::kCancelled, ""));
}

TEST_F(QueueOpsTest, ShufflesWithinWhatIsKept) {
  Use(RandomShuffleQueueV2(kOneFloat, {.shapes = kScalars, .min_after_dequeue = 3, .seed = 7}));
  std::vector<float> values(50);
  for (int i = 0; i < 50; ++i) values[i] = static_cast<float>(i);
  ASSERT_OK(EnqueueMany(values));
  std::vector<double> taken = Take(dequeue_many_, 47);
  EXPECT_FALSE(std::is_sorted(taken.begin(), taken.end()));
  auto waiting = Meanwhile([&] { return Fetch(dequeue_); });
  EXPECT_TRUE(Waits(waiting));
  ASSERT_OK(Close());
  taken.push_back((*waiting.get())[0]);
  for (const double x : Take(dequeue_up_to_, 10)) taken.push_back(x);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, std::vector<double>(values.begin(), values.end()));
}

TEST_F(QueueOpsTest, TheShuffledOrderIsTensorFlows) {
  // tf.raw_ops.RandomShuffleQueueV2(..., seed=11, seed2=5) of TensorFlow 2.15.
  Use(RandomShuffleQueueV2(kOneFloat, {.shapes = kScalars, .seed = 11, .seed2 = 5}));
  ASSERT_OK(EnqueueMany({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_THAT(Take(dequeue_many_, 10), ElementsAre(3, 6, 0, 5, 8, 4, 9, 7, 2, 1));
}

TEST_F(QueueOpsTest, PadsToTheLargest) {
  const Output queue =
      PaddingFIFOQueueV2({DType::kFloat, DType::kString}, {.shapes = {{-1, 2}, {-1}}});
  const Output matrix = Placeholder(DType::kFloat), texts = Placeholder(DType::kString);
  Node* const enqueue = QueueEnqueueV2(queue, {matrix, texts});
  const std::vector<Output> rows = QueueDequeueManyV2(queue, n_, {DType::kFloat, DType::kString});
  Open();
  const auto run = [&](const Tensor& m, const Tensor& t) {
    return session_->Run({{matrix, m}, {texts, t}}, {}, {enqueue}).status();
  };
  ASSERT_OK(run(Tensor::Of<float>({1, 2}, {1, 2}), Tensor::Vector<std::string>({"a", "b"})));
  ASSERT_OK(run(Tensor::Of<float>({2, 2}, {3, 4, 5, 6}), Tensor::Vector<std::string>({"c"})));
  EXPECT_THAT(run(Tensor::Of<float>({1, 3}, {1, 2, 3}), Tensor::Vector<std::string>({"d"})),
              IsError(StatusCode::kInvalidArgument,
                      "Shape mismatch in tuple component 0. Expected [?,2], got [1,3]"));
  const auto values = session_->Run({{n_, 2}}, rows);
  ASSERT_OK(values);
  EXPECT_EQ((*values)[0].shape(), (Shape{2, 2, 2}));
  EXPECT_THAT(Numbers((*values)[0]), ElementsAre(1, 2, 0, 0, 3, 4, 5, 6));
  EXPECT_THAT((*values)[1].flat<TString>(), ElementsAre("a", "b", "c", ""));
}

TEST_F(QueueOpsTest, GivesTheLeastPriorityFirst) {
  const Output queue = PriorityQueueV2({Shape{}}, {.component_types = {DType::kString}});
  Node* const enqueue = QueueEnqueueManyV2(
      queue, {Tensor::Vector<int64_t>({5, -1, 3}), Tensor::Vector<std::string>({"e", "a", "c"})});
  const std::vector<Output> first = QueueDequeueV2(queue, {DType::kInt64, DType::kString});
  const std::vector<Output> rest = QueueDequeueManyV2(queue, 2, {DType::kInt64, DType::kString});
  Open();
  ASSERT_OK(session_->Run({}, {}, {enqueue}));
  const auto least = session_->Run({}, first);
  ASSERT_OK(least);
  EXPECT_EQ((*least)[0].scalar<int64_t>(), -1);
  EXPECT_EQ((*least)[1].scalar<TString>(), "a");
  const auto others = session_->Run({}, rest);
  ASSERT_OK(others);
  EXPECT_THAT((*others)[1].flat<TString>(), ElementsAre("c", "e"));
}

TEST_F(QueueOpsTest, ManyOfAPriorityQueueAreInOrderHoweverTheyCame) {
  const Output queue = PriorityQueueV2({}, {.component_types = {}});
  const Output priority = Placeholder(DType::kInt64, Shape{});
  Node* const enqueue = QueueEnqueueV2(queue, {priority});
  const Output many = QueueDequeueManyV2(queue, 3, {DType::kInt64})[0];
  Open();
  auto taken = std::async(std::launch::async, [&] { return session_->Run({}, {many}); });
  for (const int64_t p : {7, 9, 8}) {
    // What is taken while the others are on their way would come before them.
    if (p == 8) EXPECT_EQ(taken.wait_for(50ms), std::future_status::timeout);
    ASSERT_OK(session_->Run({{priority, Tensor::Scalar<int64_t>(p == 8 ? 1 : p)}}, {}, {enqueue}));
  }
  const auto values = taken.get();
  ASSERT_OK(values);
  EXPECT_THAT((*values)[0].flat<int64_t>(), ElementsAre(1, 7, 9));
}

TEST_F(QueueOpsTest, WhatWaitsForAnEnqueueRuns) {
  const Output queue = FIFOQueueV2(kOneFloat, {.shapes = kScalars});
  Node* const enqueue = QueueEnqueueV2(queue, {2.0f});
  Output taken, after;
  {
    const ControlDependencies first({enqueue});
    taken = QueueDequeueV2(queue, kOneFloat)[0];
    after = Const(3.0f);
  }
  Open();
  const auto values = session_->Run({}, {taken, after});
  ASSERT_OK(values);
  EXPECT_EQ((*values)[0].scalar<float>(), 2);
  EXPECT_EQ((*values)[1].scalar<float>(), 3);
}

TEST_F(QueueOpsTest, QueuesOfOneSharedNameAreOne) {
  const Output a = FIFOQueueV2(kOneFloat, {.shapes = kScalars, .shared_name = "one"});
  const Output b = FIFOQueueV2(kOneFloat, {.shapes = kScalars, .shared_name = "one"});
  const Output c =
      FIFOQueueV2(kOneFloat, {.shapes = kScalars, .capacity = 3, .shared_name = "one"});
  const Output size = QueueSizeV2(b), other = QueueSizeV2(c);
  Use(a);
  ASSERT_OK(Enqueue(1));
  EXPECT_THAT(Take(size), ElementsAre(1));
  EXPECT_THAT(Fetch(other),
              IsError(StatusCode::kInvalidArgument,
                      "Shared queue 'one' has capacity -1 but requested capacity was 3"));
}

TEST_F(QueueOpsTest, ReferencesOfTensorFlow1Work) {
  const Output queue = FIFOQueue(kOneFloat, {.shapes = kScalars, .shared_name = "old"});
  Node* const enqueue = QueueEnqueueMany(queue, {values_});
  const Output dequeue = QueueDequeueMany(queue, 2, kOneFloat)[0];
  const Output size = QueueSize(queue);
  Open();
  ASSERT_OK(session_->Run({{values_, Tensor::Vector<float>({1, 2, 3})}}, {}, {enqueue}));
  EXPECT_THAT(Take(dequeue), ElementsAre(1, 2));
  EXPECT_THAT(Take(size), ElementsAre(1));
}

TEST_F(QueueOpsTest, WhatDoesNotFitIsRefused) {
  const Output any = FIFOQueueV2(kOneFloat);
  const Output ints = QueueDequeueV2(any, {DType::kInt32})[0];
  const Output many = QueueDequeueManyV2(any, n_, kOneFloat)[0];
  Node* const wrong = QueueEnqueueV2(any, {1});
  Node* const two = QueueEnqueueV2(any, {1.0f, 2.0f});
  const Output of_two = FIFOQueueV2({DType::kFloat, DType::kFloat}, {.shapes = {Shape{}, Shape{}}});
  Node* const rows = QueueEnqueueManyV2(of_two, {values_, Const({1.0f, 2.0f, 3.0f})});
  const Output padding = PaddingFIFOQueueV2(kOneFloat, {.shapes = {{-1, 3}}});
  Node* const wide = QueueEnqueueManyV2(padding, {Tensor(DType::kFloat, {2, 3, 4})});
  const Output unknown = FIFOQueueV2(kOneFloat, {.shapes = {{-1}}});
  const Output shuffle = RandomShuffleQueueV2(kOneFloat, {.capacity = 3, .min_after_dequeue = 3});
  Use(FIFOQueueV2(kOneFloat, {.shapes = kScalars}));
  const auto fails = [&](const StepFeeds& feeds, const StepTensor& target,
                         std::string_view message) {
    EXPECT_THAT(session_->Run(feeds, {}, {target}), IsError(StatusCode::kInvalidArgument, message));
  };
  fails({}, ints, "the queue has components of float, wanted int32");
  fails({{n_, 2}}, many, "require the components to have specified shapes");
  fails({}, wrong, "Expected float, got int32");
  fails({}, two, "Expected 1, got 2");
  fails({{values_, Tensor::Vector<float>({1, 2})}}, rows, "same size in the 0th dimension");
  fails({}, wide, "Shape mismatch in tuple component 0. Expected [2,?,3], got [2,3,4]");
  fails({}, unknown, "must be fully defined, found [?]");
  fails({}, shuffle, "below the capacity, found 3 and 3");
  fails({{n_, -1}}, dequeue_many_, "a dequeue of -1 elements");
}

TEST_F(QueueOpsTest, ManyProducersAndConsumers) {
  Use(FIFOQueueV2(kOneFloat, {.shapes = kScalars, .capacity = 5}));
  constexpr int kThreads = 4, kEach = 100;
  std::vector<std::thread> threads;
  std::mutex mu;
  std::map<double, int> seen;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) ASSERT_OK(Enqueue(static_cast<float>(t * kEach + i)));
    });
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; i += 4) {
        const auto taken = Take(dequeue_many_, 4);
        const std::lock_guard lock(mu);
        for (const double x : taken) ++seen[x];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(seen.size(), kThreads * kEach);
  for (const auto& [x, times] : seen) EXPECT_EQ(times, 1) << x;
}

}  // namespace
}  // namespace tenon::testing
