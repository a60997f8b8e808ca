// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"
#include "core/gradients.h"

// Gradients of the ops on tensor arrays: reading gives back writing to the gradient array, and the
// reverse. The gradient that travels along the flow only orders them.

namespace tenon {

void TensorArrayReadGrad(GradContext& g);
void TensorArrayWriteGrad(GradContext& g);
void TensorArrayGatherGrad(GradContext& g);
void TensorArrayScatterGrad(GradContext& g);
void TensorArrayConcatGrad(GradContext& g);
void TensorArraySplitGrad(GradContext& g);

}  // namespace tenon
