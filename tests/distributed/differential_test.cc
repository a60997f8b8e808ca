// SPDX-License-Identifier: Apache-2.0
//
// Random graphs give the same on two workers as in this process, however these exchange tensors. A
// failure prints the seed; TENON_SEED=<seed> runs that graph alone.
#include <gtest/gtest.h>

#include "core/base/sanitizers.h"
#include "distributed/client/remote_session.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/host_memory.h"
#include "tests/testing/random_graph.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"

namespace tenon {
namespace {

using testing::Difference;
using testing::MakeRandomGraph;
using testing::StepResults;
using testing::StepWay;

constexpr int kGraphs = kSanitized ? 12 : 120;

std::string TestSeed(uint64_t seed, testing::TestCluster& cluster) {
  auto random = MakeRandomGraph(seed);
  if (!random.ok()) return random.status().ToString();
  LocalSessionOptions options;
  options.threads = 1;
  options.passes.enabled = false;
  auto local = MakeLocalSession(random->graph, options);
  if (!local.ok()) return local.status().ToString();
  const StepResults wanted = RunSteps(random->steps, **local);

  testing::AssignRandomDevices(&random->graph, seed, {"/job:worker/task:0", "/job:worker/task:1"});
  Server& server = cluster.at("worker", static_cast<int>(seed % 2));
  // In turn as a client of its own and as the worker whose program it is, whole and in parts, by
  // each way.
  auto session = testing::MakeSessionInParts(
      random->graph, seed % 2 == 0 ? 4 : 1, AllOps(), [&](const Graph& part) {
        return seed % 3 == 0 ? server.MakeSession(part) : MakeRemoteSession(server.target(), part);
      });
  if (!session.ok()) return session.status().ToString();
  const StepWay way = seed % 4 == 0   ? StepWay::kTraced
                      : seed % 4 == 1 ? StepWay::kAsync
                                      : StepWay::kRun;
  return Difference(random->steps, RunSteps(random->steps, **session, way), wanted);
}

/// On two workers that copy tensors above so many bytes out of each other's memory ("off": none).
void TestGraphs(const char* host_memory) {
  const testing::HostMemory limit(host_memory);
  testing::TestCluster cluster(0, 2);
  cluster.StartAll();
  int failures = 0;
  for (const uint64_t seed : testing::SeedsToTest(kGraphs)) {
    const std::string difference = TestSeed(seed, cluster);
    if (difference.empty()) continue;
    ADD_FAILURE() << "TENON_SEED=" << seed << ": " << difference;
    if (++failures == 5) FAIL() << "and perhaps more";
  }
}

TEST(DifferentialTest, RandomGraphsGiveTheSameOnTwoWorkers) { TestGraphs("off"); }
TEST(DifferentialTest, RandomGraphsGiveTheSameWhereAllTensorsAreCopied) { TestGraphs("0"); }

}  // namespace
}  // namespace tenon
