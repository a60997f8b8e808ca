// SPDX-License-Identifier: Apache-2.0
//
// Steps that a client feeds and fetches in several calls.
#include <gtest/gtest.h>

#include <thread>

#include "core/proto/proto_io_graph.h"
#include "core/proto/proto_io_tensor.h"
#include "ops/array/array_ops.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "proto/master.pb.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::RawCaller;
using testing::TestCluster;

const std::string kMasterCalls = "/tensorflow.MasterService/";

/// a = 2x, f and g of feeds of their own on the worker, b = a + y and z = b * w on the parameter
/// server, "forever" = a loop that ends when w is 0.
void BuildGraph() {
  Output x, a;
  {
    const DeviceScope worker("/job:worker/task:0");
    x = Placeholder(DType::kFloat, {}, {.name = "x"});
    a = Mul(x, 2.0f, {.name = "a"});
    for (const char* name : {"f", "g"}) {
      const Output fed = Placeholder(DType::kFloat, {}, {.name = StrCat(name, "_fed")});
      Exp(Tanh(Square(Mul(fed, fed))), {.name = name});
    }
  }
  const DeviceScope ps("/job:ps/task:0");
  const Output b = Add(a, Placeholder(DType::kFloat, {}, {.name = "y"}), {.name = "b"});
  const Output w = Placeholder(DType::kFloat, {}, {.name = "w"});
  Mul(b, w, {.name = "z"});
  CheckNumerics(Div(b, w), "bad", {.name = "checked"});
  const std::vector<Output> ends = WhileLoop(
      {w, w}, [](const std::vector<Output>& v) { return NotEqual(v[0], 0.0f); },
      [](const std::vector<Output>& v) {
        return std::vector<Output>{Mul(v[0], 1.0f), v[1]};
      });
  Identity(ends[0], {.name = "forever"});
}

class PartialRunTest : public ::testing::Test {
 protected:
  explicit PartialRunTest(const ServerLimits& limits = {})
      : cluster_(1, 1, limits), caller_((cluster_.StartAll(), worker().target())) {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    BuildGraph();
    EXPECT_OK(graph.error());
    CreateSessionRequest create;
    EXPECT_OK(GraphToProto(graph, create.mutable_graph_def()));
    CreateSessionResponse session;
    EXPECT_TRUE(caller_.Call(kMasterCalls + "CreateSession", create, &session).ok());
    session_ = session.session_handle();
  }

  Server& worker() { return cluster_.at("worker", 0); }

  grpc::Status TryOpen(const std::vector<std::string>& feeds,
                       const std::vector<std::string>& fetches, std::string* handle) {
    PartialRunSetupRequest request;
    request.set_session_handle(session_);
    *request.mutable_feed() = {feeds.begin(), feeds.end()};
    *request.mutable_fetch() = {fetches.begin(), fetches.end()};
    PartialRunSetupResponse response;
    const grpc::Status status = caller_.Call(kMasterCalls + "PartialRunSetup", request, &response);
    *handle = response.partial_run_handle();
    return status;
  }
  std::string Open(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches) {
    std::string handle;
    const grpc::Status status = TryOpen(feeds, fetches, &handle);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return handle;
  }

  using Feeds = std::vector<std::pair<std::string, Tensor>>;
  /// The code and message of a call of the run, or the values of its fetches.
  std::string Run(const std::string& handle, const Feeds& feeds,
                  const std::vector<std::string>& fetches, int64_t timeout_ms = 0,
                  milliseconds limit = std::chrono::seconds(20)) {
    RunStepRequest request;
    request.set_session_handle(session_);
    request.set_partial_run_handle(handle);
    request.set_store_errors_in_response_body(true);
    request.mutable_options()->set_timeout_in_ms(timeout_ms);
    for (const auto& [name, value] : feeds) {
      request.add_feed()->set_name(name);
      EXPECT_OK(
          TensorToProto(value, request.mutable_feed(request.feed_size() - 1)->mutable_tensor()));
    }
    *request.mutable_fetch() = {fetches.begin(), fetches.end()};
    RunStepResponse response;
    const grpc::Status status = caller_.Call(kMasterCalls + "RunStep", request, &response, limit);
    if (!status.ok()) return StrCat("call ", static_cast<int>(status.error_code()));
    if (response.status_code() != 0) {
      return StrCat(static_cast<int>(response.status_code()), ": ",
                    response.status_error_message());
    }
    std::string values;
    for (const NamedTensorProto& t : response.tensor()) {
      const auto value = TensorFromProto(t.tensor());
      EXPECT_OK(value);
      StrAppend(&values, t.name(), "=", value->data<float>()[0], " ");
    }
    return values;
  }

  /// Whether, soon, neither task has a step.
  bool NothingRuns() {
    const auto deadline = steady_clock::now() + std::chrono::seconds(60);
    for (const char* job : {"worker", "ps"}) {
      Server& server = cluster_.at(job, 0);
      // A clean-up may travel with the next step's calls.
      while (server.Describe().find("steps: 0;") == std::string::npos) {
        if (steady_clock::now() > deadline) {
          ADD_FAILURE() << server.Describe();
          return false;
        }
        std::this_thread::sleep_for(milliseconds(10));
      }
    }
    return true;
  }

  TestCluster cluster_;
  RawCaller caller_;
  std::string session_;
};

Tensor Number(float value) { return Tensor::Scalar(value); }

constexpr char kInvalid[] = "3: ";

TEST_F(PartialRunTest, WhatIsFedFirstDoesNotWaitForTheRest) {
  const Tensor one = Tensor::Scalar(1.0f);
  for (int round = 0; round < 3; ++round) {
    const std::string handle = Open({"f_fed:0", "g_fed:0"}, {"f:0", "g:0"});
    EXPECT_TRUE(Run(handle, {{"f_fed:0", one}}, {"f:0"}, 10'000).starts_with("f:0=2.14"));
    EXPECT_TRUE(Run(handle, {{"g_fed:0", one}}, {"g:0"}, 10'000).starts_with("g:0=2.14"));
  }
}

TEST_F(PartialRunTest, FeedsAndFetchesComeInSeveralCallsOfOneStep) {
  for (int i = 0; i < 5; ++i) {  // first over calls of their own, then over the tasks' stream
    const auto f = static_cast<float>(i);
    const std::string handle = Open({"x:0", "y:0", "w:0"}, {"a:0", "b:0", "z:0"});
    EXPECT_EQ(Run(handle, {{"x:0", Number(1 + f)}}, {"a:0"}), StrCat("a:0=", 2 + 2 * f, " "));
    EXPECT_EQ(Run(handle, {{"y:0", Number(10)}}, {"b:0"}), StrCat("b:0=", 12 + 2 * f, " "));
    EXPECT_EQ(Run(handle, {{"w:0", Number(2)}}, {"z:0"}), StrCat("z:0=", 24 + 4 * f, " "));
    EXPECT_TRUE(Run(handle, {}, {}).starts_with(kInvalid));  // it is over
    EXPECT_TRUE(NothingRuns());
  }
}

TEST_F(PartialRunTest, NamesMayLackTheOutputAndAllMayComeAtOnce) {
  const std::string handle = Open({"x", "y:0"}, {"a:0", "b"});
  EXPECT_EQ(Run(handle, {{"x:0", Number(1)}, {"y", Number(5)}}, {"b", "a"}), "b=7 a=2 ");
  EXPECT_TRUE(NothingRuns());
}

TEST_F(PartialRunTest, RunsOfOneSignatureAreIndependent) {
  const std::string first = Open({"x:0", "y:0"}, {"a:0", "b:0"});
  const std::string second = Open({"x:0", "y:0"}, {"a:0", "b:0"});
  EXPECT_EQ(Run(first, {{"x:0", Number(1)}}, {"a:0"}), "a:0=2 ");
  EXPECT_EQ(Run(second, {{"x:0", Number(2)}}, {"a:0"}), "a:0=4 ");
  EXPECT_EQ(Run(second, {{"y:0", Number(0)}}, {"b:0"}), "b:0=4 ");
  EXPECT_EQ(Run(first, {{"y:0", Number(0)}}, {"b:0"}), "b:0=2 ");
  EXPECT_TRUE(NothingRuns());
}

TEST_F(PartialRunTest, WhatIsWrongWithACallIsSaidAndTheRunGoesOn) {
  std::string handle;
  EXPECT_EQ(TryOpen({"x:0", "x"}, {"a:0"}, &handle).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(TryOpen({"no:0"}, {"a:0"}, &handle).error_code(), grpc::StatusCode::NOT_FOUND);
  handle = Open({"x:0", "y:0"}, {"a:0", "b:0"});
  const auto expect = [&](const std::string& answer, const std::string& message) {
    EXPECT_TRUE(answer.starts_with(kInvalid) && answer.find(message) != std::string::npos)
        << answer;
  };
  const Tensor one = Number(1);
  expect(Run("77", {}, {}), "PartialRunSetup before");
  expect(Run(handle, {{"w:0", one}}, {}), "The feed w:0 was not specified in partial_run_setup");
  expect(Run(handle, {}, {"z:0"}), "The fetch z:0 was not specified in partial_run_setup");
  expect(Run(handle, {}, {"a:0"}), "'x:0' is missing");
  expect(Run(handle, {{"x:0", one}}, {"b:0"}), "'y:0' is missing");
  expect(Run(handle, {{"x:0", Tensor::Scalar(1)}}, {}), "wanted float");
  EXPECT_EQ(Run(handle, {{"x:0", one}}, {"a:0"}), "a:0=2 ");
  expect(Run(handle, {{"x:0", one}}, {}), "The feed x:0 has already been fed");
  expect(Run(handle, {}, {"a:0"}), "The fetch a:0 has already been fetched");
  expect(Run(handle, {{"y:0", one}, {"y", one}}, {}), "The feed y has already been fed");
  EXPECT_EQ(Run(handle, {{"y:0", one}}, {"b:0"}), "b:0=3 ");
  EXPECT_TRUE(NothingRuns());
}

TEST_F(PartialRunTest, AnErrorOfANodeEndsTheRun) {
  const std::string handle = Open({"x:0", "y:0", "w:0"}, {"a:0", "checked:0"});
  EXPECT_EQ(Run(handle, {{"x:0", Number(0)}}, {"a:0"}), "a:0=0 ");
  const std::string failed =
      Run(handle, {{"y:0", Number(0)}, {"w:0", Number(0)}}, {"checked:0"});  // 0 / 0
  EXPECT_NE(failed.find("had NaN"), std::string::npos) << failed;
  EXPECT_TRUE(Run(handle, {}, {}).starts_with(kInvalid));
  EXPECT_TRUE(NothingRuns());
}

TEST_F(PartialRunTest, ARunThatNobodyEndsEndsWithItsSession) {
  const std::string handle = Open({"x:0", "y:0"}, {"a:0", "b:0"});
  Open({"x:0"}, {"a:0"});  // which never begins
  EXPECT_EQ(Run(handle, {{"x:0", Number(1)}}, {"a:0"}), "a:0=2 ");
  CloseSessionRequest close;
  close.set_session_handle(session_);
  CloseSessionResponse closed;
  EXPECT_TRUE(caller_.Call(kMasterCalls + "CloseSession", close, &closed).ok());
  EXPECT_TRUE(NothingRuns());
  EXPECT_TRUE(Run(handle, {{"y:0", Number(1)}}, {"b:0"}).starts_with("10: "));  // ABORTED
}

TEST_F(PartialRunTest, ALimitOfTimeEndsTheRun) {
  const std::string handle = Open({"x:0", "w:0"}, {"a:0", "forever:0"});
  EXPECT_EQ(Run(handle, {{"x:0", Number(1)}}, {"a:0"}), "a:0=2 ");
  const std::string late = Run(handle, {{"w:0", Number(1)}}, {"forever:0"}, 200);
  EXPECT_TRUE(late.starts_with("4: ")) << late;  // DEADLINE_EXCEEDED
  EXPECT_TRUE(Run(handle, {}, {}).starts_with(kInvalid));
  EXPECT_TRUE(NothingRuns());
}

TEST_F(PartialRunTest, AClientThatGivesACallUpEndsTheRun) {
  const std::string handle = Open({"x:0", "w:0"}, {"a:0", "forever:0"});
  EXPECT_EQ(Run(handle, {{"x:0", Number(1)}}, {"a:0"}), "a:0=2 ");
  EXPECT_EQ(Run(handle, {{"w:0", Number(1)}}, {"forever:0"}, 0, milliseconds(300)), "call 4");
  EXPECT_TRUE(NothingRuns());
  EXPECT_TRUE(Run(handle, {}, {}).starts_with(kInvalid));
}

TEST_F(PartialRunTest, SoManyMayBeOpen) {
  std::string handle;
  grpc::Status status;
  int open = 0;
  for (; open < 2000 && status.ok(); ++open) status = TryOpen({"x:0"}, {"a:0"}, &handle);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << open;
}

TEST_F(PartialRunTest, AServerEndsWithARunThatWaits) {
  const std::string handle = Open({"x:0", "y:0"}, {"a:0", "b:0"});
  EXPECT_EQ(Run(handle, {{"x:0", Number(1)}}, {"a:0"}), "a:0=2 ");
  const auto begin = steady_clock::now();
  cluster_.Stop("ps", 0);
  cluster_.Stop("worker", 0);
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(30));
}

class IdlePartialRunTest : public PartialRunTest {
 protected:
  static ServerLimits Limits() {
    ServerLimits limits;
    limits.session_timeout = std::chrono::seconds(1);
    return limits;
  }
  IdlePartialRunTest() : PartialRunTest(Limits()) {}
};

TEST_F(IdlePartialRunTest, ARunThatNobodyGoesOnWithDoesNotKeepItsSession) {
  const std::string handle = Open({"x:0", "y:0"}, {"a:0", "b:0"});
  EXPECT_EQ(Run(handle, {{"x:0", Number(1)}}, {"a:0"}), "a:0=2 ");
  EXPECT_TRUE(NothingRuns());
  EXPECT_TRUE(Run(handle, {{"y:0", Number(1)}}, {"b:0"}).starts_with("10: "));
}

}  // namespace
}  // namespace tenon
