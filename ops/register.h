// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"

namespace tenon {

/// The ops of this library, in a registry that lives as long as the process.
const OpRegistry& AllOps();

/// Adds every op of this library to `ops`, unless it has them: for a registry with ops of your own.
/// Where the process has the plugin for GPUs (core/device/device_plugin.h), its kernels too.
void RegisterAllOps(OpRegistry& ops);

/// The same with the kernels of this library alone. The build makes it: it calls what it makes of
/// each family.
void RegisterLibraryOps(OpRegistry& ops);

}  // namespace tenon
