// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/base/file_access.h"
#include "core/device/device.h"
#include "runtime/device/device_options.h"
#include "runtime/device/machine_clock.h"
#include "runtime/passes/pass.h"
#include "runtime/session/session.h"

namespace tenon {

struct LocalSessionOptions {
  /// Threads that run kernels, the caller's among them; 0: the process's thread budget.
  int threads = 0;
  /// Without devices.gpus, the GPUs that there are, or none where there are other_devices.
  DeviceOptions devices = {};
  /// Devices of the same task besides; their resources must be those below.
  std::vector<std::shared_ptr<Device>> other_devices = {};
  /// Where variables and queues live. Null: in a store of the session's own.
  std::shared_ptr<ResourceStore> resources = {};
  bool allow_soft_placement = false;
  /// Which files the graph may read and write.
  FileAccess files = {};
  PassOptions passes = {};
  /// The clock by which limits of its steps are measured; must outlive it.
  Clock* clock = &MachineClock();
  /// The ranks that collective ops speak to; must outlive it. Null: the process is none. One step
  /// at a time may have collectives, and on all ranks the same one.
  Communicator* communicator = nullptr;
};

/// A session in this process, on devices /job:localhost/replica:0/task:0/device:CPU:0 and up, and
/// .../device:GPU:0 and up. The graph is copied; its registry must outlive the session.
StatusOr<std::unique_ptr<Session>> MakeLocalSession(const Graph& graph,
                                                    const LocalSessionOptions& options = {});

}  // namespace tenon
