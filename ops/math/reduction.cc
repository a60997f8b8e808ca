// SPDX-License-Identifier: Apache-2.0
#include "ops/math/reduction.h"

#include <algorithm>
#include <array>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/math/reducers.h"
#include "ops/math/vector_reductions.h"

namespace tenon {
namespace {

constexpr int64_t kLanes = 16;
/// Long runs are cut into pieces of this length, whatever the number of threads, so that results do
/// not depend on it.
constexpr int64_t kPiece = 1 << 15;
/// Columns that are reduced together.
constexpr int64_t kColumnBlock = 64;
constexpr double kReduceNs = 0.15;
/// Rows of a block of columns that are reduced together; these are merged.
constexpr int64_t kRowPiece = 2048;

template <typename R, typename T>
inline constexpr bool kIsSum = std::is_floating_point_v<T> && (std::is_same_v<R, SumReducer<T>> ||
                                                               std::is_same_v<R, MeanReducer<T>>);

template <typename R, typename T>
inline constexpr bool kIsProduct = std::is_same_v<R, ProdReducer<T>>;

/// Results that may leave the range of Acc, and come back into it, keep the order of the elements
/// of a column, so that they are infinite where TensorFlow's are.
template <typename R, typename T>
inline constexpr bool kInOrder =
    kIsProduct<R, T> || std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;

template <typename R, typename T>
typename R::Acc OfFour(T a, T b, T c, T d) {
  return R::Merge(R::Merge(OfElement<R>(a), OfElement<R>(b)),
                  R::Merge(OfElement<R>(c), OfElement<R>(d)));
}

template <typename R, typename T>
typename R::Acc ReducePiece(const T* x, int64_t n) {
  using Acc = typename R::Acc;
  if constexpr (kIsSum<R, T>) return VectorSum(x, n);
  if constexpr (std::is_same_v<R, MaxReducer<T>> && std::is_floating_point_v<T>) {
    return VectorMax(x, n);
  }
  if constexpr (std::is_same_v<R, MinReducer<T>> && std::is_floating_point_v<T>) {
    return VectorMin(x, n);
  }
  if (n < 2 * kLanes) {
    Acc acc = R::Start();
    for (int64_t i = 0; i < n; ++i) acc = WithElement<R>(acc, x[i]);
    return acc;
  }
  Acc lanes[kLanes];
  std::fill_n(lanes, kLanes, R::Start());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    TENON_SIMD
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = WithElement<R>(lanes[l], x[i + l]);
  }
  for (; i < n; ++i) lanes[0] = WithElement<R>(lanes[0], x[i]);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t l = 0; l < width; ++l) lanes[l] = R::Merge(lanes[l], lanes[l + width]);
  }
  return lanes[0];
}

template <typename R, typename T>
typename R::Acc ReduceRun(const T* x, int64_t n) {
  if (n <= kPiece) return ReducePiece<R>(x, n);
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  CountedVector<std::array<typename R::Acc, 1>> parts(pieces);  // bool has no vector of its own
  ParallelFor(pieces, kReduceNs * kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      parts[p][0] = ReducePiece<R>(x + p * kPiece, std::min(kPiece, n - p * kPiece));
    }
  });
  typename R::Acc acc = parts[0][0];
  for (int64_t p = 1; p < pieces; ++p) acc = R::Merge(acc, parts[p][0]);
  return acc;
}

/// Every output element is made of runs of neighbouring input elements.
template <typename R, typename T>
void ReduceRows(const ReductionPlan& plan, const T* in, T* out) {
  const int64_t run = plan.reduced.empty() ? 1 : plan.reduced.back().size;
  const size_t outer = plan.reduced.empty() ? 0 : plan.reduced.size() - 1;
  const int64_t runs = plan.num_reduced / run;
  const double cost = 5 + kReduceNs * static_cast<double>(plan.num_reduced);
  ParallelFor(plan.num_kept, cost, [&](int64_t begin, int64_t end) {
    OffsetWalk kept(plan.kept.data(), plan.kept.size(), begin);
    for (int64_t o = begin; o < end; ++o, kept.Next()) {
      if (runs == 1) {
        const typename R::Acc acc = ReduceRun<R>(in + kept.offset(), run);
        out[o] = static_cast<T>(R::Finish(acc, run));
        continue;
      }
      OffsetWalk reduced(plan.reduced.data(), outer, 0);
      typename R::Acc acc = ReduceRun<R>(in + kept.offset(), run);
      for (int64_t r = 1; r < runs; ++r) {
        if (r % kStepsBetweenLooks == 0 && Interrupted()) return;
        reduced.Next();
        acc = R::Merge(acc, ReduceRun<R>(in + kept.offset() + reduced.offset(), run));
      }
      out[o] = static_cast<T>(R::Finish(acc, plan.num_reduced));
    }
  });
}

/// The elements `count` of the reduced axes from `first` on, of n columns beside each other.
template <typename R, typename T>
void ReduceColumnPiece(const ReductionPlan& plan, const T* in, int64_t first, int64_t count,
                       int64_t n, typename R::Acc* acc) {
  std::fill_n(acc, n, R::Start());
  int64_t r = 0;
  // Few columns do not fill a vector; several rows of them, which are neighbours, do.
  const bool one = plan.reduced.size() == 1;
  const int64_t beside = one && plan.reduced[0].stride == n ? kColumnBlock / n : 1;
  if (!kInOrder<R, T> && beside >= 4 && count >= 2 * beside) {
    const ReductionPlan::Dim rows = plan.reduced[0];
    ReductionPlan wide;
    wide.reduced = {{rows.size / beside, rows.stride * beside}};
    r = count / beside * beside;
    typename R::Acc sums[kColumnBlock];
    ReduceColumnPiece<R>(wide, in + first * n, 0, r / beside, beside * n, sums);
    for (int64_t i = 0; i < beside; ++i) {
      for (int64_t k = 0; k < n; ++k) acc[k] = R::Merge(acc[k], sums[i * n + k]);
    }
  }
  OffsetWalk reduced(plan.reduced.data(), plan.reduced.size(), first + r);
  const auto next = [&] {
    const T* const x = in + reduced.offset();
    reduced.Next();
    return x;
  };
  for (; r + 4 <= count && !kInOrder<R, T>; r += 4) {
    const T *const a = next(), *const b = next(), *const c = next(), *const d = next();
    TENON_SIMD
    for (int64_t k = 0; k < n; ++k) {
      acc[k] = R::Merge(acc[k], OfFour<R>(a[k], b[k], c[k], d[k]));
    }
  }
  for (; r < count; ++r) {
    const T* const x = next();
    TENON_SIMD
    for (int64_t k = 0; k < n; ++k) acc[k] = WithElement<R>(acc[k], x[k]);
  }
}

/// Neighbouring input elements belong to neighbouring output elements.
template <typename R, typename T>
void ReduceColumns(const ReductionPlan& plan, const T* in, T* out) {
  using Acc = typename R::Acc;
  const int64_t columns = plan.kept.back().size;
  const int64_t blocks = (columns + kColumnBlock - 1) / kColumnBlock;
  const int64_t items = plan.num_kept / columns * blocks;
  // Whatever the number of threads, as with long runs.
  const int64_t rows_each = kIsProduct<R, T> ? plan.num_reduced : kRowPiece;
  const int64_t pieces = (plan.num_reduced + rows_each - 1) / rows_each;
  const int64_t width = std::min(columns, kColumnBlock);
  CountedVector<std::array<Acc, 1>> parts(pieces == 1 ? 0 : items * pieces * width);
  const auto finish = [&](int64_t item, const Acc* acc) {
    const int64_t first = item % blocks * kColumnBlock, n = std::min(width, columns - first);
    T* const y = out + item / blocks * columns + first;
    for (int64_t k = 0; k < n; ++k) y[k] = static_cast<T>(R::Finish(acc[k], plan.num_reduced));
  };
  const double cost =
      kReduceNs * static_cast<double>(std::min(plan.num_reduced, rows_each) * width);
  ParallelFor(items * pieces, cost, [&](int64_t begin, int64_t end) {
    Acc acc[kColumnBlock];
    for (int64_t i = begin; i < end && !Interrupted(); ++i) {
      const int64_t item = i / pieces, done = i % pieces * rows_each;
      const int64_t first = item % blocks * kColumnBlock;
      const OffsetWalk kept(plan.kept.data(), plan.kept.size() - 1, item / blocks);
      ReduceColumnPiece<R>(plan, in + kept.offset() + first, done,
                           std::min(rows_each, plan.num_reduced - done),
                           std::min(width, columns - first), acc);
      if (pieces == 1) {
        finish(item, acc);
      } else {
        const int64_t n = std::min(width, columns - first);
        for (int64_t k = 0; k < n; ++k) parts[i * width + k][0] = acc[k];
      }
    }
  });
  if (pieces == 1 || Interrupted()) return;
  for (int64_t item = 0; item < items; ++item) {
    const int64_t n = std::min(width, columns - item % blocks * kColumnBlock);
    Acc acc[kColumnBlock];
    std::fill_n(acc, n, R::Start());
    for (int64_t i = item * pieces; i < (item + 1) * pieces; ++i) {
      for (int64_t k = 0; k < n; ++k) acc[k] = R::Merge(acc[k], parts[i * width + k][0]);
    }
    finish(item, acc);
  }
}

/// For a dtype of `types`.
template <template <typename> typename R, typename Types>
void Reduce(DType type, Types types, const ReductionPlan& plan, const void* in, void* out) {
  Dispatch(type, types, [&]<typename T>(T) {
    const T* x = static_cast<const T*>(in);
    T* y = static_cast<T*>(out);
    if (plan.num_reduced == 0) {
      std::fill_n(y, plan.num_kept, static_cast<T>(R<T>::Finish(R<T>::Start(), 0)));
    } else if (plan.num_kept != 0) {
      plan.inner_is_reduced ? ReduceRows<R<T>>(plan, x, y) : ReduceColumns<R<T>>(plan, x, y);
    }
  });
}

template <template <typename> typename R, typename Types>
Status ReductionKernel(KernelContext& ctx, const Tensor& x, bool keep_dims) {
  TENON_ASSIGN_OR_RETURN(const AxisFlags axes, ReducedAxes(ctx.input(1), x.rank()));
  const ReductionPlan plan = PlanReduction(x.shape(), axes, keep_dims);
  // Nothing is added up. Means and products of one element are that element, too; norms are not.
  if (plan.num_reduced == 1 && !std::is_same_v<R<float>, NormReducer<float>>)
    return ctx.Return(x.Reshaped(plan.shape));
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, plan.shape));
  Reduce<R>(x.dtype(), Types(), plan, x.raw_data(), y->raw_data());
  return OkStatus();
}

template <template <typename> typename R, typename Types>
OpBuilder Add(OpRegistry& ops, std::string_view name, Types types) {
  KernelOptions options = {.attrs = {"keep_dims"}};
  OpBuilder op = ops.Get(name);
  if (op.schema().FindAttr("T") != nullptr) options.types = {{"T", DTypesOf(types)}};
  const auto axes = [](std::initializer_list<int32_t> a) { return Tensor::Vector<int32_t>(a); };
  op.Shape(ReductionShape)
      .Kernel(kCpu, ReductionKernel<R, Types>, options)
      .Example({Shape{2, 3, 4}, axes({1})})
      .Example({Shape{2, 3, 4}, axes({0, 2})})
      .Example({Shape{2, 3, 4}, axes({-1})}, {{"keep_dims", true}})
      .Example({Shape{2, 3}, axes({0, 1})})
      .Example({Shape{2, 3}, axes({})})
      .Example({Shape{5, 3}, Tensor::Scalar<int64_t>(0)});
  return op;
}

}  // namespace

void SumAlong(DType type, const ReductionPlan& plan, const void* in, void* out) {
  Reduce<SumReducer>(type, NumericTypes(), plan, in, out);
}

void RegisterReductions(OpRegistry& ops) {
  Add<SumReducer>(ops, "Sum", NumericTypes()).Grad(SumGrad);
  Add<MeanReducer>(ops, "Mean", NumericTypes()).Grad(MeanGrad);
  Add<ProdReducer>(ops, "Prod", NumericTypes()).Grad(ProdGrad);
  Add<MaxReducer>(ops, "Max", RealTypes()).Grad(MinOrMaxGrad);
  Add<MinReducer>(ops, "Min", RealTypes()).Grad(MinOrMaxGrad);
  Add<NormReducer>(ops, "EuclideanNorm", NumericTypes()).Grad(NormGrad);
  // false is less than true.
  Add<MinReducer>(ops, "All", TypeList<bool>());
  Add<MaxReducer>(ops, "Any", TypeList<bool>());
}

}  // namespace tenon
