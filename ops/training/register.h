// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of training.ops do.
void RegisterTrainingOps(OpRegistry& ops);

// By file.
void RegisterTrainingKernels(OpRegistry& ops);

}  // namespace tenon
