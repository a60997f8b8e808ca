// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/queues/accumulator.h"
#include "ops/state/resource_node.h"

namespace tenon {
namespace {

/// The accumulator of input 0.
StatusOr<std::shared_ptr<Accumulator>> AccumulatorInput(const KernelContext& ctx) {
  return ResourceInput<Accumulator>(ctx);
}

Status CheckKind(const Accumulator& accumulator, DType type, bool is_sparse) {
  if (accumulator.is_sparse() != is_sparse) {
    return InvalidArgument("the accumulator is of ", is_sparse ? "dense" : "sparse",
                           " gradients, wanted one of ", is_sparse ? "sparse" : "dense", " ones");
  }
  if (accumulator.dtype() == type) return OkStatus();
  return InvalidArgument("the accumulator's gradients are ", accumulator.dtype(), ", wanted ",
                         type);
}

Status AddKernel(KernelContext& ctx, const Tensor&, Integer step, DType dtype) {
  TENON_ASSIGN_OR_RETURN(const auto accumulator, AccumulatorInput(ctx));
  TENON_RETURN_IF_ERROR(CheckKind(*accumulator, dtype, /*is_sparse=*/false));
  return accumulator->Add(step, ctx);
}

Status AddSparseKernel(KernelContext& ctx, DType dtype, bool has_known_shape) {
  TENON_ASSIGN_OR_RETURN(const auto accumulator, AccumulatorInput(ctx));
  TENON_RETURN_IF_ERROR(CheckKind(*accumulator, dtype, /*is_sparse=*/true));
  TENON_ASSIGN_OR_RETURN(const int64_t step, ReadInteger(ctx.input(1), "local_step"));
  if (has_known_shape) {
    const auto& sparse = static_cast<const SparseAccumulator&>(*accumulator);
    TENON_RETURN_IF_ERROR(sparse.CheckShape(ctx.input(4)));
  }
  return accumulator->Add(step, ctx);
}

class TakeKernel final : public AsyncKernel {
 public:
  explicit TakeKernel(KernelConstruction& c) : AsyncKernel(c), dtype_(c.Attr<DType>("dtype")) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const StatusOr<std::shared_ptr<Accumulator>> accumulator = AccumulatorInput(ctx);
    if (!accumulator.ok()) return done(accumulator.status());
    const Status fits = CheckKind(**accumulator, dtype_, ctx.num_outputs() > 1);
    if (!fits.ok()) return done(fits);
    const StatusOr<int64_t> count = ReadInteger(ctx.input(1), "num_required");
    if (!count.ok()) return done(count.status());
    (*accumulator)->Take(*count, ctx, std::move(done));
  }

 private:
  const DType dtype_;
};

Status CountKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const auto accumulator, AccumulatorInput(ctx));
  return ctx.Return(Tensor::Scalar(static_cast<int32_t>(accumulator->count())));
}

Status SetStepKernel(KernelContext& ctx, const Tensor&, Integer step) {
  TENON_ASSIGN_OR_RETURN(const auto accumulator, AccumulatorInput(ctx));
  accumulator->SetStep(step);
  return OkStatus();
}

}  // namespace

void RegisterAccumulatorOps(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample(
        "needs an accumulator; accumulator_ops_test covers it");
  };
  const KernelOptions floats = {.types = {{"dtype", DTypesOf(FloatTypes())}}};
  KernelOptions add = floats;
  add.attrs = {"dtype"};
  // The ops of TensorFlow 1 give and take references, the others resource handles.
  for (const std::string_view kind : {"", "Resource"}) {
    const auto name = [kind](std::string_view rest) { return StrCat(kind, rest); };
    get(name("ConditionalAccumulator"), kind.empty() ? ReferenceShape : ScalarShape)
        .Kernel<ResourceNodeKernel<DenseAccumulator>>(kCpu, floats);
    get(name("AccumulatorApplyGradient"), NoOutputShape).Kernel(kCpu, AddKernel, add);
    get(name("AccumulatorTakeGradient"), UnknownShape).Kernel<TakeKernel>(kCpu, floats);
    get(name("AccumulatorNumAccumulated"), ScalarShape).Kernel(kCpu, CountKernel);
    get(name("AccumulatorSetGlobalStep"), NoOutputShape).Kernel(kCpu, SetStepKernel);
  }
  get("SparseConditionalAccumulator", ReferenceShape)
      .Kernel<ResourceNodeKernel<SparseAccumulator>>(kCpu, floats);
  add.attrs = {"dtype", "has_known_shape"};
  get("SparseAccumulatorApplyGradient", NoOutputShape).Kernel(kCpu, AddSparseKernel, add);
  get("SparseAccumulatorTakeGradient", DeclaredShape).Kernel<TakeKernel>(kCpu, floats);
}

}  // namespace tenon
