// SPDX-License-Identifier: Apache-2.0
//
// The ends of a step graph or function body. The executor moves their values itself.
#include "ops/control_flow/register.h"

namespace tenon {

void RegisterArgOps(OpRegistry& ops) {
  ops.Get("_Arg")
      .Shape(UnknownShape)
      .NotDifferentiable()
      .NoExample("runs only inside a step; the session tests cover it");
  ops.Get("_Retval")
      .Shape(NoOutputShape)
      .NotDifferentiable()
      .NoExample("runs only inside a step; the session tests cover it");
}

}  // namespace tenon
