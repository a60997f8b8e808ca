// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"
#include "core/tensor/variable.h"
#include "ops/combine_rows.h"

namespace tenon {

/// variable += or -= value (kAdd, kSubtract), atomically. FailedPrecondition when uninitialised,
/// InvalidArgument when dtype or shape differ.
Status UpdateVariable(VariableResource* variable, Update update, const Tensor& value);

/// Updates variable[indices[i], ...] with updates[i, ...], atomically and in order. `updates` has
/// the shape of indices followed by that of one row, or is a scalar. InvalidArgument
/// "indices[0] = 5 is not in [0, 2)".
Status ScatterVariable(VariableResource* variable, Update update, const Tensor& indices,
                       const Tensor& updates);

/// Updates what the tuples in the last dimension of `indices` name with `updates`, which has the
/// shape indices.shape[:-1] + variable.shape[k:], atomically and in order.
Status ScatterNdVariable(VariableResource* variable, Update update, const Tensor& indices,
                         const Tensor& updates);

// The checks of these, for kernels of other devices; as far as the host can make them there.

/// InvalidArgument unless `value` may be added to or subtracted from a variable that is `current`.
Status CheckUpdateShape(const Tensor& current, const Tensor& value);
/// InvalidArgument unless `updates` are of the variable's dtype.
Status CheckUpdateType(const VariableResource& variable, const Tensor& updates);
/// InvalidArgument unless the value of a variable has rows.
Status CheckHasRows(const Tensor& value);
/// InvalidArgument unless `updates` are rows of `value`, one for each index, or a scalar.
Status CheckRowUpdates(const Tensor& value, const Tensor& indices, const Tensor& updates);

/// One of the ops of an update: of rows or of what tuples name, by reference or by handle.
struct ScatterOp {
  std::string name, type_attr;
  bool tuples, by_handle;
};
/// The ops that are declared, of four possible: no tuples are multiplied or divided.
std::vector<ScatterOp> ScatterOps(const OpRegistry& ops, std::string_view update);

}  // namespace tenon
