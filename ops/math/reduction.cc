// SPDX-License-Identifier: Apache-2.0
#include "ops/math/reduction.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/counted_memory.h"
#include "core/interruption.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/maths.h"
#include "ops/math/reduction_gradients.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

/// Floating point sums are kept in double precision: their error then does not grow with length.
template <typename T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<float> {
  using type = double;
};
template <>
struct WideOf<std::complex<float>> {
  using type = std::complex<double>;
};
template <typename T>
using Wide = typename WideOf<ComputeType<T>>::type;

// A reducer over T: Acc, where it starts, how an element or another Acc joins, and the result.

template <typename T>
struct SumReducer {
  using Acc = Wide<T>;
  static Acc Start() { return Acc(0); }
  static Acc Step(Acc acc, T x) { return Plus(acc, static_cast<Acc>(x)); }
  static Acc Merge(Acc a, Acc b) { return Plus(a, b); }
  static T Finish(Acc acc, int64_t) { return static_cast<T>(acc); }
};

template <typename T>
struct MeanReducer {
  /// The sum of integers may be more than T holds when their mean is not.
  using Acc = std::conditional_t<std::is_integral_v<T>,
                                 std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>, Wide<T>>;
  static Acc Start() { return Acc(0); }
  static Acc Step(Acc acc, T x) { return Plus(acc, static_cast<Acc>(x)); }
  static Acc Merge(Acc a, Acc b) { return Plus(a, b); }
  static T Finish(Acc acc, int64_t n) {
    if constexpr (std::is_integral_v<T>) {
      return n == 0 ? T(0) : static_cast<T>(acc / static_cast<Acc>(n));
    } else if constexpr (kIsComplex<T>) {
      return n == 0 ? T(0) : static_cast<T>(acc / Acc(static_cast<double>(n)));
    } else {
      return static_cast<T>(acc / Acc(static_cast<double>(n)));
    }
  }
};

template <typename T>
struct ProdReducer {
  using Acc = Wide<T>;
  static Acc Start() { return Acc(1); }
  static Acc Step(Acc acc, T x) { return Times(acc, static_cast<Acc>(x)); }
  static Acc Merge(Acc a, Acc b) { return Times(a, b); }
  static T Finish(Acc acc, int64_t) { return static_cast<T>(acc); }
};

template <typename T>
T Infinity(int sign) {
  if constexpr (std::numeric_limits<T>::has_infinity) {
    return sign * std::numeric_limits<T>::infinity();
  } else {
    return sign > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
  }
}

/// NaN wins over everything.
template <typename T>
struct MaxReducer {
  using Acc = ComputeType<T>;
  static Acc Start() { return Infinity<Acc>(-1); }
  static Acc Merge(Acc a, Acc b) { return a < b || IsNan(b) ? b : a; }
  static Acc Step(Acc acc, T x) { return Merge(acc, static_cast<Acc>(x)); }
  static T Finish(Acc acc, int64_t) { return static_cast<T>(acc); }
};

template <typename T>
struct MinReducer {
  using Acc = ComputeType<T>;
  static Acc Start() { return Infinity<Acc>(1); }
  static Acc Merge(Acc a, Acc b) { return b < a || IsNan(b) ? b : a; }
  static Acc Step(Acc acc, T x) { return Merge(acc, static_cast<Acc>(x)); }
  static T Finish(Acc acc, int64_t) { return static_cast<T>(acc); }
};

template <typename T>
struct AllReducer {
  using Acc = bool;
  static Acc Start() { return true; }
  static Acc Step(Acc acc, T x) { return acc & x; }
  static Acc Merge(Acc a, Acc b) { return a & b; }
  static T Finish(Acc acc, int64_t) { return acc; }
};

template <typename T>
struct AnyReducer {
  using Acc = bool;
  static Acc Start() { return false; }
  static Acc Step(Acc acc, T x) { return acc | x; }
  static Acc Merge(Acc a, Acc b) { return a | b; }
  static T Finish(Acc acc, int64_t) { return acc; }
};

constexpr int64_t kLanes = 16;
/// Long runs are cut into pieces of this length, whatever the number of threads, so that results do
/// not depend on it.
constexpr int64_t kPiece = 1 << 15;
/// Columns that are reduced together.
constexpr int64_t kColumnBlock = 64;
constexpr double kReduceNs = 0.3;
template <typename R, typename T>
typename R::Acc ReducePiece(const T* x, int64_t n) {
  using Acc = typename R::Acc;
  if (n < 2 * kLanes) {
    Acc acc = R::Start();
    for (int64_t i = 0; i < n; ++i) acc = R::Step(acc, x[i]);
    return acc;
  }
  Acc lanes[kLanes];
  std::fill_n(lanes, kLanes, R::Start());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    TENON_SIMD
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = R::Step(lanes[l], x[i + l]);
  }
  for (; i < n; ++i) lanes[0] = R::Step(lanes[0], x[i]);
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
      OffsetWalk reduced(plan.reduced.data(), outer, 0);
      typename R::Acc acc = ReduceRun<R>(in + kept.offset(), run);
      for (int64_t r = 1; r < runs; ++r) {
        if (r % kStepsBetweenLooks == 0 && Interrupted()) return;
        reduced.Next();
        acc = R::Merge(acc, ReduceRun<R>(in + kept.offset() + reduced.offset(), run));
      }
      out[o] = R::Finish(acc, plan.num_reduced);
    }
  });
}

/// Neighbouring input elements belong to neighbouring output elements.
template <typename R, typename T>
void ReduceColumns(const ReductionPlan& plan, const T* in, T* out) {
  const int64_t columns = plan.kept.back().size;
  const int64_t blocks = (columns + kColumnBlock - 1) / kColumnBlock;
  const int64_t rows = plan.num_kept / columns;
  const double cost =
      kReduceNs * static_cast<double>(plan.num_reduced * std::min(columns, kColumnBlock));
  ParallelFor(rows * blocks, cost, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / blocks, first = item % blocks * kColumnBlock;
      const int64_t n = std::min(kColumnBlock, columns - first);
      const OffsetWalk kept(plan.kept.data(), plan.kept.size() - 1, row);
      OffsetWalk reduced(plan.reduced.data(), plan.reduced.size(), 0);
      typename R::Acc acc[kColumnBlock];
      std::fill_n(acc, n, R::Start());
      for (int64_t r = 0; r < plan.num_reduced; ++r, reduced.Next()) {
        if (r % kStepsBetweenLooks == 0 && Interrupted()) return;
        const T* x = in + kept.offset() + reduced.offset() + first;
        TENON_SIMD
        for (int64_t k = 0; k < n; ++k) acc[k] = R::Step(acc[k], x[k]);
      }
      T* y = out + row * columns + first;
      for (int64_t k = 0; k < n; ++k) y[k] = R::Finish(acc[k], plan.num_reduced);
    }
  });
}

using ReduceFn = void (*)(const ReductionPlan& plan, const void* in, void* out);

template <typename R, typename T>
void Reduce(const ReductionPlan& plan, const void* in, void* out) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  if (plan.num_reduced == 0) {
    std::fill_n(y, plan.num_kept, R::Finish(R::Start(), 0));
  } else if (plan.num_kept != 0) {
    plan.inner_is_reduced ? ReduceRows<R>(plan, x, y) : ReduceColumns<R>(plan, x, y);
  }
}

template <template <typename> typename R, typename... Ts>
std::array<ReduceFn, kNumDTypes> Functions(TypeList<Ts...>) {
  std::array<ReduceFn, kNumDTypes> functions{};
  ((functions[static_cast<int>(kDTypeOf<Ts>)] = &Reduce<R<Ts>, Ts>), ...);
  return functions;
}

class ReductionCpu final : public Kernel {
 public:
  ReductionCpu(KernelConstruction& c, ReduceFn reduce)
      : Kernel(c), reduce_(reduce), keep_dims_(c.Attr<bool>("keep_dims")) {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    TENON_ASSIGN_OR_RETURN(const std::vector<bool> axes, ReducedAxes(ctx.input(1), x.rank()));
    const ReductionPlan plan = PlanReduction(x.shape(), axes, keep_dims_);
    if (plan.num_reduced == 1) {
      // Nothing is added up. Means and products of one element are that element, too.
      TENON_ASSIGN_OR_RETURN(Tensor same, x.Reshaped(plan.shape));
      ctx.set_output(0, std::move(same));
      return OkStatus();
    }
    TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, plan.shape));
    reduce_(plan, x.raw_data(), y->raw_data());
    return OkStatus();
  }

 private:
  const ReduceFn reduce_;
  const bool keep_dims_;
};

OpBuilder& Add(OpBuilder&& op, const DTypeVector& types,
               const std::array<ReduceFn, kNumDTypes>& functions) {
  KernelOptions options;
  if (!types.empty()) options.types = {{"T", types}};
  options.host_args = {"reduction_indices"};
  const auto axes = [](std::initializer_list<int32_t> a) { return Tensor::Vector<int32_t>(a); };
  op.Shape(ReductionShape)
      .Example({Shape{2, 3, 4}, axes({1})})
      .Example({Shape{2, 3, 4}, axes({0, 2})})
      .Example({Shape{2, 3, 4}, axes({-1})}, {{"keep_dims", true}})
      .Example({Shape{2, 3}, axes({0, 1})})
      .Example({Shape{2, 3}, axes({})})
      .Example({Shape{5, 3}, Tensor::Scalar<int64_t>(0)});
  op.AddKernel(kCpu, options, [functions](KernelConstruction& c) {
    return std::make_unique<ReductionCpu>(
        c, functions[static_cast<int>(BaseType(c.input_types()[0]))]);
  });
  return op;
}

}  // namespace

void SumAlong(DType type, const ReductionPlan& plan, const void* in, void* out) {
  static const auto functions = Functions<SumReducer>(NumericTypes());
  functions[static_cast<int>(type)](plan, in, out);
}

void RegisterReductions(OpRegistry& ops) {
  const DTypeVector numeric = DTypesOf(NumericTypes()), real = DTypesOf(RealTypes());
  Add(ops.Get("Sum"), numeric, Functions<SumReducer>(NumericTypes())).Grad(SumGrad);
  Add(ops.Get("Mean"), numeric, Functions<MeanReducer>(NumericTypes())).Grad(MeanGrad);
  Add(ops.Get("Prod"), numeric, Functions<ProdReducer>(NumericTypes())).Grad(ProdGrad);
  Add(ops.Get("Max"), real, Functions<MaxReducer>(RealTypes())).Grad(MinOrMaxGrad);
  Add(ops.Get("Min"), real, Functions<MinReducer>(RealTypes())).Grad(MinOrMaxGrad);
  Add(ops.Get("All"), {}, Functions<AllReducer>(TypeList<bool>()));
  Add(ops.Get("Any"), {}, Functions<AnyReducer>(TypeList<bool>()));
}

}  // namespace tenon
