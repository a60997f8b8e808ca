// SPDX-License-Identifier: Apache-2.0
//
// Sessions that bring a cluster of their own (ConfigProto's cluster_def).
#include <gtest/gtest.h>

#include "core/proto/proto_io_graph.h"
#include "distributed/protocol/proto_io_cluster.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "proto/master.pb.h"
#include "tests/distributed/raw_client.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using testing::RawCaller;
using testing::TestCluster;

const std::string kMasterPath = "/tensorflow.MasterService/";

class SessionClustersTest : public ::testing::Test {
 protected:
  SessionClustersTest() : cluster_(1, 1), caller_((cluster_.StartAll(), master())) {}

  std::string master() { return cluster_.at("worker", 0).target(); }
  std::string Address(const std::string& job) { return *cluster_.spec().Address(job, 0); }

  /// Opens a session with that cluster; empty when it is refused, which error_ has then.
  std::string Open(const ClusterSpec& cluster, const std::string& device) {
    Graph graph(AllOps());
    GraphBuilding building(graph);
    {
      const DeviceScope at(device);
      const Output v = VariableV2({}, DType::kFloat, {.name = "v"});
      Assign(v, 1.0f, {.name = "init"});
      AssignAdd(v, 1.0f, {.name = "add"});
    }
    EXPECT_OK(graph.error());
    CreateSessionRequest create;
    EXPECT_OK(GraphToProto(graph, create.mutable_graph_def()));
    create.set_target(master());
    *create.mutable_config()->mutable_cluster_def() = ClusterToProto(cluster);
    CreateSessionResponse session;
    error_ = caller_.Call(kMasterPath + "CreateSession", create, &session);
    return session.session_handle();
  }
  int Run(const std::string& session, const std::string& target) {
    RunStepRequest request;
    request.set_session_handle(session);
    request.add_target(target);
    request.set_store_errors_in_response_body(true);
    RunStepResponse response;
    EXPECT_TRUE(caller_.Call(kMasterPath + "RunStep", request, &response).ok());
    return response.status_code();
  }
  void Close(const std::string& session) {
    CloseSessionRequest request;
    request.set_session_handle(session);
    CloseSessionResponse response;
    EXPECT_TRUE(caller_.Call(kMasterPath + "CloseSession", request, &response).ok());
  }

  TestCluster cluster_;
  RawCaller caller_;
  grpc::Status error_;
};

ClusterSpec Cluster(const std::string& text) { return *ClusterSpec::Parse(text); }

TEST_F(SessionClustersTest, TasksHaveTheSessionsNamesAndAStateOfItsOwn) {
  const ClusterSpec cluster =
      Cluster(StrCat("main=[3]", Address("worker"), ";store=[5]", Address("ps")));
  const std::string first = Open(cluster, "/job:store/task:5"),
                    second = Open(cluster, "/job:store/task:5");
  ASSERT_TRUE(error_.ok()) << error_.error_message();
  for (const char* target : {"init", "add", "add"}) EXPECT_EQ(Run(first, target), 0);
  EXPECT_EQ(Run(second, "add"), 9);  // FAILED_PRECONDITION: it is not initialised there
  Close(first);
  Close(second);
}

TEST_F(SessionClustersTest, ATaskMayHaveTheNameOfAnotherServersTask) {
  const std::string session =
      Open(Cluster(StrCat("ps=", Address("worker"), ";worker=", Address("ps"))), "/job:worker");
  ASSERT_TRUE(error_.ok()) << error_.error_message();
  EXPECT_EQ(Run(session, "init"), 0);
  Close(session);
}

TEST_F(SessionClustersTest, AClusterWithoutTheMasterIsRefused) {
  Open(Cluster(StrCat("store=", Address("ps"))), "/job:store");
  EXPECT_EQ(error_.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(error_.error_message().find("has no task at its master's address"), std::string::npos);
}

TEST_F(SessionClustersTest, SoManyClustersMayBeUsedAtOnceAndTheOthersAreForgotten) {
  std::vector<std::string> open;
  const auto cluster = [&](int i) { return Cluster(StrCat("main=[", i, "]", Address("worker"))); };
  for (int i = 0; i < 100; ++i) {
    const std::string session = Open(cluster(i), "/job:main");
    ASSERT_TRUE(error_.ok()) << error_.error_message();
    Close(session);
  }
  for (int i = 0; i < 100 && error_.ok(); ++i) open.push_back(Open(cluster(i), "/job:main"));
  EXPECT_EQ(error_.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << error_.error_message();
  EXPECT_EQ(open.size(), 65u);
  EXPECT_EQ(Run(open[0], "init"), 0);
}

TEST(SessionClustersOfSecuredServersTest, OnlyTheServersOwnAddressesAreCalled) {
  ServerOptions options;
  options.credentials.token = "secret";
  const auto server = Server::Start(options, AllOps());
  ASSERT_OK(server);
  RawCaller caller((*server)->target(), "secret");
  CreateSessionRequest create;
  create.set_target((*server)->target());
  *create.mutable_config()->mutable_cluster_def() =
      ClusterToProto(Cluster(StrCat("main=127.0.0.1:", (*server)->port(), ";thief=127.0.0.1:1")));
  CreateSessionResponse session;
  EXPECT_EQ(caller.Call(kMasterPath + "CreateSession", create, &session).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace tenon
