// SPDX-License-Identifier: Apache-2.0
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/array/gather.h"
#include "ops/maths.h"
#include "ops/array/register.h"

namespace tenon {
namespace {

/// "indices[1,2]" for the flat position `i`.
std::string IndexName(const Shape& shape, int64_t i) {
  const DimVector strides = StridesOf(shape.dims());
  std::string place;
  for (int d = 0; d < shape.rank(); ++d) {
    StrAppend(&place, d == 0 ? "" : ",", i / strides[d]);
    i %= strides[d];
  }
  return StrCat("indices[", place, "]");
}

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(KernelConstruction& c)
      : Kernel(c), batch_dims_(c.attrs().GetOr<int64_t>("batch_dims", 0)) {}
  Status Compute(KernelContext& ctx) const override {
    const Tensor& params = ctx.input(0);
    const Tensor& indices = ctx.input(1);
    int axis = 0;
    if (ctx.num_inputs() > 2) {
      TENON_ASSIGN_OR_RETURN(axis, ReadAxis(ctx.input(2), params.rank(), "axis"));
    } else if (params.rank() < 1) {
      return InvalidArgument("params must be at least 1 dimensional");
    }
    TENON_ASSIGN_OR_RETURN(const int batch_dims, NormalizeBatchDims(batch_dims_, indices.rank()));
    TENON_ASSIGN_OR_RETURN(Tensor out, GatherSlices(params, indices, axis, batch_dims));
    ctx.set_output(0, std::move(out));
    return OkStatus();
  }

 private:
  const int64_t batch_dims_;
};

Status GatherShape(ShapeContext& c) {
  const PartialShape &params = c.input(0), &indices = c.input(1);
  if (!params.rank_known() || !indices.rank_known()) return OkStatus();
  int axis = 0;
  TENON_ASSIGN_OR_RETURN(const int batch_dims,
                         NormalizeBatchDims(c.attrs().GetOr<int64_t>("batch_dims", 0),
                                            indices.rank()));
  if (c.num_inputs() > 2) {
    if (c.constant(2) == nullptr) {
      const int rank = params.rank() + indices.rank() - 1 - batch_dims;
      if (rank >= 0 && rank <= Shape::kMaxRank) c.set_output(0, PartialShape::OfRank(rank));
      return OkStatus();
    }
    TENON_ASSIGN_OR_RETURN(axis, ReadAxis(*c.constant(2), params.rank(), "axis"));
  } else if (params.rank() < 1) {
    return InvalidArgument("params must be at least 1 dimensional");
  }
  if (batch_dims > axis) {
    return InvalidArgument("batch_dims = ", batch_dims, " must be at most axis = ", axis);
  }
  DimVector dims(params.dims().begin(), params.dims().begin() + axis);
  dims.insert(dims.end(), indices.dims().begin() + batch_dims, indices.dims().end());
  dims.insert(dims.end(), params.dims().begin() + axis + 1, params.dims().end());
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(dims));
  c.set_output(0, std::move(out));
  return OkStatus();
}

/// Slices `shape` and multiplies what is left.
Output ProductOf(Output shape, int64_t begin, int64_t end, bool to_end) {
  return Prod(StridedSlice(shape, {begin}, {end}, {1}, {.end_mask = to_end ? 1 : 0}), {0});
}

/// The gradient of params as a dense tensor: the slices of dy added up where they came from.
/// Seen as [batch, outer, limit, inner], so that ranks need not be known; the rows of all batches
/// become one list of segments.
Status GatherGrad(GradContext& g) {
  const Output params = g.in(0);
  Output indices = g.in(1);
  if (indices.dtype() == DType::kInt16) indices = Cast(indices, DType::kInt32);
  const DType index = indices.dtype();
  const auto scalar = [&](int32_t v) {
    return Const(v, {.dtype = index == DType::kInt64 ? index : DType::kInt32});
  };
  int64_t axis = 0;
  int64_t batch_dims = g.Attr<int64_t>("batch_dims", 0);
  if (batch_dims < 0) {
    if (!indices.shape().rank_known()) {
      return Unimplemented("negative batch_dims with indices of unknown rank");
    }
    TENON_ASSIGN_OR_RETURN(batch_dims, NormalizeBatchDims(batch_dims, indices.shape().rank()));
  }
  if (g.num_inputs() > 2) {
    const Node* constant = g.in(2).node;
    const Tensor* value = constant->op() == "Const" && constant->attrs().Find("value") != nullptr
                              ? constant->attrs().Find("value")->get_if<Tensor>()
                              : nullptr;
    if (value == nullptr) return Unimplemented("the axis must be a constant to be differentiated");
    TENON_ASSIGN_OR_RETURN(axis, ReadInteger(*value, "axis"));
  }
  if (batch_dims > Shape::kMaxRank || axis < -Shape::kMaxRank || axis > Shape::kMaxRank) {
    return InvalidArgument("batch_dims = ", batch_dims, " and axis = ", axis,
                           " are not dimensions of a tensor");
  }
  const Output shape = ShapeOf(params, {.out_type = index});
  if (axis == 0 && batch_dims == 0) {
    g.dx(0) = UnsortedSegmentSum(g.dy(0), indices, Gather(shape, 0));
    return OkStatus();
  }
  const int32_t a = static_cast<int32_t>(axis);
  const Output size =
      Reshape(StridedSlice(shape, {a}, {a + 1}, {1}, {.end_mask = a == -1 ? 1 : 0}), {});
  const Output batch = ProductOf(shape, 0, batch_dims, false);
  const Output outer = ProductOf(shape, batch_dims, axis, false);
  const Output inner = axis == -1 ? scalar(1) : ProductOf(shape, axis + 1, 0, true);
  const Output count = ProductOf(ShapeOf(indices, {.out_type = index}), batch_dims, 0, true);
  const Output swap = Const({0, 2, 1, 3});
  const Output dy = Reshape(Transpose(Reshape(g.dy(0), Pack({batch, outer, count, inner})), swap),
                            Pack({Mul(batch, count), outer, inner}));
  const Output first = ExpandDims(Mul(Range(scalar(0), batch, scalar(1)), size), -1);
  const Output ids = AddV2(Reshape(indices, Pack({batch, count})), first);
  const Output sums =
      UnsortedSegmentSum(dy, Reshape(ids, Pack({Mul(batch, count)})), Mul(batch, size));
  const Output back = Transpose(Reshape(sums, Pack({batch, size, outer, inner})), swap);
  g.dx(0) = Reshape(back, shape);
  return OkStatus();
}

}  // namespace

StatusOr<int> NormalizeBatchDims(int64_t batch_dims, int indices_rank) {
  if (batch_dims < -indices_rank || batch_dims > indices_rank) {
    return InvalidArgument("Expected batch_dims in the range [", -indices_rank, ", ", indices_rank,
                           "], but got ", batch_dims);
  }
  return static_cast<int>(batch_dims < 0 ? batch_dims + indices_rank : batch_dims);
}

StatusOr<Tensor> GatherSlices(const Tensor& params, const Tensor& indices, int axis,
                              int batch_dims) {
  if (batch_dims > axis) {
    return InvalidArgument("batch_dims = ", batch_dims, " must be at most axis = ", axis);
  }
  const absl::Span<const int64_t> p = params.shape().dims(), q = indices.shape().dims();
  for (int i = 0; i < batch_dims; ++i) {
    if (p[i] == q[i]) continue;
    return InvalidArgument("params.shape[", i, "]: ", p[i], " should be equal to indices.shape[", i,
                           "]: ", q[i]);
  }
  DimVector dims(p.begin(), p.begin() + axis);
  dims.insert(dims.end(), q.begin() + batch_dims, q.end());
  dims.insert(dims.end(), p.begin() + axis + 1, p.end());
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TENON_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(CpuAllocator(), params.dtype(), shape));
  // Where nothing is gathered, indices are not looked at, as in TensorFlow.
  if (out.num_elements() == 0) return out;
  TENON_ASSIGN_OR_RETURN(const IndexVector rows, ReadIndices(indices, "indices"));
  const int64_t limit = p[axis];
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= limit) {
      return InvalidArgument(IndexName(indices.shape(), static_cast<int64_t>(i)), " = ", rows[i],
                             " is not in [0, ", limit, ")");
    }
  }
  const int64_t batches = Product(p, 0, batch_dims);
  const int64_t outer = Product(p, batch_dims, axis);
  const int64_t inner = Product(p, axis + 1, params.rank());
  const int64_t count = static_cast<int64_t>(rows.size()) / batches;
  const double cost_ns = 2 + 0.1 * static_cast<double>(inner * StrideOf(params.dtype()));
  ParallelFor(batches * outer * count, cost_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = i / count;
      const int64_t row = rows[place / outer * count + i % count];
      CopyElements(params.dtype(), ElementAt(params, (place * limit + row) * inner),
                   ElementAt(out, i * inner), inner);
    }
  });
  return out;
}

void RegisterGatherOps(OpRegistry& ops) {
  ops.Get("Gather")
      .Shape(GatherShape)
      .Kernel<GatherKernel>(kCpu)
      .Grad(GatherGrad)
      .Example({Shape{4, 3}, Tensor::Of<int32_t>({2, 2}, {3, 0, 1, 1})});
  ops.Get("GatherV2")
      .Shape(GatherShape)
      .Kernel<GatherKernel>(kCpu, {.host_args = {"axis"}})
      .Grad(GatherGrad)
      .Example({Shape{2, 4, 3}, Tensor::Vector<int32_t>({3, 0, 3}), Tensor::Scalar<int32_t>(1)})
      .Example({Shape{2, 3}, Tensor::Vector<int64_t>({1, 1, 0}), Tensor::Scalar<int32_t>(0)})
      .Example(
          {Shape{2, 2, 3}, Tensor::Of<int32_t>({2, 2}, {2, 0, 1, 1}), Tensor::Scalar<int32_t>(-1)},
          {{"batch_dims", 1}});
}

}  // namespace tenon
