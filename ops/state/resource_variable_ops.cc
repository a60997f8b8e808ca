// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/array/gather.h"
#include "ops/inline_kernel.h"
#include "ops/state/register.h"
#include "ops/state/state_ops.h"
#include "ops/training/training_ops.h"
#include "ops/state/variable_update.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

class VarHandleKernel final : public Kernel {
 public:
  explicit VarHandleKernel(KernelConstruction& c) : Kernel(c) {
    ResourceHandle handle;
    handle.device = c.device().name();
    handle.container = c.Attr<std::string>("container");
    if (handle.container.empty()) handle.container = c.device().resources().default_container();
    handle.name = c.Attr<std::string>("shared_name");
    if (handle.name.empty()) handle.name = c.name();
    handle.type_name = "N10tensorflow3VarE";
    handle.dtypes_and_shapes = {{c.Attr<DType>("dtype"), c.Attr<PartialShape>("shape")}};
    handle_ = Tensor::Scalar(std::move(handle));
  }
  Status Compute(KernelContext& ctx) const override {
    ctx.set_output(0, handle_);
    return OkStatus();
  }
  bool is_expensive() const override { return false; }
  const Tensor* constant() const override { return &handle_; }

 private:
  Tensor handle_;
};

/// A kernel whose first input is the handle of a variable.
class HandleKernel : public Kernel {
 public:
  explicit HandleKernel(KernelConstruction& c)
      : Kernel(c), dtype_(c.attrs().GetOr("dtype", DType::kInvalid)) {}
  bool is_expensive() const override { return false; }

 protected:
  StatusOr<std::shared_ptr<VariableResource>> Find(const KernelContext& ctx) const {
    return variable_.Find(ctx, dtype_);
  }
  /// Its value; FailedPrecondition when there is none.
  StatusOr<Tensor> Read(const KernelContext& ctx) const {
    TENON_ASSIGN_OR_RETURN(const std::shared_ptr<VariableResource> variable, Find(ctx));
    Tensor value = variable->Read();
    if (value.valid()) return value;
    return UninitializedVariable(ctx.resources(), ctx.input(0).scalar<ResourceHandle>());
  }
  DType dtype() const { return dtype_; }

 private:
  const DType dtype_;
  VariableInput variable_;
};

class ReadKernel final : public HandleKernel {
 public:
  using HandleKernel::HandleKernel;
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(Tensor value, Read(ctx));
    ctx.set_output(0, std::move(value));
    return OkStatus();
  }
};

class VariableShapeKernel final : public HandleKernel {
 public:
  using HandleKernel::HandleKernel;
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const Tensor value, Read(ctx));
    TENON_ASSIGN_OR_RETURN(Tensor shape, ShapeTensor(value.shape(), ctx.output_type(0)));
    ctx.set_output(0, std::move(shape));
    return OkStatus();
  }
};

class AssignVariableKernel final : public Kernel {
 public:
  explicit AssignVariableKernel(KernelConstruction& c)
      : Kernel(c),
        dtype_(c.Attr<DType>("dtype")),
        validate_shape_(c.Attr<bool>("validate_shape")) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
    auto found = cache_.Find(ctx.resources(), *handle);
    if (!found.ok()) {
      PartialShape declared;
      if (!handle->dtypes_and_shapes.empty()) declared = handle->dtypes_and_shapes[0].second;
      found = ctx.resources().LookupOrCreate<VariableResource>(handle->container, handle->name, [&] {
        return std::make_shared<VariableResource>(dtype_, declared, std::string(handle->name));
      });
      TENON_RETURN_IF_ERROR(found);
    }
    VariableResource& variable = **found;
    if (variable.dtype() != dtype_) {
      return InvalidArgument("Trying to assign variable with wrong dtype. Expected ",
                             ToString(variable.dtype()), " got ", ToString(dtype_));
    }
    TENON_ASSIGN_OR_RETURN(Tensor value, ForVariable(ctx.TakeInput(1)));
    if (validate_shape_) {
      const Tensor current = variable.Read();
      const PartialShape wanted = current.valid() ? current.shape() : variable.shape();
      if (!wanted.IsCompatibleWith(value.shape())) {
        return InvalidArgument(
            "Trying to assign to variable with tensor with wrong shape. "
            "Expected ",
            wanted.ToString(), " got ", value.shape().ToString());
      }
    }
    variable.Assign(std::move(value));
    return OkStatus();
  }
  bool is_expensive() const override { return false; }

 private:
  const DType dtype_;
  const bool validate_shape_;
  ResourceCache<VariableResource> cache_;
};

template <Update kUpdate>
class AssignUpdateKernel final : public HandleKernel {
 public:
  using HandleKernel::HandleKernel;
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const std::shared_ptr<VariableResource> variable, Find(ctx));
    return UpdateVariable(variable.get(), kUpdate, ctx.input(1));
  }
};

class IsInitializedKernel final : public HandleKernel {
 public:
  using HandleKernel::HandleKernel;
  Status Compute(KernelContext& ctx) const override {
    TENON_RETURN_IF_ERROR(HandleInput(ctx, 0));
    const auto variable = Find(ctx);
    ctx.set_output(0, Tensor::Scalar(variable.ok() && (*variable)->initialized()));
    return OkStatus();
  }
};

class DestroyKernel final : public Kernel {
 public:
  explicit DestroyKernel(KernelConstruction& c)
      : Kernel(c), ignore_missing_(c.Attr<bool>("ignore_lookup_error")) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
    const Status deleted = ctx.resources().Delete(handle->container, VariableResource::kKind, handle->name);
    return ignore_missing_ ? OkStatus() : deleted;
  }

 private:
  const bool ignore_missing_;
};

class ResourceGatherKernel final : public HandleKernel {
 public:
  explicit ResourceGatherKernel(KernelConstruction& c)
      : HandleKernel(c), batch_dims_(c.Attr<int64_t>("batch_dims")) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const Tensor value, Read(ctx));
    const Tensor& indices = ctx.input(1);
    TENON_ASSIGN_OR_RETURN(const int batch_dims, NormalizeBatchDims(batch_dims_, indices.rank()));
    if (batch_dims >= value.rank()) {
      return InvalidArgument("params must be at least rank ", batch_dims + 1, ", found shape ",
                             value.shape().ToString());
    }
    TENON_ASSIGN_OR_RETURN(Tensor out, GatherSlices(value, indices, batch_dims, batch_dims));
    ctx.set_output(0, std::move(out));
    return OkStatus();
  }
  bool is_expensive() const override { return true; }

 private:
  const int64_t batch_dims_;
};

Status HandleValueShape(ShapeContext& c) {
  c.set_output(0, c.HandleShape(0));
  return OkStatus();
}

Status VariableShapeShape(ShapeContext& c) {
  const PartialShape shape = c.HandleShape(0);
  c.set_output(0, shape.rank_known() ? PartialShape{shape.rank()} : PartialShape::OfRank(1));
  return OkStatus();
}

Status ResourceGatherShape(ShapeContext& c) {
  const PartialShape params = c.HandleShape(0), indices = c.input(1);
  TENON_ASSIGN_OR_RETURN(const int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
  if (!params.rank_known() || !indices.rank_known() || params.rank() < 1 || batch_dims != 0) {
    return OkStatus();
  }
  DimVector dims(indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), params.dims().begin() + 1, params.dims().end());
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(dims));
  c.set_output(0, std::move(out));
  return OkStatus();
}

void ReadGrad(GradContext& g) { g.dx(0) = g.dy(0); }

/// The gradient of the variable as a dense tensor: the rows of dy added up at their indices.
void ResourceGatherGrad(GradContext& g) {
  if (g.Attr<int64_t>("batch_dims", 0) != 0) {
    return g.Fail(Unimplemented("the gradient of ResourceGather with batch_dims cannot be built"));
  }
  const Output rows = Gather(VariableShape(g.in(0)), 0);
  g.dx(0) = UnsortedSegmentSum(g.dy(0), g.in(1), rows);
}

constexpr char kNeedsVariable[] = "needs a variable; resource_variable_ops_test covers it";

void RegisterReading(OpRegistry& ops) {
  ops.Get("VarHandleOp")
      .Shape(ScalarShape)
      .Kernel<VarHandleKernel>(kCpu)
      .NoExample(kNeedsVariable);
  ops.Get("ReadVariableOp")
      .Shape(HandleValueShape)
      .Kernel<ReadKernel>(kCpu, {.host_args = {"resource"}})
      .Grad(ReadGrad)
      .NoExample(kNeedsVariable);
  ops.Get("VarIsInitializedOp")
      .Shape(ScalarShape)
      .Kernel<IsInitializedKernel>(kCpu, {.host_args = {"resource", "is_initialized"}})
      .NotDifferentiable()
      .NoExample(kNeedsVariable);
  ops.Get("VariableShape")
      .Shape(VariableShapeShape)
      .Kernel<VariableShapeKernel>(kCpu, {.host_args = {"input", "output"}})
      .NotDifferentiable()
      .NoExample(kNeedsVariable);
  ops.Get("ResourceGather")
      .Shape(ResourceGatherShape)
      .Kernel<ResourceGatherKernel>(kCpu, {.host_args = {"resource"}})
      .Grad(ResourceGatherGrad)
      .NoExample(kNeedsVariable);
}

template <Update kUpdate>
void AddAssignVariableUpdate(OpRegistry& ops, std::string_view name) {
  ops.Get(name)
      .Shape(NoOutputShape)
      .Kernel<AssignUpdateKernel<kUpdate>>(
          kCpu, {.types = {{"dtype", DTypesOf(NumericTypes())}}, .host_args = {"resource"}})
      .NoExample(kNeedsVariable);
}

}  // namespace

void RegisterResourceVariableOps(OpRegistry& ops) {
  RegisterReading(ops);
  ops.Get("AssignVariableOp")
      .Shape(NoOutputShape)
      .Kernel<AssignVariableKernel>(kCpu, {.host_args = {"resource"}})
      .NoExample(kNeedsVariable);
  AddAssignVariableUpdate<Update::kAdd>(ops, "AssignAddVariableOp");
  AddAssignVariableUpdate<Update::kSubtract>(ops, "AssignSubVariableOp");
  ops.Get("DestroyResourceOp")
      .Shape(NoOutputShape)
      .Kernel<DestroyKernel>(kCpu, {.host_args = {"resource"}})
      .NoExample(kNeedsVariable);
}

}  // namespace tenon
