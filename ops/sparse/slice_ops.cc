// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

// --- SparseSlice ---

/// Adds the entry if it is within `size` from `start` on, where it counts from `start`.
void AddIfWithin(absl::Span<const int64_t> index, int64_t from, const DimVector& start,
                 const DimVector& size, SparseEntries* out) {
  for (size_t d = 0; d < start.size(); ++d) {
    if (index[d] < start[d]) return;
    // The difference of two int64 that is not negative always fits a uint64.
    const uint64_t moved = static_cast<uint64_t>(index[d]) - static_cast<uint64_t>(start[d]);
    if (moved >= static_cast<uint64_t>(size[d])) return;
  }
  out->Add(index, from);
  const absl::Span<int64_t> moved = out->last_index();
  for (size_t d = 0; d < start.size(); ++d) moved[d] -= start[d];
}

Status SliceKernel(KernelContext& ctx, const SparseTensor& in) {
  TENON_RETURN_IF_ERROR(in.DenseShape());
  TENON_ASSIGN_OR_RETURN(const DimVector start,
                         ReadIntegerVector(ctx.input(3), "start", in.rank()));
  TENON_ASSIGN_OR_RETURN(DimVector size, ReadIntegerVector(ctx.input(4), "size", in.rank()));
  for (int d = 0; d < in.rank(); ++d) {
    if (size[d] < 0) return InvalidArgument("Expected a non-negative size, got ", size[d]);
    // With a start below 0 there is more than the shape says, up to all numbers.
    int64_t room = INT64_MAX;
    if (__builtin_sub_overflow(in.dims[d], start[d], &room)) room = INT64_MAX;
    size[d] = std::clamp(size[d], int64_t{0}, std::max(room, int64_t{0}));
  }
  SparseEntries out(in.rank());
  for (int64_t i = 0; i < in.size(); ++i) AddIfWithin(in.index(i), i, start, size, &out);
  TENON_RETURN_IF_ERROR(out.WriteIndices(ctx, 0));
  TENON_RETURN_IF_ERROR(out.WriteValues(ctx, 1, in.values));
  return WriteVector(ctx, 2, size);
}

// --- Gradients of ops that choose entries ---

/// For each of `indices` the gradient of the entry of `sorted`, moved by `start`, that is equal to
/// it, or 0: as output `output`. Both are in row-major order. Gives how many were found.
StatusOr<int64_t> WriteMatching(KernelContext& ctx, int output, const Tensor& grad,
                                const Tensor& indices, const Tensor& sorted, DimVector start) {
  const int rank = static_cast<int>(indices.dim(1));
  start.resize(rank, 0);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, {indices.dim(0)}));
  ZeroElements(out);
  int64_t found = 0, j = 0;
  DimVector moved(rank);
  for (int64_t i = 0; i < indices.dim(0) && j < sorted.dim(0);) {
    for (int d = 0; d < rank; ++d) {
      moved[d] = Plus(sorted.data<int64_t>()[j * rank + d], start[d]);
    }
    const auto order = CompareIndices({indices.data<int64_t>() + i * rank, size_t(rank)}, moved);
    if (order == 0) {
      CopyElements(grad, j, out, i, 1);
      ++found;
    }
    i += order <= 0;
    j += order >= 0;
  }
  return found;
}

/// Checks that these inputs are indices of one rank, and that input 0 has a gradient for each of
/// those in the last one.
Status CheckMatching(const KernelContext& ctx, std::initializer_list<int> indices) {
  const int last = *(indices.end() - 1);
  for (const int i : indices) {
    if (ctx.input(i).dim(1) == ctx.input(last).dim(1)) continue;
    return InvalidArgument("all indices must have one rank, found ", ctx.input(i).dim(1), " and ",
                           ctx.input(last).dim(1));
  }
  if (ctx.input(0).dim(0) == ctx.input(last).dim(0)) return OkStatus();
  return InvalidArgument("backprop_val_grad must have an element for each of the indices: found ",
                         ctx.input(0).dim(0), " and ", ctx.input(last).dim(0));
}

Status SliceGradKernel(KernelContext& ctx, const Tensor& grad, const Tensor& indices) {
  TENON_RETURN_IF_ERROR(CheckMatching(ctx, {1, 3}));
  const int64_t rank = indices.dim(1);
  TENON_ASSIGN_OR_RETURN(const DimVector start,
                         ReadIntegerVector(ctx.input(2), "input_start", rank));
  TENON_ASSIGN_OR_RETURN(const int64_t found,
                         WriteMatching(ctx, 0, grad, indices, ctx.input(3), start));
  if (found == grad.dim(0)) return OkStatus();
  return InvalidArgument("Elements of backprop_val_grad aren't all propagated: of ", grad.dim(0),
                         " only ", found, " have an index in the input");
}

Status AddGradKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(CheckMatching(ctx, {1, 2, 3}));
  for (const int side : {0, 1}) {
    TENON_RETURN_IF_ERROR(
        WriteMatching(ctx, side, ctx.input(0), ctx.input(1 + side), ctx.input(3), {}));
  }
  return OkStatus();
}

// --- SparseSplit ---

Status SplitKernel(KernelContext& ctx, int64_t num_split) {
  TENON_ASSIGN_OR_RETURN(const SparseTensor in, SparseTensor::Read(ctx, 1));
  if (ctx.input(0).rank() != 0) {
    return InvalidArgument("Input axis should be a scalar but received shape ",
                           ctx.input(0).shape());
  }
  TENON_ASSIGN_OR_RETURN(const int64_t wanted, ReadInteger(ctx.input(0), "split_dim"));
  if (wanted < -in.rank() || wanted >= in.rank()) {
    return InvalidArgument("axis should be in range [", -in.rank(), ", ", in.rank(), "), got ",
                           wanted);
  }
  const int axis = static_cast<int>(wanted < 0 ? wanted + in.rank() : wanted);
  const int64_t size = in.dims[axis];
  if (num_split < 1 || num_split > size) {
    return InvalidArgument("Input num_split should be between 1 and the splitting dimension size (",
                           size, "), got ", num_split);
  }
  TENON_RETURN_IF_ERROR(in.CheckBounds());
  const int n = static_cast<int>(num_split);
  const int64_t part = size / n, larger = size % n;  // the first `larger` parts have one more
  std::vector<SparseEntries> outs(n, SparseEntries(in.rank()));
  for (int64_t i = 0; i < in.size(); ++i) {
    const int64_t at = in.index(i)[axis];
    const int64_t in_larger = larger * (part + 1);
    const int64_t k = at < in_larger ? at / (part + 1) : larger + (at - in_larger) / part;
    outs[k].Add(in.index(i), i);
    outs[k].last_index()[axis] -= k * part + std::min(k, larger);
  }
  DimVector dims = in.dims;
  for (int k = 0; k < n; ++k) {
    dims[axis] = part + (k < larger);
    TENON_RETURN_IF_ERROR(outs[k].WriteIndices(ctx, k));
    TENON_RETURN_IF_ERROR(outs[k].WriteValues(ctx, n + k, in.values));
    TENON_RETURN_IF_ERROR(WriteVector(ctx, 2 * n + k, dims));
  }
  return OkStatus();
}

}  // namespace

void RegisterSparseSliceOps(OpRegistry& ops) {
  const KernelOptions numeric = {.types = {{"T", DTypesOf(NumericTypes())}}};
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {0, 1, 2, 0, 2, 2});
  const Tensor shape = Tensor::Vector<int64_t>({4, 3});
  const Tensor start = Tensor::Vector<int64_t>({1, 0});
  ops.Add("SparseSlice", SliceKernel)
      .Grad([](GradContext& g) { g.dx(1) = SparseSliceGrad(g.dy(1), g.in(0), g.in(3), g.out(0)); })
      .Example({indices, Shape{3}, shape, start, Tensor::Vector<int64_t>({2, 2})});
  ops.Add("SparseSliceGrad", SliceGradKernel, numeric)
      .Example({Shape{1}, indices, start, Tensor::Of<int64_t>({1, 2}, {1, 0})});
  ops.Add("SparseAddGrad", AddGradKernel, numeric)
      .Example({Shape{2}, indices, indices, Tensor::Of<int64_t>({2, 2}, {0, 1, 2, 2})});
  ops.Add("SparseSplit", SplitKernel, {.attrs = {"num_split"}})
      .Example({Tensor::Scalar<int64_t>(0), indices, Shape{3}, shape}, {{"num_split", 3}});
}

}  // namespace tenon
