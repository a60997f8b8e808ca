// SPDX-License-Identifier: Apache-2.0
#include "ops/register.h"

namespace tenon {

void RegisterAllOps(OpRegistry&) {}

}  // namespace tenon
