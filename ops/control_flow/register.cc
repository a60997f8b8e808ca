// SPDX-License-Identifier: Apache-2.0
#include "ops/control_flow/register.h"

namespace tenon {

void RegisterControlFlowOps(OpRegistry& ops) {
  RegisterArgOps(ops);
  RegisterControlFlowKernels(ops);
  RegisterSendRecvOps(ops);
}

}  // namespace tenon
