// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "distributed/client/remote_session.h"
#include "ops/register.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon::testing {

/// Base of tests of sessions on a cluster: the cluster, a graph that the test builds, and a session
/// of it.
class ClusterFixture : public ::testing::Test {
 protected:
  /// Makes the cluster; none of its tasks runs yet.
  void MakeCluster(int num_ps, int num_workers, const ServerLimits& limits = {}) {
    cluster_.emplace(num_ps, num_workers, limits);
  }
  /// Makes the cluster and starts all tasks.
  void StartCluster(int num_ps, int num_workers, const ServerLimits& limits = {}) {
    MakeCluster(num_ps, num_workers, limits);
    cluster_->StartAll();
  }
  Server& ps(int task = 0) { return cluster_->at("ps", task); }
  Server& worker(int task = 0) { return cluster_->at("worker", task); }

  /// A session of the graph, as a client of `server` has it.
  std::unique_ptr<Session> Connect(const Server& server) {
    EXPECT_OK(graph_.error());
    auto session = MakeRemoteSession(server.target(), graph_);
    EXPECT_OK(session);
    return *std::move(session);
  }
  /// Makes it the session of the test.
  void Open(const Server& server) { session_ = Connect(server); }

  std::optional<TestCluster> cluster_;
  Graph graph_{AllOps()};
  GraphBuilding building_{graph_};
  std::unique_ptr<Session> session_;
};

}  // namespace tenon::testing
