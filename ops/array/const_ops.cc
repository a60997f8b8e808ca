// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/array/array_ops.h"
#include "ops/inline_kernel.h"
#include "ops/array/register.h"

namespace tenon {
namespace {

class ConstKernel final : public Kernel {
 public:
  explicit ConstKernel(KernelConstruction& c) : Kernel(c), value_(c.Attr<Tensor>("value")) {
    if (!c.status().ok()) return;
    if (value_.dtype() != BaseType(c.output_types()[0])) {
      c.Fail(InvalidArgument("the value is ", ToString(value_.dtype()), ", but attr 'dtype' is ",
                             ToString(BaseType(c.output_types()[0]))));
    }
  }
  Status Compute(KernelContext& ctx) const override {
    ctx.set_output(0, value_);
    return OkStatus();
  }
  bool is_expensive() const override { return false; }
  const Tensor* constant() const override { return value_.valid() ? &value_ : nullptr; }

 private:
  const Tensor value_;
};

Status ConstShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, c.Attr<Tensor>("value"));
  TENON_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("dtype"));
  if (value.dtype() != dtype) {
    return InvalidArgument("the value is ", ToString(value.dtype()), ", but attr 'dtype' is ",
                           ToString(dtype));
  }
  c.set_output(0, value.shape());
  return OkStatus();
}

/// Runs only when nobody fed the placeholder.
class PlaceholderKernel final : public Kernel {
 public:
  explicit PlaceholderKernel(KernelConstruction& c)
      : Kernel(c), shape_(c.Attr<PartialShape>("shape")) {}
  Status Compute(KernelContext& ctx) const override {
    const std::string shape = shape_.rank() > 0 ? StrCat(" and shape ", shape_.ToString()) : "";
    return InvalidArgument("You must feed a value for placeholder tensor '", name(),
                           "' with dtype ", ToString(ctx.output_type(0)), shape);
  }
  bool is_expensive() const override { return false; }

 private:
  const PartialShape shape_;
};

Status AttrShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

class PlaceholderWithDefaultKernel final : public Kernel {
 public:
  explicit PlaceholderWithDefaultKernel(KernelConstruction& c)
      : Kernel(c), shape_(c.Attr<PartialShape>("shape")) {}
  Status Compute(KernelContext& ctx) const override {
    const Shape& found = ctx.input(0).shape();
    if (!shape_.IsCompatibleWith(found)) {
      return InvalidArgument("the default value of placeholder '", name(), "' has shape ",
                             found.ToString(), ", wanted ", shape_.ToString());
    }
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  bool is_expensive() const override { return false; }

 private:
  const PartialShape shape_;
};

Status PlaceholderWithDefaultShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  if (!shape.IsCompatibleWith(c.input(0))) {
    return InvalidArgument("the default value has shape ", c.input(0).ToString(), ", wanted ",
                           shape.ToString());
  }
  c.set_output(0, std::move(shape));
  return OkStatus();
}

Status ForwardAll(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_outputs(); ++i) ctx.set_output(i, ctx.TakeInput(i));
  return OkStatus();
}
using ForwardAllKernel = InlineKernel<ForwardAll>;

Status DoNothing(KernelContext&) { return OkStatus(); }
using NothingKernel = InlineKernel<DoNothing>;

Status UnchangedShapes(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return OkStatus();
}

void PassGradients(GradContext& g) { g.dxs() = g.dys(); }

void RefuseGradient(GradContext& g) {
  g.Fail(InvalidArgument("gradient explicitly disabled: ", g.Attr<std::string>("message")));
}

void RegisterPlaceholders(OpRegistry& ops) {
  ops.Get("Placeholder")
      .Shape(AttrShape)
      .Kernel<PlaceholderKernel>(kCpu)
      .NoExample("has no value of its own; const_ops_test covers it");
  ops.Get("PlaceholderV2")
      .Shape(AttrShape)
      .Kernel<PlaceholderKernel>(kCpu)
      .NoExample("has no value of its own; const_ops_test covers it");
  ops.Get("PlaceholderWithDefault")
      .Shape(PlaceholderWithDefaultShape)
      .Kernel<PlaceholderWithDefaultKernel>(kCpu)
      .Grad(PassGradients)
      .Example({Shape{2, 3}}, {{"shape", PartialShape{-1, 3}}});
}

void RegisterIdentities(OpRegistry& ops) {
  ops.Get("Identity")
      .Shape(UnchangedShape)
      .Kernel<ForwardAllKernel>(kCpu)
      .Grad(PassGradients)
      .Example({Shape{2, 3}});
  ops.Get("IdentityN")
      .Shape(UnchangedShapes)
      .Kernel<ForwardAllKernel>(kCpu)
      .Grad(PassGradients)
      .Example({Shape{2, 3}, Tensor::Vector<int32_t>({1, 2})},
               {{"T", DTypeVector{DType::kFloat, DType::kInt32}}});
  ops.Get("StopGradient")
      .Shape(UnchangedShape)
      .Kernel<ForwardAllKernel>(kCpu)
      .NotDifferentiable()
      .Example({Shape{2, 3}});
  ops.Get("PreventGradient")
      .Shape(UnchangedShape)
      .Kernel<ForwardAllKernel>(kCpu)
      .Grad(RefuseGradient)
      .NoExample("its gradient is an error; const_ops_test covers it");
}

}  // namespace

void RegisterConstOps(OpRegistry& ops) {
  ops.Get("Const")
      .Shape(ConstShape)
      .Kernel<ConstKernel>(kCpu)
      .NotDifferentiable()
      .Example({}, {{"value", Tensor::Of<float>({2, 2}, {1, 2, 3, 4})}, {"dtype", DType::kFloat}});
  RegisterPlaceholders(ops);
  RegisterIdentities(ops);
  ops.Get("NoOp")
      .Shape(NoOutputShape)
      .Kernel<NothingKernel>(kCpu)
      .Example({});
  ops.Get("ControlTrigger")
      .Shape(NoOutputShape)
      .Kernel<NothingKernel>(kCpu)
      .Example({});
}

}  // namespace tenon
