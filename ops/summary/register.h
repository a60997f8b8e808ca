// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of summary.ops do.
void RegisterSummaryOps(OpRegistry& ops);

// By file.
void RegisterLoggingOps(OpRegistry& ops);
void RegisterSummaryKernels(OpRegistry& ops);

}  // namespace tenon
