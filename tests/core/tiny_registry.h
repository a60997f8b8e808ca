// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op_registry.h"

namespace tenon {

/// A handful of ops without kernels, enough to build graphs of every form: Const, Placeholder,
/// Identity, Add, MatMul, NoOp, VariableV2 (a ref), Assign, Split, AddN, Merge, NextIteration.
inline void RegisterTinyOps(OpRegistry& ops) {
  ops.Add("Const")
      .Output("output: dtype")
      .Attr("value: tensor")
      .Attr("dtype: type")
      .Shape([](ShapeContext& c) -> Status {
        TENON_ASSIGN_OR_RETURN(const Tensor value, c.Attr<Tensor>("value"));
        c.set_output(0, value.shape());
        return OkStatus();
      });
  ops.Add("Placeholder")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape = { unknown_rank: true }")
      .Shape([](ShapeContext& c) -> Status {
        TENON_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
        c.set_output(0, shape);
        return OkStatus();
      });
  ops.Add("Identity").Input("input: T").Output("output: T").Attr("T: type").Shape(UnchangedShape);
  ops.Add("Add")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr("T: {float, int32}")
      .Shape(BroadcastShape);
  ops.Add("MatMul")
      .Input("a: T")
      .Input("b: T")
      .Output("product: T")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("T: {float, double}");
  ops.Add("NoOp").Shape(NoOutputShape);
  ops.Add("VariableV2")
      .Output("ref: Ref(dtype)")
      .Attr("shape: shape")
      .Attr("dtype: type")
      .Attr("container: string = ''")
      .Stateful();
  ops.Add("Assign")
      .Input("ref: Ref(T)")
      .Input("value: T")
      .Output("output_ref: Ref(T)")
      .Attr("T: type");
  ops.Add("Split")
      .Input("value: T")
      .Output("output: num_split * T")
      .Attr("num_split: int >= 1")
      .Attr("T: type");
  ops.Add("AddN").Input("inputs: N * T").Output("sum: T").Attr("N: int >= 1").Attr("T: type");
  ops.Add("Merge").Input("inputs: N * T").Output("output: T").Attr("N: int >= 1").Attr("T: type");
  ops.Add("NextIteration").Input("data: T").Output("output: T").Attr("T: type").LoopBack();
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
