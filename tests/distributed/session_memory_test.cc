// SPDX-License-Identifier: Apache-2.0
//
// One session must not take the memory of all others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/array/array_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::IsError;
using testing::TestCluster;

constexpr int kFloatsOfAMebibyte = (1 << 20) / 4;

class SessionMemoryTest : public ::testing::Test {
 protected:
  SessionMemoryTest() : cluster_(1, 1, Limits()) { cluster_.StartAll(); }

  static ServerLimits Limits() {
    ServerLimits limits;
    limits.session_memory = 4 << 20;
    return limits;
  }
  std::unique_ptr<Session> MakeSession(const Graph& graph) {
    EXPECT_OK(graph.error());
    auto session = cluster_.at("worker", 0).MakeSession(graph);
    EXPECT_OK(session);
    return *std::move(session);
  }
  std::string Describe(const char* job) { return cluster_.at(job, 0).Describe(); }

  TestCluster cluster_;
};

TEST_F(SessionMemoryTest, AStepThatWantsTooMuchFailsAndLeavesNothing) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const DeviceScope worker("/job:worker/task:0/device:CPU:0");
  const Output n = Placeholder(DType::kInt32, {1}, {.name = "n"});
  Sum(Fill(n, 1.0f, {.name = "fill"}), {0}, {.name = "sum"});
  const auto session = MakeSession(graph);
  const auto sum = [&](int mebibytes) {
    return session->Run({{"n", Tensor::Vector<int32_t>({mebibytes * kFloatsOfAMebibyte})}},
                        {"sum"});
  };
  EXPECT_OK(sum(2));
  EXPECT_THAT(sum(5), IsError(StatusCode::kResourceExhausted, "bytes of at most 4194304"));
  EXPECT_THAT(sum(5), IsError(StatusCode::kResourceExhausted, "fill"));
  EXPECT_OK(sum(2)) << "once the step has ended, its memory is there again";
  EXPECT_THAT(Describe("worker"), HasSubstr(" run, 0.0 MiB\n"));
}

TEST_F(SessionMemoryTest, VariablesCountWhereTheyAreUntilTheyAreGone) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const DeviceScope ps("/job:ps/task:0");
  const Output n = Placeholder(DType::kInt32, {1}, {.name = "n"});
  const Output value = Fill(n, 1.0f);
  for (const char* name : {"v", "w"}) {
    const Output v = VariableV2({3 * kFloatsOfAMebibyte}, DType::kFloat, {.name = name});
    Assign(v, value, {.name = StrCat("init_", name)});
  }
  const auto first = MakeSession(graph), second = MakeSession(graph);
  const auto run = [](Session& session, const char* target) {
    return session.Run({{"n", Tensor::Vector<int32_t>({3 * kFloatsOfAMebibyte})}}, {}, {target});
  };
  EXPECT_OK(run(*first, "init_v"));
  EXPECT_THAT(Describe("ps"), HasSubstr(" run, 3.0 MiB\n"));
  EXPECT_THAT(run(*first, "init_w"),
              IsError(StatusCode::kResourceExhausted, "the session's tensors take"));
  // Another session has a limit of its own, and this one's value takes the place of the first's.
  EXPECT_OK(run(*second, "init_v"));
  EXPECT_OK(run(*first, "init_w"));
  EXPECT_THAT(run(*second, "init_w"),
              IsError(StatusCode::kResourceExhausted, "the session's tensors take"));
}

TEST_F(SessionMemoryTest, ConstantsCountToo) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const DeviceScope ps("/job:ps/task:0");
  Identity(Tensor::Zeros(DType::kFloat, {5 * kFloatsOfAMebibyte}), {.name = "y"});
  const auto session = MakeSession(graph);
  EXPECT_THAT(session->Run({}, {"y"}),
              IsError(StatusCode::kResourceExhausted, "leaves too little"));
}

}  // namespace
}  // namespace tenon
