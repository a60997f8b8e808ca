// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"

namespace tenon::testing {

/// Gives every op of `ops` that has a CPU kernel and none for devices with memory of their own one
/// for the device of a SimulatedDriver: it queues work that runs the CPU kernel on the device's
/// memory. Where the shape function gives the shapes of the outputs, it returns before that has
/// run, as a CUDA kernel does; and it writes into the memory of an input that nobody else needs now
/// and then. Ops on queues, datasets and other objects of the host run there.
void RegisterSimulatedKernels(OpRegistry& ops);

}  // namespace tenon::testing
