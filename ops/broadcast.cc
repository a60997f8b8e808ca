// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast.h"

#include <algorithm>

#include "core/base/parallel.h"

namespace tenon {

StatusOr<BroadcastPlan> PlanBroadcast(absl::Span<const Shape* const> operands) {
  TENON_CHECK(operands.size() <= BroadcastPlan::kMaxOperands);
  const int n = static_cast<int>(operands.size());
  int rank = 0;
  for (const Shape* s : operands) rank = std::max(rank, s->rank());
  DimVector result(rank, 1);
  for (const Shape* s : operands) {
    for (int i = 0; i < s->rank(); ++i) {
      int64_t& dim = result[i + rank - s->rank()];
      if (s->dim(i) == dim || s->dim(i) == 1) continue;
      if (dim != 1) {
        std::string shapes;
        for (const Shape* t : operands) StrAppend(&shapes, shapes.empty() ? "" : " vs. ", *t);
        return InvalidArgument("Incompatible shapes: ", shapes);
      }
      dim = s->dim(i);
    }
  }
  BroadcastPlan plan;
  TENON_ASSIGN_OR_RETURN(plan.shape, Shape::Create(result));
  if (plan.shape.num_elements() == 0) {
    plan.dims.push_back({0, {}});
    return plan;
  }
  int64_t strides[BroadcastPlan::kMaxOperands] = {1, 1, 1};
  // From the innermost dimension out; turned round at the end.
  for (int i = rank - 1; i >= 0; --i) {
    if (result[i] == 1) continue;
    BroadcastPlan::Dim dim{result[i], {}};
    for (int k = 0; k < n; ++k) {
      const int own = i - (rank - operands[k]->rank());
      if (own < 0 || operands[k]->dim(own) == 1) continue;
      dim.strides[k] = strides[k];
      strides[k] *= result[i];
    }
    if (!plan.dims.empty()) {
      BroadcastPlan::Dim& last = plan.dims.back();
      bool alike = true;
      for (int k = 0; k < n; ++k) alike &= dim.strides[k] == last.strides[k] * last.size;
      if (alike) {
        last.size *= dim.size;
        continue;
      }
    }
    plan.dims.push_back(dim);
  }
  if (plan.dims.empty()) plan.dims.push_back({1, {}});
  std::reverse(plan.dims.begin(), plan.dims.end());
  return plan;
}

StatusOr<BroadcastPlan> PlanBroadcastTo(const Shape& x, const Shape& wanted) {
  TENON_ASSIGN_OR_RETURN(BroadcastPlan plan, PlanBroadcast({&x, &wanted}));
  if (plan.shape == wanted) return plan;
  return InvalidArgument("Incompatible shapes: ", x, " vs. ", wanted,
                         ": Unable to broadcast tensor of shape ", x, " to tensor of shape ",
                         wanted);
}

void ForEachRun(const BroadcastPlan& plan, double cost_ns,
                absl::FunctionRef<void(const int64_t* offsets, int64_t out, int64_t n)> fn) {
  constexpr int kOperands = BroadcastPlan::kMaxOperands;
  const BroadcastPlan::Dim& inner = plan.inner();
  if (inner.size == 0) return;
  if (plan.dims.size() == 1) {
    ParallelFor(inner.size, cost_ns, [&](int64_t begin, int64_t end) {
      int64_t offsets[kOperands];
      for (int k = 0; k < kOperands; ++k) offsets[k] = begin * inner.strides[k];
      fn(offsets, begin, end - begin);
    });
    return;
  }
  const int outer = static_cast<int>(plan.dims.size()) - 1;
  const int64_t runs = plan.shape.num_elements() / inner.size;
  ParallelFor(runs, cost_ns * static_cast<double>(inner.size) + 5, [&](int64_t begin, int64_t end) {
    absl::InlinedVector<int64_t, 8> index(outer);
    int64_t offsets[kOperands] = {};
    int64_t rest = begin;
    for (int d = outer - 1; d >= 0; --d) {
      index[d] = rest % plan.dims[d].size;
      rest /= plan.dims[d].size;
      for (int k = 0; k < kOperands; ++k) offsets[k] += index[d] * plan.dims[d].strides[k];
    }
    for (int64_t run = begin; run < end; ++run) {
      fn(offsets, run * inner.size, inner.size);
      for (int d = outer - 1; d >= 0; --d) {
        const BroadcastPlan::Dim& dim = plan.dims[d];
        const bool wraps = ++index[d] == dim.size;
        const int64_t step = wraps ? 1 - dim.size : 1;
        for (int k = 0; k < kOperands; ++k) offsets[k] += step * dim.strides[k];
        if (!wraps) break;
        index[d] = 0;
      }
    }
  });
}

}  // namespace tenon
