// SPDX-License-Identifier: Apache-2.0
#include "ops/control_flow_ops.h"

#include "ops/array_ops.h"
#include "ops/inline_kernel.h"
#include "ops/register.h"

namespace tenon {
namespace {

/// Moves input `from` to output `to`, be it a value or a reference.
void Forward(KernelContext& ctx, int from, int to) {
  if (Variable* ref = ctx.ref(from)) ctx.set_output_ref(to, ref);
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
Status SwitchGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                  std::vector<Output>* dxs) {
  std::vector<Output> branches = dys;
  for (int i = 0; i < 2; ++i) {
    if (branches[i]) continue;
    branches[i] = s.Op("ZerosLike").Input(Output(&node, i)).Output();
  }
  (*dxs)[0] = Merge(s, branches).output;
  return OkStatus();
}

/// The gradient goes to the input that came.
Status MergeGrad(const Scope& s, Node& node, const std::vector<Output>& dys,
                 std::vector<Output>* dxs) {
  if (!dys[0]) return OkStatus();
  const Output index(&node, 1);
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Output came = s.Op("Equal").Input(index).Input(Const<int32_t>(s, i)).Output();
    (*dxs)[i] = Switch(s, dys[0], came).output_true;
  }
  return OkStatus();
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

void RegisterControlFlowOps(OpRegistry& ops) {
  RegisterBranches(ops);
  RegisterLoops(ops);
}

SwitchOutputs Switch(const Scope& s, Output data, Output pred) {
  const std::vector<Output> out = s.Op("Switch").Input(data).Input(pred).Outputs();
  return out.empty() ? SwitchOutputs() : SwitchOutputs{out[0], out[1]};
}
MergeOutputs Merge(const Scope& s, const std::vector<Output>& inputs) {
  const std::vector<Output> out = s.Op("Merge").Input(inputs).Outputs();
  return out.empty() ? MergeOutputs() : MergeOutputs{out[0], out[1]};
}
Output Enter(const Scope& s, Output data, std::string_view frame_name, bool is_constant,
             int64_t parallel_iterations) {
  return s.Op("Enter")
      .Input(data)
      .Attr("frame_name", frame_name)
      .Attr("is_constant", is_constant)
      .Attr("parallel_iterations", parallel_iterations)
      .Output();
}
Output Exit(const Scope& s, Output data) { return s.Op("Exit").Input(data).Output(); }
Output NextIteration(const Scope& s, Output data) {
  return s.Op("NextIteration").Input(data).Output();
}
Output LoopCond(const Scope& s, Output input) { return s.Op("LoopCond").Input(input).Output(); }

}  // namespace tenon
