// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/op_registry.h"
#include "tests/cuda/op_case.h"

namespace tenon::testing {

/// Whether the op reads or changes a variable and has cases here: the optimizers' steps, updates of
/// rows, gathers.
bool HasVariableCases(const OpRegistration& op);

/// Compares what the op makes of variables on the GPU with what it makes of them on the CPU, in
/// each dtype of its kernels; in one of them only when `once`.
void CompareVariableCases(const OpRegistration& op, OpRow* row, bool once = false);

}  // namespace tenon::testing
