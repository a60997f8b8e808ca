// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/any_memory.h"

// The kernels of TensorArrayWrite, TensorArrayScatter and TensorArraySplit of any version. In an
// array of gradients they add to what is there, for which `add` is the device's.

namespace tenon {

Status WriteToArray(KernelContext& ctx, AddTensors add);
Status ScatterToArray(KernelContext& ctx, AddTensors add);
Status SplitToArray(KernelContext& ctx, AddTensors add);

}  // namespace tenon
