// SPDX-License-Identifier: Apache-2.0
//
// The part of RandomOps that rearranges, joins, cuts and reduces.
#include <algorithm>
#include <numeric>

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/nn_ops.h"
#include "tests/testing/random_ops.h"

namespace tenon::testing {
namespace {

std::vector<int32_t> Dims(const Shape& shape) {
  return std::vector<int32_t>(shape.dims().begin(), shape.dims().end());
}

/// Two factors of `n`.
std::pair<int32_t, int32_t> Factors(Random& random, int64_t n) {
  std::vector<int32_t> divisors;
  for (int32_t d = 1; d <= n && d <= 64; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  const int32_t rows = random.OneOf(divisors);
  return {rows, static_cast<int32_t>(n / rows)};
}

}  // namespace

void RandomOps::MatrixOp() {
  const Output x = r_.Chance(85) ? AnyFloat() : AnyOf(DType::kInt32);
  const auto [rows, columns] = Factors(r_, ShapeOfValue(x).num_elements());
  const int n = 1 + r_.Below(6);
  if (r_.Chance(20) && IsFloating(x.dtype())) {
    const Output batch = Reshape(s_, x, Const(c_, {1, rows, columns}));
    const bool flip = r_.Chance(50);
    const Shape other = flip ? Shape{2, n, columns} : Shape{2, columns, n};
    Keep(Tame(BatchMatMul(s_, batch, Constant(x.dtype(), other), false, flip)));
    return;
  }
  const Output a = Reshape(s_, x, Const(c_, {rows, columns}));
  const bool flip_a = r_.Chance(30), flip_b = r_.Chance(30);
  const int64_t inner = flip_a ? rows : columns;
  const Output b = Constant(x.dtype(), flip_b ? Shape{n, inner} : Shape{inner, n});
  Output y = MatMul(s_, a, b, flip_a, flip_b);
  if (IsFloating(x.dtype()) && r_.Chance(40)) y = BiasAdd(s_, y, Constant(x.dtype(), {n}));
  Keep(Tame(y));
}

void RandomOps::ReductionOp() {
  using Reduction = Output (*)(const Scope&, Output, Output, bool);
  static const std::vector<Reduction> numbers = {Sum, Mean, Max, Min, Prod};
  static const std::vector<Reduction> truths = {tenon::All, tenon::Any};
  const Output x = Any();
  const bool keep_dims = r_.Chance(40);
  const Output axes = Axes(ShapeOfValue(x));
  if (x.dtype() == DType::kBool) {
    Keep(r_.OneOf(truths)(s_, x, axes, keep_dims));
  } else {
    Keep(Tame(r_.OneOf(numbers)(s_, x, axes, keep_dims)));
  }
}

void RandomOps::ArgBestOp() {
  const Output x = Number();
  const int rank = ShapeOfValue(x).rank();
  if (rank == 0) return;
  const Output axis = Const(c_, r_.Below(rank));
  const DType type = r_.Chance(50) ? DType::kInt32 : DType::kInt64;
  Keep(r_.Chance(50) ? ArgMax(s_, x, axis, type) : ArgMin(s_, x, axis, type));
}

void RandomOps::ReshapingOp() {
  const Output x = Any();
  const Shape shape = ShapeOfValue(x);
  const int rank = shape.rank();
  switch (r_.Below(5)) {
    case 0: {
      const auto [rows, columns] = Factors(r_, shape.num_elements());
      Keep(Reshape(s_, x, Const(c_, {rows, r_.Chance(50) ? -1 : columns})));
      break;
    }
    case 1:
      Keep(ExpandDims(s_, x, Const(c_, r_.Below(rank + 1) - (r_.Chance(30) ? rank + 1 : 0))));
      break;
    case 2:
      Keep(Squeeze(s_, x));
      break;
    case 3: {
      std::vector<int32_t> perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      for (int i = rank - 1; i > 0; --i) std::swap(perm[i], perm[r_.Below(i + 1)]);
      Keep(Transpose(s_, x, Const(c_, perm)));
      break;
    }
    default:
      Keep(ReverseV2(s_, x, Axes(shape)));
  }
}

void RandomOps::RepeatingOp() {
  const Output x = Any();
  const Shape shape = ShapeOfValue(x);
  const int rank = shape.rank();
  std::vector<int32_t> numbers;
  switch (r_.Below(4)) {
    case 0:
      for (int i = 0; i < rank; ++i) numbers.push_back(1 + r_.Below(2));
      Keep(Tile(s_, x, Const(c_, numbers)));
      break;
    case 1: {
      Tensor paddings(DType::kInt32, {rank, 2});
      for (int32_t& p : paddings.flat<int32_t>()) p = r_.Below(2);
      Keep(Pad(s_, x, Const(c_, paddings)));
      break;
    }
    case 2:
      numbers = Dims(shape);
      for (int32_t& d : numbers) d = d == 1 ? 1 + r_.Below(3) : d;
      numbers.insert(numbers.begin(), 1 + r_.Below(2));
      Keep(BroadcastTo(s_, x, Const(c_, numbers)));
      break;
    default:
      if (rank == 0 || x.dtype() == DType::kBool) return;
      Keep(Tame(Cumsum(s_, x, Const(c_, r_.Below(rank)), r_.Chance(50), r_.Chance(50))));
  }
}

void RandomOps::JoiningOp() {
  const Output x = Any();
  std::vector<Output> parts = {x};
  for (const Output& v : values_) {
    if (v.dtype() == x.dtype() && v.shape() == x.shape() && parts.size() < 4 && r_.Chance(50)) {
      parts.push_back(v);
    }
  }
  const int rank = ShapeOfValue(x).rank();
  switch (r_.Below(4)) {
    case 0:
      Keep(Pack(s_, parts, r_.Below(rank + 1)));
      break;
    case 1:
      if (x.dtype() != DType::kBool) Keep(AddN(s_, parts));
      break;
    case 2: {
      std::vector<Output> flat;
      for (int i = 0; i < 3; ++i) flat.push_back(Flat(AnyOf(x.dtype())));
      Keep(ConcatV2(s_, flat, Const(c_, 0)));
      break;
    }
    default:
      if (parts.size() == 1) parts.push_back(x);
      if (rank > 0) Keep(ConcatV2(s_, parts, Const(c_, r_.Below(rank))));
  }
}

void RandomOps::SplittingOp() {
  const Output x = Any();
  const Shape shape = ShapeOfValue(x);
  if (shape.rank() == 0) return;
  const int axis = r_.Below(shape.rank());
  const int64_t size = shape.dim(axis);
  std::vector<Output> parts;
  if (r_.Chance(30) && size <= 6) {
    parts = Unpack(s_, x, size, axis);
  } else if (r_.Chance(50) && size >= 2) {
    const auto first = static_cast<int32_t>(1 + r_.Below(static_cast<int>(size) - 1));
    parts = SplitV(s_, x, Const(c_, {first, static_cast<int32_t>(size) - first}), Const(c_, axis), 2);
  } else {
    const int64_t pieces = size % 3 == 0 ? 3 : size % 2 == 0 ? 2 : 1;
    parts = Split(s_, Const(c_, axis), x, pieces);
  }
  for (const Output& part : parts) Keep(part);
}

void RandomOps::SlicingOp() {
  const Output x = Any();
  const Shape shape = ShapeOfValue(x);
  std::vector<int32_t> begin, size, end, strides;
  StridedSliceMasks masks;
  for (int i = 0; i < shape.rank(); ++i) {
    const int n = static_cast<int>(shape.dim(i));
    const int first = r_.Below(n), length = 1 + r_.Below(n - first);
    const bool backwards = r_.Chance(20);
    begin.push_back(first);
    size.push_back(r_.Chance(20) ? n - first : length);
    end.push_back(backwards ? -1 : first + length);
    strides.push_back(backwards ? -1 : 1 + r_.Below(2));
    if (backwards || r_.Chance(20)) masks.end |= int64_t{1} << i;
    if (r_.Chance(15)) masks.shrink_axis |= int64_t{1} << i;
    if ((masks.shrink_axis >> i & 1) != 0) strides.back() = 1;
  }
  if (r_.Chance(50)) {
    Keep(Slice(s_, x, Const(c_, begin), Const(c_, size)));
  } else {
    Keep(StridedSlice(s_, x, Const(c_, begin), Const(c_, end), Const(c_, strides), masks));
  }
}

void RandomOps::GatheringOp() {
  const Output x = Any();
  const Shape shape = ShapeOfValue(x);
  if (shape.rank() == 0) return;
  const int axis = r_.Below(shape.rank());
  const auto n = static_cast<int32_t>(shape.dim(axis));
  const Output number = Flat(AnyOf(DType::kInt32));
  const Output indices = FloorMod(s_, number, Const(c_, n));
  switch (r_.Below(4)) {
    case 0:
      Keep(GatherV2(s_, x, indices, Const(c_, axis)));
      break;
    case 1:
      if (axis == 0) Keep(Gather(s_, x, indices));
      break;
    case 2:
      Keep(OneHot(s_, indices, Const(c_, n), Const(c_, 1.0f), Const(c_, 0.0f)));
      break;
    default: {
      if (x.dtype() == DType::kBool) return;
      const Output ids = FloorMod(s_, Range(s_, Const(c_, 0), Const(c_, static_cast<int32_t>(shape.dim(0))),
                                            Const(c_, 1)),
                                  Const(c_, 1 + r_.Below(3)));
      Keep(UnsortedSegmentSum(s_, x, ids, Const(c_, 3)));
    }
  }
}

void RandomOps::ShapeOp() {
  const Output x = Any();
  const DType type = r_.Chance(50) ? DType::kInt32 : DType::kInt64;
  switch (r_.Below(5)) {
    case 0: Keep(ShapeOf(s_, x, type)); break;
    case 1: Keep(Size(s_, x, type)); break;
    case 2: Keep(Rank(s_, x)); break;
    case 3: Keep(Fill(s_, ShapeOf(s_, x), SumAll(s_, Number()))); break;
    default: Keep(Reshape(s_, x, ShapeOf(s_, x)));
  }
}

void RandomOps::SoftmaxOp() {
  const Output x = AnyFloat();
  const auto [rows, columns] = Factors(r_, ShapeOfValue(x).num_elements());
  const Output logits = Reshape(s_, x, Const(c_, {rows, columns}));
  switch (r_.Below(4)) {
    case 0: Keep(Softmax(s_, logits)); break;
    case 1: Keep(LogSoftmax(s_, logits)); break;
    case 2: {
      const auto both = SoftmaxCrossEntropyWithLogits(
          s_, logits, Softmax(s_, Constant(x.dtype(), {rows, columns})));
      for (const Output& o : both) Keep(o);
      break;
    }
    default: {
      const Output labels = FloorMod(s_, Constant(DType::kInt32, {rows}), Const(c_, columns));
      for (const Output& o : SparseSoftmaxCrossEntropyWithLogits(s_, logits, labels)) Keep(o);
    }
  }
}

void RandomOps::PlumbingOp() {
  switch (r_.Below(4)) {
    case 0:
      for (const Output& o : IdentityN(s_, {Any(), Any()})) Keep(o);
      break;
    case 1:
      Keep(StopGradient(s_, Any()));
      break;
    case 2: {
      const Output after(NoOp(s_.WithControlDependencies({Any(), Any()})));
      Keep(Identity(s_.WithControlDependencies({after}), Any()));
      break;
    }
    default:
      Keep(Neg(s_.WithControlDependencies({Any()}), Number()));
  }
}

void RandomOps::IrregularOp() {
  const Output x = Number();
  if (r_.Chance(50)) {
    const Output places = Where(s_, Greater(s_, Flat(x), Constant(x.dtype(), Shape())));
    Keep(SumAll(s_, Cast(s_, places, DType::kFloat)));
  } else {
    const auto unique = Unique(s_, Flat(Floor(s_, Cast(s_, x, DType::kFloat))));
    if (unique.size() != 2) return;
    Keep(Size(s_, unique[0]));
    Keep(unique[1]);
  }
}

}  // namespace tenon::testing
