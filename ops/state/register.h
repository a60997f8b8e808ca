// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of state.ops do.
void RegisterStateOps(OpRegistry& ops);

// By file.
void RegisterScatterUpdateOps(OpRegistry& ops);
void RegisterResourceVariableOps(OpRegistry& ops);
void RegisterVariableOps(OpRegistry& ops);

}  // namespace tenon
