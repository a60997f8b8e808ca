// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of strings.ops do.
void RegisterStringsOps(OpRegistry& ops);

// By file.
void RegisterStringOps(OpRegistry& ops);

}  // namespace tenon
