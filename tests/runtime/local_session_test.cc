// SPDX-License-Identifier: Apache-2.0
#include "runtime/local_session.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/sanitizers.h"
#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"
#include "runtime/step_graph.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/loops.h"
#include "tests/testing/registry.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::AllOps;
using testing::Cond;
using testing::IsError;
using testing::WhileLoop;

constexpr char kDevice0[] = "/device:CPU:0";
constexpr char kDevice1[] = "/device:CPU:1";

/// The ways of running a graph that must agree.
struct SessionRegime {
  std::string name;
  int threads;
  bool passes;

  friend void PrintTo(const SessionRegime& regime, std::ostream* out) { *out << regime.name; }
};

class LocalSessionTest : public ::testing::TestWithParam<SessionRegime> {
 protected:
  std::unique_ptr<Session> Start(const Scope& scope) {
    EXPECT_OK(scope.status());
    LocalSessionOptions options;
    options.threads = GetParam().threads;
    options.passes.enabled = GetParam().passes;
    options.cpu_devices = 2;
    auto session = MakeLocalSession(scope.graph(), options);
    EXPECT_OK(session);
    return session.ok() ? *std::move(session) : nullptr;
  }
};

INSTANTIATE_TEST_SUITE_P(Regimes, LocalSessionTest,
                         ::testing::Values(SessionRegime{"OneThread", 1, true},
                                           SessionRegime{"OneThreadNoPasses", 1, false},
                                           SessionRegime{"ManyThreads", 4, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(LocalSessionTest, FedValuesReachTheFetch) {
  const Scope root = Scope::Root(AllOps());
  const Output x = Placeholder(root.WithName("x"), DType::kFloat);
  Mul(root.WithName("y"), Add(root, x, Const(root, 1.0f)), Const(root, 2.0f));
  auto session = Start(root);
  const auto y = session->Run({{"x", Tensor::Scalar(3.0f)}}, {"y"});
  ASSERT_OK(y);
  EXPECT_EQ((*y)[0].scalar<float>(), 8.0f);
}

TEST_P(LocalSessionTest, AnyTensorCanBeFed) {
  const Scope root = Scope::Root(AllOps());
  const Output sum = Add(root.WithName("sum"), Const(root, 1.0f), Const(root, 2.0f));
  Neg(root.WithName("y"), sum);
  auto session = Start(root);
  const auto y = session->Run({{"sum:0", Tensor::Scalar(10.0f)}}, {"y:0"});
  ASSERT_OK(y);
  EXPECT_EQ((*y)[0].scalar<float>(), -10.0f);
}

TEST_P(LocalSessionTest, VariablesKeepTheirValuesBetweenSteps) {
  const Scope root = Scope::Root(AllOps());
  const Output v = VariableV2(root.WithName("v"), Shape(), DType::kFloat);
  Assign(root.WithName("init"), v, Const(root, 5.0f));
  AssignAdd(root.WithName("add"), v, Const(root, 1.0f));
  auto session = Start(root);
  EXPECT_THAT(session->Run({}, {"v"}), IsError(StatusCode::kFailedPrecondition,
                                               "Attempting to use uninitialized value v"));
  ASSERT_OK(session->Run({}, {}, {"init"}));
  ASSERT_OK(session->Run({}, {}, {"add"}));
  const auto sum = session->Run({}, {"add"});
  ASSERT_OK(sum);
  EXPECT_EQ((*sum)[0].scalar<float>(), 7.0f);
}

TEST_P(LocalSessionTest, OnlyTheTakenBranchRuns) {
  const Scope root = Scope::Root(AllOps());
  const Output p = Placeholder(root.WithName("p"), DType::kBool);
  const Output x = Const(root, 3.0f);
  const Output y = Cond(
      root, p, x, [](const Scope& s, Output v) { return Neg(s, v); },
      [](const Scope& s, Output v) { return Square(s, v); });
  Identity(root.WithName("y"), y);
  auto session = Start(root);
  EXPECT_EQ((*session->Run({{"p", Tensor::Scalar(true)}}, {"y"}))[0].scalar<float>(), -3.0f);
  EXPECT_EQ((*session->Run({{"p", Tensor::Scalar(false)}}, {"y"}))[0].scalar<float>(), 9.0f);
}

TEST_P(LocalSessionTest, FetchingWhatNeverComesIsAnError) {
  const Scope root = Scope::Root(AllOps());
  root.WithName("next").Op("NextIteration").Input(Const(root, 1.0f)).Output();
  auto session = Start(root);
  EXPECT_THAT(session->Run({}, {"next"}),
              IsError(StatusCode::kInvalidArgument, "Retval[0] does not have value"));
}

TEST_P(LocalSessionTest, FetchingADeadTensorIsAnError) {
  const Scope root = Scope::Root(AllOps());
  const std::vector<Output> sides = root.WithName("switch")
                                        .Op("Switch")
                                        .Input(Const(root, 1.0f))
                                        .Input(Placeholder(root.WithName("p"), DType::kBool))
                                        .Outputs();
  Neg(root.WithName("dead"), sides[0]);
  auto session = Start(root);
  EXPECT_THAT(session->Run({{"p", Tensor::Scalar(true)}}, {"dead"}),
              IsError(StatusCode::kInvalidArgument, "does not have value"));
}

/// i = 0; x = 1; while (i < n) { i += 1; x *= 2; }
Output DoublingLoop(const Scope& root, const Scope& body_scope, const std::string& frame, Output n,
                    int parallel_iterations) {
  const auto exits = WhileLoop(
      root, frame, {Const(root, 0), Const(root, 1.0f)},
      [&](const Scope& s, const std::vector<Output>& v) {
        const Output limit = s.Op("Enter")
                                 .Input(n)
                                 .Attr("frame_name", frame)
                                 .Attr("is_constant", true)
                                 .Attr("parallel_iterations", parallel_iterations)
                                 .Output();
        return Less(s, v[0], limit);
      },
      [&](const Scope& s, const std::vector<Output>& v) {
        // Constants inside a loop are triggered by its values.
        const Scope inside = s.WithControlDependencies({v[0]});
        const Scope remote = body_scope.WithControlDependencies({v[1]});
        return std::vector<Output>{Add(s, v[0], Const(inside, 1)),
                                   Mul(body_scope, v[1], Const(remote, 2.0f))};
      },
      parallel_iterations);
  return exits[1];
}

TEST_P(LocalSessionTest, AWhileLoopRunsAsOftenAsItsConditionSays) {
  for (const int parallel : {1, 10}) {
    const Scope root = Scope::Root(AllOps());
    const Output n = Placeholder(root.WithName("n"), DType::kInt32);
    Identity(root.WithName("y"), DoublingLoop(root, root, "loop", n, parallel));
    auto session = Start(root);
    for (const int count : {0, 1, 5, 40}) {
      const auto y = session->Run({{"n", Tensor::Scalar(count)}}, {"y"});
      ASSERT_OK(y);
      EXPECT_EQ((*y)[0].scalar<float>(), std::ldexp(1.0f, count));
    }
  }
}

TEST_P(LocalSessionTest, ALoopMaySpanDevices) {
  const Scope root = Scope::Root(AllOps());
  const Output n = Placeholder(root.WithName("n"), DType::kInt32);
  const Scope here = root.WithDevice(kDevice0);
  const Scope there = root.WithPrefix("there").WithDevice(kDevice1);
  Identity(root.WithName("y"), DoublingLoop(here, there, "loop", n, 10));
  auto session = Start(root);
  for (const int count : {0, 1, 7}) {
    const auto y = session->Run({{"n", Tensor::Scalar(count)}}, {"y"});
    ASSERT_OK(y);
    EXPECT_EQ((*y)[0].scalar<float>(), std::ldexp(1.0f, count));
  }
}

TEST_P(LocalSessionTest, ALoopMayReadAConstantThatIsAloneOnItsDevice) {
  // x = 1; while (x < limit) { x += 1 }, where only the entering of the limit is elsewhere
  const Scope root = Scope::Root(AllOps());
  const Scope here = root.WithDevice(kDevice0), there = root.WithDevice(kDevice1);
  const Output limit = there.Op("Enter")
                           .Input(Const(there, 5))
                           .Attr("frame_name", "loop")
                           .Attr("is_constant", true)
                           .Output();
  const auto exits = WhileLoop(
      here, "loop", {Const(here, 1)},
      [&](const Scope& s, const std::vector<Output>& v) { return Less(s, v[0], limit); },
      [](const Scope& s, const std::vector<Output>& v) {
        return std::vector<Output>{Add(s, v[0], Const(s.WithControlDependencies({v[0]}), 1))};
      });
  Identity(here.WithName("x"), exits[0]);
  auto session = Start(root);
  StepOptions options;
  options.timeout = std::chrono::seconds(10);
  const auto x = session->Run({}, {"x"}, {}, options);
  ASSERT_OK(x);
  EXPECT_EQ((*x)[0].scalar<int32_t>(), 5);
}

TEST_P(LocalSessionTest, LoopsNest) {
  // x = 0; for i < 3 { for j < 4 { x += 1 } }
  const Scope root = Scope::Root(AllOps());
  const auto below = [](int limit) {
    return [limit](const Scope& s, const std::vector<Output>& v) {
      return Less(s, v[0], Const(s.WithControlDependencies({v[0]}), limit));
    };
  };
  const auto one = [](const Scope& s, Output v) {
    return Const(s.WithControlDependencies({v}), 1);
  };
  const auto exits = WhileLoop(
      root, "outer", {Const(root, 0), Const(root, 0)}, below(3),
      [&](const Scope& s, const std::vector<Output>& v) {
        const Output zero = Const(s.WithControlDependencies({v[0]}), 0);
        const auto inner = WhileLoop(
            s, "inner", {zero, v[1]}, below(4),
            [&](const Scope& si, const std::vector<Output>& w) {
              return std::vector<Output>{Add(si, w[0], one(si, w[0])),
                                         Add(si, w[1], one(si, w[1]))};
            });
        return std::vector<Output>{Add(s, v[0], one(s, v[0])), inner[1]};
      });
  Identity(root.WithName("x"), exits[1]);
  auto session = Start(root);
  const auto x = session->Run({}, {"x"});
  ASSERT_OK(x);
  EXPECT_EQ((*x)[0].scalar<int32_t>(), 12);
}

TEST_P(LocalSessionTest, TensorsAndControlEdgesCrossDevices) {
  const Scope root = Scope::Root(AllOps());
  const Scope a = root.WithDevice(kDevice0), b = root.WithDevice(kDevice1);
  const Output v = VariableV2(a.WithName("v"), Shape(), DType::kFloat);
  const Output x = Placeholder(b.WithName("x"), DType::kFloat);
  const Output assign = Assign(a.WithName("assign"), v, Mul(b, x, x));
  Identity(b.WithControlDependencies({assign}).WithName("y"), Neg(b, x));
  auto session = Start(root);
  const auto y = session->Run({{"x", Tensor::Scalar(3.0f)}}, {"y"});
  ASSERT_OK(y);
  EXPECT_EQ((*y)[0].scalar<float>(), -3.0f);
  EXPECT_EQ((*session->Run({}, {"v"}))[0].scalar<float>(), 9.0f);
}

TEST_P(LocalSessionTest, AnErrorOnOneDeviceEndsTheStepOnAll) {
  const Scope root = Scope::Root(AllOps());
  const Scope a = root.WithDevice(kDevice0), b = root.WithDevice(kDevice1);
  const Output bad =
      FloorDiv(a.WithName("bad"), Const(a, 1), Placeholder(a.WithName("zero"), DType::kInt32));
  Neg(b.WithName("y"), bad);
  auto session = Start(root);
  EXPECT_THAT(session->Run({{"zero", Tensor::Scalar(0)}}, {"y"}),
              IsError(StatusCode::kInvalidArgument, "node 'bad' (FloorDiv)"));
}

TEST_P(LocalSessionTest, AnEndlessLoopEndsAtItsTimeLimit) {
  const Scope root = Scope::Root(AllOps());
  WhileLoop(
      root, "loop", {Const(root, 0)},
      [](const Scope& s, const std::vector<Output>& v) {
        return Const(s.WithControlDependencies({v[0]}), true);
      },
      [](const Scope&, const std::vector<Output>& v) { return v; });
  auto session = Start(root);
  StepOptions options;
  options.timeout = std::chrono::milliseconds(50);
  EXPECT_THAT(session->Run({}, {}, {"loop/Exit"}, options),
              IsError(StatusCode::kDeadlineExceeded, "longer than 50 ms"));
}

TEST_P(LocalSessionTest, CloseEndsARunningStep) {
  const Scope root = Scope::Root(AllOps());
  WhileLoop(
      root, "loop", {Const(root, 0)},
      [](const Scope& s, const std::vector<Output>& v) {
        return Const(s.WithControlDependencies({v[0]}), true);
      },
      [](const Scope&, const std::vector<Output>& v) { return v; });
  auto session = Start(root);
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_OK(session->Close());
  });
  EXPECT_FALSE(session->Run({}, {}, {"loop/Exit"}).ok());
  closer.join();
  EXPECT_THAT(session->Run({}, {}, {"loop/Exit"}),
              IsError(StatusCode::kFailedPrecondition, "Session is closed."));
}

TEST_P(LocalSessionTest, StepsMayRunAtOnce) {
  const Scope root = Scope::Root(AllOps());
  const Output v = VariableV2(root.WithName("v"), Shape(), DType::kInt64);
  Assign(root.WithName("init"), v, Const(root, int64_t{0}));
  AssignAdd(root.WithName("add"), v, Const(root, int64_t{1}));
  auto session = Start(root);
  ASSERT_OK(session->Run({}, {}, {"init"}));
  const auto step = session->Prepare({}, {}, {"add"});
  ASSERT_OK(step);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) EXPECT_OK((*step)->Run({}, nullptr));
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ((*session->Run({}, {"v"}))[0].scalar<int64_t>(), 1000);
}

TEST_P(LocalSessionTest, TheCallingThreadDoesOneDevicesWork) {
  const Scope root = Scope::Root(AllOps());
  const Output x = Placeholder(root.WithName("x"), DType::kFloat);
  std::vector<std::string> fetches;
  for (const std::string device : {kDevice0, kDevice1}) {
    Output product = x;
    for (int i = 0; i < 10; ++i) product = MatMul(root.WithDevice(device), product, x);
    fetches.push_back(product.name());
  }
  auto session = Start(root);
  const auto step = session->Prepare({"x"}, fetches, {});
  ASSERT_OK(step);
  const Tensor zeros = Tensor::Zeros(DType::kFloat, {300, 300});
  std::vector<NodeTrace> nodes;
  StepOptions options;
  options.trace = &nodes;
  std::vector<Tensor> products;
  for (int i = 0; i < 3; ++i) ASSERT_OK((*step)->Run({zeros}, &products, options));
  int own = 0;
  for (const NodeTrace& n : nodes) own += n.op == "MatMul" && n.thread == TraceThreadId();
  EXPECT_GE(own, 8);
}

TEST_P(LocalSessionTest, MistakesInASignatureAreNamed) {
  const Scope root = Scope::Root(AllOps());
  const Output x = Placeholder(root.WithName("x"), DType::kFloat, {2});
  Neg(root.WithName("y"), x);
  NoOp(root.WithName("nothing"));
  auto session = Start(root);
  const Tensor two = Tensor::Vector({1.0f, 2.0f});
  const auto invalid = [](const char* text) { return IsError(StatusCode::kInvalidArgument, text); };
  EXPECT_THAT(session->Run({}, {"y"}), invalid("You must feed a value for placeholder tensor 'x'"));
  EXPECT_THAT(session->Run({{"x", Tensor::Scalar(1)}}, {"y"}),
              invalid("feed 'x' is int32, wanted float"));
  EXPECT_THAT(session->Run({{"x", Tensor::Scalar(1.0f)}}, {"y"}),
              invalid("feed 'x' has shape [], wanted [2]"));
  EXPECT_THAT(session->Run({{"x", two}, {"x:0", two}}, {"y"}), invalid("fed more than once"));
  EXPECT_THAT(session->Run({{"x", two}}, {"x"}), invalid("is both fed and fetched"));
  EXPECT_THAT(session->Run({{"x", two}}, {"y:1"}), invalid("output index too large"));
  EXPECT_THAT(session->Run({{"x", two}}, {"nothing"}), invalid("which produces no output"));
  EXPECT_THAT(session->Run({}, {}), invalid("Must specify at least one target"));
  EXPECT_THAT(session->Run({{"z", two}}, {"y"}),
              IsError(StatusCode::kNotFound, "FeedInputs: unable to find feed output z"));
  EXPECT_THAT(session->Run({}, {"z"}), IsError(StatusCode::kNotFound, "FetchOutputs node z"));
  EXPECT_THAT(session->Run({}, {}, {"z"}), IsError(StatusCode::kNotFound, "PruneForTargets"));
}

TEST_P(LocalSessionTest, SignaturesOfOneSessionKeepTheirTensorsApart) {
  // Both steps cut the same edges, and nodes of their transfers have the same names.
  const Scope root = Scope::Root(AllOps());
  const Scope a = root.WithDevice(kDevice0), b = root.WithDevice(kDevice1);
  const Output x = Placeholder(a.WithName("x"), DType::kFloat);
  const Output middle = Square(a.WithName("middle"), x);
  Neg(b.WithControlDependencies({middle}).WithName("waits"), Const(b, 1.0f));
  Neg(b.WithName("reads"), middle);
  auto session = Start(root);
  for (int i = 0; i < 2; ++i) {
    for (const char* feed : {"x", "x:0"}) {
      ASSERT_OK(session->Run({{feed, Tensor::Scalar(3.0f)}}, {"waits"}));
      const auto read = session->Run({{feed, Tensor::Scalar(3.0f)}}, {"reads"});
      ASSERT_OK(read);
      EXPECT_EQ((*read)[0].scalar<float>(), -9.0f);
    }
  }
}

TEST(StepSignatureTest, NamesThatJoinAlikeHaveDifferentKeys) {
  EXPECT_NE((StepSignature{{}, {"a"}, {"b/c"}}.Key()), (StepSignature{{}, {"a/b"}, {"c"}}.Key()));
  EXPECT_NE((StepSignature{{}, {"a", "b"}, {}}.Key()), (StepSignature{{}, {"a,b"}, {}}.Key()));
}

TEST_P(LocalSessionTest, ATraceHasEveryNodeThatRan) {
  const Scope root = Scope::Root(AllOps());
  const Output x = Placeholder(root.WithName("x"), DType::kFloat);
  Neg(root.WithName("y"), Square(root.WithName("square"), x));
  auto session = Start(root);
  std::vector<NodeTrace> trace;
  StepOptions options;
  options.trace = &trace;
  ASSERT_OK(session->Run({{"x", Tensor::Scalar(2.0f)}}, {"y"}, {}, options));
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].name, "square");
  EXPECT_EQ(trace[1].name, "y");
  EXPECT_LE(trace[0].start_ns, trace[0].end_ns);
}

TEST_P(LocalSessionTest, OneTensorMayBeFetchedVeryOften) {
  constexpr int kFetches = kSanitized ? 10000 : 100000;
  const Scope root = Scope::Root(AllOps());
  Add(root.WithName("folded"), Const(root, 1.0f), Const(root, 2.0f));
  const Output x = Placeholder(root.WithName("x"), DType::kFloat);
  Neg(root.WithName("y"), x);
  auto session = Start(root);
  for (const char* name : {"folded", "y"}) {
    const testing::CpuTime time;
    const auto values =
        session->Run({{"x", Tensor::Scalar(3.0f)}}, std::vector<std::string>(kFetches, name));
    ASSERT_OK(values);
    EXPECT_EQ((*values)[kFetches - 1].scalar<float>(), (*values)[0].scalar<float>());
    EXPECT_LT(time.seconds(), testing::kLinearSeconds);
  }
}

TEST_P(LocalSessionTest, OpsOfTheRuntimeAreRefused) {
  const Scope root = Scope::Root(AllOps());
  root.WithName("r")
      .Op("_Recv")
      .Attr("tensor_type", DType::kFloat)
      .Attr("tensor_name", "never")
      .Attr("send_device", "/job:localhost/replica:0/task:0/device:CPU:0")
      .Attr("send_device_incarnation", int64_t{1})
      .Attr("recv_device", "/job:localhost/replica:0/task:0/device:CPU:0")
      .Attr("client_terminated", false)
      .Output();
  auto session = Start(root);
  EXPECT_THAT(session->Run({}, {"r"}),
              IsError(StatusCode::kInvalidArgument, "for the runtime's own use"));
}

TEST_P(LocalSessionTest, NothingIsAddedOrRunAfterClose) {
  const Scope root = Scope::Root(AllOps());
  Const(root.WithName("x"), 1.0f);
  auto session = Start(root);
  ASSERT_OK(session->Close());
  const auto closed = IsError(StatusCode::kFailedPrecondition, "Session is closed");
  EXPECT_THAT(session->Run({}, {"x"}), closed);
  EXPECT_THAT(session->Extend(root.graph()), closed);
  EXPECT_THAT(session->Prepare({}, {"x"}), closed);
}

}  // namespace
}  // namespace tenon
