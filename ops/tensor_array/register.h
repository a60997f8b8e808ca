// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of tensor_array.ops do.
void RegisterTensorArrayOps(OpRegistry& ops);

// By file.
void RegisterStackOps(OpRegistry& ops);
void RegisterTensorArrayKernels(OpRegistry& ops);

}  // namespace tenon
