// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/arguments.h"
#include "ops/math/reduction.h"

namespace tenon {
namespace {

DimVector ReducedDims(absl::Span<const int64_t> dims, const AxisFlags& reduced, bool keep_dims) {
  DimVector left;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!reduced[i] || keep_dims) left.push_back(reduced[i] ? 1 : dims[i]);
  }
  return left;
}

}  // namespace

StatusOr<AxisFlags> ReducedAxes(const Tensor& axes, int rank) {
  if (axes.rank() > 1) {
    return InvalidArgument("Shape must be at most rank 1 but is rank ", axes.rank(),
                           ": the reduction axes have shape ", axes.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector values, ReadIntegers(axes, "reduction axes"));
  AxisFlags reduced(rank, false);
  for (const int64_t axis : values) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension (", axis, " for input with ", rank,
                             " dimension(s))");
    }
    const auto i = static_cast<size_t>(axis < 0 ? axis + rank : axis);
    if (reduced[i]) {
      return InvalidArgument("Invalid reduction arguments: Axes contains duplicate dimension: ", i);
    }
    reduced[i] = true;
  }
  return reduced;
}

ReductionPlan PlanReduction(const Shape& input, const AxisFlags& reduced, bool keep_dims) {
  ReductionPlan plan;
  plan.shape = Shape(ReducedDims(input.dims(), reduced, keep_dims));
  for (int i = 0; i < input.rank(); ++i) {
    (reduced[i] ? plan.num_reduced : plan.num_kept) *= input.dim(i);
  }
  int64_t stride = 1;
  bool first = true, last_reduced = false;
  for (int i = input.rank() - 1; i >= 0; --i) {
    if (input.dim(i) == 1) continue;
    ReductionPlan::Dims& dims = reduced[i] ? plan.reduced : plan.kept;
    if (first) plan.inner_is_reduced = reduced[i];
    if (!first && reduced[i] == last_reduced) {
      dims.back().size *= input.dim(i);
    } else {
      dims.push_back({input.dim(i), stride});
    }
    first = false;
    last_reduced = reduced[i];
    stride *= input.dim(i);
  }
  std::reverse(plan.kept.begin(), plan.kept.end());
  std::reverse(plan.reduced.begin(), plan.reduced.end());
  return plan;
}

Status ReductionShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  const bool keep_dims = c.attrs().GetOr("keep_dims", false);
  const Tensor* axes = c.constant(1);
  if (!input.rank_known()) return OkStatus();
  if (axes == nullptr) return keep_dims ? c.Return(PartialShape::OfRank(input.rank())) : OkStatus();
  TENON_ASSIGN_OR_RETURN(const AxisFlags reduced, ReducedAxes(*axes, input.rank()));
  return c.Return(PartialShape(ReducedDims(input.dims(), reduced, keep_dims)));
}

OffsetWalk::OffsetWalk(const ReductionPlan::Dim* dims, size_t count, int64_t start)
    : dims_(dims), index_(count) {
  for (size_t d = count; d-- > 0;) {
    index_[d] = start % dims_[d].size;
    start /= dims_[d].size;
    offset_ += index_[d] * dims_[d].stride;
  }
}

void OffsetWalk::Next() {
  for (size_t d = index_.size(); d-- > 0;) {
    offset_ += dims_[d].stride;
    if (++index_[d] < dims_[d].size) return;
    offset_ -= dims_[d].stride * dims_[d].size;
    index_[d] = 0;
  }
}

}  // namespace tenon
