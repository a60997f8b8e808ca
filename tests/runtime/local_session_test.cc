// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/local_session.h"

#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "core/base/sanitizers.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/testing/cpu_time.h"
#include "tests/testing/gives.h"
#include "tests/testing/simulated_session.h"
#include "tests/testing/status_matchers.h"

namespace tenon {
namespace {

using testing::Gives;
using testing::IsError;

constexpr char kDevice0[] = "/device:CPU:0";
constexpr char kDevice1[] = "/device:CPU:1";

/// What `build` gives on that device.
Output On(const char* device, const std::function<Output()>& build) {
  const DeviceScope on(device);
  return build();
}

using Values = std::vector<Output>;

/// The ways of running a graph that must agree.
struct SessionRegime {
  std::string name;
  int threads;
  bool passes;
  bool simulated = false;  // what is on no CPU is on a simulated device

  friend void PrintTo(const SessionRegime& regime, std::ostream* out) { *out << regime.name; }
};

/// A graph that the test builds, and a session of it.
class LocalSessionTest : public ::testing::TestWithParam<SessionRegime> {
 protected:
  /// Opens the session of what has been built.
  void Start() { session_ = Open(graph_); }
  std::unique_ptr<Session> Open(const Graph& graph) {
    EXPECT_OK(graph.error());
    LocalSessionOptions options;
    options.threads = GetParam().threads;
    options.passes.enabled = GetParam().passes;
    options.devices.cpus = 2;
    auto session = GetParam().simulated ? testing::MakeSimulatedSession(graph, options)
                                        : MakeLocalSession(graph, options);
    EXPECT_OK(session);
    return *std::move(session);
  }

  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
  std::unique_ptr<Session> session_;
};

INSTANTIATE_TEST_SUITE_P(Regimes, LocalSessionTest,
                         ::testing::Values(SessionRegime{"OneThread", 1, true},
                                           SessionRegime{"OneThreadNoPasses", 1, false},
                                           SessionRegime{"ManyThreads", 4, true},
                                           SessionRegime{"SimulatedDevice", 4, true, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(LocalSessionTest, FedValuesReachTheFetch) {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  Mul(Add(x, Const(1.0f)), Const(2.0f), {.name = "y"});
  Start();
  EXPECT_THAT(session_->Run<float>({{"x", 3.0f}}, "y"), Gives(8.0f));
}

TEST_P(LocalSessionTest, AnyTensorCanBeFed) {
  const Output sum = Add(Const(1.0f), Const(2.0f), {.name = "sum"});
  Neg(sum, {.name = "y"});
  Start();
  EXPECT_THAT(session_->Run<float>({{"sum:0", 10.0f}}, "y:0"), Gives(-10.0f));
}

TEST_P(LocalSessionTest, VariablesKeepTheirValuesBetweenSteps) {
  const Output v = VariableV2(Shape(), DType::kFloat, {.name = "v"});
  Assign(v, Const(5.0f), {.name = "init"});
  AssignAdd(v, Const(1.0f), {.name = "add"});
  Start();
  EXPECT_THAT(session_->Run({}, {"v"}),
              IsError(StatusCode::kFailedPrecondition, "Attempting to use uninitialized value v"));
  ASSERT_OK(session_->Run({}, {}, {"init"}));
  ASSERT_OK(session_->Run({}, {}, {"add"}));
  EXPECT_THAT(session_->Run<float>({}, "add"), Gives(7.0f));
}

TEST_P(LocalSessionTest, OnlyTheTakenBranchRuns) {
  const Output p = Placeholder(DType::kBool, {}, {.name = "p"});
  const Output x = Const(3.0f);
  const Output y = Cond(
      p, [&] { return Neg(x); }, [&] { return Square(x); });
  Identity(y, {.name = "y"});
  Start();
  EXPECT_THAT(session_->Run<float>({{"p", true}}, "y"), Gives(-3.0f));
  EXPECT_THAT(session_->Run<float>({{"p", false}}, "y"), Gives(9.0f));
}

TEST_P(LocalSessionTest, FetchingWhatNeverComesIsAnError) {
  NextIteration(Const(1.0f), {.name = "next"});
  Start();
  EXPECT_THAT(session_->Run({}, {"next"}),
              IsError(StatusCode::kInvalidArgument, "Retval[0] does not have value"));
}

TEST_P(LocalSessionTest, FetchingADeadTensorIsAnError) {
  const Output p = Placeholder(DType::kBool, {}, {.name = "p"});
  Neg(Switch(1.0f, p, {.name = "switch"}).output_false, {.name = "dead"});
  Start();
  EXPECT_THAT(session_->Run({{"p", Tensor::Scalar(true)}}, {"dead"}),
              IsError(StatusCode::kInvalidArgument, "does not have value"));
}

/// i = 0; x = 1; while (i < n) { i += 1; x *= 2; }, where `twice` makes x * 2.
Output DoublingLoop(const std::function<Output(Output x)>& twice, Output n,
                    int parallel_iterations) {
  return WhileLoop(
      {0, 1.0f}, [&](const Values& v) { return v[0] < n; },
      [&](const Values& v) {
        return Values{v[0] + 1, twice(v[1])};
      },
      {.parallel_iterations = parallel_iterations})[1];
}

/// As in TensorFlow; on every thread that computes, and nowhere else.
TEST_P(LocalSessionTest, DenormalsAreZerosInKernelsOnly) {
  volatile float tiny = 1e-40f;
  for (const int64_t size : {int64_t{1}, int64_t{1} << 22}) {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Output x = Placeholder(DType::kFloat, {size});
    const Output twice = Add(x, x);
    Tensor value(DType::kFloat, {size});
    std::fill_n(value.data<float>(), size, tiny);
    const auto session = Open(graph);
    const auto sums = session->Run({{x, value}}, {twice});
    ASSERT_OK(sums.status());
    EXPECT_THAT((*sums)[0].flat<float>(), ::testing::Each(0.0f));
  }
  EXPECT_GT(tiny + tiny, 0.0f);
}

TEST_P(LocalSessionTest, AWhileLoopRunsAsOftenAsItsConditionSays) {
  for (const int parallel : {1, 10}) {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    const Output n = Placeholder(DType::kInt32, {}, {.name = "n"});
    const auto twice = [](Output x) {
      const AtRoot outside;
      return x * 2;
    };
    Identity(DoublingLoop(twice, n, parallel), {.name = "y"});
    auto session = Open(graph);
    for (const int count : {0, 1, 5, 40}) {
      EXPECT_THAT(session->Run<float>({{"n", count}}, "y"), Gives(std::ldexp(1.0f, count)));
    }
  }
}

TEST_P(LocalSessionTest, ALoopMaySpanDevices) {
  const Output n = Placeholder(DType::kInt32, {}, {.name = "n"});
  const auto twice = [](Output x) {
    const AtRoot outside;
    const NameScope there("there");
    const DeviceScope on(kDevice1);
    return x * 2;
  };
  Identity(On(kDevice0, [&] { return DoublingLoop(twice, n, 10); }), {.name = "y"});
  Start();
  for (const int count : {0, 1, 7}) {
    EXPECT_THAT(session_->Run<float>({{"n", count}}, "y"), Gives(std::ldexp(1.0f, count)));
  }
}

TEST_P(LocalSessionTest, ALoopMayReadAConstantThatIsAloneOnItsDevice) {
  // x = 1; while (x < limit) { x += 1 }, where only the entering of the limit is elsewhere
  const Output limit = On(kDevice1, [] { return Const(5); });
  On(kDevice0, [&] {
    const Values exits = WhileLoop(
        {1}, [&](const Values& v) { return v[0] < limit; },
        [](const Values& v) { return Values{v[0] + 1}; });
    return Identity(exits[0], {.name = "x"});
  });
  Node* const enter = limit.node->out_edges()[0].dst;
  ASSERT_EQ(enter->op(), "Enter");
  enter->set_requested_device(kDevice1);
  Start();
  StepOptions options;
  options.timeout = std::chrono::seconds(10);
  EXPECT_THAT(session_->Run<int32_t>({}, "x", {}, options), Gives(5));
}

TEST_P(LocalSessionTest, LoopsNest) {
  // x = 0; for i < 3 { for j < 4 { x += 1 } }
  const auto below = [](int limit) { return [limit](const Values& v) { return v[0] < limit; }; };
  const Values exits = WhileLoop({0, 0}, below(3), [&](const Values& v) {
    const Values inner = WhileLoop({0, v[1]}, below(4), [](const Values& w) {
      return Values{w[0] + 1, w[1] + 1};
    });
    return Values{v[0] + 1, inner[1]};
  });
  Identity(exits[1], {.name = "x"});
  Start();
  EXPECT_THAT(session_->Run<int32_t>({}, "x"), Gives(12));
}

TEST_P(LocalSessionTest, AnExitGivesItsFirstLiveValue) {
  const auto enter = [](const Output& value, bool is_constant) {
    return Enter(value, "loop", {.is_constant = is_constant, .parallel_iterations = 1});
  };
  const Output start = enter(Const(0), false);
  const MergeOutputs i = Merge({start, start});
  const auto [after, body] = Switch(i.output, LoopCond(i.output < enter(Const(3), true)));
  const Output next = NextIteration(body + enter(Const(1), true));
  ASSERT_OK(graph_.Connect(next, i.output.node, 1));
  Add(Exit(i.output), 5, {.name = "of_merge"});  // live in each iteration
  Add(Exit(body), 5, {.name = "of_body"});       // dead in the last one
  Add(Exit(after), 5, {.name = "of_end"});       // live in the last one alone
  Add(Exit(enter(Const(7), true)), 5, {.name = "of_constant"});
  Start();
  for (int step = 0; step < 3; ++step) {
    EXPECT_THAT(session_->Run<int32_t>({}, "of_merge"), Gives(5));
    EXPECT_THAT(session_->Run<int32_t>({}, "of_body"), Gives(5));
    EXPECT_THAT(session_->Run<int32_t>({}, "of_end"), Gives(8));
    // With the other one, so that there are several iterations.
    const auto both = session_->Run({}, {"of_constant", "of_end"}, {});
    ASSERT_OK(both.status());
    EXPECT_EQ((*both)[0].scalar<int32_t>(), 12);
    EXPECT_EQ((*both)[1].scalar<int32_t>(), 8);
  }
}

TEST_P(LocalSessionTest, TensorsAndControlEdgesCrossDevices) {
  const Output v = On(kDevice0, [] { return VariableV2(Shape(), DType::kFloat, {.name = "v"}); });
  const Output x = On(kDevice1, [] { return Placeholder(DType::kFloat, {}, {.name = "x"}); });
  const Output square = On(kDevice1, [&] { return Mul(x, x); });
  const Output assign = On(kDevice0, [&] { return Assign(v, square, {.name = "assign"}); });
  On(kDevice1, [&] {
    const Output minus = Neg(x);
    const ControlDependencies after({assign});
    return Identity(minus, {.name = "y"});
  });
  Start();
  EXPECT_THAT(session_->Run<float>({{"x", 3.0f}}, "y"), Gives(-3.0f));
  EXPECT_THAT(session_->Run<float>({}, "v"), Gives(9.0f));
}

TEST_P(LocalSessionTest, AnErrorOnOneDeviceEndsTheStepOnAll) {
  const Output bad = On(kDevice0, [] {
    return FloorDiv(1, Placeholder(DType::kInt32, {}, {.name = "zero"}), {.name = "bad"});
  });
  On(kDevice1, [&] { return Neg(bad, {.name = "y"}); });
  Start();
  EXPECT_THAT(session_->Run({{"zero", Tensor::Scalar(0)}}, {"y"}),
              IsError(StatusCode::kInvalidArgument, "node 'bad' (FloorDiv)"));
}

TEST_P(LocalSessionTest, AnEndlessLoopEndsAtItsTimeLimit) {
  WhileLoop(
      {0}, [](const Values&) { return Const(true); }, [](const Values& v) { return v; },
      {.name = "loop"});
  Start();
  StepOptions options;
  options.timeout = std::chrono::milliseconds(50);
  EXPECT_THAT(session_->Run({}, {}, {"loop/Exit"}, options),
              IsError(StatusCode::kDeadlineExceeded, "longer than 50 ms"));
}

TEST_P(LocalSessionTest, AStepOfOneLongKernelThatIsLateFailsToo) {
  const Output x = Placeholder(DType::kFloat, {1000, 1000});
  const Output y = MatMul(x, x);  // two thousand million operations
  Start();
  const Tensor value = Tensor::Zeros(DType::kFloat, {1000, 1000});
  ASSERT_OK(session_->Run({{x, value}}, {}, {y}));
  StepOptions options;
  options.timeout = std::chrono::milliseconds(1);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(session_->Run({{x, value}}, {}, {y}, options),
                IsError(StatusCode::kDeadlineExceeded, "the step took longer than 1 ms"));
  }
}

TEST_P(LocalSessionTest, CloseEndsARunningStep) {
  WhileLoop(
      {0}, [](const Values&) { return Const(true); }, [](const Values& v) { return v; },
      {.name = "loop"});
  Start();
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_OK(session_->Close());
  });
  EXPECT_FALSE(session_->Run({}, {}, {"loop/Exit"}).ok());
  closer.join();
  EXPECT_THAT(session_->Run({}, {}, {"loop/Exit"}),
              IsError(StatusCode::kFailedPrecondition, "Session is closed."));
}

TEST_P(LocalSessionTest, StepsMayRunAtOnce) {
  const Output v = VariableV2(Shape(), DType::kInt64, {.name = "v"});
  Assign(v, Tensor::Scalar<int64_t>(0), {.name = "init"});
  AssignAdd(v, Tensor::Scalar<int64_t>(1), {.name = "add"});
  Start();
  ASSERT_OK(session_->Run({}, {}, {"init"}));
  const auto step = session_->Prepare({}, {}, {"add"});
  ASSERT_OK(step);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) EXPECT_OK((*step)->Run({}, nullptr));
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(session_->Run<int64_t>({}, "v"), Gives(1000));
}

TEST_P(LocalSessionTest, TheCallingThreadDoesOneDevicesWork) {
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  std::vector<std::string> fetches;
  for (const std::string device : {kDevice0, kDevice1}) {
    Output product = x;
    const DeviceScope on(device);
    for (int i = 0; i < 10; ++i) product = MatMul(product, x);
    fetches.push_back(product.name());
  }
  Start();
  const auto step = session_->Prepare({"x"}, fetches, {});
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
  const Output x = Placeholder(DType::kFloat, {2}, {.name = "x"});
  Neg(x, {.name = "y"});
  NoOp({.name = "nothing"});
  Start();
  const Tensor two = Tensor::Vector({1.0f, 2.0f});
  const auto invalid = [](const char* text) { return IsError(StatusCode::kInvalidArgument, text); };
  EXPECT_THAT(session_->Run({}, {"y"}),
              invalid("You must feed a value for placeholder tensor 'x'"));
  EXPECT_THAT(session_->Run({{"x", Tensor::Scalar(1)}}, {"y"}),
              invalid("feed 'x' is int32, wanted float"));
  EXPECT_THAT(session_->Run({{"x", Tensor::Scalar(1.0f)}}, {"y"}),
              invalid("feed 'x' has shape [], wanted [2]"));
  EXPECT_THAT(session_->Run({{"x", two}, {"x:0", two}}, {"y"}), invalid("fed more than once"));
  EXPECT_THAT(session_->Run({{"x", two}}, {"x"}), invalid("is both fed and fetched"));
  EXPECT_THAT(session_->Run({{"x", two}}, {"y:1"}), invalid("output index too large"));
  EXPECT_THAT(session_->Run({{"x", two}}, {"nothing"}), invalid("which produces no output"));
  EXPECT_THAT(session_->Run({}, {}), invalid("Must specify at least one target"));
  EXPECT_THAT(session_->Run({{"z", two}}, {"y"}),
              IsError(StatusCode::kNotFound, "FeedInputs: unable to find feed output z"));
  EXPECT_THAT(session_->Run({}, {"z"}), IsError(StatusCode::kNotFound, "FetchOutputs node z"));
  EXPECT_THAT(session_->Run({}, {}, {"z"}), IsError(StatusCode::kNotFound, "PruneForTargets"));
}

TEST_P(LocalSessionTest, SignaturesOfOneSessionKeepTheirTensorsApart) {
  // Both steps cut the same edges, and nodes of their transfers have the same names.
  const Output middle = On(kDevice0, [] {
    return Square(Placeholder(DType::kFloat, {}, {.name = "x"}), {.name = "middle"});
  });
  On(kDevice1, [&] {
    const Output one = Const(1.0f);
    const ControlDependencies after({middle});
    return Neg(one, {.name = "waits"});
  });
  On(kDevice1, [&] { return Neg(middle, {.name = "reads"}); });
  Start();
  for (int i = 0; i < 2; ++i) {
    for (const char* feed : {"x", "x:0"}) {
      ASSERT_OK(session_->Run({{feed, Tensor::Scalar(3.0f)}}, {"waits"}));
      EXPECT_THAT(session_->Run<float>({{feed, 3.0f}}, "reads"), Gives(-9.0f));
    }
  }
}

TEST_P(LocalSessionTest, OneTensorMayBeFetchedVeryOften) {
  constexpr int kFetches = kSanitized ? 10000 : 100000;
  Add(Const(1.0f), Const(2.0f), {.name = "folded"});
  const Output x = Placeholder(DType::kFloat, {}, {.name = "x"});
  Neg(x, {.name = "y"});
  Start();
  for (const char* name : {"folded", "y"}) {
    const testing::CpuTime time;
    const auto values =
        session_->Run({{"x", Tensor::Scalar(3.0f)}}, std::vector<std::string>(kFetches, name));
    ASSERT_OK(values);
    EXPECT_EQ((*values)[kFetches - 1].scalar<float>(), (*values)[0].scalar<float>());
    EXPECT_LT(time.seconds(), testing::kLinearSeconds);
  }
}

TEST_P(LocalSessionTest, OpsOfTheRuntimeAreRefused) {
  constexpr char kDevice[] = "/job:localhost/replica:0/task:0/device:CPU:0";
  _Recv(DType::kFloat, "never", kDevice, 1, kDevice, {.name = "r"});
  Start();
  EXPECT_THAT(session_->Run({}, {"r"}),
              IsError(StatusCode::kInvalidArgument, "for the runtime's own use"));
}

TEST_P(LocalSessionTest, AGraphWithAMistakeIsNotAdded) {
  const Output x = Const({1.0f, 2.0f});
  Start();
  MatMul(x, x, {.name = "product"});
  EXPECT_THAT(session_->Extend(graph_),
              IsError(StatusCode::kInvalidArgument, "node 'product' (MatMul)"));
  EXPECT_OK(session_->Run({}, {x}));
}

TEST_P(LocalSessionTest, ResultsAreOfTheTypesAskedFor) {
  const Output fed = Placeholder(DType::kString, {}), word = Identity(fed),
               words = Pack({fed, "b"});
  Start();
  EXPECT_THAT(session_->Run<std::string>({{fed, "a"}}, word), Gives("a"));
  EXPECT_EQ(*session_->Run<std::string>({{fed, std::string("a\0b", 3)}}, word),
            std::string("a\0b", 3));
  EXPECT_EQ(*session_->Run<std::vector<std::string>>({{fed, "a"}}, words),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_THAT(session_->Run<std::string>({{fed, "a"}}, words),
              IsError(StatusCode::kInvalidArgument, "is string[2], wanted one string"));
}

TEST_P(LocalSessionTest, NothingIsAddedOrRunAfterClose) {
  Const(1.0f, {.name = "x"});
  Start();
  ASSERT_OK(session_->Close());
  const auto closed = IsError(StatusCode::kFailedPrecondition, "Session is closed");
  EXPECT_THAT(session_->Run({}, {"x"}), closed);
  EXPECT_THAT(session_->Extend(graph_), closed);
  EXPECT_THAT(session_->Prepare({}, {"x"}), closed);
}

}  // namespace
}  // namespace tenon
