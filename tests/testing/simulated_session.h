// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/session/local_session.h"
#include "tests/testing/simulated_driver.h"

namespace tenon::testing {

/// The simulated devices that the tests of one process share; values may outlive their sessions.
SimulatedDriver& SharedSimulatedDriver(int index = 0);

/// All ops with the device's kernels (RegisterSimulatedKernels), in a registry that lives as long
/// as the process.
const OpRegistry& SimulatedOps();

/// A session that has the shared simulated devices as GPU:0 and GPU:1; the first takes what nothing
/// puts elsewhere. The graph is read into the registry with their kernels (SimulatedOps).
StatusOr<std::unique_ptr<Session>> MakeSimulatedSession(const Graph& graph,
                                                        LocalSessionOptions options = {});

}  // namespace tenon::testing
