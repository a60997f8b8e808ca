// SPDX-License-Identifier: Apache-2.0
#include "ops/training/register.h"

namespace tenon {

void RegisterTrainingOps(OpRegistry& ops) {
  RegisterTrainingKernels(ops);
}

}  // namespace tenon
