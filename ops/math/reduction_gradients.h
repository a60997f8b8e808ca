// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"
#include "core/gradients.h"

namespace tenon {

// Gradients of ops with inputs (input, axes) and the attribute keep_dims.
void SumGrad(GradContext& g);
void MeanGrad(GradContext& g);
void ProdGrad(GradContext& g);
void MinOrMaxGrad(GradContext& g);

}  // namespace tenon
