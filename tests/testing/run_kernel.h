// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"

namespace tenon::testing {

/// Runs a kernel to its end, an asynchronous one too; fails the test when it takes 20 s.
Status RunKernel(const Kernel& kernel, KernelContext& context);

}  // namespace tenon::testing
