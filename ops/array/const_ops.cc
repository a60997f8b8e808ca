// SPDX-License-Identifier: Apache-2.0
#include "core/gradient/gradients.h"
#include "core/op/function_kernel.h"
#include "core/op/op_registry.h"

namespace tenon {
namespace {

Status CheckValue(const Tensor& value, DType dtype) {
  if (value.dtype() == dtype) return OkStatus();
  return InvalidArgument("the value is ", value.dtype(), ", but attr 'dtype' is ", dtype);
}

class ConstKernel final : public Kernel {
 public:
  explicit ConstKernel(KernelConstruction& c) : Kernel(c), value_(c.Attr<Tensor>("value")) {
    c.Fail(CheckValue(value_, BaseType(c.output_types()[0])));
  }
  Status Compute(KernelContext& ctx) const override { return ctx.Return(value_); }
  bool is_expensive() const override { return false; }
  const Tensor* constant() const override { return value_.valid() ? &value_ : nullptr; }

 private:
  const Tensor value_;
};

Status ConstShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, c.Attr<Tensor>("value"));
  TENON_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("dtype"));
  TENON_RETURN_IF_ERROR(CheckValue(value, dtype));
  return c.Return(value.shape());
}

/// Runs only when nobody fed the placeholder; then it is its default, if it has one.
Status PlaceholderKernel(KernelContext& ctx, const NodeName& node, const PartialShape& shape) {
  if (ctx.num_inputs() == 0) {
    return InvalidArgument("You must feed a value for placeholder tensor '", node.value,
                           "' with dtype ", ctx.output_type(0),
                           shape.rank() > 0 ? StrCat(" and shape ", shape) : "");
  }
  const Shape& found = ctx.input(0).shape();
  if (shape.IsCompatibleWith(found)) return ctx.Return(ctx.TakeInput(0));
  return InvalidArgument("the default value of placeholder '", node.value, "' has shape ", found,
                         ", wanted ", shape);
}

Status PlaceholderShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  if (c.num_inputs() == 0 || shape.IsCompatibleWith(c.input(0))) return c.Return(std::move(shape));
  return InvalidArgument("the default value has shape ", c.input(0), ", wanted ", shape);
}

Status ForwardAllKernel(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_outputs(); ++i) ctx.set_output(i, ctx.TakeInput(i));
  return OkStatus();
}

Status GuaranteeConstKernel(KernelContext& ctx) {
  if (ctx.input(0).dtype() == DType::kResource) {
    return InvalidArgument("Input tensor cannot be a resource variable handle");
  }
  return ForwardAllKernel(ctx);
}

Status UnchangedShapes(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(i));
  return OkStatus();
}

void PassGradients(GradContext& g) {
  for (int i = 0; i < g.num_inputs(); ++i) g.dx(i) = g.dy(i);
}

void RefuseGradient(GradContext& g) {
  g.Fail(InvalidArgument("gradient explicitly disabled: ", g.Attr<std::string>("message")));
}

Status EnsureShapeKernel(KernelContext& ctx, const PartialShape& shape, const NodeName& node) {
  if (shape.IsCompatibleWith(ctx.input(0).shape())) return ctx.Return(ctx.TakeInput(0));
  return InvalidArgument("Shape of tensor ", node.value, " ", ctx.input(0).shape(),
                         " is not compatible with expected shape ", shape);
}

Status EnsureShapeShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
  if (shape.rank() == 0 && c.input(0).rank() > 0) {
    return InvalidArgument("the input must be a scalar, found shape ", c.input(0));
  }
  return c.Return(c.input(0).MergeWith(shape));
}

}  // namespace

void RegisterConstOps(OpRegistry& ops) {
  const std::pair<const char*, KernelMemory> constants[] = {{"Const", KernelMemory::kDevice},
                                                            {"HostConst", kHostMemory}};
  for (const auto& [name, memory] : constants) {
    ops.Add<ConstKernel>(name, ConstShape, {.memory = memory})
        .Example({},
                 {{"value", Tensor::Of<float>({2, 2}, {1, 2, 3, 4})}, {"dtype", DType::kFloat}});
  }
  for (const char* name : {"_CopyToDevice", "_CopyToHost"}) {
    ops.Get(name)
        .Shape(UnchangedShape)
        .NoExample("needs two memories; simulated_device_test covers it");
  }
  ops.Get("_CaptureKernel")
      .Shape(UnknownShape)
      .NoExample("stands for others; captures_test covers it");
  const KernelOptions with_shape = {.attrs = {"shape"}, .cheap = true, .memory = kAnyMemory};
  for (const char* name : {"Placeholder", "PlaceholderV2"}) {
    ops.Add(name, PlaceholderShape, PlaceholderKernel, with_shape)
        .NoExample("has no value of its own; const_ops_test covers it");
  }
  ops.Add("PlaceholderWithDefault", PlaceholderShape, PlaceholderKernel, with_shape)
      .Grad(PassGradients)
      .Example({Shape{2, 3}}, {{"shape", PartialShape{-1, 3}}});
  ops.Add("EnsureShape", EnsureShapeShape, EnsureShapeKernel, with_shape)
      .Grad(PassGradients)
      .Example({Shape{2, 3}}, {{"shape", PartialShape{-1, 3}}});
  const auto identity = [&](std::string_view name) {
    return ops.Add(name, UnchangedShapes, ForwardAllKernel, {.cheap = true, .memory = kAnyMemory});
  };
  identity("Identity").Grad(PassGradients).Example({Shape{2, 3}});
  identity("IdentityN")
      .Grad(PassGradients)
      .Example({Shape{2, 3}, Tensor::Vector({1, 2})},
               {{"T", DTypeVector{DType::kFloat, DType::kInt32}}});
  identity("StopGradient").Example({Shape{2, 3}});
  ops.Add("GuaranteeConst", UnchangedShapes, GuaranteeConstKernel,
          {.cheap = true, .memory = kAnyMemory})
      .Example({Shape{2, 3}});
  identity("PreventGradient")
      .Grad(RefuseGradient)
      .NoExample("its gradient is an error; const_ops_test covers it");
}

}  // namespace tenon
