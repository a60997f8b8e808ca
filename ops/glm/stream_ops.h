// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"

namespace tenon {

/// Gives the ops of streams their kernels.
void RegisterStreamKernels(OpRegistry& ops);

}  // namespace tenon
