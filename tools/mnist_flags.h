// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/access_flags.h"
#include "train/replica_flags.h"

namespace tenon::tools {

/// What `tenon train mnist` was asked to do.
struct TrainMnistFlags {
  std::string data, logs, checkpoint_dir, curve;
  ClusterFlags cluster;
  ServerAccessFlags access;
  std::string model = "mlp";
  int epochs = 0;  // 0: the model's own number
  int64_t max_steps = 0;
  int64_t batch = 100;
  double learning_rate = 0;  // 0: the model's own
  bool sync = false, allreduce = false;
  std::optional<double> rank_limit = {};  // seconds
  std::string collectives;                // empty: not given
  int backup = 0;
  int shards = 0;
  double save_seconds = 30;
};

}  // namespace tenon::tools
