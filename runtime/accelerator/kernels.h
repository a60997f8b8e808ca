// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"

namespace tenon {

/// Adds, for devices of that kind, the kernels that every device with memory of its own has:
/// constants, and the copies and transfers that AddMemoryCopies puts into its part of a graph.
void RegisterAcceleratorKernels(OpRegistry& ops, DeviceKind kind);

}  // namespace tenon
