// SPDX-License-Identifier: Apache-2.0
#include "ops/register.h"

#include "core/device/device_plugin.h"

namespace tenon {

const OpRegistry& AllOps() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    RegisterAllOps(*ops);
    return ops;
  }();
  return *registry;
}

void RegisterAllOps(OpRegistry& ops) {
  RegisterLibraryOps(ops);
  // Its kernels are of ops that are declared already; once a registry, as everything else.
  if (ops.Declare("", "kernels of the plugin for GPUs")) {
    if (const auto plugin = CudaPlugin(); plugin.ok()) (*plugin)->register_kernels(ops);
  }
}

}  // namespace tenon
