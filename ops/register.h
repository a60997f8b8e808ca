// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// Adds every op of this library to `ops`. Call it once on a new registry.
void RegisterAllOps(OpRegistry& ops);

// One family each; RegisterAllOps calls all of them.
void RegisterArgOps(OpRegistry& ops);
void RegisterRandomOps(OpRegistry& ops);
void RegisterConstOps(OpRegistry& ops);
void RegisterShapeOps(OpRegistry& ops);
void RegisterLoggingOps(OpRegistry& ops);
void RegisterSummaryOps(OpRegistry& ops);
void RegisterStringOps(OpRegistry& ops);
void RegisterIoOps(OpRegistry& ops);
void RegisterStackOps(OpRegistry& ops);
void RegisterTensorArrayOps(OpRegistry& ops);
void RegisterRearrangeOps(OpRegistry& ops);
void RegisterGenerateOps(OpRegistry& ops);
void RegisterScatterNdOps(OpRegistry& ops);
void RegisterPartitionOps(OpRegistry& ops);
void RegisterSelectOps(OpRegistry& ops);
void RegisterScanOps(OpRegistry& ops);
void RegisterVariableOps(OpRegistry& ops);
void RegisterControlFlowOps(OpRegistry& ops);
void RegisterSendRecvOps(OpRegistry& ops);
void RegisterTrainingOps(OpRegistry& ops);
void RegisterResourceVariableOps(OpRegistry& ops);
void RegisterScatterUpdateOps(OpRegistry& ops);
void RegisterSliceOps(OpRegistry& ops);
void RegisterStridedSliceOps(OpRegistry& ops);
void RegisterConcatOps(OpRegistry& ops);
void RegisterSplitOps(OpRegistry& ops);
void RegisterGatherOps(OpRegistry& ops);

void RegisterUnaryArithmetic(OpRegistry& ops);
void RegisterTranscendental(OpRegistry& ops);
void RegisterActivations(OpRegistry& ops);
void RegisterElementwiseGradients(OpRegistry& ops);
void RegisterBinaryArithmetic(OpRegistry& ops);
void RegisterDivision(OpRegistry& ops);
void RegisterComparison(OpRegistry& ops);
void RegisterReductions(OpRegistry& ops);
void RegisterCast(OpRegistry& ops);
void RegisterSelect(OpRegistry& ops);
void RegisterBroadcastOps(OpRegistry& ops);
void RegisterAccumulate(OpRegistry& ops);
void RegisterMatMul(OpRegistry& ops);
void RegisterBatchMatMul(OpRegistry& ops);
void RegisterBiasAdd(OpRegistry& ops);
void RegisterSoftmax(OpRegistry& ops);
void RegisterLosses(OpRegistry& ops);
void RegisterArgMax(OpRegistry& ops);
void RegisterSegmentOps(OpRegistry& ops);
void RegisterFusedOps(OpRegistry& ops);

}  // namespace tenon
