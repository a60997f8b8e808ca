// SPDX-License-Identifier: Apache-2.0
#include "ops/math_ops.h"

#include "ops/composition.h"

namespace tenon {

#define TENON_UNARY(NAME) \
  Output NAME(const Scope& s, Output x) { return s.Op(#NAME).Input(x).Output(); }
TENON_UNARY(Abs)
TENON_UNARY(Neg)
TENON_UNARY(Sign)
TENON_UNARY(Exp)
TENON_UNARY(Expm1)
TENON_UNARY(Log)
TENON_UNARY(Log1p)
TENON_UNARY(Sqrt)
TENON_UNARY(Rsqrt)
TENON_UNARY(Square)
TENON_UNARY(Reciprocal)
TENON_UNARY(Sigmoid)
TENON_UNARY(Tanh)
TENON_UNARY(Sin)
TENON_UNARY(Cos)
TENON_UNARY(Tan)
TENON_UNARY(Asin)
TENON_UNARY(Acos)
TENON_UNARY(Atan)
TENON_UNARY(Sinh)
TENON_UNARY(Cosh)
TENON_UNARY(Asinh)
TENON_UNARY(Acosh)
TENON_UNARY(Atanh)
TENON_UNARY(Floor)
TENON_UNARY(Ceil)
TENON_UNARY(Round)
TENON_UNARY(Rint)
TENON_UNARY(Erf)
TENON_UNARY(Erfc)
TENON_UNARY(IsNan)
TENON_UNARY(IsInf)
TENON_UNARY(IsFinite)
TENON_UNARY(LogicalNot)
TENON_UNARY(Conj)
TENON_UNARY(ZerosLike)
TENON_UNARY(OnesLike)
#undef TENON_UNARY

#define TENON_BINARY(NAME) \
  Output NAME(const Scope& s, Output x, Output y) { return s.Op(#NAME).Input(x).Input(y).Output(); }
TENON_BINARY(Add)
TENON_BINARY(AddV2)
TENON_BINARY(Sub)
TENON_BINARY(Mul)
TENON_BINARY(Div)
TENON_BINARY(RealDiv)
TENON_BINARY(FloorDiv)
TENON_BINARY(TruncateDiv)
TENON_BINARY(FloorMod)
TENON_BINARY(Mod)
TENON_BINARY(TruncateMod)
TENON_BINARY(Maximum)
TENON_BINARY(Minimum)
TENON_BINARY(Pow)
TENON_BINARY(SquaredDifference)
TENON_BINARY(DivNoNan)
TENON_BINARY(Equal)
TENON_BINARY(NotEqual)
TENON_BINARY(Less)
TENON_BINARY(LessEqual)
TENON_BINARY(Greater)
TENON_BINARY(GreaterEqual)
TENON_BINARY(LogicalAnd)
TENON_BINARY(LogicalOr)
#undef TENON_BINARY

#define TENON_REDUCTION(NAME)                                                          \
  Output NAME(const Scope& s, Output input, Output axes, bool keep_dims) {             \
    return s.Op(#NAME).Input(input).Input(axes).Attr("keep_dims", keep_dims).Output(); \
  }
TENON_REDUCTION(Sum)
TENON_REDUCTION(Mean)
TENON_REDUCTION(Prod)
TENON_REDUCTION(Max)
TENON_REDUCTION(Min)
TENON_REDUCTION(All)
TENON_REDUCTION(Any)
#undef TENON_REDUCTION

Output Cast(const Scope& s, Output x, DType dtype) {
  return s.Op("Cast").Input(x).Attr("DstT", dtype).Output();
}
Output SelectV2(const Scope& s, Output condition, Output t, Output e) {
  return s.Op("SelectV2").Input(condition).Input(t).Input(e).Output();
}
Output Select(const Scope& s, Output condition, Output t, Output e) {
  return s.Op("Select").Input(condition).Input(t).Input(e).Output();
}
Output ClipByValue(const Scope& s, Output t, Output low, Output high) {
  return s.Op("ClipByValue").Input(t).Input(low).Input(high).Output();
}
Output AddN(const Scope& s, const std::vector<Output>& inputs) {
  return s.Op("AddN").Input(inputs).Output();
}
Output L2Loss(const Scope& s, Output t) { return s.Op("L2Loss").Input(t).Output(); }
Output CheckNumerics(const Scope& s, Output tensor, std::string_view message) {
  return s.Op("CheckNumerics").Input(tensor).Attr("message", message).Output();
}
Output BroadcastTo(const Scope& s, Output input, Output shape) {
  return s.Op("BroadcastTo").Input(input).Input(shape).Output();
}

namespace {

Output AllAxes(const Scope& s, Output input) {
  if (!s.ok()) return Output();
  if (!input.shape().rank_known()) {
    const Output rank = s.Op("Rank").Input(input).Output();
    return s.Op("Range")
        .Input(ScalarOf(s, DType::kInt32, 0))
        .Input(rank)
        .Input(ScalarOf(s, DType::kInt32, 1))
        .Output();
  }
  std::vector<int32_t> axes(input.shape().rank());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int32_t>(i);
  return IntVector(s, axes);
}

}  // namespace

Output Sum(const Scope& s, Output input, std::initializer_list<int32_t> axes, bool keep_dims) {
  return Sum(s, input, IntVector(s, axes), keep_dims);
}
Output Mean(const Scope& s, Output input, std::initializer_list<int32_t> axes, bool keep_dims) {
  return Mean(s, input, IntVector(s, axes), keep_dims);
}
Output SumAll(const Scope& s, Output input) { return Sum(s, input, AllAxes(s, input)); }
Output MeanAll(const Scope& s, Output input) { return Mean(s, input, AllAxes(s, input)); }

Output ArgMax(const Scope& s, Output input, Output dimension, DType output_type) {
  return s.Op("ArgMax").Input(input).Input(dimension).Attr("output_type", output_type).Output();
}
Output ArgMin(const Scope& s, Output input, Output dimension, DType output_type) {
  return s.Op("ArgMin").Input(input).Input(dimension).Attr("output_type", output_type).Output();
}
Output SegmentSum(const Scope& s, Output data, Output segment_ids) {
  return s.Op("SegmentSum").Input(data).Input(segment_ids).Output();
}
Output UnsortedSegmentSum(const Scope& s, Output data, Output segment_ids, Output num_segments) {
  return s.Op("UnsortedSegmentSum").Input(data).Input(segment_ids).Input(num_segments).Output();
}

Output MatMul(const Scope& s, Output a, Output b, bool transpose_a, bool transpose_b) {
  return s.Op("MatMul")
      .Input(a)
      .Input(b)
      .Attr("transpose_a", transpose_a)
      .Attr("transpose_b", transpose_b)
      .Output();
}
Output BatchMatMul(const Scope& s, Output x, Output y, bool adj_x, bool adj_y) {
  return s.Op("BatchMatMulV2").Input(x).Input(y).Attr("adj_x", adj_x).Attr("adj_y", adj_y).Output();
}

}  // namespace tenon
