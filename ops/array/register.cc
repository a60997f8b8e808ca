// SPDX-License-Identifier: Apache-2.0
#include "ops/array/register.h"

namespace tenon {

void RegisterArrayOps(OpRegistry& ops) {
  RegisterBitcast(ops);
  RegisterConstOps(ops);
  RegisterShapeOps(ops);
  RegisterRearrangeOps(ops);
  RegisterGenerateOps(ops);
  RegisterScatterNdOps(ops);
  RegisterPartitionOps(ops);
  RegisterSelectOps(ops);
  RegisterGatherOps(ops);
  RegisterSplitOps(ops);
  RegisterConcatOps(ops);
  RegisterStridedSliceOps(ops);
  RegisterSliceOps(ops);
  RegisterBroadcastOps(ops);
}

}  // namespace tenon
