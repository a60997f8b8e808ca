// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/build/building.h"

namespace tenon {

struct ReplicaDeviceSetterOptions {
  int ps_tasks = 0;  // 0: everything goes to the worker
  std::string ps_device = "/job:ps";
  std::string worker_device = "/job:worker";

  enum class Strategy {
    kRoundRobin,      // one task after the other, as TensorFlow does
    kBalancedBySize,  // the task with the fewest bytes so far
  };
  Strategy strategy = Strategy::kRoundRobin;
};

/// For between-graph replication (TensorFlow's replica_device_setter): variables go to the tasks of
/// the parameter server job, all other ops to the worker. For DeviceScope; a device
/// given explicitly wins over it, part by part. All replicas must build their variables in the same
/// order, so that they agree on where each is. Not thread-safe.
DeviceFunction ReplicaDeviceSetter(const ReplicaDeviceSetterOptions& options);

}  // namespace tenon
