// SPDX-License-Identifier: Apache-2.0
#include "ops/state/variable_update.h"

#include "core/base/parallel.h"
#include "ops/arguments.h"
#include "ops/array/index_tuples.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// The rows of `value` that `indices` name.
StatusOr<IndexVector> ReadRows(const Tensor& value, const Tensor& indices, const Tensor& updates) {
  TENON_RETURN_IF_ERROR(CheckHasRows(value));
  TENON_ASSIGN_OR_RETURN(IndexVector rows, ReadIndices(indices, "indices", value.dim(0)));
  TENON_RETURN_IF_ERROR(CheckRowUpdates(value, indices, updates));
  return rows;
}

Status CheckUpdates(const VariableResource& variable, Update update, const Tensor& updates) {
  TENON_RETURN_IF_ERROR(CheckUpdateType(variable, updates));
  return update == Update::kDivide ? CheckDivisors(updates) : OkStatus();
}

}  // namespace

Status CheckUpdateShape(const Tensor& current, const Tensor& value) {
  if (current.shape() == value.shape()) return OkStatus();
  return InvalidArgument("Cannot update variable with shape ", current.shape(),
                         " using a Tensor with shape ", value.shape(), ", shapes must be equal.");
}

Status CheckUpdateType(const VariableResource& variable, const Tensor& updates) {
  if (updates.dtype() == variable.dtype()) return OkStatus();
  return InvalidArgument("the variable is ", variable.dtype(), ", the updates are ",
                         updates.dtype());
}

Status CheckHasRows(const Tensor& value) {
  if (value.rank() >= 1) return OkStatus();
  return InvalidArgument("the variable must have at least one dimension, found a scalar");
}

Status CheckRowUpdates(const Tensor& value, const Tensor& indices, const Tensor& updates) {
  const DimVector wanted = Concat(indices.shape().dims(), value.shape().dims().subspan(1));
  if (updates.rank() == 0 || updates.shape().dims() == wanted) return OkStatus();
  return InvalidArgument("Must have updates.shape = ", PartialShape(wanted),
                         ", which is indices.shape + params.shape[1:], or [], got ",
                         updates.shape());
}

std::vector<ScatterOp> ScatterOps(const OpRegistry& ops, std::string_view update) {
  std::vector<ScatterOp> found;
  for (const std::string kind : {"Scatter", "ResourceScatter", "ScatterNd", "ResourceScatterNd"}) {
    const OpRegistration* const op = ops.Find(StrCat(kind, update));
    if (op == nullptr) continue;
    found.push_back({.name = op->schema.name,
                     .type_attr = op->schema.FindAttr("dtype") != nullptr ? "dtype" : "T",
                     .tuples = kind.ends_with("Nd"),
                     .by_handle = kind.starts_with("Resource")});
  }
  return found;
}

Status UpdateVariable(VariableResource* variable, Update update, const Tensor& value) {
  if (value.dtype() != variable->dtype()) {
    return InvalidArgument("the variable is ", variable->dtype(), ", the value is ", value.dtype());
  }
  return variable->Modify([&](const Tensor& current, Tensor* next) -> Status {
    TENON_RETURN_IF_ERROR(CheckUpdateShape(current, value));
    return DispatchStatus(value.dtype(), NumericTypes(), [&]<typename T>(T) {
      using C = ComputeType<T>;
      const T *a = current.data<T>(), *b = value.data<T>();
      T* out = next->data<T>();
      ParallelFor(value.num_elements(), 0.3, [&](int64_t begin, int64_t end) {
        const bool add = update == Update::kAdd;
        for (int64_t i = begin; i < end; ++i) {
          out[i] = T(add ? Plus(C(a[i]), C(b[i])) : Minus(C(a[i]), C(b[i])));
        }
      });
    });
  });
}

Status ScatterVariable(VariableResource* variable, Update update, const Tensor& indices,
                       const Tensor& updates) {
  TENON_RETURN_IF_ERROR(CheckUpdates(*variable, update, updates));
  return variable->ModifyInPlace([&](Tensor* value) -> Status {
    TENON_ASSIGN_OR_RETURN(const IndexVector rows, ReadRows(*value, indices, updates));
    const int64_t width = Product(value->shape().dims(), 1, value->rank());
    return CombineRows(update, updates, rows, width, value);
  });
}

Status ScatterNdVariable(VariableResource* variable, Update update, const Tensor& indices,
                         const Tensor& updates) {
  TENON_RETURN_IF_ERROR(CheckUpdates(*variable, update, updates));
  return variable->ModifyInPlace([&](Tensor* value) -> Status {
    TENON_ASSIGN_OR_RETURN(const IndexTuples tuples,
                           ReadUpdateTuples(indices, updates.shape(), value->shape()));
    if (updates.num_elements() == 0) return OkStatus();
    // A scalar would stand for every element of a row: here it is the one element of one row.
    TENON_ASSIGN_OR_RETURN(const Tensor rows, updates.Reshaped({tuples.count, tuples.width}));
    return CombineRows(update, rows, tuples.rows, tuples.width, value);
  });
}

}  // namespace tenon
