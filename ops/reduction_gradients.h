// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"
#include "core/scope.h"

namespace tenon {

// Gradients of ops with inputs (input, axes) and the attribute keep_dims.
Status SumGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
               std::vector<Output>* dxs);
Status MeanGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                std::vector<Output>* dxs);
Status ProdGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                std::vector<Output>* dxs);
Status MinOrMaxGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                    std::vector<Output>* dxs);

}  // namespace tenon
