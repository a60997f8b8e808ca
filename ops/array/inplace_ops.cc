// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/combine_rows.h"
#include "ops/composition.h"
#include "ops/elements.h"

namespace tenon {
namespace {

/// New memory, also where its values are not asked for: what another step left there is its own.
Status EmptyKernel(KernelContext& ctx, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out);
  return OkStatus();
}

Status DeepCopyKernel(KernelContext& ctx) { return ctx.Return(ctx.input(0).Copy()); }

Status CheckInplace(const Tensor& x, const Tensor& rows, const Tensor& v) {
  TENON_RETURN_IF_ERROR(CheckRank(rows, 1, "i"));
  if (x.rank() != v.rank()) {
    return InvalidArgument("x and v shape doesn't match (ranks differ): ", x.shape(), " vs. ",
                           v.shape());
  }
  if (x.rank() < 1) return InvalidArgument("x and v must be of rank 1 or more, found scalars");
  for (int d = 1; d < x.rank(); ++d) {
    if (x.dim(d) == v.dim(d)) continue;
    return InvalidArgument("x and v shape doesn't match at index ", d, " : ", x.shape(), " vs. ",
                           v.shape());
  }
  if (v.dim(0) != rows.dim(0)) {
    return InvalidArgument("i and x shape doesn't match at index 0: i has shape ", rows.shape(),
                           ", v has ", v.shape());
  }
  return OkStatus();
}

/// Rows are counted round: -1 is the last, and the number of rows the first again.
template <Update kUpdate>
Status InplaceKernel(KernelContext& ctx) {
  const Tensor x = ctx.input(0), v = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckInplace(x, ctx.input(1), v));
  TENON_ASSIGN_OR_RETURN(IndexVector rows, ReadIndices(ctx.input(1), "i"));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  CopyElements(x, 0, y, 0, x.num_elements());
  const int64_t n = x.dim(0);
  if (v.num_elements() == 0 || n == 0) return OkStatus();
  for (int64_t& row : rows) row = (row % n + n) % n;
  return CombineRows(kUpdate, v, rows, x.num_elements() / n, y);
}

Status ParallelConcatKernel(KernelContext& ctx, const PartialShape& shape) {
  if (!shape.IsFullyKnown() || shape.rank() < 1 || shape.dim(0) != ctx.num_inputs()) {
    if (shape.rank() > 0 && shape.dim(0) >= 0 && shape.dim(0) < ctx.num_inputs()) {
      return InvalidArgument("0th dimension of value = ", shape.dim(0), " must be greater than ",
                             "loc_ = ", shape.dim(0), ": there are ", ctx.num_inputs(), " inputs");
    }
    return InvalidArgument("shape is ", shape, ", wanted one of ", ctx.num_inputs(), " rows");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, shape.dims()));
  const Shape row = out->shape().WithDim(0, 1);
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    const Tensor& value = ctx.input(i);
    if (value.shape() != row) {
      return InvalidArgument("values[", i, "] has shape ", value.shape(), ", wanted ", row);
    }
    CopyElements(value, 0, out, i * row.num_elements(), row.num_elements());
  }
  return OkStatus();
}

Status ParallelConcatStartKernel(KernelContext& ctx, const PartialShape& shape) {
  if (!shape.IsFullyKnown()) return InvalidArgument("shape ", shape, " is not fully known");
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, shape.dims()));
  ZeroElements(out);
  return OkStatus();
}

Status ParallelConcatUpdateKernel(KernelContext& ctx, int64_t loc) {
  const Tensor &value = ctx.input(0), &update = ctx.input(1);
  if (value.rank() < 1 || value.dim(0) == 0 || update.shape() != value.shape().WithDim(0, 1)) {
    return InvalidArgument("update must be one row of value, found shapes ", update.shape(),
                           " and ", value.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor out, value.Copy());
  const int64_t n = value.dim(0);
  CopyElements(update, 0, &out, (loc % n + n) % n * update.num_elements(), update.num_elements());
  return ctx.Return(std::move(out));
}

Status ShapeOfAttr(ShapeContext& c) { return c.Return(c.Attr<PartialShape>("shape")); }

}  // namespace

void RegisterInplaceOps(OpRegistry& ops) {
  ops.Add(
         "Empty", [](ShapeContext& c) { return c.Return(c.ConstantShape(0)); }, EmptyKernel)
      .Example({Tensor::Vector({2, 3})}, {{"dtype", DType::kFloat}});
  ops.Add("DeepCopy", UnchangedShape, DeepCopyKernel).Example({Shape{2, 3}});
  const std::vector<ExampleInput> rows = {Shape{3, 2}, Tensor::Vector({-1, 0}), Shape{2, 2}};
  const auto inplace = [&](std::string_view name, auto kernel, DTypeVector types) {
    ops.Add(name, UnchangedShape, kernel, {.types = {{"T", std::move(types)}}}).Example(rows);
  };
  using ScalarTypes = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));
  inplace("InplaceUpdate", InplaceKernel<Update::kAssign>, DTypesOf(ScalarTypes()));
  inplace("InplaceAdd", InplaceKernel<Update::kAdd>, DTypesOf(NumericTypes()));
  inplace("InplaceSub", InplaceKernel<Update::kSubtract>, DTypesOf(NumericTypes()));
  ops.Add("ParallelConcat", ShapeOfAttr, ParallelConcatKernel, {.attrs = {"shape"}})
      .Example({Shape{1, 3}, Shape{1, 3}}, {{"shape", PartialShape{2, 3}}, {"N", 2}});
  ops.Add("_ParallelConcatStart", ShapeOfAttr, ParallelConcatStartKernel, {.attrs = {"shape"}})
      .Example({}, {{"shape", PartialShape{2, 3}}, {"dtype", DType::kFloat}});
  ops.Add("_ParallelConcatUpdate", UnchangedShape, ParallelConcatUpdateKernel, {.attrs = {"loc"}})
      .Example({Shape{2, 3}, Shape{1, 3}}, {{"loc", 1}});
}

}  // namespace tenon
