// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/top_k.h"

namespace tenon {
namespace {

/// Whether number i comes before number j of a row: the larger first, of equals the one of lower
/// index. A NaN is larger than all numbers, so that this is an order.
template <typename T>
bool ComesBefore(const T* row, int64_t i, int64_t j) {
  using C = ComputeType<T>;
  const C x(row[i]), y(row[j]);
  const bool x_is_nan = IsNan(x), y_is_nan = IsNan(y);
  if (x_is_nan != y_is_nan) return x_is_nan;
  if (x_is_nan || x == y) return i < j;
  return x > y;
}

/// The first number of a row in [begin, end) that comes before number `last`, whose index is lower;
/// `end` when none does.
template <typename T>
int64_t FindBefore(const T* row, int64_t begin, int64_t end, int64_t last) {
  using C = ComputeType<T>;
  const C least(row[last]);
  if (IsNan(least)) return end;
  const auto is_before = [=](T value) { return !(C(value) <= least); };  // also a NaN
  constexpr int64_t kBlock = 16;
  int64_t i = begin;
  for (; i + kBlock <= end; i += kBlock) {
    int found = 0;
    for (int64_t j = 0; j < kBlock; ++j) found |= is_before(row[i + j]);
    if (found != 0) break;
  }
  while (i < end && !is_before(row[i])) ++i;
  return i;
}

/// Writes the k first of a row of `n`, and where they are. `order` is room for k numbers, k > 0.
template <typename T, typename Index>
void TopOfRow(const T* row, int64_t n, int64_t k, int64_t* order, T* values, Index* indices) {
  const auto before = [=](int64_t i, int64_t j) { return ComesBefore(row, i, j); };
  std::iota(order, order + k, 0);
  // A heap of the k first so far, the last of them in front: few of the others come before it.
  std::make_heap(order, order + k, before);
  for (int64_t begin = k; begin < n; begin += kStepsBetweenLooks) {
    if (Interrupted()) return;
    const int64_t end = std::min<int64_t>(n, begin + kStepsBetweenLooks);
    for (int64_t i = begin; (i = FindBefore(row, i, end, order[0])) < end; ++i) {
      std::pop_heap(order, order + k, before);
      order[k - 1] = i;
      std::push_heap(order, order + k, before);
    }
  }
  std::sort(order, order + k, before);
  for (int64_t i = 0; i < k; ++i) {
    values[i] = row[order[i]];
    indices[i] = static_cast<Index>(order[i]);
  }
}

/// The bits of a number of up to 32 bits as one that is the smaller, the earlier it comes.
template <typename T>
uint32_t SortKey(T value) {
  if constexpr (std::is_integral_v<T>) {
    return ~(static_cast<uint32_t>(value) ^ (std::is_signed_v<T> ? 0x80000000u : 0));
  } else {
    const float x = static_cast<float>(value) + 0.0f;  // -0 is 0
    if (std::isnan(x)) return 0;
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    return ~(bits >> 31 != 0 ? ~bits : bits | 0x80000000u);
  }
}

/// TopOfRow for large k: sorts all by their keys, eleven bits at a time (radix sort, which keeps
/// the order of equals). `room` is for 2 n numbers.
template <typename T, typename Index>
void SortRow(const T* row, int64_t n, int64_t k, uint64_t* room, T* values, Index* indices) {
  constexpr int kBits = 11, kBuckets = 1 << kBits;
  uint64_t *from = room, *to = room + n;
  for (int64_t i = 0; i < n; ++i) from[i] = uint64_t{SortKey(row[i])} << 32 | i;
  for (int shift = 32; shift < 64 && !Interrupted(); shift += kBits, std::swap(from, to)) {
    int64_t starts[kBuckets + 1] = {};
    for (int64_t i = 0; i < n; ++i) ++starts[(from[i] >> shift) % kBuckets + 1];
    std::partial_sum(starts, starts + kBuckets, starts);
    for (int64_t i = 0; i < n; ++i) to[starts[(from[i] >> shift) % kBuckets]++] = from[i];
  }
  for (int64_t i = 0; i < k; ++i) {
    const auto place = static_cast<uint32_t>(from[i]);
    values[i] = row[place];
    indices[i] = static_cast<Index>(place);
  }
}

Status TopK(KernelContext& ctx, int64_t k) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const Shape shape, TopKResult(in.shape(), k));
  const int last = in.rank() - 1;
  const int64_t n = in.dim(last), rows = Product(in.shape().dims(), 0, last);
  TENON_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, shape));
  TENON_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(1, shape));
  if (shape.num_elements() == 0) return OkStatus();
  const auto run = [&]<typename T, typename Index>(T, Index) -> Status {
    if (n - 1 > std::numeric_limits<Index>::max()) return TooLongFor(indices->dtype(), n);
    // What many numbers are worth sorting at once, and what the sort has room for.
    if (sizeof(T) <= 4 && n >= 4096 && k >= n / 16 && n <= std::numeric_limits<uint32_t>::max()) {
      ParallelFor(rows, 20 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
        CountedVector<uint64_t> room(2 * n);
        for (int64_t r = begin; r < end; ++r) {
          SortRow(in.data<T>() + r * n, n, k, room.data(), values->data<T>() + r * k,
                  indices->data<Index>() + r * k);
        }
      });
      return OkStatus();
    }
    ParallelFor(rows, 2 * static_cast<double>(n + 10 * k), [&](int64_t begin, int64_t end) {
      CountedVector<int64_t> order(k);
      for (int64_t r = begin; r < end; ++r) {
        TopOfRow(in.data<T>() + r * n, n, k, order.data(), values->data<T>() + r * k,
                 indices->data<Index>() + r * k);
      }
    });
    return OkStatus();
  };
  return DispatchStatus(in.dtype(), RealTypes(), [&]<typename T>(T value) {
    return DispatchStatus(indices->dtype(), TypeList<int16_t, int32_t, int64_t>(),
                          [&]<typename Index>(Index index) { return run(value, index); });
  });
}

Status TopKV2Kernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const int64_t k, ReadInteger(ctx.input(1), "k"));
  return TopK(ctx, k);
}

Status TopKShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, c.WithRankAtLeast(0, 1));
  int64_t k = c.attrs().GetOr("k", PartialShape::kUnknownDim);
  if (c.num_inputs() > 1) {
    TENON_RETURN_IF_ERROR(c.WithRank(1, 0));
    if (c.constant(1) != nullptr) {
      TENON_ASSIGN_OR_RETURN(k, ReadInteger(*c.constant(1), "k"));
      if (k < 0) return InvalidArgument("Need k >= 0, got ", k);
    }
  }
  if (!in.rank_known()) return OkStatus();
  const int64_t n = in.dim(in.rank() - 1);
  if (k >= 0 && n >= 0 && n < k) {
    return InvalidArgument("input must have last dimension >= k = ", k, " but is ", n);
  }
  return c.ReturnForEach(in.WithDim(in.rank() - 1, k));
}

/// Each gradient goes to where its value was: in the tensor seen as rows, at a place in all of it.
void TopKGrad(GradContext& g) {
  const Output in = g.in(0), zero = Const(0, {.dtype = DType::kInt64});
  const Output shape = ShapeOf(in, {.out_type = DType::kInt64});
  const Output size = Prod(shape, {0});
  const Output row = Gather(shape, Rank(in) - 1);
  const Output indices = Cast(g.out(1), DType::kInt64);
  const Output k = Gather(ShapeOf(indices, {.out_type = DType::kInt64}), Rank(in) - 1);
  const Output rows = Prod(Slice(shape, Const({0}), Reshape(Rank(in) - 1, {1})), {0});
  const Output first = ExpandDims(Range(zero, rows, OnesLike(zero)) * row, 1);
  const Output places = Reshape(indices, Pack({rows, k})) + first;
  const Output flat = Reshape(places, {-1, 1});
  g.dx(0) = Reshape(ScatterNd(flat, Reshape(g.dy(0), {-1}), Reshape(size, {1})), shape);
}

}  // namespace

StatusOr<Shape> TopKResult(const Shape& in, int64_t k) {
  if (in.rank() < 1) return InvalidArgument("input must be >= 1-D, got shape ", in);
  if (k < 0) return InvalidArgument("Need k >= 0, got ", k);
  const int last = in.rank() - 1;
  if (in.dim(last) >= k) return in.WithDim(last, k);
  return InvalidArgument("input must have at least k columns. Had ", in.dim(last), ", needed ", k);
}

Status TooLongFor(DType index_type, int64_t n) {
  return InvalidArgument("rows of ", n, " have indices that ", index_type, " does not hold");
}

void RegisterTopK(OpRegistry& ops) {
  ops.Add("TopK", TopKShape, TopK, {.attrs = {"k"}})
      .Grad(TopKGrad)
      .Example({Shape{2, 4}}, {{"k", 3}});
  ops.Add("TopKV2", TopKShape, TopKV2Kernel)
      .Grad(TopKGrad)
      .Example({Shape{5}, Tensor::Scalar<int32_t>(2)})
      .Example({Shape{2, 2, 4}, Tensor::Scalar<int32_t>(3)});
}

}  // namespace tenon
