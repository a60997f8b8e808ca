// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/local_session.h"
#include "tests/testing/simulated_driver.h"

namespace tenon::testing {

inline constexpr char kSimulatedGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";

/// The simulated device that the tests of one process share; values may outlive its sessions.
SimulatedDriver& SharedSimulatedDriver();

/// All ops with the device's kernels (RegisterSimulatedKernels), in a registry that lives as long
/// as the process.
const OpRegistry& SimulatedOps();

/// A session that has, as GPU:0, a simulated device with `driver`; it takes what nothing puts
/// elsewhere. The graph is read into the registry with the device's kernels (SimulatedOps).
StatusOr<std::unique_ptr<Session>> MakeSimulatedSession(
    const Graph& graph, SimulatedDriver& driver = SharedSimulatedDriver(),
    LocalSessionOptions options = {});

}  // namespace tenon::testing
