// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_array_gradients.h"

#include "ops/tensor_array_ops.h"

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

/// The gradient array of the array that `node` works on, once `flow` has come.
TensorArrayOutputs GradientArray(const Scope& s, Node& node, Output flow, const Output& dy) {
  return TensorArrayGradV3(s, node.input(0), flow, SourceOf(dy));
}

}  // namespace

Status TensorArrayReadGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                           std::vector<Output>* dxs) {
  const TensorArrayOutputs grad = GradientArray(s, node, node.input(2), dys[0]);
  (*dxs)[2] = TensorArrayWriteV3(s, grad.handle, node.input(1), dys[0], grad.flow);
  return OkStatus();
}

Status TensorArrayWriteGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                            std::vector<Output>* dxs) {
  const TensorArrayOutputs grad = GradientArray(s, node, dys[0], dys[0]);
  (*dxs)[2] =
      TensorArrayReadV3(s, grad.handle, node.input(1), grad.flow, Output(node.input(2)).dtype());
  (*dxs)[3] = dys[0];
  return OkStatus();
}

Status TensorArrayGatherGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                             std::vector<Output>* dxs) {
  const TensorArrayOutputs grad = GradientArray(s, node, node.input(2), dys[0]);
  (*dxs)[2] = TensorArrayScatterV3(s, grad.handle, node.input(1), dys[0], grad.flow);
  return OkStatus();
}

Status TensorArrayScatterGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                              std::vector<Output>* dxs) {
  const TensorArrayOutputs grad = GradientArray(s, node, dys[0], dys[0]);
  (*dxs)[2] =
      TensorArrayGatherV3(s, grad.handle, node.input(1), grad.flow, Output(node.input(2)).dtype());
  (*dxs)[3] = dys[0];
  return OkStatus();
}

Status TensorArrayConcatGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                             std::vector<Output>* dxs) {
  if (!dys[0]) return OkStatus();
  const TensorArrayOutputs grad = GradientArray(s, node, node.input(1), dys[0]);
  (*dxs)[1] = TensorArraySplitV3(s, grad.handle, dys[0], Output(&node, 1), grad.flow);
  return OkStatus();
}

Status TensorArraySplitGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                            std::vector<Output>* dxs) {
  const TensorArrayOutputs grad = GradientArray(s, node, dys[0], dys[0]);
  (*dxs)[1] = TensorArrayConcatV3(s, grad.handle, grad.flow, Output(node.input(1)).dtype()).value;
  (*dxs)[3] = dys[0];
  return OkStatus();
}

// The graph-building functions of tensor_array_ops.h.

TensorArrayOutputs TensorArrayV3(const Scope& s, Output size, DType dtype,
                                 const TensorArrayOptions& options) {
  const std::vector<Output> out =
      s.Op("TensorArrayV3")
          .Input(size)
          .Attr("dtype", dtype)
          .Attr("element_shape", options.element_shape)
          .Attr("dynamic_size", options.dynamic_size)
          .Attr("clear_after_read", options.clear_after_read)
          .Attr("identical_element_shapes", options.identical_element_shapes)
          .Outputs();
  return out.empty() ? TensorArrayOutputs() : TensorArrayOutputs{out[0], out[1]};
}
Output TensorArrayWriteV3(const Scope& s, Output handle, Output index, Output value, Output flow) {
  return s.Op("TensorArrayWriteV3").Input(handle).Input(index).Input(value).Input(flow).Output();
}
Output TensorArrayScatterV3(const Scope& s, Output handle, Output indices, Output value,
                            Output flow) {
  return s.Op("TensorArrayScatterV3")
      .Input(handle)
      .Input(indices)
      .Input(value)
      .Input(flow)
      .Output();
}
Output TensorArraySplitV3(const Scope& s, Output handle, Output value, Output lengths,
                          Output flow) {
  return s.Op("TensorArraySplitV3").Input(handle).Input(value).Input(lengths).Input(flow).Output();
}
Output TensorArrayReadV3(const Scope& s, Output handle, Output index, Output flow, DType dtype) {
  return s.Op("TensorArrayReadV3")
      .Input(handle)
      .Input(index)
      .Input(flow)
      .Attr("dtype", dtype)
      .Output();
}
Output TensorArrayGatherV3(const Scope& s, Output handle, Output indices, Output flow, DType dtype,
                           PartialShape element_shape) {
  return s.Op("TensorArrayGatherV3")
      .Input(handle)
      .Input(indices)
      .Input(flow)
      .Attr("dtype", dtype)
      .Attr("element_shape", std::move(element_shape))
      .Output();
}
TensorArrayConcatOutputs TensorArrayConcatV3(const Scope& s, Output handle, Output flow,
                                             DType dtype) {
  const std::vector<Output> out =
      s.Op("TensorArrayConcatV3").Input(handle).Input(flow).Attr("dtype", dtype).Outputs();
  return out.empty() ? TensorArrayConcatOutputs() : TensorArrayConcatOutputs{out[0], out[1]};
}
Output TensorArraySizeV3(const Scope& s, Output handle, Output flow) {
  return s.Op("TensorArraySizeV3").Input(handle).Input(flow).Output();
}
TensorArrayOutputs TensorArrayGradV3(const Scope& s, Output handle, Output flow,
                                     std::string_view source) {
  const std::vector<Output> out =
      s.Op("TensorArrayGradV3").Input(handle).Input(flow).Attr("source", source).Outputs();
  return out.empty() ? TensorArrayOutputs() : TensorArrayOutputs{out[0], out[1]};
}
Node* TensorArrayCloseV3(const Scope& s, Output handle) {
  return s.Op("TensorArrayCloseV3").Input(handle).Finish();
}

}  // namespace tenon
