// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/build/building.h"
#include "core/build/slicing.h"
#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/nn/nn_ops.h"
#include "tests/testing/test_cluster.h"
#include "train/sync/sync_replicas.h"
#include "train/variables.h"

// A small synchronous training, as its tests run it over servers of this process and real gRPC.

namespace tenon::testing {

constexpr int kSyncRows = 6, kSyncInputs = 3;

/// Rows that depend on nothing but these numbers.
Tensor RowsOf(int64_t step, int64_t shard);

/// A small network, with a table of which few rows are used.
struct SyncModel {
  Variable w1{"w1", Const({{0.1, -0.2, 0.3, 0.5}, {0.4, 0.5, -0.6, -0.1}, {-0.7, 0.8, 0.9, 0.2}},
                          {.dtype = DType::kFloat})};
  Variable w2{"w2", Const({{0.3}, {-0.2}, {0.7}, {0.1}}, {.dtype = DType::kFloat})};
  Variable table{"table", Zeros({50, 1})};
  Output x = Placeholder(DType::kFloat, {kSyncRows, kSyncInputs}, {.name = "x"});
  Output rows = Cast(Abs(x[{{}, 0}]) * 40, DType::kInt32);
  Output loss = Mean(Square(MatMul(Tanh(MatMul(x, w1)), w2) + GatherV2(table, rows, 0) -
                            Sum(x, {1}, {.keep_dims = true})));
};

/// What one worker has seen.
struct SyncOutcome {
  Status status;
  std::map<std::pair<int64_t, int64_t>, float> losses;  // by step and shard
  std::vector<float> weights;
  int64_t steps = 0;         // that this worker took part in
  std::set<int64_t> epochs;  // of its turns
};

struct SyncTraining {
  /// Adam, or gradient descent, with a rate of 0.05.
  bool adam = false;
  SyncReplicasOptions sync;
  int64_t steps = 12;
  /// Worker i ends after so many steps of its own; 0: does not.
  std::map<int, int64_t> leave_after = {};
  std::map<int, std::chrono::milliseconds> delay = {};
  /// The chief fails after so many steps of its own; 0: does not.
  int64_t chief_fails_after = 0;
  /// All workers compute the gradients of the same rows.
  bool same_rows = false;
  std::string checkpoint_dir = {};
  /// Called by the chief before each step.
  std::function<void(int64_t step)> before_step = {};
};

/// Worker `task` of the training, on that server, or alone in this process when null.
SyncOutcome RunWorker(const SyncTraining& training, int task, Server* server);
/// All workers of the training, on a thread each.
std::vector<SyncOutcome> TrainOn(const SyncTraining& training, TestCluster& cluster);
/// The same on a new cluster with so many parameter servers.
std::vector<SyncOutcome> Train(const SyncTraining& training, int num_ps);
/// What one process gets that computes the shards in turn and adds up their gradients itself.
SyncOutcome InTurn(int64_t steps, int shards, bool adam);

}  // namespace tenon::testing
