// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/container/inlined_vector.h>

#include "core/gradient/gradients.h"
#include "core/op/shape_inference.h"

namespace tenon {

/// How to walk a tensor that is reduced along some axes: neighbouring axes with the same fate are
/// merged, axes of size 1 left out.
struct ReductionPlan {
  struct Dim {
    int64_t size;
    int64_t stride;  // in the input, in elements
  };
  using Dims = absl::InlinedVector<Dim, 4>;  // outermost first
  Dims kept;
  Dims reduced;
  bool inner_is_reduced = true;  // whether the dimension of stride 1 is among `reduced`
  int64_t num_kept = 1;          // elements of the output
  int64_t num_reduced = 1;       // input elements for each of them
  Shape shape;                   // of the output
};

/// A flag for each axis: whether it is reduced.
using AxisFlags = absl::InlinedVector<bool, 8>;

/// The axes that `axes` (int32 or int64, a scalar or a vector) names of a tensor of rank `rank`;
/// negative ones count from the end. InvalidArgument for an axis out of range or named twice.
StatusOr<AxisFlags> ReducedAxes(const Tensor& axes, int rank);

ReductionPlan PlanReduction(const Shape& input, const AxisFlags& reduced, bool keep_dims);

/// The shape function of an op with inputs (input, axes) and the attribute keep_dims.
Status ReductionShape(ShapeContext& c);

// Gradients of such ops.
void SumGrad(GradContext& g);
void MeanGrad(GradContext& g);
void ProdGrad(GradContext& g);
void MinOrMaxGrad(GradContext& g);
void NormGrad(GradContext& g);

/// Sums a tensor of any numeric dtype along the plan's axes.
void SumAlong(DType type, const ReductionPlan& plan, const void* in, void* out);

/// Steps through the offsets that a list of dimensions spans, in row-major order.
class OffsetWalk {
 public:
  OffsetWalk(const ReductionPlan::Dim* dims, size_t count, int64_t start);
  int64_t offset() const { return offset_; }
  void Next();

 private:
  const ReductionPlan::Dim* const dims_;
  absl::InlinedVector<int64_t, 4> index_;
  int64_t offset_ = 0;
};

}  // namespace tenon
