// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"
#include "ops/register.h"

namespace tenon::testing {

/// Every op there is; made once.
inline const OpRegistry& AllOps() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    RegisterAllOps(*ops);
    return ops;
  }();
  return *registry;
}

}  // namespace tenon::testing
