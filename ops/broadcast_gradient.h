// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"

namespace tenon {

/// Makes of gradients of the shape that `x` and `y` broadcast to gradients of the shapes of `x` and
/// of `y`: sums over what was repeated. As far as the static shapes tell what that is, it does not
/// look at run time. `*dx` and `*dy` may be empty and then stay so.
void SumToOperands(Output x, Output y, Output* dx, Output* dy);

/// The gradient of `x`, which was broadcast to the shape of `z`: `dz` summed over what was
/// repeated.
Output SumToOperand(Output x, Output z, Output dz);

}  // namespace tenon
