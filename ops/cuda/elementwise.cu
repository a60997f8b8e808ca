// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/device_kind.h"
#include "ops/cuda/elementwise.cuh"

#include "ops/arguments.h"
#include "ops/cuda/check.cuh"

namespace tenon::cuda {
namespace {

class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(KernelConstruction& c, const ElementwiseKernels<UnaryLaunch>& kernels)
      : Kernel(c), launch_(kernels.launches[static_cast<int>(BaseType(c.input_types()[0]))]) {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const void* in = x.raw_data();
    const int64_t n = x.num_elements();
    TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.ForwardOrAllocate(0, 0, x.shape()));
    if (n == 0) return OkStatus();
    launch_(StreamOf(ctx), in, y->raw_data(), n);
    return LaunchStatus();
  }

 private:
  const UnaryLaunch launch_;
};

class BinaryKernel final : public Kernel {
 public:
  BinaryKernel(KernelConstruction& c, const ElementwiseKernels<BinaryLaunch>& kernels)
      : Kernel(c),
        launch_(kernels.launches[static_cast<int>(BaseType(c.input_types()[0]))]),
        checks_(!kernels.error.empty() && IsInteger(BaseType(c.input_types()[0]))),
        error_(kernels.error),
        node_(c),
        same_shape_(kernels.same_shape),
        // A false result for shapes that do not fit is what Equal gives, a true one NotEqual.
        incompatible_is_result_(!c.attrs().GetOr("incompatible_shape_error", true)),
        incompatible_result_(c.op() == "NotEqual") {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor &x = ctx.input(0), &y = ctx.input(1);
    if (same_shape_) TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
    const StatusOr<BroadcastPlan> plan = PlanBroadcast({&x.shape(), &y.shape()});
    if (!plan.ok()) {
      return incompatible_is_result_ ? ReturnIncompatible(ctx) : plan.status();
    }
    TENON_ASSIGN_OR_RETURN(const BroadcastIndex<2> index, IndexBroadcast<2>(*plan, kPack));
    const void *a = x.raw_data(), *b = y.raw_data();
    // The result takes the memory of an operand of its size: no element of such an operand is read
    // after it was written.
    const bool first = x.num_elements() == plan->shape.num_elements() && x.HasOneReference();
    TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.ForwardOrAllocate(first ? 0 : 1, 0, plan->shape));
    if (index.count == 0) return OkStatus();
    RunCheck check;
    if (checks_) {
      check = AddCheck(ctx, node_, [error = error_](uint64_t) { return InvalidArgument(error); });
    }
    launch_(StreamOf(ctx), a, b, z->raw_data(), index, check);
    return LaunchStatus();
  }

 private:
  Status ReturnIncompatible(KernelContext& ctx) const {
    TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, Shape()));
    return QueueStatus(
        cudaMemsetAsync(z->raw_data(), incompatible_result_ ? 1 : 0, sizeof(bool), StreamOf(ctx)));
  }

  const BinaryLaunch launch_;
  const bool checks_;
  const std::string_view error_;
  const NodeIdentity node_;
  const bool same_shape_;
  const bool incompatible_is_result_, incompatible_result_;
};

template <typename K>
void Add(OpRegistry& ops, const auto& kernels) {
  OpBuilder op = ops.Get(kernels.name);
  KernelOptions options;
  if (op.schema().FindAttr("T") != nullptr) options.types = {{"T", kernels.types}};
  for (const KernelOptions& form : DeviceForms(op.schema(), options)) {
    op.AddKernel(kCuda, form,
                 [kernels](KernelConstruction& c) { return std::make_unique<K>(c, kernels); });
  }
}

}  // namespace

void AddUnaryKernels(OpRegistry& ops, const ElementwiseKernels<UnaryLaunch>& kernels) {
  Add<UnaryKernel>(ops, kernels);
}

void AddBinaryKernels(OpRegistry& ops, const ElementwiseKernels<BinaryLaunch>& kernels) {
  Add<BinaryKernel>(ops, kernels);
}

}  // namespace tenon::cuda
