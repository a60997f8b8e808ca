// SPDX-License-Identifier: Apache-2.0
#include "core/kernel.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

/// sums[id] += row for each row of `data`; negative ids drop theirs. The ids are below the number
/// of rows of `sums`, which is zero.
void AddRows(const Tensor& data, const IndexVector& ids, Tensor* sums) {
  if (ids.empty()) return;
  const int64_t width = data.num_elements() / static_cast<int64_t>(ids.size());
  Dispatch(data.dtype(), NumericTypes(), [&](auto zero) {
    using T = decltype(zero);
    using C = ComputeType<T>;
    const double row_ns = 5 + static_cast<double>(width);
    SerialFor(static_cast<int64_t>(ids.size()), row_ns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        if (ids[r] < 0) continue;
        const T* row = data.data<T>() + r * width;
        T* sum = sums->data<T>() + ids[r] * width;
        for (int64_t i = 0; i < width; ++i) {
          sum[i] = static_cast<T>(Plus(static_cast<C>(sum[i]), static_cast<C>(row[i])));
        }
      }
    });
  });
}

Status SegmentSumCpu(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &segment_ids = ctx.input(1);
  if (data.rank() < 1) return InvalidArgument("input must be at least rank 1");
  if (segment_ids.rank() != 1) {
    return InvalidArgument("segment_ids must be a vector, found shape ",
                           segment_ids.shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(const IndexVector ids, ReadIndices(segment_ids, "segment_ids"));
  const int64_t n = static_cast<int64_t>(ids.size());
  if (n != data.dim(0)) {
    return InvalidArgument("segment_ids should be the same size as dimension 0 of input, found ", n,
                           " and ", data.dim(0));
  }
  for (int64_t i = 0; i < n; ++i) {
    if (ids[i] < 0) return InvalidArgument("segment ids must be >= 0");
    if (i > 0 && ids[i] < ids[i - 1]) return InvalidArgument("segment ids are not increasing");
  }
  DimVector dims(data.shape().dims().begin(), data.shape().dims().end());
  if (n > 0 && ids[n - 1] == std::numeric_limits<int64_t>::max()) {
    return InvalidArgument("segment id ", ids[n - 1], " is too large");
  }
  dims[0] = n == 0 ? 0 : ids[n - 1] + 1;
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TENON_ASSIGN_OR_RETURN(Tensor * sums, ctx.AllocateOutput(0, shape));
  ZeroElements(sums);
  AddRows(data, ids, sums);
  return OkStatus();
}

Status UnsortedSegmentSumCpu(KernelContext& ctx) {
  const Tensor &data = ctx.input(0), &segment_ids = ctx.input(1);
  const int id_rank = segment_ids.rank();
  bool prefix = id_rank <= data.rank();
  for (int i = 0; prefix && i < id_rank; ++i) prefix = segment_ids.dim(i) == data.dim(i);
  if (!prefix) {
    return InvalidArgument("data.shape = ", data.shape().ToString(),
                           " does not start with segment_ids.shape = ",
                           segment_ids.shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(const int64_t segments, ReadInteger(ctx.input(2), "num_segments"));
  if (segments < 0) {
    return InvalidArgument("Input num_segments == ", segments, " must not be negative.");
  }
  TENON_ASSIGN_OR_RETURN(const IndexVector ids, ReadIndices(segment_ids, "segment_ids"));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= segments) {
      return InvalidArgument("segment_ids[", i, "] = ", ids[i], " is out of range [0, ", segments,
                             ")");
    }
  }
  DimVector dims = {segments};
  for (int i = id_rank; i < data.rank(); ++i) dims.push_back(data.dim(i));
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TENON_ASSIGN_OR_RETURN(Tensor * sums, ctx.AllocateOutput(0, shape));
  ZeroElements(sums);
  AddRows(data, ids, sums);
  return OkStatus();
}

Status SegmentSumShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape data, c.WithRankAtLeast(0, 1));
  TENON_RETURN_IF_ERROR(c.WithRank(1, 1));
  if (!data.rank_known()) return OkStatus();
  DimVector dims(data.dims().begin(), data.dims().end());
  dims[0] = -1;
  c.set_output(0, PartialShape(absl::Span<const int64_t>(dims)));
  return OkStatus();
}

Status UnsortedSegmentSumShape(ShapeContext& c) {
  const PartialShape &data = c.input(0), &ids = c.input(1);
  if (!data.rank_known() || !ids.rank_known() || ids.rank() > data.rank()) return OkStatus();
  DimVector dims = {-1};
  for (int i = ids.rank(); i < data.rank(); ++i) dims.push_back(data.dim(i));
  c.set_output(0, PartialShape(absl::Span<const int64_t>(dims)));
  return OkStatus();
}

Output GatherRows(Output params, Output indices) { return GatherV2(params, indices, 0); }

void SegmentSumGrad(GradContext& g) { g.dx(0) = GatherRows(g.dy(0), g.in(1)); }

/// Rows whose id is negative were dropped, so their gradient is 0.
void UnsortedSegmentSumGrad(GradContext& g) {
  const Output data = g.in(0), ids = g.in(1);
  const Output zero = ZerosLike(ids);
  const Output gathered = GatherRows(g.dy(0), Maximum(ids, zero));
  // The mask [ids...] gets ones behind it until it has the rank of the rows.
  const Output id_shape = ShapeOf(ids);
  const Output id_rank = Size(id_shape);
  const Output trailing = Slice(OnesLike(ShapeOf(data)), Reshape(id_rank, {1}), {-1});
  const Output mask_shape = ConcatV2({id_shape, trailing}, 0);
  const Output kept = Reshape(GreaterEqual(ids, zero), mask_shape);
  g.dx(0) = SelectV2(kept, gathered, ZerosLike(gathered));
}

}  // namespace

void RegisterSegmentOps(OpRegistry& ops) {
  const KernelOptions numeric = {{{"T", DTypesOf(NumericTypes())}}, {}};
  KernelOptions unsorted = numeric;
  unsorted.host_args = {"num_segments"};
  ops.Get("SegmentSum")
      .Shape(SegmentSumShape).Kernel(kCpu, SegmentSumCpu, numeric).Grad(SegmentSumGrad)
      .Example({Shape{4, 2}, Tensor::Vector<int32_t>({0, 0, 1, 3})});
  ops.Get("UnsortedSegmentSum")
      .Shape(UnsortedSegmentSumShape).Kernel(kCpu, UnsortedSegmentSumCpu, unsorted)
      .Grad(UnsortedSegmentSumGrad)
      .Example({Shape{4, 2}, Tensor::Vector<int32_t>({2, 0, -1, 2}), Tensor::Scalar<int32_t>(3)})
      .Example({Shape{2, 2, 3}, Tensor::Of<int64_t>({2, 2}, {0, 1, 1, 0}),
                Tensor::Scalar<int32_t>(2)});
}

}  // namespace tenon
