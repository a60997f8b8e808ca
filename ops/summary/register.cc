// SPDX-License-Identifier: Apache-2.0
#include "ops/summary/register.h"

namespace tenon {

void RegisterSummaryOps(OpRegistry& ops) {
  RegisterLoggingOps(ops);
  RegisterSummaryKernels(ops);
}

}  // namespace tenon
