// SPDX-License-Identifier: Apache-2.0
#include "ops/io/register.h"

namespace tenon {

void RegisterIoOps(OpRegistry& ops) {
  RegisterIoKernels(ops);
}

}  // namespace tenon
