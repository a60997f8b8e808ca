// SPDX-License-Identifier: Apache-2.0
#include "ops/register.h"

namespace tenon {

void RegisterAllOps(OpRegistry& ops) {
  RegisterArgOps(ops);
  RegisterConstOps(ops);
  RegisterRandomOps(ops);
  RegisterShapeOps(ops);
  RegisterLoggingOps(ops);
  RegisterSummaryOps(ops);
  RegisterStringOps(ops);
  RegisterIoOps(ops);
  RegisterStackOps(ops);
  RegisterTensorArrayOps(ops);
  RegisterRearrangeOps(ops);
  RegisterGenerateOps(ops);
  RegisterScatterNdOps(ops);
  RegisterPartitionOps(ops);
  RegisterSelectOps(ops);
  RegisterScanOps(ops);
  RegisterGatherOps(ops);
  RegisterSplitOps(ops);
  RegisterConcatOps(ops);
  RegisterStridedSliceOps(ops);
  RegisterSliceOps(ops);
  RegisterScatterUpdateOps(ops);
  RegisterResourceVariableOps(ops);
  RegisterTrainingOps(ops);
  RegisterVariableOps(ops);
  RegisterControlFlowOps(ops);
  RegisterSendRecvOps(ops);

  RegisterUnaryArithmetic(ops);
  RegisterTranscendental(ops);
  RegisterActivations(ops);
  RegisterElementwiseGradients(ops);
  RegisterBinaryArithmetic(ops);
  RegisterDivision(ops);
  RegisterComparison(ops);
  RegisterReductions(ops);
  RegisterCast(ops);
  RegisterSelect(ops);
  RegisterBroadcastOps(ops);
  RegisterAccumulate(ops);
  RegisterMatMul(ops);
  RegisterBatchMatMul(ops);
  RegisterBiasAdd(ops);
  RegisterSoftmax(ops);
  RegisterLosses(ops);
  RegisterArgMax(ops);
  RegisterSegmentOps(ops);
  RegisterFusedOps(ops);
}

}  // namespace tenon
