// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "data/files/file.h"
#include "ops/array/constants.h"
#include "ops/math/operators.h"
#include "ops/queues/queues_ops.h"
#include "ops/register.h"
#include "ops/state/state_ops.h"
#include "tests/testing/ranks.h"
#include "tests/testing/status_matchers.h"
#include "train/allreduce/distributed_optimizer.h"
#include "train/allreduce/rank_hooks.h"
#include "train/optimizers/gradient_accumulation.h"
#include "train/optimizers/gradient_descent.h"
#include "train/saver/saver.h"
#include "train/sessions/monitored_training_session.h"
#include "train/variables.h"

namespace tenon {
namespace {

/// Each step takes one of two data, and counts once it has it.
struct TwoDataGraph {
  Graph graph{AllOps()};
  GraphBuilding building{graph};
  Output queue = FIFOQueueV2({DType::kFloat}, {.name = "queue"});
  Node* fill = QueueEnqueueManyV2(queue, {Ones({2})});
  Node* close = QueueCloseV2(queue);
  Output counter = GlobalStep().ref();
  Node* without_data = AssignAdd(counter, 1).node;
  Node* train = [this] {
    const ControlDependencies taken({QueueDequeueV2(queue, {DType::kFloat})[0]});
    return AssignAdd(counter, 1).node;
  }();
};

TEST(DataEndTest, NoStepIsRunAfterTheEndOfTheData) {
  const std::string folder = ::testing::TempDir() + TemporaryName("data_end");
  TwoDataGraph g;
  auto session = MonitoredTrainingSession::Start({.checkpoint_dir = folder});
  ASSERT_OK(session.status());
  ASSERT_OK((*session)->RunWithoutHooks({}, {}, {g.fill}).status());
  ASSERT_OK((*session)->RunWithoutHooks({}, {}, {g.close}).status());
  const auto step = [&](Node* train) { return (*session)->Run({}, {}, {train}).status(); };
  for (int i = 0; i < 2; ++i) ASSERT_OK(step(g.train));
  EXPECT_FALSE((*session)->ShouldStop());
  EXPECT_EQ(step(g.train).code(), StatusCode::kOutOfRange);
  EXPECT_TRUE((*session)->ShouldStop());
  EXPECT_EQ((*session)->global_step(), 2);
  // A step that would succeed is refused as well.
  for (Node* const train : {g.train, g.train, g.without_data}) {
    EXPECT_THAT(step(train),
                testing::IsError(StatusCode::kFailedPrecondition,
                                 "Run called even after should_stop requested: training ended at "
                                 "step 2; ask ShouldStop before each step"));
  }
  // An evaluation is none.
  const auto counted = (*session)->RunWithoutHooks<int64_t>({}, g.counter);
  ASSERT_OK(counted.status());
  EXPECT_EQ(*counted, 2);
  ASSERT_OK((*session)->Close());
  EXPECT_EQ(*LatestCheckpoint(folder), folder + "/model.ckpt-2");
  std::filesystem::remove_all(folder);
}

/// Rank 1 has fewer data than rank 0, and ends where a step sends no message.
TEST(DataEndTest, NoStepIsRunAfterTheEndOfTheDataOfAnotherRank) {
  const auto ends = testing::RunRanks(2, [&](Communicator& ranks) -> Status {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    const Output queue = FIFOQueueV2({DType::kFloat}, {.name = "queue"});
    Node* const fill = QueueEnqueueManyV2(queue, {Ones({ranks.rank() == 1 ? 3 : 9})});
    Node* const close = QueueCloseV2(queue);
    const Variable w("w", 1.0f);
    GradientDescent descent(0.1);
    DistributedOptimizer distributed(descent);
    GradientAccumulation optimizer(distributed, 2);
    Node* const train = optimizer.Minimize(w.value() * QueueDequeueV2(queue, {DType::kFloat})[0],
                                           {.global_step = GlobalStep()});
    TENON_ASSIGN_OR_RETURN(
        const auto session,
        MonitoredTrainingSession::Start({.hooks = {KeepRanksInStep()}, .communicator = &ranks}));
    TENON_RETURN_IF_ERROR(session->RunWithoutHooks({}, {}, {fill}).status());
    TENON_RETURN_IF_ERROR(session->RunWithoutHooks({}, {}, {close}).status());
    Status end;
    while (end.ok()) end = session->Run({}, {}, {train}).status();
    if (end.code() != StatusCode::kOutOfRange || !session->ShouldStop()) return end;
    for (int i = 0; i < 2; ++i) {
      const Status more = session->Run({}, {}, {train}).status();
      if (!Message(more).starts_with("Run called even after should_stop requested")) {
        return Internal("a step after the end: ", more.ToString());
      }
    }
    // The ranks still do the same.
    TENON_ASSIGN_OR_RETURN(const CollectiveResult sum,
                           ranks.Run({.kind = Collective::Kind::kAllReduce,
                                      .name = "after",
                                      .data = Tensor::Scalar<int64_t>(1)}));
    if (sum.data.scalar<int64_t>() != 2) return Internal("another sum");
    return session->Close();
  });
  for (const Status& end : ends) EXPECT_OK(end);
}

}  // namespace
}  // namespace tenon
