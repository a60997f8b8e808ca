// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"
#include "core/scope.h"

// Gradients of the ops on tensor arrays: reading gives back writing to the gradient array, and the
// reverse. The gradient that travels along the flow only orders them.

namespace tenon {

Status TensorArrayReadGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                           std::vector<Output>* dxs);
Status TensorArrayWriteGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                            std::vector<Output>* dxs);
Status TensorArrayGatherGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                             std::vector<Output>* dxs);
Status TensorArrayScatterGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                              std::vector<Output>* dxs);
Status TensorArrayConcatGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                             std::vector<Output>* dxs);
Status TensorArraySplitGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                            std::vector<Output>* dxs);

}  // namespace tenon
