// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/control_flow/control_flow_ops.h"

#include "ops/inline_kernel.h"
#include "ops/control_flow/register.h"

namespace tenon {
namespace {

/// Moves input `from` to output `to`, be it a value or a reference.
void Forward(KernelContext& ctx, int from, int to) {
  if (VariableResource* ref = ctx.ref(from)) ctx.set_output_ref(to, ref);
  ctx.set_output(to, ctx.TakeInput(from));
}

Status ForwardFirst(KernelContext& ctx) {
  Forward(ctx, 0, 0);
  return OkStatus();
}
using ForwardFirstKernel = InlineKernel<ForwardFirst>;

/// Leaves the output of the branch not taken without a value, which makes it dead.
Status SwitchKernel(KernelContext& ctx) {
  const Tensor& pred = ctx.input(1);
  if (pred.num_elements() != 1) {
    return InvalidArgument("The second input must be a scalar, but it has shape ",
                           pred.shape().ToString());
  }
  Forward(ctx, 0, pred.scalar<bool>() ? 1 : 0);
  return OkStatus();
}

Status SwitchShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
  return OkStatus();
}

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
  c.set_output(0, std::move(shape));
  c.set_output(1, Shape());
  return OkStatus();
}

/// The gradient of what went into a Switch is that of whichever branch ran: a Merge of both. A
/// branch that has no gradient contributes zeros, alive exactly when it was taken.
void SwitchGrad(GradContext& g) { g.dx(0) = Merge(DysOrZeros(g)).output; }

/// The gradient goes to the input that came.
void MergeGrad(GradContext& g) {
  if (!g.dy(0)) return;
  for (int i = 0; i < g.num_inputs(); ++i) {
    g.dx(i) = Switch(g.dy(0), Equal(g.out(1), i)).output_true;
  }
}

constexpr char kNeedsFrames[] = "needs the executor's frames; the control flow tests cover it";


void RegisterBranches(OpRegistry& ops) {
  for (const char* op : {"Switch", "RefSwitch"}) {
    ops.Get(op)
        .Shape(SwitchShape)
        .Kernel<InlineKernel<SwitchKernel>>(kCpu, {.host_args = {"pred"}})
        .Grad(SwitchGrad)
        .NoExample(kNeedsFrames);
  }
  for (const char* op : {"Merge", "RefMerge"}) {
    ops.Get(op)
        .Shape(MergeShape)
        .Kernel<InlineKernel<MergeKernel>>(kCpu, {.host_args = {"value_index"}})
        .Grad(MergeGrad)
        .NoExample(kNeedsFrames);
  }
}

void RegisterLoops(OpRegistry& ops) {
  for (const char* op : {"Enter", "RefEnter"}) {
    ops.Get(op)
        .Shape(UnchangedShape)
        .Kernel<ForwardFirstKernel>(kCpu)
        .NoExample(kNeedsFrames);
  }
  for (const char* op : {"Exit", "RefExit"}) {
    ops.Get(op)
        .Shape(UnchangedShape)
        .Kernel<ForwardFirstKernel>(kCpu)
        .NoExample(kNeedsFrames);
  }
  for (const char* op : {"NextIteration", "RefNextIteration"}) {
    ops.Get(op)
        .Shape(UnchangedShape)
        .LoopBack()
        .Kernel<ForwardFirstKernel>(kCpu)
        .NoExample(kNeedsFrames);
  }
  ops.Get("LoopCond")
      .Shape(UnchangedShape)
      .Kernel<ForwardFirstKernel>(kCpu, {.host_args = {"input", "output"}})
      .NotDifferentiable()
      .NoExample(kNeedsFrames);
}

}  // namespace

void RegisterControlFlowKernels(OpRegistry& ops) {
  RegisterBranches(ops);
  RegisterLoops(ops);
}

}  // namespace tenon
