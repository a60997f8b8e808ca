// SPDX-License-Identifier: Apache-2.0
// Layers whose variables are on parameter servers: networks give there what they give in one
// process, and tables in parts stay where they are.
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/test_cluster.h"
#include "tests/train/finite_differences.h"
#include "train/layers/dense.h"
#include "train/layers/embedding.h"
#include "train/layers/normalization.h"
#include "train/layers/rnn.h"
#include "train/replica_device_setter.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

/// Words of sentences, looked up in a table of three parts, through an LSTM and a normalization;
/// its initial values depend on seeds only.
struct Sentences {
  Output loss;
  Output init, train;

  Sentences() {
    SetRandomSeed(5);
    const Output ids = Const({{1, 7, 3, 0}, {9, 2, 2, 7}});
    const Output lengths = Const({4, 2});
    const Initializer draws = RandomUniformInitializer(-0.8, 0.8, {.seed = 3});
    const Output words = Embedding(10, 3, {.partitions = 3, .embeddings_initializer = draws})(ids);
    const RnnResult r =
        DynamicRnn(LstmCell(4, {.initializer = draws}), words, {.sequence_length = lengths});
    const Output h = BatchNormalization()(r.outputs, true);
    loss = Mean(Square(Dense(2, {.kernel_initializer = draws})(h) - 0.5));
    std::vector<VariableEntry> trained;
    std::vector<Output> refs;
    for (const VariableEntry& v : CurrentBuilding().graph->variables()) {
      if (!v.trainable) continue;
      trained.push_back(v);
      refs.emplace_back(v.ref);
    }
    const std::vector<Output> gradients = Gradients(loss, refs);
    std::vector<Output> updates = UpdateOps(), all = gradients;
    all.push_back(loss);
    {
      const ControlDependencies first(all);
      for (size_t i = 0; i < trained.size(); ++i) {
        const ColocateWith beside(refs[i]);
        updates.emplace_back(ChangeVariable(trained[i], "AssignSub", gradients[i] * 0.1));
      }
    }
    init = GlobalVariablesInitializer();
    const ControlDependencies after(updates);
    train = NoOp({.name = "train"});
  }

  /// The losses of a few steps of training.
  std::vector<float> Train(Session& session) const {
    std::vector<float> losses;
    EXPECT_OK(session.Run({}, {}, {init}).status());
    for (int i = 0; i < 5; ++i) {
      const auto step = session.Run({}, {loss}, {train});
      EXPECT_OK(step.status());
      if (!step.ok()) break;
      losses.push_back((*step)[0].scalar<float>());
    }
    return losses;
  }
};

TEST(LayersOnServersTest, ANetworkWithVariablesOnServersTrainsAsInOneProcess) {
  std::vector<float> wanted;
  {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Sentences model;
    auto session = MakeLocalSession(graph);
    ASSERT_OK(session.status());
    wanted = model.Train(**session);
  }
  ASSERT_EQ(wanted.size(), 5);
  EXPECT_LT(wanted[4], wanted[0]);
  TestCluster cluster(2, 1);
  cluster.StartAll();
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  std::optional<Sentences> model;
  {
    const DeviceScope devices(
        ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:0"}));
    model.emplace();
  }
  ASSERT_OK(building.status());
  auto session = cluster.at("worker", 0).MakeSession(graph);
  ASSERT_OK(session.status());
  const std::vector<float> found = model->Train(**session);
  ASSERT_EQ(found.size(), 5);
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5);
}

TEST(LayersOnServersTest, PartsOfATableAreSpreadAndGatheredWhereTheyAre) {
  GraphSession s;
  const DeviceScope devices(
      ReplicaDeviceSetter({.ps_tasks = 2, .worker_device = "/job:worker/task:0"}));
  const PartitionedVariable table("table", {9, 2}, 3);
  const Output rows = EmbeddingLookup(table, {1, 5});
  std::vector<std::string> variables, gathers;
  for (const Node* node : s.graph.nodes()) {
    if (node->op() == "VariableV2") variables.push_back(node->requested_device());
    if (node->op() == "GatherV2") gathers.push_back(node->requested_device());
  }
  EXPECT_THAT(variables, ElementsAre("/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"));
  EXPECT_EQ(gathers, variables);
  EXPECT_EQ(rows.node->requested_device(), "/job:worker/task:0");
}

}  // namespace
}  // namespace tenon::testing
