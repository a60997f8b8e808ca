// SPDX-License-Identifier: Apache-2.0
#include "ops/register.h"

#include "ops/array/array_ops.h"
#include "ops/array/register.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/register.h"
#include "ops/data/data_ops.h"
#include "ops/declared/declared_ops.h"
#include "ops/image/image_ops.h"
#include "ops/io/io_ops.h"
#include "ops/io/register.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/lookup/lookup_ops.h"
#include "ops/math/math_ops.h"
#include "ops/math/register.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/register.h"
#include "ops/queues/queues_ops.h"
#include "ops/random/random_ops.h"
#include "ops/random/register.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/state/register.h"
#include "ops/state/state_ops.h"
#include "ops/strings/register.h"
#include "ops/strings/strings_ops.h"
#include "ops/summary/register.h"
#include "ops/summary/summary_ops.h"
#include "ops/tensor_array/register.h"
#include "ops/tensor_array/tensor_array_ops.h"
#include "ops/training/register.h"
#include "ops/training/training_ops.h"

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
  RegisterArrayOps(ops);
  RegisterControlFlowOps(ops);
  RegisterIoOps(ops);
  RegisterMathOps(ops);
  RegisterNnOps(ops);
  RegisterRandomOps(ops);
  RegisterStateOps(ops);
  RegisterStringsOps(ops);
  RegisterSummaryOps(ops);
  RegisterTensorArrayOps(ops);
  RegisterTrainingOps(ops);
}

}  // namespace tenon
