// SPDX-License-Identifier: Apache-2.0
//
// The ends of a step graph or function body. The executor moves their values itself.
#include "ops/register.h"

namespace tenon {

void RegisterArgOps(OpRegistry& ops) {
  ops.Add("_Arg")
      .Doc("A value that comes in from the caller of a step or function.")
      .Output("output: T")
      .Attr("T: type")
      .Attr("index: int >= 0")
      .Stateful()
      .Shape(UnknownShape)
      .NotDifferentiable()
      .NoExample("runs only inside a step; the session tests cover it");
  ops.Add("_Retval")
      .Doc("A value that goes back to the caller of a step or function.")
      .Input("input: T")
      .Attr("T: type")
      .Attr("index: int >= 0")
      .Stateful()
      .Shape(NoOutputShape)
      .NotDifferentiable()
      .NoExample("runs only inside a step; the session tests cover it");
}

}  // namespace tenon
