// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds to `ops`, where they are declared, what the ops of array.ops do.
void RegisterArrayOps(OpRegistry& ops);

// By file.
void RegisterBitcast(OpRegistry& ops);
void RegisterConstOps(OpRegistry& ops);
void RegisterShapeOps(OpRegistry& ops);
void RegisterRearrangeOps(OpRegistry& ops);
void RegisterGenerateOps(OpRegistry& ops);
void RegisterScatterNdOps(OpRegistry& ops);
void RegisterPartitionOps(OpRegistry& ops);
void RegisterSelectOps(OpRegistry& ops);
void RegisterGatherOps(OpRegistry& ops);
void RegisterSplitOps(OpRegistry& ops);
void RegisterConcatOps(OpRegistry& ops);
void RegisterStridedSliceOps(OpRegistry& ops);
void RegisterSliceOps(OpRegistry& ops);
void RegisterBroadcastOps(OpRegistry& ops);

}  // namespace tenon
