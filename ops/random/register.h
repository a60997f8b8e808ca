// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of random.ops do.
void RegisterRandomOps(OpRegistry& ops);

// By file.
void RegisterRandomKernels(OpRegistry& ops);

}  // namespace tenon
