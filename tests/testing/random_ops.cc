// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/random_ops.h"

#include <algorithm>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"

namespace tenon::testing {
namespace {

constexpr int64_t kMaxElements = 20000;

bool IsNumber(DType t) { return IsFloating(t) || IsInteger(t); }

bool Broadcasts(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const int64_t m = a.dim(a.rank() - i), n = b.dim(b.rank() - i);
    if (m != n && m != 1 && n != 1) return false;
  }
  return true;
}

/// A scalar of the dtype of `like`.
Tensor ScalarLike(const Output& like, int value) {
  Tensor t(like.dtype(), Shape());
  Dispatch(like.dtype(), RealTypes(), [&](auto zero) {
    using T = decltype(zero);
    *t.data<T>() = static_cast<T>(value);
  });
  return t;
}

}  // namespace

Tensor RandomTensor(Random& random, DType dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  Dispatch(dtype, decltype(ConcatTypes(RealTypes(), TypeList<bool>()))(), [&](auto zero) {
    using T = decltype(zero);
    for (T& v : t.flat<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        v = random.Chance(50);
      } else if constexpr (std::is_integral_v<T>) {
        v = static_cast<T>(random.Below(19) - 9);
      } else {
        v = static_cast<T>((random.Below(4001) - 2000) / 1000.0f);
      }
    }
  });
  return t;
}

void RandomOps::Keep(Output value) {
  if (!ok() || !value.exists() || !value.shape().IsFullyKnown()) return;
  const int64_t n = *value.shape().num_elements();
  if (n > 0 && n <= kMaxElements && value.shape().rank() <= 5) values_.push_back(value);
}

void RandomOps::Grow() {
  if (!ok()) return;
  using Maker = void (RandomOps::*)();
  static const std::vector<Maker> makers = {
      &RandomOps::UnaryOp,     &RandomOps::UnaryOp,      &RandomOps::UnaryOp,
      &RandomOps::BinaryOp,    &RandomOps::BinaryOp,     &RandomOps::BinaryOp,
      &RandomOps::DivisionOp,  &RandomOps::ComparisonOp, &RandomOps::LogicalOp,
      &RandomOps::ChooseOp,    &RandomOps::CastOp,       &RandomOps::MatrixOp,
      &RandomOps::MatrixOp,    &RandomOps::ReductionOp,  &RandomOps::ReductionOp,
      &RandomOps::ArgBestOp,   &RandomOps::ReshapingOp,  &RandomOps::RepeatingOp,
      &RandomOps::JoiningOp,   &RandomOps::SplittingOp,  &RandomOps::SlicingOp,
      &RandomOps::GatheringOp, &RandomOps::ShapeOp,      &RandomOps::SoftmaxOp,
      &RandomOps::PlumbingOp,  &RandomOps::IrregularOp};
  (this->*r_.OneOf(makers))();
}

Output RandomOps::AnyOf(DType dtype) {
  std::vector<Output> found;
  for (const Output& v : values_) {
    if (v.dtype() == dtype) found.push_back(v);
  }
  return found.empty() ? Cast(Any(), dtype) : r_.OneOf(found);
}

Output RandomOps::Number() {
  const Output value = Any();
  return IsNumber(value.dtype()) ? value : AnyFloat();
}

Output RandomOps::Constant(const Input& value) {
  const Entered triggered(c_);
  return Const(value);
}

Output RandomOps::Constant(DType dtype, const Shape& shape) {
  return Constant(RandomTensor(r_, dtype, shape));
}

Output RandomOps::Tame(Output value) {
  if (!ok()) return Output();
  if (IsFloating(value.dtype())) return r_.Chance(60) ? Tanh(value) : Sin(value);
  if (!IsInteger(value.dtype()) || r_.Chance(30)) return value;
  return FloorMod(value, Cast(Constant(23 + r_.Below(7)), value.dtype()));
}

Output RandomOps::Flat(Output value) { return Reshape(value, Constant({-1})); }

Output RandomOps::Axes(const Shape& shape) {
  std::vector<int32_t> axes;
  for (int i = 0; i < shape.rank(); ++i) {
    if (r_.Chance(50)) axes.push_back(r_.Chance(30) ? i - shape.rank() : i);
  }
  return Constant(axes);
}

Output RandomOps::Predicate() {
  const Output value = Any();
  if (value.dtype() == DType::kBool) return tenon::Any(Flat(value), Constant(0));
  const Output sum = Sum(value);
  return Greater(sum, Constant(sum.dtype(), Shape()));
}

Output RandomOps::Absorb(Output like, Output other) {
  if (!ok()) return Output();
  const Output mean = Mean(Cast(other, DType::kDouble));
  // Where Tanh is 1, or one rounding less on another device, the cut to a whole number is the same.
  const Output rest = Mul(Tanh(Cast(mean, DType::kFloat)), Constant(3.5f));
  if (like.dtype() == DType::kBool) return LogicalAnd(like, Less(rest, Constant(1.0f)));
  const Output sum = Add(like, Cast(rest, like.dtype()));
  return IsFloating(sum.dtype()) ? Sin(sum) : sum;
}

void RandomOps::UnaryOp() {
  using Unary = Output (*)(const Input&, const OpOptions&);
  static const std::vector<Unary> any = {Abs, Neg, Sign, Square, ZerosLike, OnesLike, Identity};
  static const std::vector<Unary> floats = {
      Abs,  Neg, Sign, Square, Tanh,  Sigmoid, Sin,  Cos,      Floor,    Ceil,     Round,
      Rint, Erf, Atan, Relu,   Relu6, Elu,     Selu, Softplus, Softsign, Identity, Expm1};
  static const std::vector<Unary> positive = {Sqrt, Rsqrt, Log, Log1p, Reciprocal, Exp, Cosh};
  const Output x = Number();
  if (!IsFloating(x.dtype())) {
    Keep(r_.OneOf(any)(x, {}));
  } else if (r_.Chance(70)) {
    const Output y = r_.OneOf(floats)(x, {});
    Keep(r_.Chance(30) ? Tame(y) : y);
  } else {
    Keep(r_.OneOf(positive)(Add(Sigmoid(x), OnesLike(x)), {}));
  }
}

Output RandomOps::Fitting(Output x) {
  const Shape shape = ShapeOfValue(x);
  for (int tries = 0; tries < 3; ++tries) {
    const Output candidate = AnyOf(x.dtype());
    if (Broadcasts(shape, ShapeOfValue(candidate))) return candidate;
  }
  DimVector dims;
  for (int i = r_.Below(shape.rank() + 1); i < shape.rank(); ++i) {
    dims.push_back(r_.Chance(40) ? 1 : shape.dim(i));
  }
  return Constant(x.dtype(), Shape(dims));
}

void RandomOps::BinaryOp() {
  using Binary = Output (*)(const Input&, const Input&, const OpOptions&);
  static const std::vector<Binary> ops = {
      Add, AddV2, Sub, Mul, Maximum, Minimum, SquaredDifference};
  const Output x = Number(), y = Fitting(x);
  const bool swapped = r_.Chance(50);
  const Output z = r_.OneOf(ops)(swapped ? y : x, swapped ? x : y, {});
  Keep(r_.Chance(40) ? Tame(z) : z);
}

void RandomOps::DivisionOp() {
  const Output x = Number(), y = Fitting(x);
  if (IsFloating(x.dtype()) && r_.Chance(60)) {
    Keep(r_.Chance(50) ? DivNoNan(x, y) : RealDiv(x, Add(Abs(y), OnesLike(y))));
    return;
  }
  using Binary = Output (*)(const Input&, const Input&, const OpOptions&);
  static const std::vector<Binary> ops = {FloorDiv, FloorMod};
  static const std::vector<Binary> whole = {FloorDiv, FloorMod, TruncateDiv, TruncateMod, Div};
  // Never zero, and never -1, whose quotient with the lowest number does not exist.
  const Output divisor = Maximum(y, OnesLike(y));
  Keep(r_.OneOf(IsFloating(x.dtype()) ? ops : whole)(x, divisor, {}));
}

void RandomOps::ComparisonOp() {
  using Binary = Output (*)(const Input&, const Input&, const OpOptions&);
  static const std::vector<Binary> ops = {
      Less,
      LessEqual,
      Greater,
      GreaterEqual,
      [](const Input& x, const Input& y, const OpOptions&) { return Equal(x, y); },
      [](const Input& x, const Input& y, const OpOptions&) { return NotEqual(x, y); }};
  const Output x = Number();
  Keep(r_.OneOf(ops)(x, Fitting(x), {}));
}

void RandomOps::LogicalOp() {
  const Output x = AnyOf(DType::kBool);
  if (r_.Chance(30)) {
    Keep(LogicalNot(x));
  } else {
    Keep(r_.Chance(50) ? LogicalAnd(x, Fitting(x)) : LogicalOr(x, Fitting(x)));
  }
}

void RandomOps::ChooseOp() {
  const Output x = Number(), y = Fitting(x);
  const Output condition = r_.Chance(50) ? Predicate() : Less(x, y);
  Keep(SelectV2(condition, x, y));
  if (r_.Chance(30)) Keep(ClipByValue(x, Constant(ScalarLike(x, -1)), Constant(ScalarLike(x, 1))));
}

void RandomOps::CastOp() {
  static const std::vector<DType> types = {DType::kFloat, DType::kDouble, DType::kInt32,
                                           DType::kInt64, DType::kBool};
  Keep(Cast(Any(), r_.OneOf(types)));
}

}  // namespace tenon::testing
