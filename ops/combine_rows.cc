// SPDX-License-Identifier: Apache-2.0
#include "ops/combine_rows.h"

#include <algorithm>
#include <utility>

#include "core/base/parallel.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

struct RowPlan {
  const Tensor& from;
  const absl::Span<const int64_t> rows;
  const int64_t width;
  Tensor* const to;

  /// Calls `fn(i, to)` for each row i of `from`, which goes to row `to`.
  template <typename Fn>
  void ForEach(Fn fn) const {
    const double row_ns = 5 + static_cast<double>(width);
    SerialFor(static_cast<int64_t>(rows.size()), row_ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (rows[i] >= 0) fn(i, rows[i]);
      }
    });
  }
};

Status AssignRows(const RowPlan& plan) {
  const bool scalar = plan.from.rank() == 0;
  const int64_t run = scalar ? 1 : plan.width;
  plan.ForEach([&](int64_t i, int64_t row) {
    for (int64_t j = 0; j < plan.width; j += run) {
      CopyElements(plan.from, scalar ? 0 : i * run, plan.to, row * plan.width + j, run);
    }
  });
  return OkStatus();
}

/// `fn(old, change)` gives the new element. The old one is moved there: a text that grows is not
/// copied each time.
template <typename Types, typename Fn>
Status ChangeRows(const RowPlan& plan, Types types, Fn fn) {
  return DispatchStatus(plan.to->dtype(), types, [&]<typename T>(T) {
    using C = ComputeType<T>;
    const T* from = plan.from.data<T>();
    T* to = plan.to->data<T>();
    const int64_t width = plan.width;
    if (plan.from.rank() == 0) {
      return plan.ForEach([=](int64_t, int64_t row) {
        const C change(*from);
        T* old = to + row * width;
        for (int64_t j = 0; j < width; ++j) old[j] = T(fn(C(std::move(old[j])), change));
      });
    }
    plan.ForEach([=](int64_t i, int64_t row) {
      const T* change = from + i * width;
      T* old = to + row * width;
      for (int64_t j = 0; j < width; ++j) old[j] = T(fn(C(std::move(old[j])), C(change[j])));
    });
  });
}

}  // namespace

Status CombineRows(Update update, const Tensor& from, absl::Span<const int64_t> rows, int64_t width,
                   Tensor* to) {
  if (rows.empty() || to->num_elements() == 0) return OkStatus();
  const RowPlan plan{from, rows, width, to};
  switch (update) {
    case Update::kAssign:
      return AssignRows(plan);
    case Update::kAdd:
      if (to->dtype() == DType::kBool) {
        return ChangeRows(plan, TypeList<bool>(), [](bool x, bool y) { return x || y; });
      }
      if (to->dtype() == DType::kString) {
        return ChangeRows(plan, TypeList<TString>(), [](TString text, const TString& more) {
          text += more;
          return text;
        });
      }
      return ChangeRows(plan, NumericTypes(), [](auto x, auto y) { return Plus(x, y); });
    case Update::kSubtract:
      return ChangeRows(plan, NumericTypes(), [](auto x, auto y) { return Minus(x, y); });
    case Update::kMultiply:
      return ChangeRows(plan, NumericTypes(), [](auto x, auto y) { return Times(x, y); });
    case Update::kDivide:
      return ChangeRows(plan, NumericTypes(), [](auto x, auto y) { return Quotient(x, y); });
    case Update::kMin:
      return ChangeRows(plan, RealTypes(), [](auto x, auto y) { return y < x ? y : x; });
    case Update::kMax:
      return ChangeRows(plan, RealTypes(), [](auto x, auto y) { return x < y ? y : x; });
  }
  return Internal("no such update");
}

Status CheckDivisors(const Tensor& from) {
  Status status;
  Dispatch(from.dtype(), IntTypes(), [&]<typename T>(T zero) {
    const auto elements = from.flat<T>();
    if (std::find(elements.begin(), elements.end(), zero) != elements.end()) {
      status = InvalidArgument("Integer division by zero");
    }
  });
  return status;
}

}  // namespace tenon
