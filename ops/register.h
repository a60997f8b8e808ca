// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds every op of this library to `ops`. Call it once on a new registry.
void RegisterAllOps(OpRegistry& ops);

// One family each; RegisterAllOps calls all of them.

}  // namespace tenon
