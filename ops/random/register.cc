// SPDX-License-Identifier: Apache-2.0
#include "ops/random/register.h"

namespace tenon {

void RegisterRandomOps(OpRegistry& ops) {
  RegisterRandomKernels(ops);
}

}  // namespace tenon
