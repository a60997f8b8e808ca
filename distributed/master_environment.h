// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/op_registry.h"
#include "distributed/clock.h"
#include "distributed/cluster_spec.h"
#include "distributed/limits.h"
#include "distributed/worker_interface.h"

namespace tenon {

/// What a master is made of. Everything outlives it.
struct MasterEnvironment {
  std::string task;  // its own
  ClusterSpec cluster;
  std::vector<Device*> devices;  // of its own task; the first is a CPU
  const OpRegistry* registry = nullptr;
  WorkerDirectory* workers = nullptr;
  Clock* clock = nullptr;
  /// How long a session waits for the tasks it needs to answer for the first time.
  std::chrono::milliseconds start_up_deadline{60000};
  /// Gets a line for people when something is waited for; may be null.
  std::function<void(const std::string& line)> notice;
  ServerLimits limits;
  /// Called whenever idle sessions are looked for; may be null.
  std::function<void()> on_sweep;
};

}  // namespace tenon
