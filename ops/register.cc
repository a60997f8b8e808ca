// SPDX-License-Identifier: Apache-2.0
#include "ops/register.h"

namespace tenon {

// Made from the .ops files.
bool DeclareArrayOps(OpRegistry& ops);
bool DeclareControlFlowOps(OpRegistry& ops);
bool DeclareDataOps(OpRegistry& ops);
bool DeclareDeclaredOps(OpRegistry& ops);
bool DeclareImageOps(OpRegistry& ops);
bool DeclareIoOps(OpRegistry& ops);
bool DeclareLinalgOps(OpRegistry& ops);
bool DeclareLookupOps(OpRegistry& ops);
bool DeclareMathOps(OpRegistry& ops);
bool DeclareNnOps(OpRegistry& ops);
bool DeclareQueuesOps(OpRegistry& ops);
bool DeclareRandomOps(OpRegistry& ops);
bool DeclareSparseOps(OpRegistry& ops);
bool DeclareStateOps(OpRegistry& ops);
bool DeclareStringsOps(OpRegistry& ops);
bool DeclareSummaryOps(OpRegistry& ops);
bool DeclareTensorArrayOps(OpRegistry& ops);
bool DeclareTrainingOps(OpRegistry& ops);

void RegisterAllOps(OpRegistry& ops) {
  if (!DeclareArrayOps(ops)) return;
  DeclareControlFlowOps(ops);
  DeclareDataOps(ops);
  DeclareDeclaredOps(ops);
  DeclareImageOps(ops);
  DeclareIoOps(ops);
  DeclareLinalgOps(ops);
  DeclareLookupOps(ops);
  DeclareMathOps(ops);
  DeclareNnOps(ops);
  DeclareQueuesOps(ops);
  DeclareRandomOps(ops);
  DeclareSparseOps(ops);
  DeclareStateOps(ops);
  DeclareStringsOps(ops);
  DeclareSummaryOps(ops);
  DeclareTensorArrayOps(ops);
  DeclareTrainingOps(ops);
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
