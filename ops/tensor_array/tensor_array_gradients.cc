// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_array/tensor_array_gradients.h"

#include "ops/composition.h"
#include "ops/tensor_array/tensor_array_ops.h"

namespace tenon {
namespace {

/// Which gradient computation `dy` belongs to: its name up to the last part that begins with
/// "gradients". Two computations in one step must not share a gradient array.
std::string SourceOf(const Output& dy) {
  const std::string& name = dy.node->name();
  size_t begin = name.rfind("/gradients");
  begin = begin == std::string::npos ? 0 : begin + 1;
  return name.substr(0, name.find('/', begin));
}

/// The gradient array of the array that the node works on, once `flow` has come.
TensorArrayGradV3Outputs GradientArray(const GradContext& g, Output flow) {
  return TensorArrayGradV3(g.in(0), flow, SourceOf(g.dy(0)));
}

}  // namespace

void TensorArrayReadGrad(GradContext& g) {
  const TensorArrayGradV3Outputs grad = GradientArray(g, g.in(2));
  g.dx(2) = TensorArrayWriteV3(grad.grad_handle, g.in(1), g.dy(0), grad.flow_out);
}

void TensorArrayWriteGrad(GradContext& g) {
  const TensorArrayGradV3Outputs grad = GradientArray(g, g.dy(0));
  g.dx(2) = TensorArrayReadV3(grad.grad_handle, g.in(1), grad.flow_out, g.in(2).dtype());
  g.dx(3) = g.dy(0);
}

void TensorArrayGatherGrad(GradContext& g) {
  const TensorArrayGradV3Outputs grad = GradientArray(g, g.in(2));
  g.dx(2) = TensorArrayScatterV3(grad.grad_handle, g.in(1), g.dy(0), grad.flow_out);
}

void TensorArrayScatterGrad(GradContext& g) {
  const TensorArrayGradV3Outputs grad = GradientArray(g, g.dy(0));
  g.dx(2) = TensorArrayGatherV3(grad.grad_handle, g.in(1), grad.flow_out, g.in(2).dtype());
  g.dx(3) = g.dy(0);
}

void TensorArrayConcatGrad(GradContext& g) {
  if (!g.dy(0)) return;
  const TensorArrayGradV3Outputs grad = GradientArray(g, g.in(1));
  g.dx(1) = TensorArraySplitV3(grad.grad_handle, g.dy(0), g.out(1), grad.flow_out);
}

void TensorArraySplitGrad(GradContext& g) {
  const TensorArrayGradV3Outputs grad = GradientArray(g, g.dy(0));
  g.dx(1) = TensorArrayConcatV3(grad.grad_handle, grad.flow_out, g.in(1).dtype()).value;
  g.dx(3) = g.dy(0);
}

// The graph-building functions of tensor_array_ops.h.

}  // namespace tenon
