// SPDX-License-Identifier: Apache-2.0
#include "ops/strings/register.h"

namespace tenon {

void RegisterStringsOps(OpRegistry& ops) {
  RegisterStringOps(ops);
}

}  // namespace tenon
