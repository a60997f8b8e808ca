// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of io.ops do.
void RegisterIoOps(OpRegistry& ops);

// By file.
void RegisterIoKernels(OpRegistry& ops);

}  // namespace tenon
