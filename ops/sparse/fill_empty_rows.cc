// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/fill_empty_rows.h"

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/sparse/sparse_ops.h"

namespace tenon {

StatusOr<SparseEntries> FillEmptyRows(KernelContext& ctx, const SparseTensor& in) {
  if (in.rank() == 0) return InvalidArgument("Dense shape cannot be empty.");
  const int64_t rows = in.dims[0];
  for (int64_t i = 0; i < in.size(); ++i) {
    const int64_t row = in.index(i)[0];
    if (row >= 0 && row < rows) continue;
    return InvalidArgument("indices(", i, ", 0) is invalid: ", row, " is not in [0, ", rows, ")");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * empty, ctx.AllocateOutput(2, {rows}));
  TENON_ASSIGN_OR_RETURN(Tensor * reverse, ctx.AllocateOutput(3, {in.size()}));
  std::fill_n(empty->data<bool>(), rows, true);
  CountedVector<int64_t> starts(rows + 1, 0);
  for (int64_t i = 0; i < in.size(); ++i) {
    empty->data<bool>()[in.index(i)[0]] = false;
    ++starts[in.index(i)[0]];
  }
  int64_t end = 0;
  for (int64_t& start : starts) end += std::exchange(start, end);
  CountedVector<int64_t> order(in.size());
  for (int64_t i = 0; i < in.size(); ++i) order[starts[in.index(i)[0]]++] = i;
  SparseEntries out(in.rank());
  DimVector first_column(in.rank(), 0);
  auto next = order.begin();
  for (int64_t row = 0; row < rows; ++row) {
    if (row % kStepsBetweenLooks == 0 && Interrupted()) break;
    first_column[0] = row;
    if (empty->data<bool>()[row]) out.Add(first_column, ~int64_t{0});
    for (; next != order.end() && in.index(*next)[0] == row; ++next) {
      reverse->data<int64_t>()[*next] = out.size();
      out.Add(in.index(*next), *next);
    }
  }
  TENON_RETURN_IF_ERROR(out.WriteValues(ctx, 1, in.values, ctx.input(3)));
  return out;
}

Status FillEmptyRowsGradKernel(KernelContext& ctx) {
  const Tensor &map = ctx.input(0), &grad = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckRank(map, 1, "reverse_index_map"));
  TENON_RETURN_IF_ERROR(CheckRank(grad, 1, "grad_values"));
  TENON_ASSIGN_OR_RETURN(const IndexVector places, ReadIndices(map, "reverse_index_map"));
  for (const int64_t place : places) {
    if (place >= 0 && place < grad.dim(0)) continue;
    return InvalidArgument("Elements in reverse index must be in [0, ", grad.dim(0), ") but got ",
                           place);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * d_values, ctx.AllocateOutput(0, map.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * d_default, ctx.AllocateOutput(1, Shape()));
  return DispatchStatus(grad.dtype(), NumericTypes(), [&]<typename T>(T) {
    const T* in = grad.data<T>();
    CountedVector<char> taken(grad.dim(0), 0);
    for (size_t i = 0; i < places.size(); ++i) {
      d_values->data<T>()[i] = in[places[i]];
      taken[places[i]] = 1;
    }
    ComputeType<T> sum(0);
    for (int64_t i = 0; i < grad.dim(0); ++i) {
      if (!taken[i]) sum = Plus(sum, static_cast<ComputeType<T>>(in[i]));
    }
    *d_default->data<T>() = static_cast<T>(sum);
  });
}

namespace {

Status FillEmptyRowsKernel(KernelContext& ctx, const SparseTensor& in) {
  TENON_ASSIGN_OR_RETURN(const SparseEntries out, FillEmptyRows(ctx, in));
  return out.WriteIndices(ctx, 0);
}

Status FillEmptyRowsShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape dense, SparseInputShape(c));
  TENON_RETURN_IF_ERROR(c.WithRank(3, 0));
  if (dense.rank() == 0) return InvalidArgument("Dense shape cannot be empty.");
  c.set_output(0, PartialShape{PartialShape::kUnknownDim, dense.rank()});
  c.set_output(1, PartialShape::OfRank(1));
  c.set_output(2, PartialShape{dense.dim(0)});
  c.set_output(3, PartialShape{c.input(0).dim(0)});
  return OkStatus();
}

}  // namespace

void RegisterSparseFillEmptyRows(OpRegistry& ops) {
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {0, 1, 2, 0, 2, 2});
  const Tensor shape = Tensor::Vector<int64_t>({4, 3});
  ops.Add("SparseFillEmptyRows", FillEmptyRowsShape, FillEmptyRowsKernel)
      .Grad([](GradContext& g) {
        const auto grads = SparseFillEmptyRowsGrad(g.out(3), g.dy(1));
        g.dx(1) = grads.d_values;
        g.dx(3) = grads.d_default_value;
      })
      .Example({indices, Shape{3}, shape, Shape{}});
  ops.Add("SparseFillEmptyRowsGrad", FillEmptyRowsGradKernel,
          {.types = {{"T", DTypesOf(NumericTypes())}}})
      .Example({Tensor::Vector<int64_t>({0, 3, 1}), Shape{5}});
}

}  // namespace tenon
