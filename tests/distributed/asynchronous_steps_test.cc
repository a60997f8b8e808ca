// SPDX-License-Identifier: Apache-2.0
//
// Steps that a client starts without waiting for them (PreparedStep::RunAsync).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/sanitizers.h"
#include "distributed/grpc/rpc/channel.h"
#include "ops/array/array_basic_ops.h"
#include "ops/math/operators.h"
#include "ops/queues/queues_ops.h"
#include "proto/cluster_service.grpc.pb.h"
#include "runtime/session/local_session.h"
#include "tests/distributed/cluster_fixture.h"
#include "tests/testing/host_memory.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using testing::IsError;

/// Where steps end.
class Ends {
 public:
  struct End {
    Status status;
    std::vector<Tensor> fetched;
  };
  PreparedStep::Done Take(int i) {
    return [this, i](const Status& status, std::vector<Tensor> fetched) {
      MutexLock lock(mu_);
      EXPECT_EQ(ends_.count(i), 0u) << "a step has ended twice";
      ends_[i] = {status, std::move(fetched)};
      changed_.NotifyAll();
    };
  }
  /// All of them, within a minute.
  std::map<int, End> Wait(size_t count) {
    const Clock::Time deadline = MachineClock().Now() + std::chrono::seconds(60);
    MutexLock lock(mu_);
    while (ends_.size() < count && MachineClock().WaitUntil(changed_, mu_, deadline)) {
    }
    EXPECT_EQ(ends_.size(), count);
    return ends_;
  }
  size_t count() {
    MutexLock lock(mu_);
    return ends_.size();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::map<int, End> ends_ ABSL_GUARDED_BY(mu_);
};

/// Where messages of one host go: through a socket of its own, or the network's.
class AsynchronousStepsTest : public testing::ClusterFixture,
                              public ::testing::WithParamInterface<const char*> {
 protected:
  AsynchronousStepsTest() : memory_(GetParam()) {
    StartCluster(0, 1);
    x_ = Placeholder(DType::kFloat, {});
    y_ = x_ * 2.0f + 1.0f;
    queue_ = FIFOQueue(DTypeVector{DType::kFloat});
    taken_ = QueueDequeue(queue_, {DType::kFloat})[0];
  }
  Tensor Number(float x) { return Tensor::Scalar(x); }
  /// How many calls the server answers, streams and this one included.
  int64_t Calls() {
    grpc::ClientContext context;
    cluster::ServerStatusResponse status;
    EXPECT_TRUE(cluster::ClusterService::NewStub(OpenChannel(*AddressOfTarget(worker().target())))
                    ->ServerStatus(&context, cluster::ServerStatusRequest(), &status)
                    .ok());
    return status.calls();
  }
  /// Opens the session, and goes on when its steps have a stream to travel over.
  void OpenStream() {
    Open(worker());
    const auto step = session_->Prepare({x_}, {y_});
    ASSERT_OK(step);
    std::vector<Tensor> fetched;
    while (Calls() < 2) ASSERT_OK((*step)->Run({Number(1)}, &fetched));
    for (int i = 0; i < 200; ++i) ASSERT_OK((*step)->Run({Number(1)}, &fetched));
  }

  const testing::HostMemory memory_;
  Output x_, y_, queue_, taken_;
};

INSTANTIATE_TEST_SUITE_P(Ways, AsynchronousStepsTest, ::testing::Values("16384", "off"),
                         [](const auto& info) {
                           return std::string(info.param == std::string("off") ? "Network"
                                                                               : "Socket");
                         });

TEST_P(AsynchronousStepsTest, EachOfManyGivesItsOwnResult) {
  OpenStream();
  const auto step = session_->Prepare({x_}, {y_});
  ASSERT_OK(step);
  constexpr int kSteps = kSanitized ? 500 : 5000;
  Ends ends;
  for (int i = 0; i < kSteps; ++i) (*step)->RunAsync({Number(i)}, ends.Take(i));
  for (const auto& [i, end] : ends.Wait(kSteps)) {
    ASSERT_OK(end.status);
    ASSERT_EQ(end.fetched.size(), 1u);
    EXPECT_EQ(*end.fetched[0].data<float>(), 2.0f * static_cast<float>(i) + 1.0f);
  }
}

/// The next step is started in the end of the one before, beside blocking ones.
TEST_P(AsynchronousStepsTest, StepsMayBeStartedWhereOthersEnd) {
  OpenStream();
  const auto step = session_->Prepare({x_}, {y_});
  ASSERT_OK(step);
  std::promise<float> last;
  std::function<void(float, int)> next = [&](float x, int left) {
    (*step)->RunAsync({Number(x)}, [&, left](const Status& s, const std::vector<Tensor>& fetched) {
      EXPECT_OK(s);
      const float y = s.ok() ? *fetched[0].data<float>() : 0.0f;
      if (left == 0) return last.set_value(y);
      next(y / 2, left - 1);
    });
  };
  next(0, 999);
  std::vector<Tensor> fetched;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK((*step)->Run({Number(i)}, &fetched));
    EXPECT_EQ(*fetched[0].data<float>(), 2.0f * static_cast<float>(i) + 1.0f);
  }
  EXPECT_EQ(last.get_future().get(), 1000.0f);  // 1 more with each
}

TEST_P(AsynchronousStepsTest, AnErrorIsThatOfItsStepAlone) {
  OpenStream();
  const auto step = session_->Prepare({x_}, {y_});
  ASSERT_OK(step);
  std::vector<Tensor> fetched;
  const Tensor wrong = Tensor::Scalar(int32_t{5});
  const Status wanted = (*step)->Run({wrong}, &fetched);
  EXPECT_THAT(wanted, IsError(StatusCode::kInvalidArgument, ""));
  Ends ends;
  for (int i = 0; i < 300; ++i) {
    (*step)->RunAsync({i % 3 == 0 ? wrong : Number(1)}, ends.Take(i));
  }
  (*step)->RunAsync({}, ends.Take(300));
  for (const auto& [i, end] : ends.Wait(301)) {
    if (i == 300) {
      EXPECT_THAT(end.status, IsError(StatusCode::kInvalidArgument, "found 0 feeds, wanted 1"));
    } else if (i % 3 == 0) {
      EXPECT_EQ(end.status.ToString(), wanted.ToString());
      EXPECT_TRUE(end.fetched.empty());
    } else {
      EXPECT_OK(end.status);
    }
  }
}

TEST_P(AsynchronousStepsTest, StepsThatWaitDoNotHoldUpOthers) {
  OpenStream();
  const auto takes = session_->Prepare({}, {taken_});
  const auto step = session_->Prepare({x_}, {y_});
  ASSERT_OK(takes);
  ASSERT_OK(step);
  Ends waiting, ends;
  for (int i = 0; i < 50; ++i) (*takes)->RunAsync({}, waiting.Take(i));
  for (int i = 0; i < 200; ++i) (*step)->RunAsync({Number(i)}, ends.Take(i));
  ends.Wait(200);
  EXPECT_EQ(waiting.count(), 0u);
  EXPECT_EQ(Calls(), 2);
  Ends late;
  StepOptions limited;
  limited.timeout = milliseconds(20);
  (*takes)->RunAsync({}, late.Take(0), limited);
  EXPECT_THAT(late.Wait(1)[0].status, IsError(StatusCode::kDeadlineExceeded, ""));
  ASSERT_OK(session_->Close());
  for (const auto& [i, end] : waiting.Wait(50)) {
    EXPECT_THAT(end.status, IsError(StatusCode::kCancelled, ""));
  }
}

TEST_P(AsynchronousStepsTest, AServerThatEndsEndsTheSteps) {
  OpenStream();
  const auto takes = session_->Prepare({}, {taken_});
  ASSERT_OK(takes);
  Ends ends;
  for (int i = 0; i < 50; ++i) (*takes)->RunAsync({}, ends.Take(i));
  ASSERT_OK(session_->Run({{x_, 1.0f}}, {y_}));
  cluster_->Stop("worker", 0);
  for (const auto& [i, end] : ends.Wait(50)) {
    EXPECT_THAT(end.status, IsError(StatusCode::kCancelled, "worker/replica:0/task:0 ends: it "));
  }
  (*takes)->RunAsync({}, ends.Take(50));
  EXPECT_THAT(ends.Wait(51)[50].status, IsError(StatusCode::kUnavailable, ""));
}

TEST_P(AsynchronousStepsTest, TheEndOfTheSessionIsTheEndOfItsSteps) {
  OpenStream();
  auto takes = session_->Prepare({}, {taken_});
  ASSERT_OK(takes);
  Ends ends;
  for (int i = 0; i < 50; ++i) (*takes)->RunAsync({}, ends.Take(i));
  session_.reset();
  EXPECT_EQ(ends.count(), 50u);
}

/// More than either end keeps in its queue, both ways at once.
TEST_P(AsynchronousStepsTest, ManyLargeFeedsAndFetchesPass) {
  const Output wide = Placeholder(DType::kFloat, {-1}), sum = wide + wide;
  OpenStream();
  const auto step = session_->Prepare({wide}, {sum});
  ASSERT_OK(step);
  constexpr int kSteps = 200;
  Tensor large = Tensor::Zeros(DType::kFloat, {240 << 10});  // just below what goes alone
  *large.data<float>() = 3.0f;
  Ends ends;
  for (int i = 0; i < kSteps; ++i) (*step)->RunAsync({large}, ends.Take(i));
  for (const auto& [i, end] : ends.Wait(kSteps)) {
    ASSERT_OK(end.status);
    EXPECT_EQ(*end.fetched[0].data<float>(), 6.0f);
  }
}

/// A feed that the server does not take is an error of its step alone.
TEST_P(AsynchronousStepsTest, AFeedBeyondTheLimitOfMessagesLeavesTheOthers) {
  ServerLimits limits;
  limits.message_bytes = 4 << 20;
  cluster_.reset();
  StartCluster(0, 1, limits);
  const Output wide = Placeholder(DType::kFloat, {-1}), sum = wide + wide;
  OpenStream();
  const auto takes = session_->Prepare({}, {taken_});
  const auto step = session_->Prepare({wide}, {sum});
  ASSERT_OK(takes);
  ASSERT_OK(step);
  Ends waiting;
  for (int i = 0; i < 10; ++i) (*takes)->RunAsync({}, waiting.Take(i));
  std::vector<Tensor> fetched;
  EXPECT_OK((*step)->Run({Tensor::Zeros(DType::kFloat, {3 << 18})}, &fetched));
  EXPECT_THAT((*step)->Run({Tensor::Zeros(DType::kFloat, {2 << 20})}, &fetched),
              IsError(StatusCode::kResourceExhausted, "larger than max"));
  EXPECT_EQ(waiting.count(), 0u);
  session_.reset();
  EXPECT_EQ(waiting.count(), 10u);
}

/// A burst on a session whose signature nobody has compiled yet.
TEST_P(AsynchronousStepsTest, StepsThatComeWhileTheirSignatureIsCompiledWaitForIt) {
  Output value = x_;
  for (int i = 0; i < (kSanitized ? 200 : 3000); ++i) value = value + 1.0f;
  const Output other = x_ + value;
  OpenStream();
  const auto step = session_->Prepare({x_}, {value});
  const auto second = session_->Prepare({x_}, {other});
  const auto wrong = session_->Prepare({x_}, {"no_such_node"});
  ASSERT_OK(step);
  ASSERT_OK(second);
  constexpr int kSteps = kSanitized ? 300 : 6000;
  Ends ends, others, failed;
  for (int i = 0; i < kSteps; ++i) (*step)->RunAsync({Number(0)}, ends.Take(i));
  for (int i = 0; i < 100; ++i) (*second)->RunAsync({Number(0)}, others.Take(i));
  for (const auto& [i, end] : ends.Wait(kSteps)) ASSERT_OK(end.status);
  for (const auto& [i, end] : others.Wait(100)) ASSERT_OK(end.status);
  if (!wrong.ok()) return;  // said before it runs
  for (int i = 0; i < 100; ++i) (*wrong)->RunAsync({Number(0)}, failed.Take(i));
  for (const auto& [i, end] : failed.Wait(100)) {
    EXPECT_THAT(end.status, IsError(StatusCode::kNotFound, "no_such_node"));
  }
}

/// Steps beyond the limit get an error, whether they run or wait for a compilation.
TEST_P(AsynchronousStepsTest, StepsBeyondTheLimitThatWaitForTheirSignatureAreRefused) {
  ServerLimits limits;
  limits.steps = 50;
  cluster_.reset();
  StartCluster(0, 1, limits);
  Output value = x_;
  for (int i = 0; i < (kSanitized ? 500 : 5000); ++i) value = value + 1.0f;
  OpenStream();
  const auto step = session_->Prepare({x_}, {value});
  ASSERT_OK(step);
  constexpr int kSteps = 1000;
  Ends ends;
  for (int i = 0; i < kSteps; ++i) (*step)->RunAsync({Number(0)}, ends.Take(i));
  int well = 0;
  for (const auto& [i, end] : ends.Wait(kSteps)) {
    well += end.status.ok() ? 1 : 0;
    if (!end.status.ok()) {
      EXPECT_THAT(end.status,
                  IsError(StatusCode::kResourceExhausted, "the server has 50 steps on their way"));
    }
  }
  EXPECT_GE(well, 50);
  std::vector<Tensor> fetched;
  EXPECT_OK((*step)->Run({Number(0)}, &fetched));
}

/// The error of a step that is gone names a node, whose place in the program is looked up.
TEST_P(AsynchronousStepsTest, AStepMayGoBeforeItsEnd) {
  const Output twice = Placeholder(DType::kFloat, {}, {.name = "unfed"}) * 2.0f;
  OpenStream();
  auto step = session_->Prepare({}, {twice});
  ASSERT_OK(step);
  Ends ends;
  for (int i = 0; i < 100; ++i) (*step)->RunAsync({}, ends.Take(i));
  step->reset();
  for (const auto& [i, end] : ends.Wait(100)) {
    EXPECT_THAT(end.status, IsError(StatusCode::kInvalidArgument, "unfed"));
  }
}

TEST_P(AsynchronousStepsTest, ATraceIsThereAtTheEnd) {
  OpenStream();
  const auto step = session_->Prepare({x_}, {y_});
  ASSERT_OK(step);
  std::vector<NodeTrace> trace;
  StepOptions options;
  options.trace = &trace;
  Ends ends;
  (*step)->RunAsync({Number(1)}, ends.Take(0), options);
  EXPECT_OK(ends.Wait(1)[0].status);
  EXPECT_FALSE(trace.empty());
}

TEST_P(AsynchronousStepsTest, ASessionOfTheOwnServerWaitsForWhatItsStepsCall) {
  auto own = worker().MakeSession(graph_);
  ASSERT_OK(own);
  auto takes = (*own)->Prepare({}, {taken_});
  ASSERT_OK(takes);
  std::atomic<int> left = 50;
  for (int i = 0; i < 50; ++i) {
    (*takes)->RunAsync({}, [&](const Status&, const std::vector<Tensor>&) {
      MachineClock().SleepFor(milliseconds(1));
      --left;
    });
  }
  own->reset();
  EXPECT_EQ(left, 0);
}

TEST_P(AsynchronousStepsTest, SessionsWithoutANetworkTakeThemToo) {
  const auto local = MakeLocalSession(graph_);
  const auto own = worker().MakeSession(graph_);
  for (const auto* session : {&local, &own}) {
    ASSERT_OK(*session);
    const auto step = (**session)->Prepare({x_}, {y_});
    ASSERT_OK(step);
    Ends ends;
    for (int i = 0; i < 100; ++i) (*step)->RunAsync({Number(i)}, ends.Take(i));
    (*step)->RunAsync({}, ends.Take(100));
    for (const auto& [i, end] : ends.Wait(101)) {
      if (i == 100) {
        EXPECT_THAT(end.status, IsError(StatusCode::kInvalidArgument, ""));
      } else {
        ASSERT_OK(end.status);
        EXPECT_EQ(*end.fetched[0].data<float>(), 2.0f * static_cast<float>(i) + 1.0f);
      }
    }
  }
}

}  // namespace
}  // namespace tenon
