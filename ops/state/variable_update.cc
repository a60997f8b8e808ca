// SPDX-License-Identifier: Apache-2.0
#include "ops/state/variable_update.h"

#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// How often each row is written and from where.
struct ScatterPlan {
  IndexVector rows;
  int64_t row_size = 0;
  bool scalar_update = false;
};

StatusOr<ScatterPlan> PlanScatter(const Tensor& value, const Tensor& indices,
                                  const Tensor& updates) {
  if (value.rank() < 1) {
    return InvalidArgument("the variable must have at least one dimension, found a scalar");
  }
  ScatterPlan plan;
  TENON_ASSIGN_OR_RETURN(plan.rows, ReadIndices(indices, "indices"));
  const int64_t limit = value.dim(0);
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    if (plan.rows[i] < 0 || plan.rows[i] >= limit) {
      return InvalidArgument("indices[", i, "] = ", plan.rows[i], " is not in [0, ", limit, ")");
    }
  }
  plan.row_size = Product(value.shape().dims(), 1, value.rank());
  plan.scalar_update = updates.rank() == 0;
  if (plan.scalar_update) return plan;
  DimVector wanted(indices.shape().dims().begin(), indices.shape().dims().end());
  wanted.insert(wanted.end(), value.shape().dims().begin() + 1, value.shape().dims().end());
  if (!(absl::Span<const int64_t>(wanted) == updates.shape().dims())) {
    return InvalidArgument(
        "Must have updates.shape = indices.shape + params.shape[1:] or "
        "updates.shape = [], got updates.shape ",
        updates.shape().ToString(), ", indices.shape ", indices.shape().ToString(),
        ", params.shape ", value.shape().ToString());
  }
  return plan;
}

void SetRows(const ScatterPlan& plan, const Tensor& updates, Tensor* value) {
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const int64_t to = plan.rows[i] * plan.row_size;
    if (!plan.scalar_update) {
      CopyElements(value->dtype(), ElementAt(updates, i * plan.row_size), ElementAt(*value, to),
                   plan.row_size);
      continue;
    }
    for (int64_t j = 0; j < plan.row_size; ++j) {
      CopyElements(value->dtype(), updates.raw_data(), ElementAt(*value, to + j), 1);
    }
  }
}

template <typename T>
void AddRows(const ScatterPlan& plan, Update update, const T* updates, T* value) {
  using C = ComputeType<T>;
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    T* to = value + plan.rows[i] * plan.row_size;
    const T* from = plan.scalar_update ? updates : updates + i * plan.row_size;
    const int64_t step = plan.scalar_update ? 0 : 1;
    for (int64_t j = 0; j < plan.row_size; ++j) {
      const C old = C(to[j]), change = C(from[j * step]);
      to[j] = T(update == Update::kAdd ? Plus(old, change) : Minus(old, change));
    }
  }
}

}  // namespace

Status UpdateVariable(VariableResource* variable, Update update, const Tensor& value) {
  if (value.dtype() != variable->dtype()) {
    return InvalidArgument("the variable is ", ToString(variable->dtype()), ", the value is ",
                           ToString(value.dtype()));
  }
  return variable->Modify([&](const Tensor& current, Tensor* next) -> Status {
    if (!(current.shape() == value.shape())) {
      return InvalidArgument("variable and value must have the same shape, found ",
                             current.shape().ToString(), " and ", value.shape().ToString());
    }
    const bool known = Dispatch(value.dtype(), NumericTypes(), [&](auto zero) {
      using T = decltype(zero);
      using C = ComputeType<T>;
      const T* a = current.data<T>();
      const T* b = value.data<T>();
      T* out = next->data<T>();
      ParallelFor(value.num_elements(), 0.3, [&](int64_t begin, int64_t end) {
        if (update == Update::kAdd) {
          for (int64_t i = begin; i < end; ++i) out[i] = T(Plus(C(a[i]), C(b[i])));
        } else {
          for (int64_t i = begin; i < end; ++i) out[i] = T(Minus(C(a[i]), C(b[i])));
        }
      });
    });
    if (!known) return Unimplemented("cannot add to a variable of ", ToString(value.dtype()));
    return OkStatus();
  });
}

Status ScatterVariable(VariableResource* variable, Update update, const Tensor& indices,
                       const Tensor& updates) {
  if (updates.dtype() != variable->dtype()) {
    return InvalidArgument("the variable is ", ToString(variable->dtype()), ", the updates are ",
                           ToString(updates.dtype()));
  }
  return variable->ModifyInPlace([&](Tensor* value) -> Status {
    TENON_ASSIGN_OR_RETURN(const ScatterPlan plan, PlanScatter(*value, indices, updates));
    if (plan.rows.empty() || plan.row_size == 0) return OkStatus();
    if (update == Update::kSet) {
      SetRows(plan, updates, value);
      return OkStatus();
    }
    const bool known = Dispatch(value->dtype(), NumericTypes(), [&](auto zero) {
      using T = decltype(zero);
      AddRows(plan, update, updates.data<T>(), value->data<T>());
    });
    if (!known) return Unimplemented("cannot add to a variable of ", ToString(value->dtype()));
    return OkStatus();
  });
}

}  // namespace tenon
