// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/change_rows.h"

#include "ops/cuda/element.cuh"
#include "ops/cuda/failure.cuh"

namespace tenon::cuda {
namespace {

/// Which elements change, by which of the updates.
struct RowPlan {
  RowSpan span;
  int64_t width;
  bool scalar;  // one element updates all

  /// The element that thread `i` changes, -1 when another one does or there is none, and the first
  /// entry of the span that changes it.
  __device__ int64_t Target(int64_t i, int64_t* first, int64_t* column) const {
    *first = i / width;
    *column = i % width;
    const int64_t row = span.FirstOfRow(*first);
    return row < 0 ? -1 : row * width + *column;
  }
  __device__ int64_t Source(int64_t k, int64_t column) const {
    return scalar ? 0 : span.places[k] * width + column;
  }
};

template <typename T>
struct ChangeRow {
  RowPlan plan;
  Update update;
  const T* from;
  T* to;

  template <typename C>
  __device__ C Changed(C x, C y) const {
    switch (update) {
      case Update::kAdd:
        return Plus(x, y);
      case Update::kSubtract:
        return Minus(x, y);
      case Update::kMultiply:
        return Times(x, y);
      case Update::kDivide:
        return Quotient(x, y);
      case Update::kMin:
        return y < x ? y : x;
      case Update::kMax:
        return x < y ? y : x;
      case Update::kAssign:
        break;
    }
    return y;
  }

  __device__ void operator()(int64_t i) const {
    int64_t first, column;
    const int64_t at = plan.Target(i, &first, &column);
    if (at < 0) return;
    T value = to[at];
    const uint64_t row = plan.span.rows[first];
    for (int64_t k = first; k < plan.span.count && plan.span.rows[k] == row; ++k) {
      value = Narrow<T>(Changed(Widen(value), Widen(from[plan.Source(k, column)])));
    }
    to[at] = value;
  }
};

/// Assigns elements of the size of E: the last update of a row stays.
template <typename E>
struct AssignRow {
  RowPlan plan;
  const E* from;
  E* to;
  __device__ void operator()(int64_t i) const {
    int64_t first, column;
    const int64_t at = plan.Target(i, &first, &column);
    if (at < 0) return;
    to[at] = from[plan.Source(plan.span.EndOfRow(first) - 1, column)];
  }
};

}  // namespace

Status ChangeRows(KernelContext& ctx, Update update, const RowSpan& span, int64_t width,
                  const Tensor& updates, bool scalar, Tensor* value) {
  const int64_t n = span.count * width;
  if (n == 0) return OkStatus();
  const RowPlan plan{span, width, scalar};
  if (update != Update::kAssign) {
    return DispatchStatus(value->dtype(), RealTypes(), [&]<typename T>(T) {
      return UpdateEach(ctx, n, ChangeRow<T>{plan, update, updates.data<T>(), value->data<T>()});
    });
  }
  Status status;
  DispatchBytes(value->dtype(), [&]<typename E>(E) {
    status.Update(UpdateEach(ctx, n,
                             AssignRow<E>{plan, static_cast<const E*>(updates.raw_data()),
                                          static_cast<E*>(value->raw_data())}));
  });
  return status;
}

}  // namespace tenon::cuda
