// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_array/register.h"

namespace tenon {

void RegisterTensorArrayOps(OpRegistry& ops) {
  RegisterStackOps(ops);
  RegisterTensorArrayKernels(ops);
}

}  // namespace tenon
