// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/files/file.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/queues/queues_ops.h"
#include "ops/random/initial_values.h"
#include "ops/register.h"
#include "runtime/session/local_session.h"
#include "tests/testing/ranks.h"
#include "tests/testing/status_matchers.h"
#include "train/allreduce/distributed_optimizer.h"
#include "train/allreduce/rank_hooks.h"
#include "train/allreduce/rank_metrics.h"
#include "train/metrics.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/gradient_accumulation.h"
#include "train/optimizers/gradient_descent.h"
#include "train/sessions/hooks.h"
#include "train/sessions/monitored_training_session.h"
#include "train/variables.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using testing::RunRanks;

/// Examples that every rank can make: the first number of an example is its row of the table.
constexpr int kExamples = 24, kFeatures = 3;

std::vector<float> FeaturesOf(int example) {
  std::vector<float> x;
  for (int f = 0; f < kFeatures; ++f) {
    x.push_back(std::sin(static_cast<float>(example * (f + 2) + f)));
  }
  return x;
}

/// A model with a sparse and three dense gradients, of which the large one travels alone where
/// parcels are small.
struct Model {
  /// `scale` is a factor of the loss.
  explicit Model(Optimizer& optimizer, const Output& scale = Const(1.f)) {
    // The mean over the batch: that of all ranks is the mean of their means.
    loss = LossOf(x, y, rows) * scale;
    train = optimizer.Minimize(loss, {.global_step = GlobalStep()});
  }
  /// The batch has so many equal parts, with losses of their own.
  Model(Optimizer& optimizer, int parts) {
    std::vector<std::vector<GradientAndVariable>> gradients;
    const auto xs = Split(0, x, parts), ys = Split(0, y, parts), all_rows = Split(0, rows, parts);
    std::vector<Output> losses;
    for (size_t i = 0; i < xs.size(); ++i) {
      losses.push_back(LossOf(xs[i], ys[i], all_rows[i]));
      gradients.push_back(optimizer.ComputeGradients(losses.back()));
    }
    loss = AddN(losses);
    train = optimizer.ApplyGradients(MeanOverParts(gradients), {.global_step = GlobalStep()});
  }
  Output LossOf(const Output& some_x, const Output& some_y, const Output& some_rows) const {
    const Output predicted = Sum(MatMul(Tanh(MatMul(some_x, w) + b), v), Const(1)) +
                             Sum(GatherV2(table, some_rows, 0), Const(1));
    return Mean(Square(predicted - some_y));
  }
  Output x = Placeholder(DType::kFloat, PartialShape({-1, kFeatures}), {.name = "x"});
  Output y = Placeholder(DType::kFloat, PartialShape({-1}), {.name = "y"});
  Output rows = Placeholder(DType::kInt32, PartialShape({-1}), {.name = "rows"});
  Variable w{"w", RandomNormal({kFeatures, 16})};
  Variable b{"b", Zeros({16})};
  Variable v{"v", RandomNormal({16, 1})};
  Variable table{"table", RandomNormal({5, 2})};
  Output loss;
  Node* train;
};

/// The examples [begin, end) of a step.
Session::Feeds Batch(int begin, int end) {
  std::vector<float> x, y;
  std::vector<int32_t> rows;
  for (int i = begin; i < end; ++i) {
    for (const float f : FeaturesOf(i)) x.push_back(f);
    y.push_back(std::cos(static_cast<float>(i)));
    rows.push_back(i % 5);
  }
  const int64_t n = end - begin;
  return {{"x", Tensor::Of<float>({n, kFeatures}, absl::MakeConstSpan(x))},
          {"y", Tensor::Vector(y)},
          {"rows", Tensor::Vector(rows)}};
}

struct Trained {
  std::vector<float> losses, values;  // the mean loss of each step, and all variables in the end
};

/// The values of all variables, one after the other.
StatusOr<std::vector<float>> ValuesOf(const Model& model, MonitoredTrainingSession& session) {
  std::vector<float> values;
  for (const Variable* variable : {&model.w, &model.b, &model.v, &model.table}) {
    TENON_ASSIGN_OR_RETURN(const Tensor value,
                           session.RunWithoutHooks<Tensor>({}, variable->value()));
    const auto flat = value.flat<float>();
    values.insert(values.end(), flat.begin(), flat.end());
  }
  return values;
}

/// Trains on a rank, with its part of each batch.
StatusOr<Trained> TrainOn(Communicator& ranks, int steps,
                          const DistributedOptimizerOptions& options, int seed = 1) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  SetRandomSeed(seed);
  Adam adam(0.05);
  DistributedOptimizer optimizer(adam, options);
  const Model model(optimizer);
  TENON_RETURN_IF_ERROR(building.status());
  TENON_ASSIGN_OR_RETURN(const auto session, MonitoredTrainingSession::Start(
                                                 {.hooks = {KeepRanksInStep(), StopAtStep(steps)},
                                                  .communicator = &ranks}));
  const int part = kExamples / ranks.size();
  Trained trained;
  while (!session->ShouldStop()) {
    const int begin = ranks.rank() * part;
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> fetched,
        session->Run(StepFeeds(Batch(begin, begin + part)), {model.loss}, {model.train}));
    TENON_ASSIGN_OR_RETURN(const CollectiveResult sum,
                           ranks.Run({.kind = Collective::Kind::kAllReduce,
                                      .name = "loss",
                                      .data = Tensor::Scalar(fetched[0].scalar<float>())}));
    trained.losses.push_back(sum.data.scalar<float>() / static_cast<float>(ranks.size()));
  }
  TENON_ASSIGN_OR_RETURN(trained.values, ValuesOf(model, *session));
  TENON_RETURN_IF_ERROR(session->Close());
  return trained;
}

std::vector<Trained> TrainRanks(int size, const DistributedOptimizerOptions& options,
                                int steps = 20) {
  std::vector<Trained> all(static_cast<size_t>(size));
  const auto ends = RunRanks(size, [&](Communicator& ranks) -> Status {
    // Each rank begins with values of its own, which are not used.
    TENON_ASSIGN_OR_RETURN(all[static_cast<size_t>(ranks.rank())],
                           TrainOn(ranks, steps, options, 1 + ranks.rank()));
    return OkStatus();
  });
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << end;
  return all;
}

void ExpectNear(const std::vector<float>& found, const std::vector<float>& wanted,
                double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], wanted[i], tolerance * std::max(1.f, std::abs(wanted[i]))) << i;
  }
}

TEST(AllreduceTest, RanksTrainAsOneProcessOnAllTheData) {
  const Trained one = TrainRanks(1, {})[0];
  EXPECT_LT(one.losses.back(), one.losses.front() / 4);
  for (const int size : {2, 3}) {
    for (const int64_t fusion : {int64_t{1}, int64_t{100}, int64_t{1} << 24}) {
      const std::vector<Trained> all = TrainRanks(size, {.fusion_bytes = fusion});
      for (const Trained& rank : all) {
        ASSERT_EQ(rank.values, all[0].values);  // bit for bit
        ExpectNear(rank.losses, one.losses, 1e-5);
        ExpectNear(rank.values, one.values, 2e-4);  // Adam divides by small roots
      }
    }
  }
}

/// Parts of batches are added up in one order, whichever rank has them: bit for bit.
TEST(AllreduceTest, PartsGiveTheSameBitsOnAnyNumberOfRanks) {
  constexpr int kParts = 12, kSteps = 15;
  std::vector<float> wanted;
  for (const int size : {1, 2, 3, 4}) {
    std::vector<std::vector<float>> values(static_cast<size_t>(size));
    const auto ends = RunRanks(size, [&](Communicator& ranks) -> Status {
      Graph graph(AllOps());
      const GraphBuilding building(graph);
      SetRandomSeed(3);
      Adam adam(0.05);
      const Model model(adam, kParts / size);
      TENON_RETURN_IF_ERROR(building.status());
      TENON_ASSIGN_OR_RETURN(
          const auto session,
          MonitoredTrainingSession::Start(
              {.hooks = {KeepRanksInStep(), StopAtStep(kSteps)}, .communicator = &ranks}));
      const int part = kExamples / size;
      while (!session->ShouldStop()) {
        const StepFeeds batch(Batch(ranks.rank() * part, (ranks.rank() + 1) * part));
        TENON_RETURN_IF_ERROR(session->Run(batch, {model.loss}, {model.train}).status());
      }
      TENON_ASSIGN_OR_RETURN(values[static_cast<size_t>(ranks.rank())], ValuesOf(model, *session));
      return session->Close();
    });
    for (const Status& end : ends) EXPECT_TRUE(end.ok()) << size << ": " << end;
    if (size == 1) wanted = values[0];
    for (const auto& own : values) EXPECT_EQ(own, wanted) << size;
  }
}

TEST(AllreduceTest, PartsWithDifferentGradientsAreAMistake) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  const Variable a("a", Zeros({2})), b("b", Zeros({2}));
  GradientDescent descent(0.1);
  MeanOverParts({descent.ComputeGradients(Sum(a)), descent.ComputeGradients(Sum(a * b))});
  EXPECT_THAT(std::string(Message(building.status())),
              HasSubstr("the parts have different gradients of 'b'"));
}

/// The gradients of several batches, with one message for all of them: as one process that has seen
/// all of these at once.
TEST(AllreduceTest, SumsOfSeveralBatchesTravelTogether) {
  constexpr int kSteps = 8;
  std::vector<std::vector<float>> found;
  for (const auto& [size, batches] :
       {std::pair{1, 1}, std::pair{1, 4}, std::pair{2, 2}, std::pair{3, 2}}) {
    std::vector<std::vector<float>> values(static_cast<size_t>(size));
    const auto ends = RunRanks(size, [&](Communicator& ranks) -> Status {
      Graph graph(AllOps());
      const GraphBuilding building(graph);
      SetRandomSeed(ranks.rank() + 1);
      GradientDescent descent(0.1);
      // Small parcels: several collectives in the branch that applies the sums.
      DistributedOptimizer distributed(descent, {.fusion_bytes = 100});
      GradientAccumulation optimizer(distributed, batches);
      const Model model(optimizer);
      TENON_RETURN_IF_ERROR(building.status());
      TENON_ASSIGN_OR_RETURN(
          const auto session,
          MonitoredTrainingSession::Start(
              {.hooks = {KeepRanksInStep(), StopAtStep(kSteps)}, .communicator = &ranks}));
      const int part = kExamples / size / batches;
      for (int made = 0; !session->ShouldStop(); ++made) {
        const int begin = (ranks.rank() * batches + made % batches) * part;
        TENON_RETURN_IF_ERROR(
            session->Run(StepFeeds(Batch(begin, begin + part)), {model.loss}, {model.train})
                .status());
      }
      TENON_ASSIGN_OR_RETURN(values[static_cast<size_t>(ranks.rank())], ValuesOf(model, *session));
      return session->Close();
    });
    for (const Status& end : ends) EXPECT_TRUE(end.ok()) << size << ": " << end;
    for (const auto& own : values) EXPECT_EQ(own, values[0]);
    found.push_back(values[0]);
    ExpectNear(found.back(), found.front(), 2e-6);
  }
}

TEST(AllreduceTest, TheSameTwice) {
  const std::vector<Trained> first = TrainRanks(3, {}), second = TrainRanks(3, {});
  EXPECT_EQ(first[0].values, second[0].values);
}

TEST(AllreduceTest, RoundedOnTheWay) {
  const Trained one = TrainRanks(1, {})[0];
  for (const DType wire : {DType::kHalf, DType::kBFloat16}) {
    const std::vector<Trained> all = TrainRanks(2, {.wire = wire});
    EXPECT_EQ(all[0].values, all[1].values);
    ExpectNear(all[0].losses, one.losses, 0.05);
    EXPECT_NE(all[0].values, one.values);
  }
}

TEST(AllreduceTest, AnotherTypeOnTheWayIsAMistake) {
  Graph graph(AllOps());
  const GraphBuilding building(graph);
  GradientDescent descent(0.1);
  DistributedOptimizer optimizer(descent, {.wire = DType::kInt8});
  const Model model(optimizer);
  EXPECT_THAT(std::string(Message(building.status())),
              HasSubstr("wire must be half or bfloat16, found int8"));
}

/// A signal that one rank gets ends all of them after the same step.
TEST(AllreduceTest, ASignalEndsAllAfterTheSameStep) {
  std::vector<int64_t> steps(2, -1);
  const auto ends = RunRanks(2, [&](Communicator& ranks) -> Status {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    GradientDescent descent(0.01);
    DistributedOptimizer optimizer(descent);
    const Model model(optimizer);
    TENON_ASSIGN_OR_RETURN(
        const auto session,
        MonitoredTrainingSession::Start({.hooks = {KeepRanksInStep()}, .communicator = &ranks}));
    for (int i = 0; !session->ShouldStop(); ++i) {
      if (i == 5 && ranks.rank() == 1) std::raise(SIGTERM);
      TENON_RETURN_IF_ERROR(
          session->Run(StepFeeds(Batch(0, 4)), {model.loss}, {model.train}).status());
    }
    TENON_RETURN_IF_ERROR(session->Close());
    steps[static_cast<size_t>(ranks.rank())] = session->global_step();
    return OkStatus();
  });
  for (const Status& end : ends) EXPECT_TRUE(end.ok()) << end;
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_GE(steps[0], 5);
}

int BatchesOf(int rank) { return rank == 1 ? 4 : 7 + rank; }

/// A training of so many ranks that makes steps until the data of the rank with the fewest end,
/// which is said by `next` or by a queue in the graph; all end with the same step and the same
/// values, and can add up after it.
void TestUnevenData(bool in_graph,
                    const std::function<Status(MonitoredTrainingSession& session,
                                               const Model& model, int rank, int made)>& next) {
  for (const int size : {1, 3}) {
    std::vector<int64_t> steps(static_cast<size_t>(size), -1);
    std::vector<Tensor> values(static_cast<size_t>(size));
    const auto ends = RunRanks(size, [&](Communicator& ranks) -> Status {
      Graph graph(AllOps());
      const GraphBuilding building(graph);
      const Output queue = FIFOQueueV2({DType::kFloat}, {.name = "queue"});
      Node* const fill =
          QueueEnqueueManyV2(queue, {Ones({in_graph ? BatchesOf(ranks.rank()) : 99})});
      Node* const close = QueueCloseV2(queue);
      Adam adam(0.01);
      DistributedOptimizer optimizer(adam);
      const Model model(optimizer, QueueDequeueV2(queue, {DType::kFloat})[0]);
      TENON_ASSIGN_OR_RETURN(
          const auto session,
          MonitoredTrainingSession::Start({.hooks = {KeepRanksInStep()}, .communicator = &ranks}));
      TENON_RETURN_IF_ERROR(session->RunWithoutHooks({}, {}, {fill}).status());
      TENON_RETURN_IF_ERROR(session->RunWithoutHooks({}, {}, {close}).status());
      for (int made = 0; !session->ShouldStop(); ++made) {
        const Status end = next(*session, model, ranks.rank(), made);
        if (end.code() == StatusCode::kOutOfRange) break;
        TENON_RETURN_IF_ERROR(end);
      }
      const auto own = static_cast<size_t>(ranks.rank());
      TENON_ASSIGN_OR_RETURN(values[own], session->RunWithoutHooks<Tensor>({}, model.w.value()));
      TENON_RETURN_IF_ERROR(session->Close());
      steps[own] = session->global_step();
      TENON_ASSIGN_OR_RETURN(const CollectiveResult sum,
                             ranks.Run({.kind = Collective::Kind::kAllReduce,
                                        .name = "after",
                                        .data = Tensor::Scalar<int64_t>(1)}));
      return sum.data.scalar<int64_t>() == size ? OkStatus() : Internal("another sum");
    });
    for (const Status& end : ends) EXPECT_TRUE(end.ok()) << size << ": " << end;
    // Rank 1 has the fewest.
    EXPECT_EQ(steps, std::vector<int64_t>(static_cast<size_t>(size), size == 1 ? 7 : 4));
    for (const Tensor& value : values) EXPECT_TRUE(value.Equals(values[0]));
  }
}

/// The loop over the data of each rank is left where they end.
TEST(AllreduceTest, TheFirstRankThatLeavesItsLoopEndsTheStepsOfAll) {
  TestUnevenData(false, [](auto& session, const Model& model, int rank, int made) -> Status {
    if (made == BatchesOf(rank)) return OutOfRange("no more batches");
    return session.Run(StepFeeds(Batch(0, 4)), {model.loss}, {model.train}).status();
  });
}

/// A rank asks for the end, and its loop asks the session.
TEST(AllreduceTest, AStopThatOneRankRequestsEndsTheStepsOfAll) {
  TestUnevenData(false, [](auto& session, const Model& model, int rank, int made) -> Status {
    TENON_RETURN_IF_ERROR(
        session.Run(StepFeeds(Batch(0, 4)), {model.loss}, {model.train}).status());
    if (made + 1 == BatchesOf(rank)) session.RequestStop();
    return OkStatus();
  });
}

/// The data come from the graph, whose node is OutOfRange at their end.
TEST(AllreduceTest, TheEndOfDataInTheGraphEndsTheStepsOfAll) {
  TestUnevenData(true, [](auto& session, const Model& model, int, int) -> Status {
    return session.Run(StepFeeds(Batch(0, 4)), {model.loss}, {model.train}).status();
  });
}

/// Each rank counts its part; the metrics of all are those of one process that has seen everything.
TEST(AllreduceTest, MetricsAreThoseOfAllRanks) {
  std::vector<float> wanted;
  for (const int size : {1, 3}) {
    const auto ends = RunRanks(size, [&](Communicator& ranks) -> Status {
      Graph graph(AllOps());
      const GraphBuilding building(graph);
      const Output labels = Placeholder(DType::kFloat, PartialShape({-1}), {.name = "labels"});
      const Output scores = Placeholder(DType::kFloat, PartialShape({-1}), {.name = "scores"});
      const Metric mean = metrics::Mean(scores), auc = metrics::Auc(labels, scores);
      const Metric error = metrics::RootMeanSquaredError(labels, scores);
      Node* const together = SumMetricsOverRanks();
      TENON_ASSIGN_OR_RETURN(const auto session,
                             MonitoredTrainingSession::Start({.communicator = &ranks}));
      // Example i is one of rank i % size, in batches of different lengths.
      std::vector<float> y, s;
      for (int i = ranks.rank(); i < kExamples; i += size) {
        y.push_back(i % 5 < 2 ? 1.f : 0.f);
        s.push_back(0.5f + 0.3f * std::sin(static_cast<float>(i)) + 0.1f * y.back());
        if (static_cast<int>(y.size()) <= ranks.rank() && i + size < kExamples) continue;
        TENON_RETURN_IF_ERROR(
            session
                ->RunWithoutHooks({{labels, Tensor::Vector(y)}, {scores, Tensor::Vector(s)}},
                                  {mean.update, auc.update, error.update})
                .status());
        y.clear();
        s.clear();
      }
      TENON_RETURN_IF_ERROR(session->RunWithoutHooks({}, {}, {together}).status());
      TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                             session->RunWithoutHooks({}, {mean.value, auc.value, error.value}));
      std::vector<float> found;
      for (const Tensor& value : values) found.push_back(value.scalar<float>());
      if (size == 1) wanted = found;
      for (size_t i = 0; i < found.size(); ++i) {
        if (std::abs(found[i] - wanted[i]) > 1e-6f) return Internal(found[i], " for ", wanted[i]);
      }
      return session->Close();
    });
    for (const Status& end : ends) EXPECT_TRUE(end.ok()) << size << ": " << end;
  }
}

/// Rank 0 alone writes, and another number of ranks goes on from there.
TEST(AllreduceTest, AnotherNumberOfRanksGoesOn) {
  const std::string folder = ::testing::TempDir() + TemporaryName("allreduce");
  int64_t done = 0;
  // The last ones find that there is nothing left to do.
  for (const auto& [size, last] :
       {std::pair{2, 10}, std::pair{3, 15}, std::pair{1, 20}, std::pair{2, 20}}) {
    const auto ends = RunRanks(size, [&](Communicator& ranks) -> Status {
      Graph graph(AllOps());
      const GraphBuilding building(graph);
      GradientDescent descent(0.01);
      DistributedOptimizer optimizer(descent);
      const Model model(optimizer);
      TENON_ASSIGN_OR_RETURN(
          const auto session,
          MonitoredTrainingSession::Start({.checkpoint_dir = ranks.rank() == 0 ? folder : "",
                                           .hooks = {KeepRanksInStep(), StopAtStep(last)},
                                           .communicator = &ranks}));
      if (session->global_step() != done) return Internal("began at ", session->global_step());
      int64_t steps = 0;
      for (; !session->ShouldStop(); ++steps) {
        TENON_RETURN_IF_ERROR(
            session->Run(StepFeeds(Batch(0, 4)), {model.loss}, {model.train}).status());
      }
      TENON_RETURN_IF_ERROR(session->Close());
      return steps == last - done ? OkStatus() : Internal("made ", steps, " steps");
    });
    done = last;
    for (const Status& end : ends) EXPECT_TRUE(end.ok()) << size << ": " << end;
  }
  std::filesystem::remove_all(folder);
}

/// A rank that fails ends the others with an error, which are not run again.
TEST(AllreduceTest, ARankThatFailsEndsTheOthers) {
  Clock::Time failed;
  const auto ends = RunRanks(2, [&](Communicator& ranks) -> Status {
    Graph graph(AllOps());
    const GraphBuilding building(graph);
    GradientDescent descent(0.01);
    DistributedOptimizer optimizer(descent);
    const Model model(optimizer);
    TENON_ASSIGN_OR_RETURN(
        const auto session,
        MonitoredTrainingSession::Start({.hooks = {KeepRanksInStep()}, .communicator = &ranks}));
    for (int i = 0;; ++i) {
      if (i == 3 && ranks.rank() == 1) {
        failed = MachineClock().Now();
        return OutOfRange("no more data");
      }
      TENON_RETURN_IF_ERROR(
          session->Run(StepFeeds(Batch(0, 4)), {model.loss}, {model.train}).status());
    }
  });
  EXPECT_EQ(Message(ends[1]), "no more data");
  EXPECT_THAT(std::string(Message(ends[0])), HasSubstr("rank 1"));
  // The limit after which rank 0 would end by itself is 30 s.
  EXPECT_LT(MachineClock().Now() - failed, std::chrono::seconds(20));
}

}  // namespace
}  // namespace tenon
