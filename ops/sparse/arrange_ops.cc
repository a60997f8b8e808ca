// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

// --- SparseReorder ---

Status ReorderKernel(KernelContext& ctx, const SparseTensor& in) {
  SparseEntries out(in.rank());
  for (const int64_t i : RowMajorOrder(in.indices, in.size(), in.rank())) out.Add(in.index(i), i);
  TENON_RETURN_IF_ERROR(out.WriteIndices(ctx, 0));
  return out.WriteValues(ctx, 1, in.values);
}

/// The same reordering of 0, 1, 2, ... says where each value went.
void ReorderGrad(GradContext& g) {
  const Output places = Range(0, Gather(ShapeOf(g.in(0)), 0), 1);
  const Output order = SparseReorder(g.in(0), places, g.in(2)).output_values;
  g.dx(1) = Gather(g.dy(1), InvertPermutation(order));
}

// --- SparseReshape ---

/// `wanted` with its -1, if it has one, replaced by what is left of `size` elements.
StatusOr<Shape> CompleteShape(DimVector wanted, int64_t size) {
  int64_t* unknown = nullptr;
  int64_t known = 1;
  for (int64_t& dim : wanted) {
    if (dim < -1) return InvalidArgument("size ", dim, " must be non-negative");
    if (dim == -1) {
      if (unknown) return InvalidArgument("only one output dimension may be -1, found two");
      unknown = &dim;
      continue;
    }
    TENON_ASSIGN_OR_RETURN(known, MultiplySizes(known, dim));
  }
  if (unknown != nullptr) {
    if (known == 0) {
      return InvalidArgument(
          "reshape cannot infer the missing input size for an empty tensor "
          "unless all specified input sizes are non-zero");
    }
    if (size % known != 0) {
      return InvalidArgument("Input to reshape is a SparseTensor with ", size,
                             " dense values, but the requested shape requires a multiple of ",
                             known);
    }
    *unknown = size / known;
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(wanted));
  if (shape.num_elements() == size) return shape;
  return InvalidArgument("Input to reshape is a tensor with ", size,
                         " dense values, but the requested shape ", shape, " has ",
                         shape.num_elements());
}

Status ReshapeKernel(KernelContext& ctx, const Tensor& indices, const Shape& from,
                     const DimVector& wanted) {
  TENON_RETURN_IF_ERROR(CheckRank(indices, 2, "input_indices"));
  if (indices.dim(1) != from.rank()) {
    return InvalidArgument("Input tensor rank must match input shape length, found ",
                           indices.dim(1), " and ", from.rank());
  }
  TENON_ASSIGN_OR_RETURN(const Shape to, CompleteShape(wanted, from.num_elements()));
  TENON_RETURN_IF_ERROR(WriteVector(ctx, 1, to.dims()));
  // TensorFlow passes on what stays as it is, also indices out of bounds.
  if (from == to) {
    ctx.set_output(0, indices);
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {indices.dim(0), to.rank()}));
  const DimVector old_strides = StridesOf(from.dims()), new_strides = StridesOf(to.dims());
  const int64_t* in = indices.data<int64_t>();
  int64_t* next = out->data<int64_t>();
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    int64_t place = 0;
    for (int d = 0; d < from.rank(); ++d) {
      const int64_t index = *in++;
      if (index < 0 || index >= from.dim(d)) {
        return NotInRange(index, from.dim(d), "input_indices[", i, ",", d, "]");
      }
      place += index * old_strides[d];
    }
    for (const int64_t stride : new_strides) {
      *next++ = place / stride;
      place %= stride;
    }
  }
  return OkStatus();
}

// --- SparseConcat ---

Status ConcatKernel(KernelContext& ctx, int64_t concat_dim) {
  const int n = ctx.num_inputs() / 3;
  CountedVector<int64_t> indices;
  std::vector<Tensor> parts;
  DimVector dims;
  int64_t count = 0;
  for (int i = 0; i < n; ++i) {
    TENON_ASSIGN_OR_RETURN(const SparseTensor part,
                           SparseTensor::Of(ctx.input(i), ctx.input(n + i), ctx.input(2 * n + i)));
    TENON_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(concat_dim, part.rank(), "Concat dimension"));
    DimVector wanted = i == 0 ? part.dims : dims;
    if (part.rank() == static_cast<int>(dims.size())) wanted[axis] = part.dims[axis];
    if (wanted != part.dims) {
      return InvalidArgument("Input shapes must match but for dimension ", axis, ": expected [",
                             Join(wanted, ","), "] but got [", Join(part.dims, ","),
                             "] at position ", i);
    }
    const int64_t shift = i == 0 ? 0 : dims[axis];
    TENON_ASSIGN_OR_RETURN(wanted[axis], AddSizes(shift, part.dims[axis]));
    dims = wanted;
    const size_t begin = indices.size();
    indices.insert(indices.end(), part.indices.begin(), part.indices.end());
    for (size_t k = begin + axis; k < indices.size(); k += dims.size()) {
      indices[k] = Plus(indices[k], shift);
    }
    count += part.size();
    parts.push_back(part.values);
  }
  TENON_RETURN_IF_ERROR(WriteVector(ctx, 2, dims));
  TENON_ASSIGN_OR_RETURN(Tensor all, ctx.AllocateTemp(ctx.output_type(1), Shape{count}));
  int64_t end = 0;
  for (const Tensor& part : parts) {
    CopyElements(part, 0, &all, end, part.dim(0));
    end += part.dim(0);
  }
  const int rank = static_cast<int>(dims.size());
  SparseEntries out(rank);
  for (const int64_t i : RowMajorOrder(indices, count, rank)) {
    out.Add(absl::MakeSpan(indices).subspan(i * rank, rank), i);
  }
  TENON_RETURN_IF_ERROR(out.WriteIndices(ctx, 0));
  return out.WriteValues(ctx, 1, all);
}

Status ConcatShape(ShapeContext& c) {
  const int n = c.num_inputs() / 3;
  PartialShape ranks{PartialShape::kUnknownDim};
  int64_t count = 0;
  for (int i = 0; i < n; ++i) {
    TENON_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(i, 2));
    TENON_RETURN_IF_ERROR(c.WithRank(n + i, 1));
    TENON_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(2 * n + i, 1));
    TENON_ASSIGN_OR_RETURN(ranks, ranks.MergeWith(PartialShape{indices.dim(1)}));
    TENON_ASSIGN_OR_RETURN(ranks, ranks.MergeWith(shape));
    if (count >= 0 && indices.dim(0) >= 0) {
      TENON_ASSIGN_OR_RETURN(count, AddSizes(count, indices.dim(0)));
    } else {
      count = PartialShape::kUnknownDim;
    }
  }
  SetSparseOutputs(c, 0, count, ranks.dim(0));
  return OkStatus();
}

}  // namespace

void RegisterSparseArrangeOps(OpRegistry& ops) {
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {0, 1, 2, 0, 2, 2});
  const Tensor shape = Tensor::Vector<int64_t>({4, 3});
  ops.Add("SparseReorder", ReorderKernel)
      .Grad(ReorderGrad)
      .Example({Tensor::Of<int64_t>({3, 2}, {2, 2, 0, 1, 2, 0}), Shape{3}, shape});
  ops.Add("SparseReshape", ReshapeKernel)
      .Example({indices, shape, Tensor::Vector<int64_t>({2, -1})});
  ops.Add("SparseConcat", ConcatShape, ConcatKernel, {.attrs = {"concat_dim"}})
      .Example({indices, indices, Shape{3}, Shape{3}, shape, shape}, {{"concat_dim", -1}});
}

}  // namespace tenon
