// SPDX-License-Identifier: Apache-2.0
#include "ops/state/register.h"

namespace tenon {

void RegisterStateOps(OpRegistry& ops) {
  RegisterScatterUpdateOps(ops);
  RegisterResourceVariableOps(ops);
  RegisterVariableOps(ops);
}

}  // namespace tenon
