// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"
#include "ops/arguments.h"

// What recurrent cells share. They compute in float: 16-bit inputs are widened first.

namespace tenon {

/// The inputs from `first` on as float.
StatusOr<std::vector<Tensor>> FloatInputs(KernelContext& ctx, int first);
/// Sets the outputs, in their type, of a plain one of float each.
Status SetOutputs(KernelContext& ctx, std::vector<Tensor> values);

/// A new tensor of floats.
StatusOr<Tensor> Floats(absl::Span<const int64_t> dims);

/// InvalidArgument unless `t` has this shape.
Status CheckShape(const Tensor& t, std::string_view what, const Shape& wanted);

/// a[m, k] * b[k, n], b as [n, k] when transposed; a as [k, m].
Status Multiply(const Tensor& a, const Tensor& b, Tensor* c, bool transpose_a = false,
                bool transpose_b = false);

/// The columns of a and those of b behind them; of as many rows.
Status JoinColumns(const Tensor& a, const Tensor& b, Tensor* joined);

}  // namespace tenon
