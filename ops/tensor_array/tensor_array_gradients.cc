// SPDX-License-Identifier: Apache-2.0
//
// Gradients of the ops on tensor arrays: reading gives back writing to the gradient array, and the
// reverse. The gradient that travels along the flow only orders them.
#include "core/op/op_registry.h"
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

void ReadGrad(GradContext& g) {
  const auto [array, flow] = GradientArray(g, g.in(2));
  g.dx(2) = TensorArrayWriteV3(array, g.in(1), g.dy(0), flow);
}

void WriteGrad(GradContext& g) {
  const auto [array, flow] = GradientArray(g, g.dy(0));
  g.dx(2) = TensorArrayReadV3(array, g.in(1), flow, g.in(2).dtype());
  g.dx(3) = g.dy(0);
}

void GatherGrad(GradContext& g) {
  const auto [array, flow] = GradientArray(g, g.in(2));
  g.dx(2) = TensorArrayScatterV3(array, g.in(1), g.dy(0), flow);
}

void ScatterGrad(GradContext& g) {
  const auto [array, flow] = GradientArray(g, g.dy(0));
  g.dx(2) = TensorArrayGatherV3(array, g.in(1), flow, g.in(2).dtype());
  g.dx(3) = g.dy(0);
}

void ConcatGrad(GradContext& g) {
  if (!g.dy(0).exists()) return;
  const auto [array, flow] = GradientArray(g, g.in(1));
  g.dx(1) = TensorArraySplitV3(array, g.dy(0), g.out(1), flow);
}

void SplitGrad(GradContext& g) {
  const auto [array, flow] = GradientArray(g, g.dy(0));
  g.dx(1) = TensorArrayConcatV3(array, flow, g.in(1).dtype()).value;
  g.dx(3) = g.dy(0);
}

}  // namespace

void RegisterTensorArrayGradients(OpRegistry& ops) {
  ops.Get("TensorArrayReadV3").Grad(ReadGrad);
  ops.Get("TensorArrayWriteV3").Grad(WriteGrad);
  ops.Get("TensorArrayGatherV3").Grad(GatherGrad);
  ops.Get("TensorArrayScatterV3").Grad(ScatterGrad);
  ops.Get("TensorArrayConcatV3").Grad(ConcatGrad);
  ops.Get("TensorArraySplitV3").Grad(SplitGrad);
}

}  // namespace tenon
