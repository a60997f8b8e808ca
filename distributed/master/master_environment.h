// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/entropy.h"
#include "core/device/device.h"
#include "core/op/op_registry.h"
#include "distributed/master/step_ids.h"
#include "distributed/protocol/cluster_spec.h"
#include "distributed/protocol/limits.h"
#include "distributed/protocol/worker_interface.h"
#include "proto/cluster.pb.h"

namespace tenon {

/// What a master is made of. Everything outlives it.
struct MasterEnvironment {
  std::string task;  // its own
  ClusterSpec cluster;
  std::vector<Device*> devices;  // of its own task; the first is a CPU
  const OpRegistry* registry = nullptr;
  WorkerDirectory* workers = nullptr;
  Clock* clock = nullptr;
  Entropy* entropy = nullptr;
  /// How long a session waits for the tasks it needs to answer for the first time.
  std::chrono::milliseconds start_up_deadline{60000};
  /// Gets a line for people when something is waited for; may be null.
  std::function<void(const std::string& line)> notice;
  ServerLimits limits;
  /// For sessions that bring a cluster of their own; null: there are none.
  SessionDirectories session_directories = nullptr;
  /// Called whenever idle sessions are looked for; may be null.
  std::function<void()> on_sweep;
  /// Why the task has no GPU, in one line; empty when it has one.
  std::string why_no_gpu = {};

  /// What the workers know the master by, to notice that it has restarted: its task, or in a
  /// session with a cluster of its own, where that is only the session's name for it, its address.
  std::string identity = task;
  /// The cluster of a session that brings its own, for the workers, and the owner of `workers`
  /// then.
  std::optional<ClusterDef> session_cluster = {};
  std::shared_ptr<WorkerDirectory> session_workers = nullptr;
  /// One for all sessions of the master, which makes it.
  std::shared_ptr<StepIds> step_ids = nullptr;
};

}  // namespace tenon
