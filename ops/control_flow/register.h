// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of control_flow.ops do.
void RegisterControlFlowOps(OpRegistry& ops);

// By file.
void RegisterArgOps(OpRegistry& ops);
void RegisterControlFlowKernels(OpRegistry& ops);
void RegisterSendRecvOps(OpRegistry& ops);

}  // namespace tenon
