// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

Status NothingKernel(KernelContext&) { return OkStatus(); }

/// Moves input `from` to output `to`, be it a value or a reference.
void Forward(KernelContext& ctx, int from, int to) {
  if (VariableResource* ref = ctx.ref(from)) ctx.set_output_ref(to, ref);
  ctx.set_output(to, ctx.TakeInput(from));
}

Status ForwardFirstKernel(KernelContext& ctx) {
  Forward(ctx, 0, 0);
  return OkStatus();
}

/// Leaves the output of the branch not taken without a value, which makes it dead.
Status SwitchKernel(KernelContext& ctx, const Tensor&, const Tensor& pred) {
  if (pred.shape().rank() != 0) {
    return InvalidArgument("The second input must be a scalar, but it has shape ", pred.shape());
  }
  Forward(ctx, 0, pred.scalar<bool>() ? 1 : 0);
  return OkStatus();
}

Status SwitchNKernel(KernelContext& ctx, const Tensor&, const Tensor& index) {
  if (index.shape().rank() != 0) {
    return InvalidArgument("The second input must be a scalar, but it has shape ", index.shape());
  }
  const int last = ctx.num_outputs() - 1, chosen = index.scalar<int32_t>();
  Forward(ctx, 0, chosen < 0 || chosen > last ? last : chosen);
  return OkStatus();
}

Status SwitchShape(ShapeContext& c) { return c.ReturnForEach(c.input(0)); }

Status MergeKernel(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (!ctx.has_input(i)) continue;
    Forward(ctx, i, 0);
    ctx.set_output(1, Tensor::Scalar<int32_t>(i));
    return OkStatus();
  }
  return Internal("Merge ran without a live input");
}

Status MergeShape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) shape = shape.RelaxedWith(c.input(i));
  c.set_output(1, Shape());
  return c.Return(shape);
}

/// The gradient of what went into a Switch is that of whichever branch ran: a Merge of both. A
/// branch that has no gradient contributes zeros, alive exactly when it was taken.
void SwitchGrad(GradContext& g) { g.dx(0) = Merge(DysOrZeros(g)).output; }

/// The gradient goes to the input that came.
void MergeGrad(GradContext& g) {
  if (!g.dy(0).exists()) return;
  for (int i = 0; i < g.num_inputs(); ++i) {
    g.dx(i) = Switch(g.dy(0), Equal(g.out(1), i)).output_true;
  }
}

/// Whether a number is not zero, a string not empty, a tensor that is no scalar not without
/// elements.
Status ToBoolKernel(KernelContext& ctx, const Tensor& x) {
  if (x.rank() > 0) return ctx.Return(Tensor::Scalar(x.num_elements() > 0));
  return DispatchStatus(
      x.dtype(), decltype(ConcatTypes(PlainTypes(), TypeList<TString>()))(),
      [&]<typename T>(T) { return ctx.Return(Tensor::Scalar(x.scalar<T>() != T())); });
}

Status RefSelectKernel(KernelContext& ctx, Integer index) {
  const int64_t count = ctx.num_inputs() - 1;
  if (index < 0 || index >= count) return NotInRange(index, count, "index");
  for (int i = 1; i <= count; ++i) {
    if (ctx.ref(i) != nullptr && !ctx.ref(i)->initialized()) return ctx.ref(i)->Uninitialized();
  }
  Forward(ctx, static_cast<int>(index) + 1, 0);
  return OkStatus();
}

Status RefSelectShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  PartialShape any = c.input(1);
  for (int i = 2; i < c.num_inputs(); ++i) any = any.RelaxedWith(c.input(i));
  return c.Return(any);
}

/// Ends the step and not, as TensorFlow's does, the process, which others use too.
Status AbortKernel(KernelContext&, const std::string& message) {
  return Aborted("Abort: ", message);
}

}  // namespace

void RegisterControlFlowKernels(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name) {
    return ops.Get(name).NoExample("needs the executor's frames; the control flow tests cover it");
  };
  for (const std::string ref : {"", "Ref"}) {
    get(ref + "Switch")
        .Shape(SwitchShape)
        .Kernel(kCpu, SwitchKernel, {.cheap = true, .memory = kAnyMemory})
        .Grad(SwitchGrad);
    get(ref + "Merge")
        .Shape(MergeShape)
        .Kernel(kCpu, MergeKernel, {.cheap = true, .memory = kAnyMemory})
        .Grad(MergeGrad);
    for (const char* op : {"Enter", "Exit", "NextIteration"}) {
      get(ref + op)
          .Shape(UnchangedShape)
          .Kernel(kCpu, ForwardFirstKernel, {.cheap = true, .memory = kAnyMemory});
    }
  }
  get("_SwitchN")
      .Shape(SwitchShape)
      .Kernel(kCpu, SwitchNKernel, {.cheap = true, .memory = kAnyMemory});
  get("RefIdentity")
      .Shape(UnchangedShape)
      .Kernel(kCpu, ForwardFirstKernel, {.cheap = true, .memory = kAnyMemory})
      .Grad([](GradContext& g) { g.dx(0) = g.dy(0); });
  get("RefSelect")
      .Shape(RefSelectShape)
      .Kernel(kCpu, RefSelectKernel, {.cheap = true, .memory = kAnyMemory});
  for (const char* name : {"NoOp", "ControlTrigger"}) {
    ops.Add(name, NoOutputShape, NothingKernel, {.cheap = true, .memory = kAnyMemory}).Example({});
  }
  ops.Add("Abort", NoOutputShape, AbortKernel, {.attrs = {"error_msg"}})
      .NoExample("is an error; control_flow_ops_test covers it");
  ops.Add("ToBool", ScalarShape, ToBoolKernel, {.cheap = true})
      .Example({Shape{}})
      .Example({Shape{2, 0}});
  get("LoopCond")
      .Shape(UnchangedShape)
      .Kernel(kCpu, ForwardFirstKernel, {.cheap = true, .memory = kAnyMemory});
}

}  // namespace tenon
