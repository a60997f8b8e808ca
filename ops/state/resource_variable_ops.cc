// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/gather.h"
#include "ops/composition.h"
#include "ops/state/assign.h"
#include "ops/state/named_handle.h"
#include "ops/state/state_ops.h"
#include "ops/state/variable_update.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

class VarHandleKernel final : public Kernel {
 public:
  explicit VarHandleKernel(KernelConstruction& c) : Kernel(c) {
    ResourceHandle handle = NamedHandle(c, "N10tensorflow3VarE");
    handle.dtypes_and_shapes = {{c.Attr<DType>("dtype"), c.Attr<PartialShape>("shape")}};
    handle_ = Tensor::Scalar(std::move(handle));
  }
  Status Compute(KernelContext& ctx) const override { return ctx.Return(handle_); }
  bool is_expensive() const override { return false; }
  const Tensor* constant() const override { return &handle_; }

 private:
  Tensor handle_;
};

Status ReadKernel(KernelContext& ctx, const VariableInput& input) {
  return ctx.Return(ReadVariable(ctx, input, ctx.output_type(0)));
}

Status VariableShapeKernel(KernelContext& ctx, const VariableInput& input) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(ctx, input, DType::kInvalid));
  return ctx.Return(ShapeTensor(value.shape(), ctx.output_type(0)));
}

Status AssignVariableKernel(KernelContext& ctx, const ResourceCache<VariableResource>& cache,
                            bool validate_shape) {
  return AssignToHandle(ctx, cache, validate_shape);
}

template <Update kUpdate>
Status AssignUpdateResourceKernel(KernelContext& ctx, const VariableInput& input) {
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, ctx.input(1).dtype()));
  return UpdateVariable(variable.get(), kUpdate, ctx.input(1));
}

Status IsResourceInitializedKernel(KernelContext& ctx, const VariableInput& input) {
  TENON_RETURN_IF_ERROR(HandleInput(ctx, 0));
  const auto variable = input.Find(ctx, DType::kInvalid);
  return ctx.Return(Tensor::Scalar(variable.ok() && (*variable)->initialized()));
}

Status DestroyKernel(KernelContext& ctx, bool ignore_lookup_error) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  const Status deleted =
      ctx.resources().Delete(handle->container, VariableResource::kKind, handle->name);
  return ignore_lookup_error ? OkStatus() : deleted;
}

Status ResourceGatherKernel(KernelContext& ctx, const VariableInput& input, int64_t batch_dims) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(ctx, input, ctx.output_type(0)));
  const Tensor& indices = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeBatchDims(batch_dims, indices.rank()));
  TENON_RETURN_IF_ERROR(CheckGatherAxis(value.shape(), axis));
  return ctx.Return(GatherSlices(value, indices, axis, axis));
}

Status ResourceGatherNdKernel(KernelContext& ctx, const VariableInput& input) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(ctx, input, ctx.output_type(0)));
  return ctx.Return(GatherTuples(value, ctx.input(1)));
}

Status VariableShapeShape(ShapeContext& c) {
  return c.Return(PartialShape{c.HandleShape(0).rank()});
}

Status ResourceGatherShape(ShapeContext& c) {
  const PartialShape params = c.HandleShape(0);
  TENON_ASSIGN_OR_RETURN(const int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
  if (params.rank() < 1 || batch_dims != 0) return OkStatus();
  return c.Return(c.input(1).ConcatWith(params.Part(1)));
}

Status ResourceGatherNdShape(ShapeContext& c) {
  return c.Return(GatherTuplesShape(c.HandleShape(0), c.input(1)));
}

Status ResourceGatherGrad(GradContext& g) {
  const Output indices = g.in(1);
  const int64_t batch_dims = g.Attr<int64_t>("batch_dims", 0);
  const int64_t axis = batch_dims < 0 && indices.shape().rank_known()
                           ? batch_dims + indices.shape().rank()
                           : batch_dims;
  const Output shape = VariableShape(g.in(0), {.out_type = indices.dtype()});
  if (axis == 0 && batch_dims == 0) {
    g.dx_slices(0) = GatheredSlices(shape, indices, g.dy(0));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(g.dx(0), GatherGradient(shape, indices, g.dy(0), axis, batch_dims));
  return OkStatus();
}

}  // namespace

void RegisterResourceVariableOps(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample(
        "needs a variable; resource_variable_ops_test covers it");
  };
  const KernelOptions cheap = {.cheap = true, .memory = kAnyMemory};
  const KernelOptions numeric = {.types = {{"dtype", DTypesOf(NumericTypes())}}, .cheap = true};
  get("VarHandleOp", ScalarShape).Kernel<VarHandleKernel>(kCpu, {.memory = kAnyMemory});
  get("ReadVariableOp", [](ShapeContext& c) { return c.Return(c.HandleShape(0)); })
      .Kernel(kCpu, ReadKernel, cheap)
      .Grad([](GradContext& g) { g.dx(0) = g.dy(0); });
  get("VarIsInitializedOp", ScalarShape).Kernel(kCpu, IsResourceInitializedKernel, cheap);
  get("VariableShape", VariableShapeShape).Kernel(kCpu, VariableShapeKernel, cheap);
  get("ResourceGather", ResourceGatherShape)
      .Kernel(kCpu, ResourceGatherKernel, {.attrs = {"batch_dims"}})
      .Grad(ResourceGatherGrad);
  get("ResourceGatherNd", ResourceGatherNdShape)
      .Kernel(kCpu, ResourceGatherNdKernel)
      .Grad([](GradContext& g) {
        const Output shape = VariableShape(g.in(0), {.out_type = g.in(1).dtype()});
        g.dx(0) = ScatterNd(g.in(1), g.dy(0), shape);
      });
  get("AssignVariableOp", NoOutputShape)
      .Kernel(kCpu, AssignVariableKernel,
              {.attrs = {"validate_shape"}, .cheap = true, .memory = kAnyMemory});
  get("AssignAddVariableOp", NoOutputShape)
      .Kernel(kCpu, AssignUpdateResourceKernel<Update::kAdd>, numeric);
  get("AssignSubVariableOp", NoOutputShape)
      .Kernel(kCpu, AssignUpdateResourceKernel<Update::kSubtract>, numeric);
  get("DestroyResourceOp", NoOutputShape)
      .Kernel(kCpu, DestroyKernel, {.attrs = {"ignore_lookup_error"}, .memory = kAnyMemory});
}

}  // namespace tenon
