// SPDX-License-Identifier: Apache-2.0
//
// The part of RandomOps that rearranges, joins, cuts and reduces.
#include <algorithm>
#include <numeric>

#include "ops/array/array_ops.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/nn/nn_ops.h"
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

template <typename Options, Output (*kOp)(const Input&, const Input&, const Options&)>
Output Reduced(const Output& x, const Output& axes, bool keep_dims) {
  return kOp(x, axes, {.keep_dims = keep_dims});
}

}  // namespace

void RandomOps::MatrixOp() {
  const Output x = r_.Chance(85) ? AnyFloat() : AnyOf(DType::kInt32);
  const auto [rows, columns] = Factors(r_, ShapeOfValue(x).num_elements());
  const int n = 1 + r_.Below(6);
  if (r_.Chance(20) && IsFloating(x.dtype())) {
    const Output batch = Reshape(x, Constant({1, rows, columns}));
    const bool flip = r_.Chance(50);
    const Shape other = flip ? Shape{2, n, columns} : Shape{2, columns, n};
    Keep(Tame(BatchMatMulV2(batch, Constant(x.dtype(), other), {.adj_y = flip})));
    return;
  }
  const Output a = Reshape(x, Constant({rows, columns}));
  const bool flip_a = r_.Chance(30), flip_b = r_.Chance(30);
  const int64_t inner = flip_a ? rows : columns;
  const Output b = Constant(x.dtype(), flip_b ? Shape{n, inner} : Shape{inner, n});
  Output y = MatMul(a, b, {.transpose_a = flip_a, .transpose_b = flip_b});
  if (IsFloating(x.dtype()) && r_.Chance(40)) y = BiasAdd(y, Constant(x.dtype(), {n}));
  Keep(Tame(y));
}

void RandomOps::ReductionOp() {
  using Reduction = Output (*)(const Output&, const Output&, bool);
  static const std::vector<Reduction> numbers = {
      Reduced<SumOptions, Sum>, Reduced<MeanOptions, Mean>, Reduced<MaxOptions, Max>,
      Reduced<MinOptions, Min>, Reduced<ProdOptions, Prod>};
  static const std::vector<Reduction> truths = {Reduced<AllOptions, tenon::All>,
                                                Reduced<AnyOptions, tenon::Any>};
  const Output x = Any();
  const bool keep_dims = r_.Chance(40);
  const Output axes = Axes(ShapeOfValue(x));
  if (x.dtype() == DType::kBool) {
    Keep(r_.OneOf(truths)(x, axes, keep_dims));
  } else {
    Keep(Tame(r_.OneOf(numbers)(x, axes, keep_dims)));
  }
}

void RandomOps::ArgBestOp() {
  const Output x = Number();
  const int rank = ShapeOfValue(x).rank();
  if (rank == 0) return;
  const Output axis = Constant(r_.Below(rank));
  const DType type = r_.Chance(50) ? DType::kInt32 : DType::kInt64;
  Keep(r_.Chance(50) ? ArgMax(x, axis, {.output_type = type})
                     : ArgMin(x, axis, {.output_type = type}));
}

void RandomOps::ReshapingOp() {
  const Output x = Any();
  const Shape shape = ShapeOfValue(x);
  const int rank = shape.rank();
  switch (r_.Below(5)) {
    case 0: {
      const auto [rows, columns] = Factors(r_, shape.num_elements());
      Keep(Reshape(x, Constant({rows, r_.Chance(50) ? -1 : columns})));
      break;
    }
    case 1:
      Keep(ExpandDims(x, Constant(r_.Below(rank + 1) - (r_.Chance(30) ? rank + 1 : 0))));
      break;
    case 2:
      Keep(Squeeze(x));
      break;
    case 3: {
      std::vector<int32_t> perm(rank);
      std::iota(perm.begin(), perm.end(), 0);
      for (int i = rank - 1; i > 0; --i) std::swap(perm[i], perm[r_.Below(i + 1)]);
      Keep(Transpose(x, Constant(perm)));
      break;
    }
    default:
      Keep(ReverseV2(x, Axes(shape)));
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
      Keep(Tile(x, Constant(numbers)));
      break;
    case 1: {
      Tensor paddings(DType::kInt32, {rank, 2});
      for (int32_t& p : paddings.flat<int32_t>()) p = r_.Below(2);
      Keep(Pad(x, Constant(paddings)));
      break;
    }
    case 2:
      numbers = Dims(shape);
      for (int32_t& d : numbers) d = d == 1 ? 1 + r_.Below(3) : d;
      numbers.insert(numbers.begin(), 1 + r_.Below(2));
      Keep(BroadcastTo(x, Constant(numbers)));
      break;
    default:
      if (rank == 0 || x.dtype() == DType::kBool) return;
      Keep(Tame(Cumsum(x, Constant(r_.Below(rank)),
                       {.exclusive = r_.Chance(50), .reverse = r_.Chance(50)})));
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
      Keep(Pack(parts, {.axis = r_.Below(rank + 1)}));
      break;
    case 1:
      if (x.dtype() != DType::kBool) Keep(AddN(parts));
      break;
    case 2: {
      std::vector<Output> flat;
      for (int i = 0; i < 3; ++i) flat.push_back(Flat(AnyOf(x.dtype())));
      Keep(ConcatV2(flat, Constant(0)));
      break;
    }
    default:
      if (parts.size() == 1) parts.push_back(x);
      if (rank > 0) Keep(ConcatV2(parts, Constant(r_.Below(rank))));
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
    parts = Unpack(x, size, {.axis = axis});
  } else if (r_.Chance(50) && size >= 2) {
    const auto first = static_cast<int32_t>(1 + r_.Below(static_cast<int>(size) - 1));
    parts = SplitV(x, Constant({first, static_cast<int32_t>(size) - first}), Constant(axis), 2);
  } else {
    const int64_t pieces = size % 3 == 0 ? 3 : size % 2 == 0 ? 2 : 1;
    parts = Split(Constant(axis), x, pieces);
  }
  for (const Output& part : parts) Keep(part);
}

void RandomOps::SlicingOp() {
  const Output x = Any();
  const Shape shape = ShapeOfValue(x);
  std::vector<int32_t> begin, size, end, strides;
  StridedSliceOptions masks;
  for (int i = 0; i < shape.rank(); ++i) {
    const int n = static_cast<int>(shape.dim(i));
    const int first = r_.Below(n), length = 1 + r_.Below(n - first);
    const bool backwards = r_.Chance(20);
    begin.push_back(first);
    size.push_back(r_.Chance(20) ? n - first : length);
    end.push_back(backwards ? -1 : first + length);
    strides.push_back(backwards ? -1 : 1 + r_.Below(2));
    if (backwards || r_.Chance(20)) masks.end_mask |= int64_t{1} << i;
    if (r_.Chance(15)) masks.shrink_axis_mask |= int64_t{1} << i;
    if ((masks.shrink_axis_mask >> i & 1) != 0) strides.back() = 1;
  }
  if (r_.Chance(50)) {
    Keep(Slice(x, Constant(begin), Constant(size)));
  } else {
    Keep(StridedSlice(x, Constant(begin), Constant(end), Constant(strides), masks));
  }
}

void RandomOps::GatheringOp() {
  const Output x = Any();
  const Shape shape = ShapeOfValue(x);
  if (shape.rank() == 0) return;
  const int axis = r_.Below(shape.rank());
  const auto n = static_cast<int32_t>(shape.dim(axis));
  const Output number = Flat(AnyOf(DType::kInt32));
  const Output indices = FloorMod(number, Constant(n));
  switch (r_.Below(4)) {
    case 0:
      Keep(GatherV2(x, indices, Constant(axis)));
      break;
    case 1:
      if (axis == 0) Keep(Gather(x, indices));
      break;
    case 2:
      Keep(OneHot(indices, Constant(n), Constant(1.0f), Constant(0.0f)));
      break;
    default: {
      if (x.dtype() == DType::kBool) return;
      const Output ids =
          FloorMod(Range(Constant(0), Constant(static_cast<int32_t>(shape.dim(0))), Constant(1)),
                   Constant(1 + r_.Below(3)));
      Keep(UnsortedSegmentSum(x, ids, Constant(3)));
    }
  }
}

void RandomOps::ShapeOp() {
  const Output x = Any();
  const DType type = r_.Chance(50) ? DType::kInt32 : DType::kInt64;
  switch (r_.Below(5)) {
    case 0:
      Keep(ShapeOf(x, {.out_type = type}));
      break;
    case 1:
      Keep(Size(x, {.out_type = type}));
      break;
    case 2:
      Keep(Rank(x));
      break;
    case 3:
      Keep(Fill(ShapeOf(x), Sum(Number())));
      break;
    default:
      Keep(Reshape(x, ShapeOf(x)));
  }
}

void RandomOps::SoftmaxOp() {
  const Output x = AnyFloat();
  const auto [rows, columns] = Factors(r_, ShapeOfValue(x).num_elements());
  const Output logits = Reshape(x, Constant({rows, columns}));
  switch (r_.Below(4)) {
    case 0:
      Keep(Softmax(logits));
      break;
    case 1:
      Keep(LogSoftmax(logits));
      break;
    case 2: {
      const auto [loss, backprop] =
          SoftmaxCrossEntropyWithLogits(logits, Softmax(Constant(x.dtype(), {rows, columns})));
      Keep(loss);
      Keep(backprop);
      break;
    }
    default: {
      const Output labels = FloorMod(Constant(DType::kInt32, {rows}), Constant(columns));
      const auto [loss, backprop] = SparseSoftmaxCrossEntropyWithLogits(logits, labels);
      Keep(loss);
      Keep(backprop);
    }
  }
}

void RandomOps::PlumbingOp() {
  switch (r_.Below(4)) {
    case 0:
      for (const Output& o : IdentityN({Any(), Any()})) Keep(o);
      break;
    case 1:
      Keep(StopGradient(Any()));
      break;
    case 2: {
      const Output after = [&] {
        const ControlDependencies both({Any(), Any()});
        return Output(NoOp());
      }();
      const ControlDependencies waiting({after});
      Keep(Identity(Any()));
      break;
    }
    default: {
      const Output before = Any();
      const Output number = Number();
      const ControlDependencies after({before});
      Keep(Neg(number));
    }
  }
}

void RandomOps::IrregularOp() {
  const Output x = Number();
  if (r_.Chance(50)) {
    const Output places = Where(Greater(Flat(x), Constant(x.dtype(), Shape())));
    Keep(Sum(Cast(places, DType::kFloat)));
  } else {
    const auto [values, places] = Unique(Flat(Floor(Cast(x, DType::kFloat))));
    if (!ok()) return;
    Keep(Size(values));
    Keep(places);
  }
}

}  // namespace tenon::testing
