// SPDX-License-Identifier: Apache-2.0
#include "ops/nn/register.h"

namespace tenon {

void RegisterNnOps(OpRegistry& ops) {
  RegisterActivations(ops);
  RegisterElementwiseGradients(ops);
  RegisterBiasAdd(ops);
  RegisterSoftmax(ops);
  RegisterLosses(ops);
}

}  // namespace tenon
