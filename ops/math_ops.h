// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/scope.h"

// Graph-building functions for arithmetic. Arguments come in TensorFlow's order. Binary functions
// broadcast: shapes are aligned at their ends, and a missing dimension or one of 1 is repeated.
//
//   Output y = Sigmoid(s, Add(s, MatMul(s, x, w), b));

namespace tenon {

// --- One argument, element by element ---

Output Abs(const Scope& s, Output x);
Output Neg(const Scope& s, Output x);
Output Sign(const Scope& s, Output x);
Output Exp(const Scope& s, Output x);
Output Expm1(const Scope& s, Output x);
Output Log(const Scope& s, Output x);
Output Log1p(const Scope& s, Output x);
Output Sqrt(const Scope& s, Output x);
/// 1 / sqrt(x)
Output Rsqrt(const Scope& s, Output x);
Output Square(const Scope& s, Output x);
Output Reciprocal(const Scope& s, Output x);
Output Sigmoid(const Scope& s, Output x);
Output Tanh(const Scope& s, Output x);
Output Sin(const Scope& s, Output x);
Output Cos(const Scope& s, Output x);
Output Tan(const Scope& s, Output x);
Output Asin(const Scope& s, Output x);
Output Acos(const Scope& s, Output x);
Output Atan(const Scope& s, Output x);
Output Sinh(const Scope& s, Output x);
Output Cosh(const Scope& s, Output x);
Output Asinh(const Scope& s, Output x);
Output Acosh(const Scope& s, Output x);
Output Atanh(const Scope& s, Output x);
Output Floor(const Scope& s, Output x);
Output Ceil(const Scope& s, Output x);
/// To the nearest integer, halves to even.
Output Round(const Scope& s, Output x);
/// As Round.
Output Rint(const Scope& s, Output x);
Output Erf(const Scope& s, Output x);
Output Erfc(const Scope& s, Output x);
Output IsNan(const Scope& s, Output x);
Output IsInf(const Scope& s, Output x);
Output IsFinite(const Scope& s, Output x);
Output LogicalNot(const Scope& s, Output x);
Output Conj(const Scope& s, Output x);
Output ZerosLike(const Scope& s, Output x);
Output OnesLike(const Scope& s, Output x);

// --- Two arguments, element by element ---

/// x + y; also joins strings.
Output Add(const Scope& s, Output x, Output y);
/// x + y
Output AddV2(const Scope& s, Output x, Output y);
Output Sub(const Scope& s, Output x, Output y);
Output Mul(const Scope& s, Output x, Output y);
/// As RealDiv for floating point, TruncateDiv for integers.
Output Div(const Scope& s, Output x, Output y);
/// x / y
Output RealDiv(const Scope& s, Output x, Output y);
/// x / y rounded towards minus infinity.
Output FloorDiv(const Scope& s, Output x, Output y);
/// x / y rounded towards zero.
Output TruncateDiv(const Scope& s, Output x, Output y);
/// The remainder of FloorDiv: it has the sign of y.
Output FloorMod(const Scope& s, Output x, Output y);
/// As TruncateMod.
Output Mod(const Scope& s, Output x, Output y);
/// The remainder of TruncateDiv: it has the sign of x.
Output TruncateMod(const Scope& s, Output x, Output y);
Output Maximum(const Scope& s, Output x, Output y);
Output Minimum(const Scope& s, Output x, Output y);
Output Pow(const Scope& s, Output x, Output y);
/// (x - y)^2
Output SquaredDifference(const Scope& s, Output x, Output y);
/// x / y, and 0 where y is 0.
Output DivNoNan(const Scope& s, Output x, Output y);
/// Also for strings, as is NotEqual.
Output Equal(const Scope& s, Output x, Output y);
Output NotEqual(const Scope& s, Output x, Output y);
Output Less(const Scope& s, Output x, Output y);
Output LessEqual(const Scope& s, Output x, Output y);
Output Greater(const Scope& s, Output x, Output y);
Output GreaterEqual(const Scope& s, Output x, Output y);
Output LogicalAnd(const Scope& s, Output x, Output y);
Output LogicalOr(const Scope& s, Output x, Output y);

// --- More ---

/// `x` converted to `dtype`. Floats are truncated towards zero; NaN and floats out of range give
/// the lowest int32 or int64.
Output Cast(const Scope& s, Output x, DType dtype);
/// t where `condition`, else e; all three broadcast (the op SelectV2, tf.where).
Output SelectV2(const Scope& s, Output condition, Output t, Output e);
/// t where `condition`, else e. The shapes are equal, or condition is a scalar, or a vector that
/// chooses rows (the op Select).
Output Select(const Scope& s, Output condition, Output t, Output e);
Output ClipByValue(const Scope& s, Output t, Output low, Output high);
/// The sum of tensors of one shape.
Output AddN(const Scope& s, const std::vector<Output>& inputs);
/// sum(t * t) / 2
Output L2Loss(const Scope& s, Output t);
/// `tensor`; running it fails with `message` when it has a NaN or an infinity.
Output CheckNumerics(const Scope& s, Output tensor, std::string_view message);
/// `input` repeated to `shape`.
Output BroadcastTo(const Scope& s, Output input, Output shape);

// --- Along axes ---
// `axes` is a vector of integers, or a scalar, counted from the end when negative. With `keep_dims`
// the axes stay as dimensions of size 1.

Output Sum(const Scope& s, Output input, Output axes, bool keep_dims = false);
Output Mean(const Scope& s, Output input, Output axes, bool keep_dims = false);
Output Prod(const Scope& s, Output input, Output axes, bool keep_dims = false);
Output Max(const Scope& s, Output input, Output axes, bool keep_dims = false);
Output Min(const Scope& s, Output input, Output axes, bool keep_dims = false);
Output All(const Scope& s, Output input, Output axes, bool keep_dims = false);
Output Any(const Scope& s, Output input, Output axes, bool keep_dims = false);
/// The same with axes that are known now: Sum(s, x, {0, -1}).
Output Sum(const Scope& s, Output input, std::initializer_list<int32_t> axes,
           bool keep_dims = false);
Output Mean(const Scope& s, Output input, std::initializer_list<int32_t> axes,
            bool keep_dims = false);
/// Over all axes.
Output SumAll(const Scope& s, Output input);
Output MeanAll(const Scope& s, Output input);
/// Where the largest (smallest) element along `dimension` is, the first of equals.
Output ArgMax(const Scope& s, Output input, Output dimension, DType output_type = DType::kInt64);
Output ArgMin(const Scope& s, Output input, Output dimension, DType output_type = DType::kInt64);
/// Sums of the rows of `data` with equal ids; `segment_ids` is sorted.
Output SegmentSum(const Scope& s, Output data, Output segment_ids);
/// Sums of the slices of `data` with equal ids, which are below `num_segments`; negative ids drop
/// their slice.
Output UnsortedSegmentSum(const Scope& s, Output data, Output segment_ids, Output num_segments);

// --- Matrices ---

Output MatMul(const Scope& s, Output a, Output b, bool transpose_a = false,
              bool transpose_b = false);
/// Products of the last two dimensions; the others broadcast (the op BatchMatMulV2). The adjoint
/// is the conjugate transpose.
Output BatchMatMul(const Scope& s, Output x, Output y, bool adj_x = false, bool adj_y = false);

}  // namespace tenon
