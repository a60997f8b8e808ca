// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"

namespace tenon {

/// A handful of ops without kernels, enough to build graphs of every form: Const, Placeholder,
/// Identity, Add, MatMul, NoOp, VariableV2 (a ref), Assign, Split, AddN, Merge, NextIteration,
/// _Recv.
inline void RegisterTinyOps(OpRegistry& ops) {
  ops.Declare(R"(
      op Const() -> output: dtype [constant]
        value: tensor, dtype: type
      op Placeholder() -> output: dtype [placeholder]
        dtype: type, shape: shape = ?
      op Identity(input: T) -> output: T [identity, hands_on]
        T: type
      op Add(x: T, y: T) -> z: T
        T: {float, int32}
      op MatMul(a: T, b: T) -> product: T
        transpose_a: bool = false, transpose_b: bool = false, T: {float, double}
      op NoOp()
      op VariableV2() -> ref: Ref(dtype) [stateful, variable]
        shape: shape, dtype: type, container: string = ''
      op Assign(ref: Ref(T), value: T) -> output_ref: Ref(T) [assigns]
        T: type
      op Split(value: T) -> output: num_split * T
        num_split: int >= 1, T: type
      op AddN(inputs: N * T) -> sum: T
        N: int >= 1, T: type
      op Merge(inputs: N * T) -> output: T [flow merge]
        N: int >= 1, T: type
      op NextIteration(data: T) -> output: T [flow next_iteration]
        T: type
      op _Recv() -> tensor: tensor_type [flow transfer]
        tensor_type: type)",
              "tiny.ops");
  ops.Get("Const").Shape([](ShapeContext& c) -> Status {
    TENON_ASSIGN_OR_RETURN(const Tensor value, c.Attr<Tensor>("value"));
    c.set_output(0, value.shape());
    return OkStatus();
  });
  ops.Get("Placeholder").Shape([](ShapeContext& c) -> Status {
    TENON_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
    c.set_output(0, shape);
    return OkStatus();
  });
  ops.Get("Identity").Shape(UnchangedShape);
  ops.Get("Add").Shape(BroadcastShape);
  ops.Get("NoOp").Shape(NoOutputShape);
}

/// The tiny ops in a registry that lives as long as the process.
inline const OpRegistry& TinyRegistry() {
  static const OpRegistry* const registry = [] {
    auto* ops = new OpRegistry;
    RegisterTinyOps(*ops);
    return ops;
  }();
  return *registry;
}

}  // namespace tenon
